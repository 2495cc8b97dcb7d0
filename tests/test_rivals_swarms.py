"""The rules of the population-based rivals, with numbers worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from subswarm import Budget, search
from subswarm._search.ask_tell import Search
from subswarm.algorithms import (
    PSO42,
    AntColony,
    BinaryPSO,
    BooleanPSO,
    CatfishPSO,
    ChaoticPSO,
    ErFS,
    GeneticAlgorithm,
    TwoDUPSO,
    get_algorithm,
)
from subswarm.algorithms.ant_colony import EXCLUDE, INCLUDE, inclusion_probability, renewed_pheromone
from subswarm.algorithms.binary_pso import BinarySwarm, bit_velocity, logistic, tent
from subswarm.algorithms.boolean_pso import at_most, boolean_velocity
from subswarm.algorithms.genetic import crossed, flipped, selected, selection_weights
from subswarm.algorithms.particles import Bests
from subswarm.algorithms.threshold_pso import mixed_sizes, points_of
from subswarm.errors import SettingError


def bits(*rows):
    return np.array([[character == "1" for character in row] for row in rows])


def test_bpso_moves_towards_its_own_best_and_the_best_of_all():
    bests = Bests(bits("0100", "1101"), np.array([0.3, 0.1]), 1)
    velocity = bit_velocity(np.full((2, 4), 2.0), bits("1010", "1101"), bests, 1.0, 0.5, 1.25)
    # first particle: own best differs by (-1, 1, -1, 0), the leader by (0, 1, -1, 1); the second is the leader
    np.testing.assert_allclose(velocity[0], [2 - 0.5, 2 + 0.5 + 1.25, 2 - 0.5 - 1.25, 2 + 1.25])
    np.testing.assert_allclose(velocity[1], 2.0)


def test_bpso_velocities_start_within_six_and_stay_there():
    course = Search(BinaryPSO(), 40, 0)
    assert np.abs(course.state.velocity).max() > 5.5
    for _ in range(20):
        course.tell(course.ask().mean(axis=1))
        assert np.abs(course.state.velocity).max() <= 6


def test_bpso_sets_a_bit_with_the_probability_of_its_sigmoid():
    frozen = BinaryPSO(particles=20_000, inertia=1.0, cognitive=0.0, social=0.0)
    start = frozen.begin(3, np.random.default_rng(0))
    velocity = np.broadcast_to([-2.0, 0.0, 1.5], (20_000, 3)).copy()
    moved = frozen.step(
        BinarySwarm(start.masks, velocity, start.bests, 1.0, 0), np.ones(20_000), 0.0, np.random.default_rng(1)
    )
    drawn = moved.masks.mean(axis=0)
    # an empty draw gets its likeliest feature, the third: P(third) = s(1.5) + (1 - s(-2)) (1 - s(0)) (1 - s(1.5))
    third = 0.81757 + (1 - 0.11920) * 0.5 * (1 - 0.81757)
    np.testing.assert_allclose(drawn, [0.11920, 0.5, third], atol=0.012)


def course_without_improvement(algorithm, steps, n_features=10):
    """States of a search whose fitness never improves after the first step."""
    course = Search(algorithm, n_features, 0)
    states = []
    for _ in range(steps):
        states.append(course.state)
        course.tell(np.linspace(0.2, 0.5, len(course.ask())))
    return [*states, course.state]


def test_catfish_come_after_three_steps_without_a_better_best_and_the_count_restarts():
    states = course_without_improvement(CatfishPSO(), 9)
    # the first evaluation sets the best; then 1, 2, and at the third the catfish come and the count is 0 again
    assert [state.stalled for state in states] == [0, 0, 1, 2, 0, 1, 2, 0, 1, 2]


def test_catfish_replace_the_worst_three_of_thirty_by_all_or_nothing_and_keep_their_velocity():
    algorithm = CatfishPSO()
    swarm = Search(algorithm, 10, 0).state
    stalled = BinarySwarm(swarm.masks, swarm.velocity, swarm.bests, 1.0, 3)
    fitness = np.full(30, 0.1)
    fitness[[4, 11, 29]] = 0.4
    after = [algorithm.disturbed(stalled, fitness, np.random.default_rng(seed)) for seed in range(40)]
    full = np.array([state.masks[[4, 11, 29]].all(axis=1) for state in after])
    empty = np.array([(~state.masks[[4, 11, 29]]).all(axis=1) for state in after])
    assert (full | empty).all()
    assert 0.35 < full.mean() < 0.65  # a coin for each
    assert (full.any(axis=1) & empty.any(axis=1)).any()  # and not one for all
    others = np.setdiff1d(np.arange(30), [4, 11, 29])
    for state in after:
        assert np.array_equal(state.masks[others], swarm.masks[others])
        assert state.velocity is swarm.velocity
        assert state.stalled == 0


def test_catfish_leave_a_swarm_alone_that_gets_better():
    course = Search(CatfishPSO(), 10, 0)
    for step in range(12):
        course.tell(np.full(len(course.ask()), 1.0 / (step + 1)))
        assert course.state.stalled == 0


def test_the_logistic_map_begins_as_published():
    first = logistic(0.48)
    second = logistic(first)
    third = logistic(second)
    assert first == pytest.approx(0.9984)
    assert second == pytest.approx(0.00638976)
    assert third == pytest.approx(0.0253957, abs=1e-7)


def test_the_inertia_of_a_chaotic_swarm_follows_its_map():
    states = course_without_improvement(ChaoticPSO(), 3)
    assert [state.inertia for state in states[1:]] == pytest.approx([0.9984, 0.00638976, 0.0253957], abs=1e-7)
    states = course_without_improvement(ChaoticPSO(chaotic_map="tent"), 3)
    assert [state.inertia for state in states[1:]] == pytest.approx([0.48 / 0.7, 0.48 / 0.49, (1 - 0.48 / 0.49) / 0.3])


def test_the_tent_map_is_continuous_at_its_top():
    assert tent(0.7 - 1e-12) == pytest.approx(1.0)
    assert tent(0.7) == pytest.approx(1.0)


@pytest.mark.parametrize(("inertia", "chaotic_map"), [(0.5, "logistic"), (0.75, "logistic"), (0.0, "tent")])
def test_a_start_from_which_a_chaotic_map_reaches_a_fixed_point_is_rejected(inertia, chaotic_map):
    with pytest.raises(SettingError, match="leads to a fixed point"):
        ChaoticPSO(inertia=inertia, chaotic_map=chaotic_map)


def test_raw_selection_is_proportional_to_accuracy():
    weights = selection_weights(np.array([0.1, 0.4, 0.7]), "raw")
    np.testing.assert_allclose(weights / weights.sum(), [0.5, 1 / 3, 1 / 6])


def test_window_selection_is_proportional_to_the_distance_from_the_worst():
    weights = selection_weights(np.array([0.1, 0.2, 0.4]), "window")
    np.testing.assert_allclose(weights / weights.sum(), [0.6, 0.4, 0.0], atol=1e-12)


@pytest.mark.parametrize("scaling", ["raw", "window"])
@pytest.mark.parametrize("level", [0.0, 5.0, 1e308, 5e-324])
def test_equal_fitness_gives_everybody_the_same_chance(scaling, level):
    np.testing.assert_array_equal(selection_weights(np.full(4, level), scaling), 1.0)


def test_parents_are_drawn_by_roulette():
    rows = selected(np.array([0.5, 0.0, 1.0, 0.5]), 40_000, np.random.default_rng(0))
    np.testing.assert_allclose(np.bincount(rows, minlength=4) / 40_000, [0.25, 0.0, 0.5, 0.25], atol=0.01)


def test_crossover_cuts_once_with_the_probability_given():
    parents = np.tile(bits("11111", "00000"), (10_000, 1))
    children = crossed(parents, 0.45, np.random.default_rng(0))
    first, second = children[0::2], children[1::2]
    assert (first ^ second).all()  # what one has not, the other has
    assert (first.astype(int)[:, :-1] >= first[:, 1:]).all()  # the mother's beginning, the father's end
    assert (~first.all(axis=1)).mean() == pytest.approx(0.45, abs=0.015)
    lengths = np.bincount(first.sum(axis=1), minlength=6) / 10_000
    np.testing.assert_allclose(lengths[1:5], 0.45 / 4, atol=0.012)  # every cut is equally likely
    assert lengths[0] == 0


def test_mutation_flips_one_bit_in_a_hundred():
    changed = flipped(np.zeros((1000, 100), dtype=bool), 0.01, np.random.default_rng(0))
    assert changed.mean() == pytest.approx(0.01, abs=0.001)


def test_a_generation_gap_of_nine_tenths_keeps_eight_of_eighty():
    algorithm = GeneticAlgorithm(scaling="window", generation_gap=0.9, crossover=0.0, mutation=0.0)
    start = algorithm.begin(60, np.random.default_rng(0))
    fitness = np.ones(80)
    fitness[7] = 0.5  # under window scaling this one begets all offspring
    after = algorithm.step(start, fitness, 0.0, np.random.default_rng(1)).masks
    assert len(after) == 80
    assert (after[8:] == start.masks[7]).all()
    old = {row.tobytes() for row in start.masks}
    assert all(row.tobytes() in old for row in after[:8])
    assert len({row.tobytes() for row in after[:8]}) == 8


def test_pheromone_evaporates_and_the_best_tenth_of_the_ants_renew_it():
    pheromone = np.ones((2, 3))
    renewed = renewed_pheromone(pheromone, bits("110", "100"), np.array([0.18, 0.16]), 0.2)
    np.testing.assert_allclose(renewed[INCLUDE], [0.8 + 0.34, 0.8 + 0.18, 0.8])
    np.testing.assert_allclose(renewed[EXCLUDE], [0.8, 0.8 + 0.16, 0.8 + 0.34])
    np.testing.assert_array_equal(pheromone, 1.0)


def test_a_colony_lets_five_of_fifty_ants_leave_one_minus_the_loss_by_five():
    algorithm = AntColony()
    start = algorithm.begin(8, np.random.default_rng(0))
    np.testing.assert_array_equal(start.pheromone, 1.0)
    fitness = np.linspace(0.2, 0.69, 50)
    after = algorithm.step(start, fitness, 0.0, np.random.default_rng(1))
    left = (1 - np.array([0.2, 0.21, 0.22, 0.23, 0.24])) / 5
    wanted = 0.8 + np.array([left @ ~start.masks[:5], left @ start.masks[:5]])
    np.testing.assert_allclose(after.pheromone, np.clip(wanted, 0.3, 1.5))


def test_pheromone_stays_between_its_bounds_and_reaches_both():
    course = Search(AntColony(), 6, 0)
    for _ in range(40):
        course.tell((course.ask() ^ bits("110000")[0]).mean(axis=1))
        assert course.state.pheromone.min() >= 0.3
        assert course.state.pheromone.max() <= 1.5
    np.testing.assert_allclose(course.state.pheromone[INCLUDE, :2], 1.5)
    np.testing.assert_allclose(course.state.pheromone[EXCLUDE, :2], 0.3)
    chance = inclusion_probability(course.state.pheromone)
    np.testing.assert_allclose(chance[:2], 1.5 / 1.8)


def test_erfs_selects_what_is_above_six_tenths():
    course = Search(ErFS(), 200, 0)
    for _ in range(3):
        assert np.array_equal(course.ask(), course.state.position > 0.6)
        assert course.state.position.min() >= 0
        assert course.state.position.max() <= 1
        course.tell(course.ask().mean(axis=1))


def test_erfs_starts_at_rest_and_first_moves_only_towards_the_leader():
    course = Search(ErFS(), 5, 0)
    start = course.state.position
    assert not course.state.velocity.any()
    course.tell(np.r_[0.1, np.full(29, 0.5)])
    moved = course.state.position
    np.testing.assert_array_equal(moved[0], start[0])
    assert ((moved[1:] - start[1:]) * (start[0] - start[1:]) >= 0).all()


def test_pso42_starts_two_thirds_small_and_one_third_large():
    masks = Search(PSO42(), 100, 0).ask()
    sizes = masks.sum(axis=1)
    assert (sizes[:20] == 10).all()
    assert (sizes[20:] >= 50).all()
    assert len(set(sizes[20:].tolist())) > 5
    sizes = mixed_sizes(4, 1, 3000, 0.1, np.random.default_rng(0))
    assert sizes[0] == 1
    assert np.bincount(sizes[1:], minlength=5)[2:] == pytest.approx([1000, 1000, 1000], abs=120)


def test_pso42_prefers_the_smaller_of_equally_good_subsets_and_never_a_worse_one():
    algorithm = PSO42(particles=3)
    swarm = algorithm.begin(4, np.random.default_rng(0))
    bests = Bests(bits("1110", "1110", "1110"), np.array([0.2, 0.2, 0.2]), 0)
    at = type(swarm)(bits("1100", "1111", "1000"), swarm.position, swarm.velocity, bests, swarm.best_position)
    after = algorithm.step(at, np.array([0.2, 0.2, 0.3]), 0.0, np.random.default_rng(0))
    assert after.bests.masks.astype(int).tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0]]
    assert after.bests.leader == 0
    erfs = ErFS(particles=3).step(at, np.array([0.2, 0.2, 0.3]), 0.0, np.random.default_rng(0))
    assert erfs.bests.masks.all(axis=0).astype(int).tolist() == [1, 1, 1, 0]


def test_points_of_a_mask_give_it_back():
    masks = np.random.default_rng(0).random((50, 40)) < 0.3
    points = points_of(masks, 0.6, np.random.default_rng(1))
    assert np.array_equal(points > 0.6, masks)
    assert points.min() >= 0
    assert points.max() <= 1


def test_boolean_velocity_is_and_or_and_exclusive_or():
    bests = Bests(bits("1100"), np.array([0.1]), 0)
    velocity = boolean_velocity(
        bits("1011"), bits("0110"), bests, inertia=bits("0010"), own=bits("1000"), leading=bits("0111")
    )
    # pbest ⊕ x = gbest ⊕ x = 1010: (0010 ∧ 1011) ∨ (1000 ∧ 1010) ∨ (0111 ∧ 1010) = 0010 ∨ 1000 ∨ 0010
    assert np.array_equal(velocity, bits("1010"))


def test_a_boolean_velocity_has_at_most_vmax_ones_picked_by_chance():
    row = np.tile(bits("1111100000"), (3000, 1))
    kept = at_most(2, row, np.random.default_rng(0))
    assert (kept.sum(axis=1) == 2).all()
    assert not (kept & ~row).any()
    np.testing.assert_allclose(kept.mean(axis=0)[:5], 0.4, atol=0.04)
    assert np.array_equal(at_most(7, row[:1], np.random.default_rng(0)), row[:1])


def test_a_boolean_swarm_flips_the_bits_of_its_velocity():
    course = Search(BooleanPSO(max_velocity=3), 12, 0)
    for _ in range(10):
        before = course.ask()
        course.tell(before.mean(axis=1))
        changed = before ^ course.ask()
        assert (changed.sum(axis=1) <= 4).all()  # three, and one more where the subset would be empty
        filled = (before ^ course.state.velocity).any(axis=1)
        assert np.array_equal(changed[filled], course.state.velocity[filled])


def test_a_prior_limits_the_first_and_the_refreshed_likelihoods_of_a_2d_swarm():
    prior = (1.0, 0.5, 0.0)
    course = Search(TwoDUPSO(feature_likelihoods=prior, refresh_gap=1), 3, 0)
    first = course.state.velocity
    assert (first[:, 1].max(axis=0) <= prior).all()
    assert first[:, 0].max() > 0.9
    plain = Search(TwoDUPSO(), 3, 0).state.velocity
    np.testing.assert_allclose(first, plain * np.stack([np.ones(3), prior]))
    with pytest.raises(SettingError, match="one entry for each of 4 features"):
        Search(TwoDUPSO(feature_likelihoods=prior), 4, 0)


@pytest.mark.parametrize("name", ["ga", "bpso", "cbpso", "chbpso", "aco", "tabu", "2d-upso"])
def test_the_planted_subset_is_found_in_nine_of_ten_seeds_within_6000_evaluations(name):
    found = 0
    for seed in range(10):
        planted = np.zeros(20, dtype=bool)
        planted[np.random.default_rng(seed).choice(20, size=6, replace=False)] = True
        result = search(
            get_algorithm(name),
            lambda masks, planted=planted: (masks ^ planted).mean(axis=1),
            Budget(evaluations=6000, target=0.0),
            rng=seed,
            n_features=20,
        )
        found += int(np.array_equal(result.best.mask, planted))
    assert found >= 9


def test_window_scaling_makes_the_genetic_algorithm_quicker():
    def evaluations(scaling):
        planted = np.arange(20) < 6
        return [
            search(
                GeneticAlgorithm(scaling=scaling),
                lambda masks: (masks ^ planted).mean(axis=1),
                Budget(evaluations=6000, target=0.0),
                rng=seed,
                n_features=20,
            ).evaluations
            for seed in range(6)
        ]

    assert np.median(evaluations("window")) < np.median(evaluations("raw"))


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        ("ga", {"population": 1}, "population must be a whole number of at least 2"),
        ("ga", {"scaling": "rank"}, "scaling must be one of 'raw', 'window'"),
        ("ga", {"generation_gap": 0.0}, "generation_gap must be a finite number .*above 0"),
        ("aco", {"min_pheromone": 2.0}, "is more than max_pheromone=1.5"),
        ("bpso", {"max_velocity": 0}, "max_velocity must be a finite number above 0"),
        ("cbpso", {"catfish": 1.5}, "catfish must be a finite number from 0 to 1"),
        ("chbpso", {"chaotic_map": "sine"}, "chaotic_map must be one of"),
        ("erfs", {"threshold": 2}, "threshold must be a finite number from 0 to 1"),
        ("pso-42", {"small_share": -0.1}, "small_share must be"),
        ("boolean-pso", {"max_velocity": 0}, "max_velocity must be a whole number of at least 1 or None"),
        ("2d-upso", {"feature_likelihoods": (0.5, 2.0)}, "each of feature_likelihoods must be"),
    ],
)
def test_a_setting_out_of_range_is_refused(name, settings, sentence):
    with pytest.raises(SettingError, match=sentence):
        get_algorithm(name, **settings)
