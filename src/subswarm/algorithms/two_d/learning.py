"""The two-dimensional learning of the paper, as pure functions on all particles at once, with exemplars and schedules.

P particles, n features. A position is a row of ``masks`` (P, n). A velocity has shape (2, n): its first row holds the
likelihood of each cardinality 1..n (the paper's ρ), its second the likelihood of each feature (σ). Labels in
parentheses are the paper's equations; the D numbers are decisions listed in docs/paper-notes.md.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.random import Generator

from subswarm._compilation import kernel_or
from subswarm._types import FloatArray, IntArray, Mask, Masks
from subswarm.algorithms.particles import Bests
from subswarm.algorithms.two_d import numpy as learning_numpy

__all__ = [
    "CARDINALITY",
    "FEATURE",
    "INERTIA_SCHEDULES",
    "UNIFICATION_SCHEDULES",
    "add_influence",
    "add_pull",
    "carried",
    "comprehensive_teachers",
    "fresh_velocity",
    "greedy_cardinality",
    "inertia_at",
    "learning_probability",
    "linear",
    "merit",
    "ranked_features",
    "ring_best",
    "ring_leaders",
    "roulette_cardinality",
    "self_influence",
    "unification_at",
    "wheel_position",
]

CARDINALITY, FEATURE = 0, 1
"""The rows of a velocity and of a learning set."""

INERTIA_SCHEDULES = ("constant", "linear", "printed")
UNIFICATION_SCHEDULES = ("linear", "modular", "exponential", "sigmoid")
SIGMOID_STEEPNESS = 10.0


def add_pull(
    velocity: FloatArray, exemplar: Masks, position: Masks, weight: FloatArray, *, whole_exemplar: bool = False
) -> None:
    """Add ``weight`` times what each particle learns from its exemplar, L = [φ; ψ] (eqs. psi, finalls), in place.

    φ encodes the exemplar's cardinality, and ψ its features that the particle lacks, or with ``whole_exemplar`` all its
    features (D11).

    Parameters
    ----------
    velocity : shape (P, 2, n)
    exemplar : shape (P, n), or (1, n) for one exemplar of all particles
    position : shape (P, n)
    weight : shape (P, 1, 1), (P, 2, 1) or (P, 2, n)
    whole_exemplar : bool

    Examples
    --------
    >>> velocity = np.zeros((1, 2, 5))
    >>> exemplar, position = np.array([[1, 0, 1, 1, 0]], bool), np.array([[1, 1, 0, 0, 1]], bool)
    >>> add_pull(velocity, exemplar, position, np.full((1, 1, 1), 0.5))
    >>> velocity
    array([[[0. , 0. , 0.5, 0. , 0. ],
            [0. , 0. , 0.5, 0.5, 0. ]]])
    """
    _kernels().add_pull(velocity, exemplar, position, weight, whole_exemplar)


def add_influence(velocity: FloatArray, position: Masks, influence: FloatArray) -> None:
    """Add each particle's influence (P,) times what it learns from itself: its own cardinality and features."""
    _kernels().add_pull(velocity, position, position, influence[:, None, None], True)


def merit(fitness: FloatArray) -> FloatArray:
    """Return δ (eq. delta), 1 - f / max(F): 0 for the worst particle, 1 for zero loss; all 0 if max(F) is 0 (D10).

    Losses below zero are first shifted so that the least one is zero (D16).

    Examples
    --------
    >>> merit(np.array([0.0, 1.0, 4.0])), merit(np.array([-4.0, -3.0, 0.0]))
    (array([1.  , 0.75, 0.  ]), array([1.  , 0.75, 0.  ]))
    """
    least = np.minimum.reduce(fitness)
    if least < 0:
        fitness = fitness / 2 - least / 2  # halves, because a difference of huge losses could overflow
    worst = np.maximum.reduce(fitness)
    return 1.0 - fitness / worst if worst > 0 else np.zeros_like(fitness)


