"""Dominance, hypervolume and NSGA-II, against worked examples and pymoo."""

from __future__ import annotations

import numpy as np
import pytest

from subswarm import Budget, search
from subswarm._search.ask_tell import Search
from subswarm._types import non_dominated
from subswarm.algorithms import NSGA2
from subswarm.algorithms.pareto.indicators import (
    crowding_distance,
    dominance_ranks,
    hypervolume,
    inverted_generational_distance,
    survivors,
)
from subswarm.algorithms.pareto.nsga2 import tournament_winners, uniformly_crossed
from subswarm.errors import SettingError


def points_of(seed, count=60, levels=None):
    """Random points of two objectives; on few levels, so that many are equal or tied in one objective."""
    points = np.random.default_rng(seed).random((count, 2))
    return points if levels is None else np.floor(points * levels) / levels


def test_the_hypervolume_is_the_area_of_the_staircase():
    # By hand, up to (10, 1): from 1 to 3 at 1 - 0.5, from 3 to 6 at 1 - 0.3, from 6 to 10 at 1 - 0.2.
    front = np.array([[1.0, 0.5], [3.0, 0.3], [6.0, 0.2]])
    assert hypervolume(front, (10.0, 1.0)) == pytest.approx(2 * 0.5 + 3 * 0.7 + 4 * 0.8)


def test_dominated_points_and_points_beyond_the_reference_add_nothing():
    front = np.array([[1.0, 0.5], [3.0, 0.3]])
    more = np.array([[2.0, 0.5], [3.0, 0.4], [12.0, 0.1], [4.0, 1.5]])
    assert hypervolume(np.concatenate([front, more]), (10.0, 1.0)) == hypervolume(front, (10.0, 1.0))
    assert hypervolume(np.array([[10.0, 0.5]]), (10.0, 1.0)) == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_the_hypervolume_is_the_share_of_random_points_that_are_dominated(seed):
    front = points_of(seed, count=6)
    drawn = np.random.default_rng(100 + seed).random((40_000, 2))
    share = (front[None] <= drawn[:, None]).all(axis=2).any(axis=1).mean()
    assert hypervolume(front, (1.0, 1.0)) == pytest.approx(share, abs=0.012)


def test_the_inverted_generational_distance_is_a_mean_over_the_best_front():
    best = np.array([[0.0, 1.0], [3.0, 0.0]])
    assert inverted_generational_distance(best, best) == 0.0
    assert inverted_generational_distance(np.array([[3.0, 4.0]]), best) == pytest.approx((np.hypot(3, 3) + 4) / 2)


@pytest.mark.parametrize("levels", [None, 5])
@pytest.mark.parametrize("seed", range(4))
def test_the_first_rank_is_the_non_dominated_front(seed, levels):
    points = points_of(seed, levels=levels)
    first = points[dominance_ranks(points) == 0]
    kept = points[non_dominated(points[:, 0], points[:, 1])]
    assert np.array_equal(np.unique(first, axis=0), np.unique(kept, axis=0))
    assert len(kept) == len(np.unique(kept, axis=0))


def test_a_front_survives_before_the_next_and_crowded_points_are_dropped_first():
    points = np.array([[0.0, 4.0], [1.0, 2.9], [1.1, 2.8], [4.0, 0.0], [5.0, 5.0]])
    kept, ranks, crowding = survivors(points, 3)
    assert kept.tolist() == [0, 2, 3]
    assert ranks.tolist() == [0, 0, 0]
    assert np.isinf(crowding).tolist() == [True, False, True]


def test_a_tournament_is_won_by_the_lower_front_and_then_by_the_wider_distance():
    ranks, crowding = np.array([0, 0, 1]), np.array([1.0, 2.0, np.inf])
    winners = tournament_winners(ranks, crowding, 9000, np.random.default_rng(0))
    # Of nine pairs, point 1 wins five, point 0 three (0-0, 0-2, 2-0) and point 2 only that with itself.
    shares = np.bincount(winners, minlength=3) / 9000
    assert shares == pytest.approx([3 / 9, 5 / 9, 1 / 9], abs=0.02)


def test_uniform_crossover_exchanges_half_of_the_bits_of_a_pair():
    parents = np.repeat(np.array([[True], [False]]), 4000, axis=1)
    children = uniformly_crossed(parents, 1.0, np.random.default_rng(0))
    assert (children.sum(axis=0) == 1).all()
    assert children[0].mean() == pytest.approx(0.5, abs=0.03)
    assert np.array_equal(uniformly_crossed(parents, 0.0, np.random.default_rng(0)), parents)


def conflict(masks):
    """A loss that falls with each of the first features, ever less, so that every size is on the front."""
    gains = 0.5 ** np.arange(masks.shape[1])
    return 1 - masks @ gains / gains.sum()


def test_nsga2_finds_every_point_of_a_known_front():
    result = search(NSGA2(), conflict, Budget(evaluations=4000), rng=0, n_features=10)
    gains = 0.5 ** np.arange(10)
    assert result.front.cardinality.tolist() == list(range(1, 11))
    assert result.front.fitness == pytest.approx(1 - np.cumsum(gains) / gains.sum())


def test_nsga2_never_loses_a_point_of_its_front_while_there_is_room():
    course = Search(NSGA2(population=40), 12, 3)
    seen = np.empty((0, 2))
    for _ in range(15):
        masks = course.ask()
        losses = conflict(masks)
        seen = np.concatenate([seen, np.column_stack([masks.sum(axis=1), losses])])
        course.tell(losses)
        kept = np.column_stack([course.state.parents.sum(axis=1), course.state.losses])
        assert np.array_equal(
            np.unique(kept[dominance_ranks(kept) == 0], axis=0), np.unique(seen[dominance_ranks(seen) == 0], axis=0)
        )


