"""The compiled rules of 2D-Elite give the numbers of the NumPy ones, and the swarm goes the way it always went."""

from __future__ import annotations

import numpy as np
import pytest

from subswarm._search.ask_tell import Search
from subswarm.algorithms import TwoDElite
from subswarm.algorithms.elite import numpy as elite_numpy
from subswarm.algorithms.elite import swarm as elite
from subswarm.algorithms.elite import wide
from trajectories import digest_of

TRAJECTORIES = [
    (5, {}, 1, "5b8a045d2923336a"),
    (30, {}, 1, "44617f371169f4fc"),
    (30, {"opening": 0.4}, 1, "f9b7c2a3d9fce151"),  # with a walk
    (590, {}, 1, "27db4ec7005b7672"),
    (30, {}, 4, "812c3db43c6613e8"),
    (30, {"radius": 3, "particles": 7, "recombination": 0.4}, 3, "eaa40eb58b59def5"),
    (30, {"min_features": 3, "max_features": 8, "fixed_features": (4,)}, 1, "d7748d329d94964b"),
]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("n", "settings", "partitions", "digest"), TRAJECTORIES)
def test_every_mask_asked_is_the_one_that_was_asked_before(n, settings, partitions, digest, compiled, monkeypatch):
    module = pytest.importorskip("subswarm.algorithms.elite.numba") if compiled else elite_numpy
    monkeypatch.setattr(elite, "_kernels", lambda: module)
    search = Search(TwoDElite(**settings), n, rng=3, evaluations=50 * 30 * partitions, n_partitions=partitions)
    assert digest_of(search, n) == digest


@pytest.mark.parametrize("n", [1, 2, 17, 200])
@pytest.mark.parametrize("islands", [1, 3])
@pytest.mark.parametrize("recombination", [0.0, 0.3, 1.0])
def test_compiled_children_are_those_of_numpy_to_the_last_bit(n, islands, recombination):
    kernel = pytest.importorskip("subswarm.algorithms.elite.numba")
    rng = np.random.default_rng(n)
    particles = 8
    order = np.concatenate([c * particles + rng.permutation(particles) for c in range(islands)])
    likelihood = rng.random((islands, 2, n)) * (rng.random((islands, 2, n)) < 0.8)  # some moves never help
    parents = rng.integers(0, islands * particles, size=60)
    arguments = {
        "elite": rng.random((islands * particles, n)) < 0.4,
        "order": order,
        "place": np.argsort(order),
        "parents": parents,
        "particles": particles,
        "radius": 2,
        "progress": 0.5,
        "recombination": recombination,
        "likelihood": likelihood,
        "expected": rng.random((islands, 2)) * 3,
        "fixed": rng.random(n) < 0.2,
        "draws": rng.random((60, elite_numpy.CHOICES + n)),
    }
    children = elite_numpy.bred(**arguments)
    assert np.array_equal(kernel.bred(**arguments), children)
    kept = arguments["elite"][parents] & arguments["fixed"]
    assert n == 1 or recombination > 0 or (children[kept] == 1).all()  # what is fixed is not removed
    words = rng.integers(0, 2**64, size=n + islands, dtype=np.uint64)
    keys = elite_numpy.keys_of(children, parents // particles, words)
    assert np.array_equal(kernel.keys_of(children, parents // particles, words), keys)
    visited, taken, rows = np.unique(keys[:20]), keys[20:25], keys.reshape(20, 3)
    chosen = elite_numpy.first_unseen(rows, visited, taken)
    assert np.array_equal(kernel.first_unseen(rows, visited, taken), chosen)
    picked = rows[np.flatnonzero(chosen >= 0), chosen[chosen >= 0]]
    assert len(set(picked.tolist())) == len(picked)
    assert not set(picked.tolist()) & {*visited.tolist(), *taken.tolist()}
    nothing = np.empty(0, dtype=np.uint64)
    assert np.array_equal(kernel.first_unseen(rows, nothing, nothing), elite_numpy.first_unseen(rows, nothing, nothing))


def test_a_mate_is_a_neighbour_at_first_and_anyone_of_the_island_at_the_end():
    order = np.arange(20)
    parents = np.repeat(np.arange(20), 50)
    draws = np.random.default_rng(0).random((1000, elite_numpy.CHOICES))
    near = elite_numpy.mates_of(order, order, parents, 10, 1, 0.0, draws)
    assert set((near - parents) % 10) == {1, 9}
    assert (near // 10 == parents // 10).all()
    anyone = elite_numpy.mates_of(order, order, parents, 10, 1, 1.0, draws)
    assert (anyone // 10 == parents // 10).all()
    assert np.mean(anyone % 10) < 3.5  # of two the better
    assert set(anyone % 10) == set(range(10))


def test_children_on_wide_tables_are_distributed_as_those_of_other_tables():
    rng = np.random.default_rng(1)
    n, particles = 60, 4
    arguments = {
        "elite": rng.random((2 * particles, n)) < 0.3,
        "order": np.arange(2 * particles),
        "place": np.arange(2 * particles),
        "parents": np.repeat(np.arange(2 * particles), 3000),
        "particles": particles,
        "radius": 1,
        "progress": 0.5,
        "recombination": 0.6,
        "likelihood": rng.random((2, 2, n)) ** 2,
        "expected": np.array([[1.5, 0.5], [0.3, 2.0]]),
        "fixed": rng.random(n) < 0.1,
    }
    arguments["likelihood"][:, :, 3:6] = 0.0
    draws = rng.random((len(arguments["parents"]), elite_numpy.CHOICES + n))
    dense, few = elite_numpy.bred(**arguments, draws=draws), wide.breed_few(**arguments, rng=rng)
    shares = [children.reshape(2 * particles, 3000, n).mean(axis=1) for children in (dense, few)]
    assert np.abs(shares[0] - shares[1]).max() < 0.06  # additions by a Poisson process differ in second order
    assert np.abs(shares[0] - shares[1]).mean() < 0.01
    own = arguments["elite"][arguments["parents"]]
    for children in (dense, few):
        changes = (children ^ own)[:3000]
        assert 3 < changes.sum(axis=1).mean() < 12


def test_a_child_on_a_wide_table_never_loses_a_fixed_feature_and_gains_one_if_all_is_absent():
    rng = np.random.default_rng(0)
    elite = np.zeros((4, 30), dtype=bool)
    elite[:, 5] = True
    fixed = np.arange(30) == 5
    mating = (np.arange(4), np.arange(4), np.arange(4).repeat(50), 4, 1, 0.5, 1.0)
    children = wide.breed_few(elite, *mating, np.ones((1, 2, 30)), np.array([[2.0, 30.0]]), fixed, rng)
    assert children[:, 5].all()
    assert 1.5 < children.sum(axis=1).mean() - 1 < 2.5
    nothing = wide.breed_few(elite, *mating, np.zeros((1, 2, 30)), np.array([[2.0, 2.0]]), fixed, rng)
    assert np.array_equal(nothing, elite[mating[2]])


def test_a_wide_table_is_searched_with_few_random_numbers(monkeypatch):
    monkeypatch.setattr(elite, "WIDE", 30)
    calls = []
    monkeypatch.setattr(elite, "breed_few", lambda *given: calls.append(1) or wide.breed_few(*given))
    planted = np.arange(40) % 8 == 0
    search = Search(TwoDElite(opening=0.0), 40, rng=3)
    for _ in range(150):
        search.tell((search.ask() ^ planted).mean(axis=1))
    assert search.best.fitness == 0.0
    assert len(calls) >= 149