def self_influence(fitness: FloatArray, previous: FloatArray) -> FloatArray:
    """Return Δ (eq. fitfeedback): +δ for a particle that improved since the last step, otherwise -δ.

    ``previous`` is infinite before the first step, which therefore counts as an improvement (D9).
    """
    gain = merit(fitness)
    return np.where(fitness < previous, gain, -gain)


def roulette_cardinality(
    likelihood: FloatArray, rng: Generator, *, limits: tuple[int, int] | None = None, raw: bool = False
) -> IntArray:
    """Draw ξ for each particle from a roulette wheel over the cardinalities (Algorithm posprop), shape (P,).

    Negative likelihoods count as 0 on the wheel, and if none is positive all cardinalities are equally likely (D2).
    With ``raw`` the cumulative sums are used unchanged and the first one that reaches the spin is selected. ``limits``
    are the fewest and most features allowed.
    """
    low, high = limits or (1, likelihood.shape[1])
    turn = rng.random(len(likelihood))
    return np.asarray(low + _kernels().roulette_slots(likelihood[:, low - 1 : high], turn, raw))


def wheel_position(slots: FloatArray, turn: FloatArray) -> IntArray:
    """Return the slot at which each wheel stops: the first whose cumulative sum reaches ``turn`` of the total (D13).

    Examples
    --------
    >>> rho = np.array([[0.14, 2.56, 1.35, 0.38, 0.71]])
    >>> wheel_position(rho, np.array([3.25 / 5.14])) + 1  # a spin of 3.25 selects three features
    array([3])
    """
    return np.asarray(_kernels().roulette_slots(slots, turn, True))


def greedy_cardinality(likelihood: FloatArray, *, limits: tuple[int, int] | None = None) -> IntArray:
    """Return the most likely cardinality of each particle, the paper's exploitative alternative to the wheel."""
    low, high = limits or (1, likelihood.shape[1])
    return np.asarray(low + likelihood[:, low - 1 : high].argmax(axis=1))


def ranked_features(likelihood: FloatArray, cardinality: IntArray) -> Masks:
    """Return the ξ most likely features of each particle (Algorithm posprop); ties are broken by index (D13).

    Examples
    --------
    >>> ranked_features(np.array([[1.31, 2.40, 0.57, 1.46, 1.30]]), np.array([3])).astype(int)
    array([[1, 1, 0, 1, 0]])
    """
    return np.asarray(_kernels().ranked_features(likelihood, cardinality))


def carried(
    velocity: FloatArray,
    inertia: float | FloatArray,
    stagnant: Mask,
    rng: Generator,
    limit: FloatArray | None = None,
) -> FloatArray:
    """Return ω v; velocities of stagnant particles are first drawn again from U[0, 1] or U[0, limit] (refresh gap).

    ω is one number, or one for each particle, shape (P, 1, 1).
    """
    carried = inertia * velocity
    if stagnant.any():
        fresh = fresh_velocity(int(np.count_nonzero(stagnant)), velocity.shape[2], rng, limit)
        own = inertia[stagnant] if isinstance(inertia, np.ndarray) else inertia
        carried[stagnant] = np.multiply(fresh, own, out=fresh)
    return carried


def fresh_velocity(particles: int, n_features: int, rng: Generator, limit: FloatArray | None = None) -> FloatArray:
    """Draw likelihoods from U[0, 1], or U[0, limit], shape (P, 2, n)."""
    drawn = rng.random((particles, 2, n_features))
    return drawn if limit is None else drawn * limit


class _Kernels(Protocol):
    """What `two_d.numpy` and `two_d.numba` both provide."""

    def add_pull(
        self, velocity: FloatArray, exemplar: Masks, position: Masks, weight: FloatArray, whole_exemplar: bool, /
    ) -> None: ...

    def roulette_slots(self, likelihood: FloatArray, turn: FloatArray, raw: bool, /) -> IntArray: ...

    def ranked_features(self, likelihood: FloatArray, cardinality: IntArray, /) -> Masks: ...


