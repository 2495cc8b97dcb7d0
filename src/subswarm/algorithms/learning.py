"""The two-dimensional learning of the paper, as pure functions on a whole swarm.

P particles, n features. A position is a row of ``masks`` (P, n). A velocity has shape (2, n): its first row holds the
likelihood of each cardinality 1..n (the paper's ρ), its second the likelihood of each feature (σ). Labels in
parentheses are the paper's equations; the D numbers are decisions listed in docs/paper-notes.md.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from subswarm.core.types import FloatArray, IntArray, Masks

__all__ = [
    "CARDINALITY",
    "FEATURE",
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

LearningSet = NDArray[np.bool_]
"""Shape (P, 2, n)."""


def learning_set(exemplar: Masks, position: Masks, *, whole_exemplar: bool = False) -> LearningSet:
    """What each particle learns from its exemplar (eqs. psi, finalls): shape (P, 2, n).

    The exemplar's cardinality as a one-hot row, and the features it has and the particle has not. With
    ``whole_exemplar`` all the exemplar's features (D11). One exemplar of shape (n,) serves the whole swarm.

    Examples
    --------
    >>> learning_set(np.array([[1, 0, 1, 1, 0]], bool), np.array([[1, 1, 0, 0, 1]], bool)).astype(int)
    array([[[0, 0, 1, 0, 0],
            [0, 0, 1, 1, 0]]])
    """
    exemplar = np.broadcast_to(exemplar, position.shape)
    return _stacked(exemplar, exemplar if whole_exemplar else exemplar & ~position)


def self_learning_set(position: Masks) -> LearningSet:
    """What each particle learns from itself: its own cardinality and features, shape (P, 2, n)."""
    return _stacked(position, position)


def merit(fitness: FloatArray) -> FloatArray:
    """δ (eq. delta): 1 - f / max(F), from 0 for the swarm's worst to 1 for a perfect fitness; 0 where max(F) is 0 (D10)."""
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
    return np.where(reached.any(axis=1), reached.argmax(axis=1), slots.shape[1] - 1)


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


def refreshed(velocity: FloatArray, stagnant: NDArray[np.bool_], rng: Generator) -> FloatArray:
    """Velocities with those of stagnant particles drawn anew from U[0, 1] (the refresh gap)."""
    if not stagnant.any():
        return velocity
    velocity = velocity.copy()
    velocity[stagnant] = rng.random((int(stagnant.sum()), *velocity.shape[1:]))
    return velocity


def _stacked(subset: Masks, features: Masks) -> LearningSet:
    n = subset.shape[1]
    cardinality = subset.sum(axis=1)[:, None] == np.arange(1, n + 1)
    return np.stack([cardinality, features], axis=1)