def test_distinct_children_differ_from_each_other_and_from_their_parents():
    course = Search(NSGA2(population=30, distinct=True), 20, 0)
    for _ in range(5):
        course.tell(conflict(course.ask()))
        both = np.concatenate([course.state.parents, course.ask()])
        assert len(np.unique(both, axis=0)) == len(both)


def test_costs_replace_the_number_of_columns():
    costs = (8.0, 1.0, 1.0, 1.0)
    algorithm = NSGA2(population=20, feature_costs=costs)
    masks = np.array([[True, False, False, False], [False, True, True, True]])
    assert algorithm.known_costs(masks).tolist() == [8.0, 3.0]
    assert NSGA2(feature_sizes=(3, 1, 1, 1)).known_costs(masks).tolist() == [3.0, 3.0]
    assert algorithm.with_costs((1.0,) * 4).feature_costs == costs
    assert NSGA2().with_costs(costs).feature_costs == costs


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"feature_costs": (1.0, -2.0)}, "each of feature_costs must be a finite number of at least 0; got -2.0"),
        ({"feature_costs": 3}, "feature_costs must be a list of prices"),
        ({"crossover": "two-point"}, "crossover must be one of 'uniform', 'one-point'; got 'two-point'"),
        ({"population": 1}, "population must be a whole number of at least 2; got 1"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(SettingError, match=message):
        NSGA2(**settings)


def test_a_wrong_number_of_prices_is_reported_before_anything_is_evaluated():
    with pytest.raises(SettingError, match="feature_costs must have one price for each of 5 features; got 2"):
        Search(NSGA2(feature_costs=(1.0, 2.0)), 5, 0)


class TestAgainstPymoo:
    """The same points and the same problem, with the functions of the reference implementation."""

    @pytest.fixture(autouse=True)
    def pymoo(self):
        pytest.importorskip("pymoo", reason="pymoo, the reference implementation, is not installed")

    @pytest.mark.parametrize("levels", [None, 6])
    @pytest.mark.parametrize("seed", range(4))
    def test_the_fronts_are_the_same(self, seed, levels):
        from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting

        points = points_of(seed, levels=levels)
        fronts = NonDominatedSorting().do(points)
        assert [sorted(front.tolist()) for front in fronts] == [
            np.flatnonzero(dominance_ranks(points) == rank).tolist() for rank in range(len(fronts))
        ]

    @pytest.mark.parametrize("seed", range(4))
    def test_the_crowding_distances_are_the_same(self, seed):
        from pymoo.operators.survival.rank_and_crowding.metrics import calc_crowding_distance

        points = points_of(seed)
        points = points[dominance_ranks(points) == 0]
        ours, theirs = crowding_distance(points), calc_crowding_distance(points)
        # pymoo divides by the number of objectives.
        assert ours[np.isfinite(ours)] == pytest.approx(2 * theirs[np.isfinite(theirs)])
        assert np.array_equal(np.isinf(ours), np.isinf(theirs))

    @pytest.mark.parametrize("seed", range(4))
    def test_the_hypervolume_and_the_distance_are_the_same(self, seed):
        from pymoo.indicators.hv import HV
        from pymoo.indicators.igd import IGD

        points, best = points_of(seed, count=12), points_of(50 + seed, count=7)
        assert hypervolume(points, (0.9, 0.8)) == pytest.approx(HV(ref_point=np.array([0.9, 0.8]))(points))
        assert inverted_generational_distance(points, best) == pytest.approx(IGD(best)(points))

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")  # pymoo warns about its own attributes
    def test_both_find_fronts_of_the_same_hypervolume(self):
        from pymoo.algorithms.moo.nsga2 import NSGA2 as Reference
        from pymoo.core.problem import Problem
        from pymoo.operators.crossover.ux import UX
        from pymoo.operators.mutation.bitflip import BitflipMutation
        from pymoo.operators.sampling.rnd import BinaryRandomSampling
        from pymoo.optimize import minimize

        n = 40

        def loss(masks):
            pairs = masks[:, 0::2] & masks[:, 1::2]  # only both features of a pair together help
            return 1 - pairs @ np.arange(1, n // 2 + 1) / (n // 2 * (n // 2 + 1) / 2)

        class Pairs(Problem):
            def __init__(self):
                super().__init__(n_var=n, n_obj=2, xl=0, xu=1, vtype=bool)

            def _evaluate(self, x, out, *args, **kwargs):
                out["F"] = np.column_stack([x.sum(axis=1), loss(x)])

        ours, theirs = [], []
        for seed in range(6):
            found = search(NSGA2(population=50), loss, Budget(evaluations=2000), rng=seed, n_features=n).front
            ours.append(hypervolume(np.column_stack([found.cardinality, found.fitness]), (n + 1.0, 1.0)))
            reference = Reference(
                pop_size=50,
                sampling=BinaryRandomSampling(),
                crossover=UX(prob=0.9),
                mutation=BitflipMutation(prob=1.0, prob_var=1 / n),
                eliminate_duplicates=False,
            )
            front = minimize(Pairs(), reference, ("n_gen", 40), seed=seed).F
            theirs.append(hypervolume(front, (n + 1.0, 1.0)))
        spread = np.std(ours, ddof=1) + np.std(theirs, ddof=1)
        assert abs(np.mean(ours) - np.mean(theirs)) < 1.5 * spread
