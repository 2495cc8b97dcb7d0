"""The paper's worked examples, with its numbers."""

from __future__ import annotations

import numpy as np
import pytest

from subswarm.algorithms.particles import first_bests, improved, updated
from subswarm.algorithms.two_d import learning
from subswarm.algorithms.two_d import numpy as learning_numpy
from subswarm.algorithms.two_d.learning import CARDINALITY, FEATURE, inertia_at, ring_leaders, unification_at

RHO = np.array([[0.14, 2.56, 1.35, 0.38, 0.71]])
SIGMA = np.array([[1.31, 2.40, 0.57, 1.46, 1.30]])


def bits(text: str) -> np.ndarray:
    return np.array([[character == "1" for character in text]])


def learnt(exemplar: str, position: str, *, whole_exemplar: bool = False) -> np.ndarray:
    velocity = np.zeros((1, 2, 5))
    learning.add_pull(velocity, bits(exemplar), bits(position), np.ones((1, 1, 1)), whole_exemplar=whole_exemplar)
    return velocity[0]


def test_an_exemplar_teaches_its_cardinality_and_the_features_the_particle_lacks():
    assert np.array_equal(learnt("10110", "11001"), np.vstack([bits("00100"), bits("00110")]))


def test_a_particle_teaches_itself_its_own_cardinality_and_features():
    velocity = np.zeros((1, 2, 5))
    learning.add_influence(velocity, bits("11001"), np.ones(1))
    assert np.array_equal(velocity[0], np.vstack([bits("00100"), bits("11001")]))


def test_the_whole_exemplar_may_be_learnt_instead():
    assert np.array_equal(learnt("10110", "11001", whole_exemplar=True), np.vstack([bits("00100"), bits("10110")]))


def test_an_empty_exemplar_teaches_no_cardinality():
    assert not learnt("00000", "11001").any()


def test_the_five_feature_example_of_the_velocity_update():
    position, personal, best = bits("10101"), bits("01001"), bits("11010")
    p = np.arange(1.0, 11.0).reshape(1, 2, 5)
    inertia, own, social, influence = 0.729, 0.31, 0.57, 0.11
    velocity = inertia * p
    learning.add_pull(velocity, personal, position, np.full((1, 1, 1), own))
    learning.add_pull(velocity, best, position, np.full((1, 1, 1), social))
    learning.add_influence(velocity, position, np.array([influence]))
    gains = np.array(
        [
            [0, own, social + influence, 0, 0],
            [influence, own + social, influence, social, influence],
        ]
    )
    assert np.allclose(velocity[0], inertia * p[0] + gains, rtol=0, atol=1e-15)


def test_weights_may_differ_by_row_and_by_entry():
    velocity = np.zeros((1, 2, 5))
    learning.add_pull(velocity, bits("10110"), bits("11001"), np.arange(10.0).reshape(1, 2, 5))
    assert velocity.tolist() == [[[0, 0, 2, 0, 0], [0, 0, 7, 8, 0]]]
    learning.add_pull(velocity, bits("10110"), bits("11001"), np.array([[[1.0], [2.0]]]))
    assert velocity.tolist() == [[[0, 0, 3, 0, 0], [0, 0, 9, 10, 0]]]


def test_the_accumulated_likelihoods_of_the_example():
    assert np.allclose(np.cumsum(RHO), [0.14, 2.70, 4.05, 4.43, 5.14])


def test_a_spin_of_3_25_selects_three_features():
    assert learning.wheel_position(RHO, np.array([3.25 / 5.14])).tolist() == [2]


@pytest.mark.parametrize(("spin", "cardinality"), [(0.10, 1), (2.69, 2), (4.06, 4), (5.13, 5)])
def test_the_wheel_stops_in_the_slot_that_holds_the_spin(spin, cardinality):
    assert learning.wheel_position(RHO, np.array([spin / 5.14]))[0] + 1 == cardinality


def test_a_spin_on_a_boundary_takes_the_first_slot_that_reaches_it():
    assert learning.wheel_position(np.array([[1.0, 1.0, 2.0]]), np.array([0.25, 0.5])[:1]).tolist() == [0]
    assert learning.wheel_position(np.array([[1.0, 1.0, 2.0]]), np.array([0.5])).tolist() == [1]


def test_the_greedy_rule_takes_two_features_in_the_example():
    assert learning.greedy_cardinality(RHO).tolist() == [2]


def test_the_three_likeliest_features_of_the_example():
    assert np.array_equal(learning.ranked_features(SIGMA, np.array([3])), bits("11010"))


