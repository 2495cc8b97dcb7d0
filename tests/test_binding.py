"""How a search prepares its algorithm: limits, repeats and rankings are filled in exactly once, by `bind`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.naive_bayes import GaussianNB

from subswarm import Budget, Search, SwarmSelector, make_objective, search
from subswarm._search.run import FunctionObjective, SearchObjective, as_objective
from subswarm._types import Limits
from subswarm.algorithms import (
    MRMR,
    Algorithm,
    Problem,
    Race,
    State,
    TwoDElite,
    TwoDUPSO,
    get_algorithm,
    names,
)
from subswarm.algorithms.state import settings_of
from subswarm.errors import SettingError
from subswarm.objective.constraints import ColumnsView, make_space
from subswarm.objective.filters import ranking_scores

WINE = load_wine(return_X_y=True)
BOUND_TO: list[Problem] = []


def mean_size(masks):
    return masks.mean(axis=1)


@dataclass(frozen=True, eq=False)
class Batch(State):
    masks: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Counting(Algorithm):
    """Evaluates random subsets, and counts how often it is bound."""

    def bind(self, problem):
        BOUND_TO.append(problem)
        return super().bind(problem)

    def begin(self, n_features, rng):
        return Batch(self.first_masks(4, n_features, rng))

    def step(self, state, fitness, progress, rng):
        return self.begin(state.masks.shape[1], rng)


def test_a_search_binds_its_algorithm_once():
    BOUND_TO.clear()
    with_limits = FunctionObjective(mean_size, 6)
    with_limits.limits = Limits(max_features=2)
    search(Counting(), with_limits, Budget(evaluations=40), rng=0)
    assert [(problem.n_features, problem.limits.max_features) for problem in BOUND_TO] == [(6, 2)]


def test_the_selector_binds_its_algorithm_once():
    BOUND_TO.clear()
    SwarmSelector(GaussianNB(), Counting(), cv=3, repeats=1, max_features=3, max_evaluations=8, verbose=0).fit(*WINE)
    assert [(problem.n_features, problem.limits.max_features) for problem in BOUND_TO] == [(13, 3)]


def test_an_algorithm_needs_begin_and_step_only():
    with pytest.raises(TypeError, match="abstract"):
        Algorithm()
    result = search(Counting(), mean_size, Budget(evaluations=10), rng=0, n_features=6)
    assert (result.evaluations, result.algorithm) == (10, "Counting")


@pytest.mark.parametrize("name", [name for name in names() if name != "branch-and-bound"])
def test_limits_of_the_problem_replace_those_of_the_algorithm(name):
    limits = Limits(min_features=2, max_features=4, fixed_features=(1,), initial_subsets=((0, 2),))
    ranking = {"ranking": lambda ranking: np.arange(8.0)}
    bound = get_algorithm(name, max_features=7).bind(Problem(8, limits=limits, **ranking))
    assert (bound.min_features, bound.max_features, bound.fixed_features) == (2, 4, (1,))
    assert bound.bind(Problem(8, limits=limits, **ranking)) == bound


def test_limits_that_the_problem_does_not_set_stay():
    bound = TwoDUPSO(max_features=3, fixed_features=(2,)).bind(Problem(8, limits=Limits(min_features=2)))
    assert (bound.min_features, bound.max_features, bound.fixed_features) == (2, 3, (2,))


def test_a_race_binds_its_inner_algorithm_and_stores_no_limits_of_its_own():
    race = Race(TwoDElite(particles=5)).bind(Problem(8, n_partitions=3, limits=Limits(max_features=4)))
    assert (race.n_partitions, race.algorithm.n_partitions) == (3, 1)
    assert race.max_features == race.algorithm.max_features == 4
    assert sorted(settings_of(race)) == ["algorithm", "elite", "n_partitions"]
    with pytest.raises(TypeError, match="max_features"):
        Race(TwoDUPSO(), max_features=4)


def test_more_islands_than_repeats_are_rejected():
    with pytest.raises(SettingError, match="TwoDElite has n_partitions=4, but the search has 2"):
        Search(TwoDElite(n_partitions=4), 8, 0, n_partitions=2)
    assert Search(TwoDElite(n_partitions=1), 8, 0, n_partitions=2).cost == 1


def test_a_filter_by_name_takes_its_scores_from_the_objective():
    result = search("mrmr", make_objective(GaussianNB(), *WINE), Budget(evaluations=20), rng=0)
    assert result.settings["scores"] == ranking_scores("mrmr", *WINE).tolist()


def test_a_search_by_hand_takes_limits_and_a_ranking():
    by_hand = Search(MRMR(), 13, 0, limits=Limits(max_features=2), ranking=lambda name: ranking_scores(name, *WINE))
    assert by_hand.ask().sum(axis=1).tolist() == [1, 2]


def test_a_state_must_derive_from_state():
    @dataclass(frozen=True)
    class Bare:
        masks: np.ndarray

    @dataclass(frozen=True, kw_only=True)
    class Careless(Counting):
        def begin(self, n_features, rng):
            return Bare(np.ones((1, n_features), dtype=bool))

    with pytest.raises(SettingError, match="Careless returned a Bare; expected a dataclass derived from State"):
        Search(Careless(), 5, 0)


def test_objectives_are_used_as_they_are_and_functions_are_wrapped_once():
    objective = make_objective(GaussianNB(), *WINE)
    view = ColumnsView(objective, make_space(13, feature_groups=[[0, 1]], max_features=4))
    assert as_objective(objective) is objective
    assert as_objective(view) is view
    assert view.limits == Limits(max_features=4, feature_sizes=(2, *[1] * 11))
    wrapped = as_objective(mean_size, 5)
    assert isinstance(wrapped, SearchObjective)
    assert (wrapped.n_features, wrapped.n_partitions, wrapped.computed, wrapped.engine) == (5, 1, None, "function")
    assert wrapped.losses_of(np.ones(5, dtype=bool)) is None
    assert wrapped.fingerprint_parts() == {}


def test_a_number_of_features_that_contradicts_the_objective_is_rejected():
    with pytest.raises(SettingError, match="n_features is 5, but the objective has 13 features"):
        search("random", make_objective(GaussianNB(), *WINE), n_features=5)