def _kernels() -> _Kernels:
    return kernel_or(learning_numpy, "two_d.numba")  # six times a step, so without the time of a cast


# Exemplars: whose personal best a particle learns from.


def ring_best(bests: Bests, radius: int = 1) -> Masks:
    """Return nbest (D5), the best personal best within ``radius`` neighbours on either side of a ring, shape (P, n).

    Ties go to the particle itself, then to the nearest neighbour.
    """
    return bests.masks[ring_leaders(bests, radius)]


def ring_leaders(bests: Bests, radius: int = 1) -> IntArray:
    """Return the particle whose personal best is the best of each particle's neighbourhood, shape (P,)."""
    everyone, neighbours = _ring(len(bests.fitness), radius)
    nearest = bests.fitness[neighbours].argmin(axis=1)
    return np.asarray(neighbours[everyone, nearest])


@lru_cache(maxsize=16)
def _ring(count: int, radius: int) -> tuple[IntArray, IntArray]:
    """Return the particles (P,) and their neighbourhoods (P, K): the particle itself first, then the nearest."""
    reach = min(radius, count // 2)
    offsets = [0, *(sign * distance for distance in range(1, reach + 1) for sign in (-1, 1))]
    everyone = np.arange(count)
    return everyone, (everyone[:, None] + offsets) % count


def learning_probability(particles: int) -> FloatArray:
    """Return Pc of each particle (Liang et al., 2006): from 0.05 for the first to 0.5 for the last, shape (P,)."""
    place = np.arange(particles) / max(particles - 1, 1)
    return np.asarray(0.05 + 0.45 * np.expm1(10 * place) / np.expm1(10))


def comprehensive_teachers(rows: IntArray, n_features: int, fitness: FloatArray, rng: Generator) -> IntArray:
    """Return the particle from whose personal best each of ``rows`` learns each feature, shape (len(rows), n).

    With probability Pc this is the better of two random other particles, otherwise the particle itself. A particle that
    would learn nothing from others learns one random feature from another particle.
    """
    particles, shape = len(fitness), (len(rows), n_features)
    own = np.broadcast_to(rows[:, None], shape)
    first, second = ((own + rng.integers(1, particles, size=shape)) % particles for _ in range(2))
    others = np.where(fitness[second] < fitness[first], second, first)
    from_others = rng.random(shape) < learning_probability(particles)[rows][:, None]
    teachers = np.where(from_others, others, own)
    alone = np.flatnonzero(~from_others.any(axis=1))
    feature = rng.integers(n_features, size=len(alone))
    teachers[alone, feature] = others[alone, feature]
    return teachers


# Settings that change over a run; ``progress`` goes from 0 to 1.


def linear(start: float, end: float, progress: float) -> float:
    """Interpolate linearly from ``start`` to ``end``.

    Examples
    --------
    >>> linear(0.9, 0.4, 0.5)
    0.65
    """
    return start + (end - start) * progress


def inertia_at(schedule: str, start: float, end: float, progress: float) -> float:
    """Return ω: constant, linear, or as printed in the paper, (ω0 - ωf) t / T, which grows from 0 (D1)."""
    if schedule == "constant":
        return start
    return linear(start, end, progress) if schedule == "linear" else (start - end) * progress


def unification_at(schedule: str, start: float, end: float, period: int, step: int, progress: float) -> float:
    """Return u: linear from ``start`` to ``end``, mod(t, q)/q, 2^(t/T) - 1, or a sigmoid in t/T."""
    if schedule == "linear":
        return linear(start, end, progress)
    if schedule == "modular":
        return step % period / period
    if schedule == "exponential":
        return math.exp(progress * math.log(2)) - 1
    return 1 / (1 + math.exp(-SIGMOID_STEEPNESS * (progress - 0.5)))
