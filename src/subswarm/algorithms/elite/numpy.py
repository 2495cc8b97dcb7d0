"""The most expensive computations of an elite swarm in NumPy, used if numba is not installed or not loaded."""

from __future__ import annotations

import numpy as np

from subswarm._types import FloatArray, IntArray, Mask, Masks, WordArray
from subswarm.algorithms.elite.state import ADD, REMOVE

__all__ = ["CHOICES", "LEAST", "bred", "first_unseen", "keys_of", "mates_of"]

CHOICES = 8
"""Number of draws for a child that come before those for its features: share of the mate, and choice of the mate."""

LEAST = 1e-300
"""Prevents a division by zero if the share is zero."""


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
    """Return one child for each row of ``draws``, which are from U[0, 1), shape (K, CHOICES + n).

    ``order`` has the elite (C * P, n) by island, best first; ``place`` is the inverse permutation. A child takes each
    feature's state from its mate with a probability drawn from U[0, recombination]. Then about ``expected`` features
    (C, 2) are added and removed, with probabilities in proportion to the ``likelihood`` (C, 2, n) that this helps.
    """
    island = parents // particles
    mates = mates_of(order, place, parents, particles, radius, progress, draws)
    share = (recombination * draws[:, 0])[:, None]
    each = draws[:, CHOICES:]
    swapped = each < share
    masks = np.where(swapped, elite[mates], elite[parents])
    unused = np.where(
        swapped, each / np.maximum(share, LEAST), (each - share) / (1.0 - share)
    )  # again uniform on [0, 1)
    absent = np.where(masks, 0.0, likelihood[island, ADD])
    present = np.where(masks & ~fixed, likelihood[island, REMOVE], 0.0)
    return masks ^ (unused < _shares(absent, expected[island, ADD]) + _shares(present, expected[island, REMOVE]))


def mates_of(
    order: IntArray,
    place: IntArray,
    parents: IntArray,
    particles: int,
    radius: int,
    progress: float,
    draws: FloatArray,
) -> IntArray:
    """Return the mate of each parent: the better of two random candidates.

    The candidates are neighbours on the ring of the island, or any particles of the island. The probability of the
    latter rises linearly from 0 to 1 over the run, which is the paper's unification of local and global learning.
    """
    first = parents - parents % particles  # first particle of the parent's island
    anywhere = order[first + (draws[:, 2:4] * particles).astype(np.intp).min(axis=1)]
    apart = 1 + (draws[:, 4:6] * radius).astype(np.intp)
    apart = np.where(draws[:, 6:8] < 0.5, apart, -apart)
    near = first[:, None] + (parents[:, None] + apart) % particles
    near = np.where(place[near[:, 0]] <= place[near[:, 1]], near[:, 0], near[:, 1])
    return np.asarray(np.where(draws[:, 1] < progress, anywhere, near))


def keys_of(masks: Masks, islands: IntArray, words: WordArray) -> WordArray:
    """Return a hash of each subset and its island, shape (K,)."""
    n_features = masks.shape[1]
    return np.asarray(masks @ words[:n_features] + words[n_features:][islands])


def first_unseen(keys: WordArray, visited: WordArray, taken: WordArray) -> IntArray:
    """Return for each particle the index of its first key (K, T) that is new; -1 if there is none.

    A key is new if it is neither visited (ascending), nor taken, nor chosen for a particle before it.
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
    """Return probabilities in proportion to the weights (K, n), clipped to 1, whose sum is ``expected`` (K,)."""
    whole = np.cumsum(weights, axis=1)[:, -1]  # summed one by one, as in the compiled loop
    scale = np.divide(expected, whole, out=np.zeros_like(whole), where=whole > 0)
    return np.asarray(np.minimum(1.0, weights * scale[:, None]))
