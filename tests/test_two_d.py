"""The four swarms: what pulls them, and what a step does in which order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from subswarm._search.ask_tell import Search
from subswarm.algorithms import Pull, TwoD, TwoDCLPSO, TwoDGPSO, TwoDLPSO, TwoDUPSO
from subswarm.algorithms.two_d.learning import comprehensive_teachers, learning_probability, ring_best
from subswarm.errors import SettingError

FOUR = [TwoDGPSO, TwoDLPSO, TwoDCLPSO, TwoDUPSO]


@dataclass(frozen=True, kw_only=True)
class Unpulled(TwoD):
    """Inertia and self-influence only."""

    def pulls(self, swarm, progress, rng):
        return []


def told(algorithm, fitness, *, n=6, seed=0, progress=0.0):
    """The swarm before and after one step."""
    rng = np.random.default_rng(seed)
    before = algorithm.begin(n, rng)
    return before, algorithm.step(before, np.asarray(fitness, dtype=float), progress, rng)


def test_the_published_settings_are_the_defaults():
    swarm = TwoDUPSO()
    assert (swarm.particles, swarm.inertia, swarm.cognitive, swarm.social, swarm.refresh_gap) == (
        30,
        0.729,
        1.49,
        1.49,
        3,
    )
    assert (swarm.unification, swarm.final_unification, swarm.unification_schedule) == (0.2, 0.4, "linear")
    learner = TwoDCLPSO()
    assert (learner.inertia, learner.final_inertia, learner.inertia_schedule) == (0.9, 0.4, "linear")
    assert (learner.acceleration, learner.renewal_gap) == (1.49445, 7)


def test_a_swarm_begins_with_likelihoods_from_the_unit_interval_and_about_half_the_features():
    swarm = TwoDUPSO(particles=200).begin(50, np.random.default_rng(0))
    assert swarm.velocity.shape == (200, 2, 50)
    assert ((swarm.velocity >= 0) & (swarm.velocity <= 1)).all()
    assert abs(swarm.masks.mean() - 0.5) < 0.02


def test_without_pulls_a_velocity_is_inertia_and_self_influence():
    fitness = [0.2, 0.4, 0.1]
    before, after = told(Unpulled(particles=3), fitness)
    merit = 1 - np.array(fitness) / 0.4
    expected = 0.729 * before.velocity
    for i in range(3):
        expected[i, 0, before.masks[i].sum() - 1] += merit[i]
        expected[i, 1, before.masks[i]] += merit[i]
    assert np.allclose(after.velocity, expected)


def test_a_particle_that_got_worse_turns_away_from_its_own_position():
    algorithm = Unpulled(particles=2, inertia=0.0)
    rng = np.random.default_rng(0)
    swarm = algorithm.step(algorithm.begin(6, rng), np.array([0.2, 0.4]), 0.0, rng)
    position = swarm.masks[0].copy()
    swarm = algorithm.step(swarm, np.array([0.3, 0.6]), 0.0, rng)
    assert (swarm.velocity[0, 1][position] == -0.5).all()


def test_a_unified_velocity_is_the_mixture_of_the_global_and_the_local_one():
    fitness = np.linspace(0.1, 0.6, 6)
    u = 0.3
    _, unified = told(TwoDUPSO(particles=6, unification=u, final_unification=u), fitness)
    _, social = told(TwoDGPSO(particles=6), fitness)
    _, local = told(TwoDLPSO(particles=6), fitness)
    assert np.allclose(unified.velocity, u * social.velocity + (1 - u) * local.velocity)


def test_unification_rises_from_a_fifth_to_two_fifths():
    swarm = TwoDUPSO().begin(5, np.random.default_rng(0))
    swarm = replace(swarm, bests=replace(swarm.bests, fitness=np.linspace(1, 2, 30)))
    weights = []
    for progress in (0.0, 1.0):
        _, everyone, ring = TwoDUPSO(draws="particle").pulls(swarm, progress, np.random.default_rng(1))
        weights.append(everyone.weight / (everyone.weight + ring.weight))
    assert np.allclose(weights[0], 0.2)
    assert np.allclose(weights[1], 0.4)


def test_independent_draws_differ_between_the_two_velocities():
    swarm = TwoDUPSO().begin(5, np.random.default_rng(0))
    _, everyone, ring = TwoDUPSO(independent_draws=True).pulls(swarm, 0.5, np.random.default_rng(1))
    assert not np.allclose(everyone.weight / 0.3, ring.weight / 0.7)


@pytest.mark.parametrize(("draws", "shape"), [("particle", (30, 1, 1)), ("row", (30, 2, 1)), ("entry", (30, 2, 5))])
def test_random_factors_have_the_shape_asked_for(draws, shape):
    algorithm = TwoDGPSO(draws=draws)
    swarm = algorithm.begin(5, np.random.default_rng(0))
    assert algorithm.draw(swarm, np.random.default_rng(0)).shape == shape


def test_stagnation_is_counted_cumulatively_and_reset_only_by_a_refresh():
    algorithm = Unpulled(particles=2, refresh_gap=3)
    rng = np.random.default_rng(0)
    swarm = algorithm.begin(6, rng)
    counts = []
    for fitness in ([0.5, 0.5], [0.6, 0.6], [0.4, 0.6], [0.6, 0.6], [0.6, 0.7]):
        swarm = algorithm.step(swarm, np.array(fitness), 0.0, rng)
        counts.append(swarm.stagnation.tolist())
    # particle 0 improves in the third step and keeps its count; particle 1 reaches 3, is refreshed and starts again
    assert counts == [[0, 0], [1, 1], [1, 2], [2, 0], [0, 1]]


def test_consecutive_stagnation_returns_to_zero_at_an_improvement():
    algorithm = Unpulled(particles=1, refresh_gap=9, stagnation_rule="consecutive")
    rng = np.random.default_rng(0)
    swarm = algorithm.begin(6, rng)
    counts = []
    for fitness in (0.5, 0.6, 0.6, 0.4, 0.5):
        swarm = algorithm.step(swarm, np.array([fitness]), 0.0, rng)
        counts.append(int(swarm.stagnation[0]))
    assert counts == [0, 1, 2, 0, 1]


def test_a_stagnant_velocity_is_drawn_again_before_the_update():
    algorithm = Unpulled(particles=1, refresh_gap=1, inertia=1.0)
    rng = np.random.default_rng(0)
    swarm = algorithm.step(algorithm.begin(6, rng), np.array([0.5]), 0.0, rng)
    swarm = replace(swarm, velocity=np.full((1, 2, 6), 100.0))
    swarm = algorithm.step(swarm, np.array([0.5]), 0.0, rng)
    assert swarm.velocity.max() <= 1.0
    assert swarm.stagnation.tolist() == [0]


def test_without_a_refresh_gap_no_velocity_is_drawn_again():
    algorithm = Unpulled(particles=1, refresh_gap=None, inertia=1.0)
    rng = np.random.default_rng(0)
    swarm = replace(algorithm.begin(6, rng), velocity=np.full((1, 2, 6), 100.0))
    for _ in range(20):
        swarm = algorithm.step(swarm, np.array([0.5]), 0.0, rng)
    assert (swarm.velocity == 100.0).all()


def test_the_global_best_survives_when_its_particle_moves_on():
    search = Search(TwoDGPSO(particles=4), 8, 0)
    first = search.ask()
    search.tell([0.1, 0.5, 0.6, 0.7])
    for _ in range(10):
        search.tell(np.full(4, 0.9))
        assert np.array_equal(search.state.bests.global_best, first[0])
        assert np.array_equal(search.best.mask, first[0])


def test_learning_probabilities_run_from_a_twentieth_to_a_half():
    probability = learning_probability(30)
    assert probability[0] == pytest.approx(0.05)
    assert probability[-1] == pytest.approx(0.5)
    assert (np.diff(probability) > 0).all()
    middle = 0.05 + 0.45 * (np.exp(10 * 15 / 29) - 1) / (np.exp(10) - 1)
    assert probability[15] == pytest.approx(middle)


def test_a_comprehensive_learner_always_learns_something_from_others():
    rows = np.zeros(500, dtype=np.intp)
    teachers = comprehensive_teachers(rows, 3, np.array([0.1, 0.2, 0.3]), np.random.default_rng(0))
    assert (teachers != 0).any(axis=1).all()


def test_a_teacher_is_the_better_of_two_others():
    fitness = np.array([0.9, 0.1, 0.5])
    rows = np.full(4000, 2, dtype=np.intp)
    teachers = comprehensive_teachers(rows, 4, fitness, np.random.default_rng(0))
    others = teachers[teachers != 2]
    # the better of two draws from {0, 1}: particle 1 unless both draws are 0
    assert (others == 1).mean() == pytest.approx(0.75, abs=0.03)
    assert (teachers != 2).mean() == pytest.approx(0.5, abs=0.05)


def test_exemplars_are_renewed_after_seven_steps_in_vain():
    algorithm = TwoDCLPSO(particles=5, refresh_gap=None)
    rng = np.random.default_rng(0)
    swarm = algorithm.begin(40, rng)
    waits = []
    for step in range(9):
        swarm = algorithm.step(swarm, np.full(5, 0.5), 0.0, rng)
        waits.append(int(swarm.memory.stagnation[0]))
        if step == 6:
            teachers = swarm.memory.teachers
    assert waits == [0, 1, 2, 3, 4, 5, 6, 0, 1]
    assert not np.array_equal(teachers, swarm.memory.teachers)


def test_the_composite_exemplar_follows_its_teachers_bests():
    algorithm = TwoDCLPSO(particles=3)
    rng = np.random.default_rng(0)
    swarm = algorithm.step(algorithm.begin(7, rng), np.array([0.3, 0.2, 0.1]), 0.0, rng)
    (pull,) = algorithm.pulls(swarm, 0.0, rng)
    for i in range(3):
        for j in range(7):
            assert pull.exemplar[i, j] == swarm.bests.masks[swarm.memory.teachers[i, j], j]


def test_a_parsimonious_search_prefers_the_smaller_of_equals():
    search = Search(TwoDUPSO(parsimonious=True, particles=2, initial_subsets=((0, 1, 2), (3,))), 6, 0)
    search.tell([0.5, 0.5])
    assert search.best.features.tolist() == [3]
    strict = Search(TwoDUPSO(particles=2, initial_subsets=((0, 1, 2), (3,))), 6, 0)
    strict.tell([0.5, 0.5])
    assert strict.best.features.tolist() == [0, 1, 2]


@pytest.mark.parametrize("rule", ["roulette", "raw-roulette", "greedy"])
@pytest.mark.parametrize("kind", FOUR)
def test_every_swarm_finds_a_planted_subset(kind, rule):
    planted = np.arange(14) % 4 == 0
    search = Search(kind(cardinality_rule=rule, refresh_gap=10), 14, 3)
    while search.evaluations < 6000 and not (search.evaluations and search.best.fitness == 0):
        search.tell((search.ask() ^ planted).mean(axis=1))
    assert search.best.fitness <= (0.0 if rule == "roulette" else 2 / 14)


@pytest.mark.parametrize(
    "bad",
    [
        {"particles": 0},
        {"particles": 2.5},
        {"particles": True},
        {"inertia": -0.1},
        {"inertia": float("nan")},
        {"inertia_schedule": "cosine"},
        {"refresh_gap": 0},
        {"cardinality_rule": "fair"},
        {"draws": "none"},
        {"stagnation_rule": "never"},
        {"min_features": 0},
        {"max_features": 0},
        {"min_features": 5, "max_features": 4},
        {"cognitive": -1},
        {"social": float("inf")},
        {"radius": 0},
        {"unification": 1.5},
        {"final_unification": -0.2},
        {"unification_schedule": "cubic"},
        {"unification_period": 0},
    ],
)
def test_bad_settings_are_refused_when_built(bad):
    with pytest.raises(SettingError, match=next(iter(bad)) if len(bad) == 1 else "min_features"):
        TwoDUPSO(**bad)


def test_a_lone_particle_cannot_learn_comprehensively():
    with pytest.raises(SettingError, match="at least 2"):
        TwoDCLPSO(particles=1)


def test_a_variant_is_one_small_dataclass():
    @dataclass(frozen=True, kw_only=True)
    class Nearest(TwoD):
        def pulls(self, swarm, progress, rng):
            return [Pull(ring_best(swarm.bests, 2), 2.0 * self.draw(swarm, rng))]

    search = Search(Nearest(), 10, 0)
    for _ in range(30):
        search.tell((search.ask() ^ (np.arange(10) < 3)).mean(axis=1))
    assert search.best.fitness <= 0.1
