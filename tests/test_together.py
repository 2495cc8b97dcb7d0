"""Searches side by side go exactly the way each would have gone alone."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.naive_bayes import GaussianNB

from subswarm import Budget, make_objective, search, search_together
from subswarm.errors import SettingError

ALGORITHMS = ["2d-upso", "ga", "aco", "bpso", "2d-upso", "sfs"]
SEEDS = [1, 2, 3, 4, 5, 6]


@pytest.fixture(scope="module")
def objective():
    X, y = load_wine(return_X_y=True)
    return make_objective(GaussianNB(), X, y)


def same(one, other):
    assert np.array_equal(one.best.mask, other.best.mask)
    assert one.best.fitness == other.best.fitness
    assert (one.stop_reason, one.evaluations, one.computed) == (other.stop_reason, other.evaluations, other.computed)
    assert (one.algorithm, one.settings, one.engine) == (other.algorithm, other.settings, other.engine)
    for name in ("evaluations", "best_fitness", "best_cardinality", "spread"):
        assert np.array_equal(getattr(one.history, name), getattr(other.history, name))
    assert np.array_equal(one.front.masks, other.front.masks)
    assert np.array_equal(one.front.fitness, other.front.fitness)
    assert np.array_equal(one.fold_losses, other.fold_losses)


def test_each_search_goes_the_way_it_would_have_gone_alone(objective):
    budget = Budget(evaluations=500)
    together = search_together(ALGORITHMS, objective.fresh(), budget, rngs=SEEDS)
    for algorithm, seed, result in zip(ALGORITHMS, SEEDS, together, strict=True):
        same(result, search(algorithm, objective.fresh(), budget, rng=seed))


def test_searches_may_stop_at_different_times_and_for_different_reasons(objective):
    budget = Budget(evaluations=400, patience=90)
    together = search_together(ALGORITHMS, objective.fresh(), budget, rngs=SEEDS)
    assert len({result.evaluations for result in together}) > 1
    for algorithm, seed, result in zip(ALGORITHMS, SEEDS, together, strict=True):
        same(result, search(algorithm, objective.fresh(), budget, rng=seed))


def test_a_subset_that_several_ask_for_is_scored_once(objective):
    shared = objective.fresh()
    results = search_together(["2d-upso"] * 3, shared, Budget(evaluations=120), rngs=[7, 7, 7])
    assert shared.computed == results[0].computed < 3 * results[0].computed
    assert shared.asked == 360


def test_each_step_is_one_batch():
    batches = []

    def fitness(masks):
        batches.append(len(masks))
        return masks.mean(axis=1)

    search_together(["2d-upso", "bpso"], fitness, Budget(evaluations=90), rngs=[0, 1], n_features=8)
    assert batches == [60, 60, 60]


def test_time_is_shared_out_by_subsets(objective):
    results = search_together(["2d-upso", "ga"], objective.fresh(), Budget(evaluations=240), rngs=[0, 1])
    for result in results:
        assert result.evaluation_seconds > 0
        assert result.algorithm_seconds > 0


def test_a_generator_for_each_search_is_asked_for(objective):
    with pytest.raises(SettingError, match="2 algorithms and 1 rngs"):
        search_together(["2d-upso", "bpso"], objective, rngs=[0])


def test_no_searches_give_no_results(objective):
    assert search_together([], objective, rngs=[]) == []
