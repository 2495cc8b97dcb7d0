"""The contract of an algorithm, for every one in the registry."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from subswarm import Budget, search
from subswarm._search.ask_tell import Search
from subswarm.algorithms import REGISTRY, BranchAndBound, RankingSearch, get_algorithm, name_of, names
from subswarm.errors import SettingError
from subswarm.testing import check_algorithm

SWARMS = [
    "2d-elite",
    "2d-pareto",
    "2d-gpso",
    "2d-lpso",
    "2d-clpso",
    "2d-upso",
    "bpso",
    "cbpso",
    "chbpso",
    "erfs",
    "pso-42",
    "boolean-pso",
]
FILTERS = ["mutual-information", "anova-f", "relieff", "mrmr"]
STEPWISE = ["sfs", "sbs", "plus-l-minus-r", "sffs", "sbfs"]
WANTED = [*SWARMS, "2d-guided", "ga", "nsga2", "aco", *STEPWISE, "branch-and-bound", "tabu", *FILTERS, "random"]
LIMITS = [
    {"max_features": 5},
    {"min_features": 4, "max_features": 4},
    {"min_features": 3, "max_features": 6, "fixed_features": (1, 7)},
    {"feature_sizes": (3, 1, 2, 4, 1, 2, 1, 1, 1, 5, 1, 1), "min_features": 4, "max_features": 6},
]
BATCH = {
    **dict.fromkeys(SWARMS, 30),
    "ga": 80,
    "nsga2": 100,
    "aco": 50,
    "random": 30,
    **dict.fromkeys(FILTERS, 50),
}


def made(name, n_features, **settings):
    """The algorithm of this name; a filter with scores, as if from data."""
    algorithm = get_algorithm(name, **settings)
    if isinstance(algorithm, RankingSearch):
        return replace(algorithm, scores=tuple(np.sin(np.arange(n_features)).tolist()))
    return algorithm


def test_the_registry_has_every_algorithm_by_its_name():
    assert sorted(names()) == sorted(WANTED)


@pytest.mark.parametrize("name", WANTED)
def test_an_algorithm_knows_its_name_and_its_source(name):
    assert name_of(get_algorithm(name)) == name
    assert len(REGISTRY[name].source) > 10


@pytest.mark.parametrize("n_features", [1, 2, 3, 12])
@pytest.mark.parametrize("name", WANTED)
def test_the_contract_holds(name, n_features):
    check_algorithm(made(name, n_features), n_features=n_features)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("name", WANTED)
def test_the_contract_holds_within_limits(name, limits):
    check_algorithm(made(name, 12, **limits), n_features=12, seed=3)


@pytest.mark.parametrize("name", WANTED)
def test_five_thousand_features_are_not_too_many(name):
    algorithm = made(name, 5000, max_features=3000)
    course = Search(algorithm, 5000, 0)
    for _ in range(2):
        masks = course.ask()
        assert algorithm.passing_rules(5000).is_legal(masks).all()
        course.tell((~masks).mean(axis=1))


@pytest.mark.parametrize("name", [name for name in WANTED if name not in ("branch-and-bound", "2d-guided")])
def test_initial_subsets_are_where_it_starts(name):
    first = Search(made(name, 12, initial_subsets=((2, 5, 7),)), 12, 0).ask()
    assert np.flatnonzero(first[0]).tolist() == [2, 5, 7]


def test_branch_and_bound_says_that_it_has_only_one_start():
    with pytest.raises(SettingError, match="starts from all features"):
        BranchAndBound(initial_subsets=((2, 5, 7),))


@pytest.mark.parametrize("name", BATCH)
def test_a_step_asks_as_many_subsets_as_documented(name):
    course = Search(made(name, 100), 100, 0)
    for _ in range(2):
        masks = course.ask()
        assert len(masks) == BATCH[name]
        course.tell(masks.mean(axis=1))


@pytest.mark.parametrize("name", [*STEPWISE, "tabu", "branch-and-bound"])
def test_a_step_of_a_deterministic_search_asks_at_most_one_subset_a_feature(name):
    course = Search(made(name, 15, max_features=9), 15, 0)
    sizes = []
    while not course.finished and len(sizes) < 40:
        masks = course.ask()
        sizes.append(len(masks))
        course.tell((~masks).mean(axis=1))
    assert max(sizes) <= 15
    assert max(sizes) > 5


@pytest.mark.parametrize("name", ["ga", "aco", "bpso", "cbpso", "chbpso", "erfs", "pso-42", "boolean-pso", "tabu"])
def test_a_budget_that_ends_inside_a_batch_is_spent_to_the_last_evaluation(name):
    result = search(name, lambda masks: masks.mean(axis=1), Budget(evaluations=137), rng=0, n_features=20)
    assert result.evaluations == 137


@pytest.mark.parametrize("name", STEPWISE)
def test_a_stepwise_search_passes_outside_the_limits_but_answers_within_them(name):
    algorithm = get_algorithm(name, min_features=4, max_features=4)
    weight = np.linspace(1, 2, 9)
    asked = []

    def loss(masks):
        asked.append(masks.copy())
        return 1 - masks @ weight / weight.sum()

    result = search(algorithm, loss, rng=0, n_features=9)
    assert result.best.features.tolist() == [5, 6, 7, 8]
    assert result.front.cardinality.tolist() == [4]
    assert {int(size) for masks in asked for size in masks.sum(axis=1)} > {4}


def test_a_stepwise_search_that_runs_out_of_evaluations_says_so():
    algorithm = get_algorithm("sbs", max_features=2)
    with pytest.raises(SettingError, match=r"sbs was stopped by evaluations after 30 .* allow more evaluations"):
        search(algorithm, lambda masks: masks.mean(axis=1), Budget(evaluations=30), rng=0, n_features=12)


def test_a_target_is_reached_only_by_a_subset_within_the_limits():
    algorithm = get_algorithm("sfs", min_features=3)
    result = search(algorithm, lambda masks: 0.1 * masks.sum(axis=1), Budget(target=0.35), rng=0, n_features=6)
    assert (result.stop_reason, result.best.cardinality) == ("target", 3)
