"""The two-dimensional learning of the paper, as pure functions on all particles at once.

P particles, n features. A position is a row of ``masks`` (P, n). A velocity has shape (2, n): its first row holds the
likelihood of each cardinality 1..n (the paper's ρ), its second the likelihood of each feature (σ). Labels in
parentheses are the paper's equations; the D numbers are decisions listed in docs/paper-notes.md.
"""

from __future__ import annotations

from typing import Protocol, cast

import numpy as np
from numpy.random import Generator

from subswarm._types import FloatArray, IntArray, Mask, Masks
from subswarm.algorithms.compiled import kernel_or
from subswarm.algorithms.two_d import numpy as learning_numpy

__all__ = [
    "CARDINALITY",
    "FEATURE",
    "add_influence",
    "add_pull",
    "carried",
    "fresh_velocity",
    "greedy_cardinality",
    "merit",
    "ranked_features",
    "roulette_cardinality",
    "self_influence",
    "wheel_position",
]

CARDINALITY, FEATURE = 0, 1
"""The rows of a velocity and of a learning set."""


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
    least = fitness.min()
    if least < 0:
        fitness = fitness / 2 - least / 2  # halves, because a difference of huge losses could overflow
    worst = fitness.max()
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
    return cast(_Kernels, kernel_or(learning_numpy, "two_d.numba"))
