"""The two-dimensional learning of the paper, as pure functions on a whole swarm.

P particles, n features. A position is a row of ``masks`` (P, n). A velocity has shape (2, n): its first row holds the
likelihood of each cardinality 1..n (the paper's ρ), its second the likelihood of each feature (σ). Labels in
parentheses are the paper's equations; the D numbers are decisions listed in docs/paper-notes.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from subswarm.core.types import FloatArray, IntArray, Masks

__all__ = [
    "CARDINALITY",
    "FEATURE",
    "LearningSet",
    "add_lesson",
    "greedy_cardinality",
    "learning_set",
    "merit",
    "ranked_features",
    "refreshed",
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


def add_lesson(velocity: FloatArray, lesson: LearningSet, weight: float | FloatArray) -> None:
    """Add ``weight`` times L to the velocities, in place; the weight broadcasts to (P, 2, n)."""
    weight = np.broadcast_to(weight, (len(velocity), 2, velocity.shape[2]))
    learnt = np.flatnonzero(lesson.cardinality)
    entry = lesson.cardinality[learnt] - 1
    velocity[learnt, CARDINALITY, entry] += weight[learnt, CARDINALITY, entry]
    velocity[:, FEATURE] += weight[:, FEATURE] * lesson.features


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
    allowed = likelihood[:, low - 1 : high]
    if not raw:
        allowed = np.maximum(allowed, 0.0)
        hopeless = ~(allowed.max(axis=1) > 0)
        if hopeless.any():
            allowed[hopeless] = 1.0
    return np.asarray(low + wheel_position(allowed, rng.random(len(allowed))))


def wheel_position(slots: FloatArray, turn: FloatArray) -> IntArray:
    """Where each wheel stops: the first slot whose cumulative sum is at least ``turn`` of the whole (D13).

    Examples
    --------
    >>> rho = np.array([[0.14, 2.56, 1.35, 0.38, 0.71]])
    >>> wheel_position(rho, np.array([3.25 / 5.14])) + 1  # a spin of 3.25 selects three features
    array([3])
    """
    cumulative = np.cumsum(slots, axis=1)
    reached = cumulative >= (turn * cumulative[:, -1])[:, None]
    return np.asarray(np.where(reached.any(axis=1), reached.argmax(axis=1), slots.shape[1] - 1))


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
    descending = np.sort(likelihood, axis=1)[:, ::-1]
    threshold = np.take_along_axis(descending, cardinality[:, None] - 1, axis=1)
    masks = likelihood >= threshold
    surplus = np.flatnonzero(masks.sum(axis=1) > cardinality)
    if len(surplus):
        above = likelihood[surplus] > threshold[surplus]
        level = likelihood[surplus] == threshold[surplus]
        room = cardinality[surplus] - above.sum(axis=1)
        masks[surplus] = above | (level & (np.cumsum(level, axis=1) <= room[:, None]))
    return masks


def refreshed(
    velocity: FloatArray, stagnant: NDArray[np.bool_], rng: Generator, limit: float | FloatArray = 1.0
) -> FloatArray:
    """Velocities with those of stagnant particles drawn anew from U[0, 1], or U[0, limit] (the refresh gap)."""
    if not stagnant.any():
        return velocity
    velocity = velocity.copy()
    velocity[stagnant] = rng.random((int(stagnant.sum()), *velocity.shape[1:])) * limit
    return velocity
