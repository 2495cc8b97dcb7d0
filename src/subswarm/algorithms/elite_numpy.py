"""The heaviest rules of `elite` in plain NumPy: the same numbers as `elite_kernel`, for where numba is not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subswarm.algorithms.moves import ADD, REMOVE
from subswarm.core.types import FloatArray, IntArray, Mask, Masks

__all__ = ["CHOICES", "LEAST", "bred", "first_unseen", "keys_of", "mates_of"]

CHOICES = 8
"""Draws for a child before those for its features: how much it takes from its mate, and who that is."""

LEAST = 1e-300
"""Keeps a share of nothing from being divided by."""


def bred(
    elite: Masks,
    order: IntArray,
    place: IntArray,
    parents: IntArray,
    particles: int,
    radius: int,
    progress: float,
    recombination: float,
    likelihood: FloatArray,
    expected: FloatArray,
    fixed: Mask,
    draws: FloatArray,
) -> Masks:
    """A child for each row of ``draws``, from U[0, 1), shape (K, CHOICES + n): mixed with a mate's, then moved.

    ``order`` has the elite (C * P, n) clan by clan, best first, and ``place`` where each is in it. A child takes each
    feature's state from its mate with a probability drawn from U[0, recombination], and then has about ``expected``
    features (C, 2) added and removed, those likely to help (C, 2, n) first.
    """
    clan = parents // particles
    mates = mates_of(order, place, parents, particles, radius, progress, draws)
    share = (recombination * draws[:, 0])[:, None]
    each = draws[:, CHOICES:]
    swapped = each < share
    masks = np.where(swapped, elite[mates], elite[parents])
    unused = np.where(swapped, each / np.maximum(share, LEAST), (each - share) / (1.0 - share))  # from U[0, 1) again
    absent = np.where(masks, 0.0, likelihood[clan, ADD])
    present = np.where(masks & ~fixed, likelihood[clan, REMOVE], 0.0)
    return masks ^ (unused < _shares(absent, expected[clan, ADD]) + _shares(present, expected[clan, REMOVE]))


def mates_of(
    order: IntArray,
    place: IntArray,
    parents: IntArray,
    particles: int,
    radius: int,
    progress: float,
    draws: FloatArray,
) -> IntArray:
    """Whom each parent recombines with: of two drawn at random the better.

    They are neighbours on its clan's ring, or any of the clan; the share of the latter rises in a line from 0 to 1 over
    the run: the paper's unification of local and global learning, from one end to the other.
    """
    first = parents - parents % particles  # of the parent's clan
    anywhere = order[first + (draws[:, 2:4] * particles).astype(np.intp).min(axis=1)]
    apart = 1 + (draws[:, 4:6] * radius).astype(np.intp)
    apart = np.where(draws[:, 6:8] < 0.5, apart, -apart)
    near = first[:, None] + (parents[:, None] + apart) % particles
    near = np.where(place[near[:, 0]] <= place[near[:, 1]], near[:, 0], near[:, 1])
    return np.asarray(np.where(draws[:, 1] < progress, anywhere, near))


def keys_of(masks: Masks, clans: IntArray, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A number for each subset of a clan, all different for all practical purposes, shape (K,)."""
    n_features = masks.shape[1]
    return np.asarray(masks @ words[:n_features] + words[n_features:][clans])


def first_unseen(keys: NDArray[np.uint64], visited: NDArray[np.uint64], taken: NDArray[np.uint64]) -> IntArray:
    """For each particle the first of its keys (K, T) that is not among the visited, in ascending order, nor taken.

    Nor is it taken by a particle before it; -1 where there is none.
    """
    gone = set(taken.tolist())
    places = np.minimum(np.searchsorted(visited, keys), max(len(visited) - 1, 0))
    fresh = visited[places] != keys if len(visited) else np.ones(keys.shape, dtype=bool)
    chosen = np.full(len(keys), -1, dtype=np.intp)
    for row in range(len(keys)):
        for attempt in np.flatnonzero(fresh[row]):
            key = int(keys[row, attempt])
            if key not in gone:
                gone.add(key)
                chosen[row] = attempt
                break
    return chosen


def _shares(weights: FloatArray, expected: FloatArray) -> FloatArray:
    """Probabilities in proportion to the weights (K, n) that add up to ``expected`` (K,), none above 1."""
    whole = np.cumsum(weights, axis=1)[:, -1]  # added up one by one, as a loop does
    scale = np.divide(expected, whole, out=np.zeros_like(whole), where=whole > 0)
    return np.asarray(np.minimum(1.0, weights * scale[:, None]))