def test_every_size_of_the_ranking_of_the_example():
    order = [1, 3, 0, 4, 2]  # ranks (3, 1, 5, 2, 4)
    for size in range(1, 6):
        assert set(np.flatnonzero(learning.ranked_features(SIGMA, np.array([size]))[0])) == set(order[:size])


def test_equal_likelihoods_go_by_index():
    likelihood = np.array([[0.5, 0.7, 0.5, 0.5]])
    assert np.array_equal(learning.ranked_features(likelihood, np.array([3])), bits("1110"))


def test_negative_likelihoods_never_win_the_wheel():
    likelihood = np.tile([-5.0, 0.2, -1.0, 0.1], (2000, 1))
    drawn = learning.roulette_cardinality(likelihood, np.random.default_rng(0))
    assert set(drawn) == {2, 4}
    assert abs((drawn == 2).mean() - 2 / 3) < 0.05


def test_a_wheel_without_a_positive_slot_is_uniform():
    drawn = learning.roulette_cardinality(np.full((3000, 3), -1.0), np.random.default_rng(0))
    assert np.allclose(np.bincount(drawn)[1:] / 3000, 1 / 3, atol=0.04)


def test_the_wheel_leaves_likelihoods_as_they_are():
    likelihood = np.array([[-1.0, 2.0], [-1.0, -1.0]])
    kept = likelihood.copy()
    learning.roulette_cardinality(likelihood, np.random.default_rng(0))
    assert np.array_equal(likelihood, kept)


def test_the_raw_wheel_takes_the_first_crossing():
    likelihood = np.array([[2.0, -1.5, 1.5]])  # cumulative 2, 0.5, 2: every spin is reached by the first
    for seed in range(20):
        assert learning.roulette_cardinality(likelihood, np.random.default_rng(seed), raw=True).tolist() == [1]


def test_the_wheel_honours_limits():
    drawn = learning.roulette_cardinality(np.ones((500, 9)), np.random.default_rng(0), limits=(3, 5))
    assert set(drawn) == {3, 4, 5}


def test_merit_is_relative_to_the_worst_of_the_swarm():
    assert learning.merit(np.array([0.1, 0.2, 0.4])).tolist() == [0.75, 0.5, 0.0]


def test_merit_is_zero_where_every_fitness_is_zero():
    assert learning.merit(np.zeros(3)).tolist() == [0, 0, 0]


def test_self_influence_rewards_improvement_and_punishes_the_rest():
    influence = learning.self_influence(np.array([0.1, 0.2, 0.4]), np.array([0.2, 0.2, 0.3]))
    assert influence.tolist() == [0.75, -0.5, -0.0]


def test_the_first_step_counts_as_improved():
    assert (learning.self_influence(np.array([0.1, 0.4]), np.full(2, np.inf)) >= 0).all()


def test_only_stagnant_velocities_are_refreshed():
    velocity = np.full((3, 2, 4), 7.0)
    carried = learning.carried(velocity, 0.5, np.array([False, True, False]), np.random.default_rng(0))
    assert (carried[[0, 2]] == 3.5).all()
    assert np.array_equal(carried[1], 0.5 * np.random.default_rng(0).random((2, 4)))
    assert (velocity == 7).all()


@pytest.mark.parametrize("columns", [1, 2, 5, 40, 300])
@pytest.mark.parametrize("whole_exemplar", [False, True])
def test_compiled_pulls_are_those_of_numpy_to_the_last_bit(columns, whole_exemplar):
    kernel, rng = pytest.importorskip("subswarm.algorithms.two_d.numba"), np.random.default_rng(columns)
    position, exemplars = rng.random((2, 7, columns)) < 0.4
    for exemplar in (exemplars, exemplars[:1], np.zeros((1, columns), dtype=bool)):
        for shape in ((7, 1, 1), (7, 2, 1), (7, 2, columns)):
            velocity, weight = rng.normal(size=(7, 2, columns)), rng.normal(size=shape)
            compiled = velocity.copy()
            learning_numpy.add_pull(velocity, exemplar, position, weight, whole_exemplar)
            kernel.add_pull(compiled, exemplar, position, weight, whole_exemplar)
            assert np.array_equal(velocity, compiled)


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("level", [-3.0, -0.2, 0.0, 0.5])
def test_compiled_wheels_stop_where_those_of_numpy_do(raw, level):
    kernel, rng = pytest.importorskip("subswarm.algorithms.two_d.numba"), np.random.default_rng(1)
    for columns in (1, 2, 9, 200):
        wheels, turn = np.round(rng.random((50, columns)) + level, 1), rng.random(50)
        slots = learning_numpy.roulette_slots(wheels, turn, raw)
        assert np.array_equal(kernel.roulette_slots(wheels, turn, raw), slots)


