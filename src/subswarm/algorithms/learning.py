"""The two-dimensional learning of the paper, as pure functions on a whole swarm.

P particles, n features. A position is a row of ``masks`` (P, n). A velocity has shape (2, n): its first row holds the
likelihood of each cardinality 1..n (the paper's ρ), its second the likelihood of each feature (σ). Labels in
parentheses are the paper's equations; the D numbers are decisions listed in docs/paper-notes.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from subswarm.algorithms import learning_numpy
from subswarm.algorithms.compiled import kernel_or
from subswarm.core.types import FloatArray, IntArray, Masks

__all__ = [
    "CARDINALITY",
    "FEATURE",
    "LearningSet",
    "add_influence",
    "add_pull",
    "carried",
    "fresh_velocity",
    "greedy_cardinality",
    "learning_set",
    "merit",
    "ranked_features",
    "roulette_cardinality",
    "self_influence",
    "self_learning_set",
    "wheel_position",
]

CARDINALITY, FEATURE = 0, 1
"""The rows of a velocity and of a learning set."""


class LearningSet(NamedTuple):
    """What each particle has learnt, L = [φ; ψ], with the one-hot φ kept as the cardinality it stands for.

    Attributes
    ----------
    cardinality : ξ of what was learnt from, shape (P,); 0 stands for a row of zeros
    features : ψ, shape (P, n)
    """

    cardinality: IntArray
    features: Masks

    def matrix(self) -> Masks:
        """L as the paper writes it, shape (P, 2, n)."""
        sizes = np.arange(1, self.features.shape[1] + 1)
        return np.stack([self.cardinality[:, None] == sizes, self.features], axis=1)


def learning_set(exemplar: Masks, position: Masks, *, whole_exemplar: bool = False) -> LearningSet:
    """What each particle learns from its exemplar (eqs. psi, finalls): its cardinality, and what it has and they lack.

    With ``whole_exemplar`` all the exemplar's features are learnt (D11). One exemplar of shape (n,) serves the whole
    swarm.

    Examples
    --------
    >>> learning_set(np.array([[1, 0, 1, 1, 0]], bool), np.array([[1, 1, 0, 0, 1]], bool)).matrix().astype(int)
    array([[[0, 0, 1, 0, 0],
            [0, 0, 1, 1, 0]]])
    """
    exemplar = np.broadcast_to(exemplar, position.shape)
    return LearningSet(exemplar.sum(axis=1), exemplar if whole_exemplar else exemplar & ~position)


def self_learning_set(position: Masks) -> LearningSet:
    """What each particle learns from itself: its own cardinality and features."""
    return LearningSet(position.sum(axis=1), position)


def add_pull(
    velocity: FloatArray, exemplar: Masks, position: Masks, weight: FloatArray, *, whole_exemplar: bool = False
) -> None:
    """Add ``weight`` times the `learning_set` of the exemplars (P, n), or of one for all (1, n), in place.

    The weight has shape (P, 1, 1), (P, 2, 1) or (P, 2, n).

    Examples
    --------
    >>> velocity = np.zeros((1, 2, 5))
    >>> exemplar, position = np.array([[1, 0, 1, 1, 0]], bool), np.array([[1, 1, 0, 0, 1]], bool)
    >>> add_pull(velocity, exemplar, position, np.full((1, 1, 1), 0.5))
    >>> velocity
    array([[[0. , 0. , 0.5, 0. , 0. ],
            [0. , 0. , 0.5, 0.5, 0. ]]])
    """
    _rules().add_pull(velocity, exemplar, position, weight, whole_exemplar)


def add_influence(velocity: FloatArray, position: Masks, influence: FloatArray) -> None:
    """Add each particle's influence (P,) times its `self_learning_set`, in place."""
    _rules().add_pull(velocity, position, position, influence[:, None, None], True)


def merit(fitness: FloatArray) -> FloatArray:
    """δ (eq. delta): 1 - f / max(F), 0 for the swarm's worst, 1 for a perfect one; all 0 where max(F) is 0 (D10)."""
    worst = fitness.max()
    return 1.0 - fitness / worst if worst > 0 else np.zeros_like(fitness)


def self_influence(fitness: FloatArray, previous: FloatArray) -> FloatArray:
    """Δ (eq. fitfeedback): +δ for a particle that did better than a step ago, else -δ.

    ``previous`` is infinite before the first step, which so counts as an improvement (D9).
    """
    gain = merit(fitness)
    return np.where(fitness < previous, gain, -gain)


def roulette_cardinality(
    likelihood: FloatArray, rng: Generator, *, limits: tuple[int, int] | None = None, raw: bool = False
) -> IntArray:
    """Spin a roulette wheel over the cardinalities (Algorithm posprop): ξ for each particle, shape (P,).

    Negative likelihoods count as 0 on the wheel, and where nothing is positive all cardinalities are equally likely
    (D2); with ``raw`` the cumulative sums are taken as they are and the first that reaches the spin wins. ``limits``
    are the fewest and most features allowed.
    """
    low, high = limits or (1, likelihood.shape[1])
    turn = rng.random(len(likelihood))
    return np.asarray(low + _rules().roulette_slots(likelihood[:, low - 1 : high], turn, raw))


def wheel_position(slots: FloatArray, turn: FloatArray) -> IntArray:
    """Where each wheel stops: the first slot whose cumulative sum is at least ``turn`` of the whole (D13).

    Examples
    --------
    >>> rho = np.array([[0.14, 2.56, 1.35, 0.38, 0.71]])
    >>> wheel_position(rho, np.array([3.25 / 5.14])) + 1  # a spin of 3.25 selects three features
    array([3])
    """
    return np.asarray(_rules().roulette_slots(slots, turn, True))


def greedy_cardinality(likelihood: FloatArray, *, limits: tuple[int, int] | None = None) -> IntArray:
    """The likeliest cardinality of each particle: the paper's exploitative alternative to the wheel."""
    low, high = limits or (1, likelihood.shape[1])
    return np.asarray(low + likelihood[:, low - 1 : high].argmax(axis=1))


def ranked_features(likelihood: FloatArray, cardinality: IntArray) -> Masks:
    """The ξ likeliest features of each particle (Algorithm posprop); equal likelihoods go by index (D13).

    Examples
    --------
    >>> ranked_features(np.array([[1.31, 2.40, 0.57, 1.46, 1.30]]), np.array([3])).astype(int)
    array([[1, 1, 0, 1, 0]])
    """
    return np.asarray(_rules().ranked_features(likelihood, cardinality))


def carried(
    velocity: FloatArray,
    inertia: float,
    stagnant: NDArray[np.bool_],
    rng: Generator,
    limit: FloatArray | None = None,
) -> FloatArray:
    """ω v, where those of stagnant particles are first drawn anew from U[0, 1], or U[0, limit] (the refresh gap)."""
    carried = inertia * velocity
    if stagnant.any():
        fresh = fresh_velocity(int(np.count_nonzero(stagnant)), velocity.shape[2], rng, limit)
        carried[stagnant] = np.multiply(fresh, inertia, out=fresh)
    return carried


def fresh_velocity(particles: int, n_features: int, rng: Generator, limit: FloatArray | None = None) -> FloatArray:
    """Likelihoods from U[0, 1], or U[0, limit], shape (P, 2, n)."""
    drawn = rng.random((particles, 2, n_features))
    return drawn if limit is None else drawn * limit


def _rules() -> Any:
    return kernel_or(learning_numpy, "learning_kernel")