@pytest.mark.parametrize("digits", [0, 1, 9, 17])
def test_both_ways_to_rank_features_are_a_stable_sort(digits):
    kernel, rng = pytest.importorskip("subswarm.algorithms.two_d.numba"), np.random.default_rng(2)
    for columns in (1, 2, 9, 200):
        likelihood = np.round(1 + 1e-7 * rng.normal(size=(50, columns)), digits)
        likelihood[::3, 0], likelihood[::5, -1] = np.inf, -1e300
        sizes = rng.integers(1, columns + 1, size=50)
        order = np.argsort(-likelihood, axis=1, kind="stable")
        wanted = np.zeros(likelihood.shape, dtype=bool)
        np.put_along_axis(wanted, order, np.arange(columns) < sizes[:, None], axis=1)
        assert np.array_equal(learning_numpy.ranked_features(likelihood, sizes), wanted)
        assert np.array_equal(kernel.ranked_features(likelihood, sizes), wanted)


def test_rows_of_a_velocity_are_named():
    assert (CARDINALITY, FEATURE) == (0, 1)


def test_personal_bests_are_copies():
    masks = bits("10110")
    bests = first_bests(masks)
    bests = updated(bests, masks, np.array([0.5]), improved(bests, masks, np.array([0.5])))
    masks[:] = False
    assert np.array_equal(bests.global_best, bits("10110")[0])


def test_equal_fitness_replaces_a_best_only_when_parsimonious_and_smaller():
    start = first_bests(bits("11110"))
    bests = updated(start, start.masks, np.array([0.5]), np.array([True]))
    assert not improved(bests, bits("10000"), np.array([0.5])).any()
    assert improved(bests, bits("10000"), np.array([0.5]), parsimonious=True).all()
    assert not improved(bests, bits("01111"), np.array([0.5]), parsimonious=True).any()


def test_the_leader_changes_only_for_a_strictly_better_one():
    masks = np.eye(3, dtype=bool)
    bests = updated(first_bests(masks), masks, np.array([0.5, 0.3, 0.4]), np.ones(3, bool))
    assert bests.leader == 1
    tied = updated(bests, masks, np.array([0.3, 0.9, 0.9]), np.array([True, False, False]))
    assert tied.leader == 1
    beaten = updated(tied, masks, np.array([0.9, 0.9, 0.2]), np.array([False, False, True]))
    assert beaten.leader == 2


def test_the_ring_wraps_and_includes_the_particle_itself():
    masks = np.eye(5, dtype=bool)
    bests = updated(first_bests(masks), masks, np.array([0.5, 0.4, 0.3, 0.9, 0.2]), np.ones(5, bool))
    assert ring_leaders(bests).tolist() == [4, 2, 2, 4, 4]
    assert ring_leaders(bests, radius=2).tolist() == [4, 4, 4, 4, 4]


def test_a_particle_prefers_its_own_best_among_equals():
    masks = np.eye(4, dtype=bool)
    bests = updated(first_bests(masks), masks, np.full(4, 0.5), np.ones(4, bool))
    assert ring_leaders(bests).tolist() == [0, 1, 2, 3]


def test_inertia_schedules():
    assert inertia_at("constant", 0.729, 0.4, 0.5) == 0.729
    assert inertia_at("linear", 0.9, 0.4, 0.5) == pytest.approx(0.65)
    assert inertia_at("printed", 0.9, 0.4, 0.0) == 0
    assert inertia_at("printed", 0.9, 0.4, 1.0) == pytest.approx(0.5)


def test_unification_schedules():
    assert unification_at("linear", 0.2, 0.4, 10, 0, 0.5) == pytest.approx(0.3)
    assert [unification_at("modular", 0.2, 0.4, 4, t, 0) for t in range(5)] == [0, 0.25, 0.5, 0.75, 0]
    assert unification_at("exponential", 0.2, 0.4, 10, 0, 1.0) == pytest.approx(1.0)
    assert unification_at("sigmoid", 0.2, 0.4, 10, 0, 0.5) == pytest.approx(0.5)


def test_the_merit_of_losses_below_zero_is_that_of_the_shifted_losses():
    losses = np.array([-3.0, 1.0, -1.0, 5.0])
    assert np.array_equal(learning.merit(losses), learning.merit(losses + 3.0))
    assert np.array_equal(learning.merit(np.full(3, -2.0)), np.zeros(3))
    assert np.isfinite(learning.merit(np.array([-1e308, 1e308]))).all()


def test_the_merit_of_losses_of_at_least_zero_is_the_printed_formula():
    losses = np.random.default_rng(0).random(50)
    assert np.array_equal(learning.merit(losses), 1.0 - losses / losses.max())
