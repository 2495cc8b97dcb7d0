"""Compiled versions of `elite.numpy`, with bit-identical results. Imported only if numba is installed."""

from __future__ import annotations

import numpy as np

from subswarm._njit import njit
from subswarm._types import FloatArray, IntArray, Mask, Masks, WordArray
from subswarm.algorithms.elite.numpy import CHOICES, LEAST
from subswarm.algorithms.elite.state import ADD, REMOVE

__all__ = ["bred", "first_unseen", "keys_of"]


@njit(nogil=True, cache=True)
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
    """`elite.numpy.bred`."""
    n = elite.shape[1]
    masks: Masks = np.empty((len(parents), n), dtype=np.bool_)
    for k in range(len(parents)):
        parent, draw, mask = parents[k], draws[k], masks[k]
        own, island = elite[parent], parent // particles
        other = elite[_mate(order, place, parent, particles, radius, progress, draw)]
        share = recombination * draw[0]
        adding, removing = 0.0, 0.0
        for j in range(n):
            mask[j] = other[j] if draw[CHOICES + j] < share else own[j]
            if not mask[j]:
                adding += likelihood[island, ADD, j]
            elif not fixed[j]:
                removing += likelihood[island, REMOVE, j]
        add = expected[island, ADD] / adding if adding > 0 else 0.0
        remove = expected[island, REMOVE] / removing if removing > 0 else 0.0
        for j in range(n):
            each = draw[CHOICES + j]
            unused = each / max(share, LEAST) if each < share else (each - share) / (1.0 - share)
            if not mask[j]:
                mask[j] = unused < min(1.0, likelihood[island, ADD, j] * add)
            elif not fixed[j]:
                mask[j] = not unused < min(1.0, likelihood[island, REMOVE, j] * remove)
    return masks


@njit(nogil=True, cache=True)
def _mate(
    order: IntArray, place: IntArray, parent: int, particles: int, radius: int, progress: float, draw: FloatArray
) -> int:
    """`elite.numpy.mates_of` for one parent."""
    first = parent - parent % particles
    if draw[1] < progress:
        return order[first + min(int(draw[2] * particles), int(draw[3] * particles))]  # type: ignore[no-any-return]
    one, two = 1 + int(draw[4] * radius), 1 + int(draw[5] * radius)
    one = first + (parent + (one if draw[6] < 0.5 else -one)) % particles
    two = first + (parent + (two if draw[7] < 0.5 else -two)) % particles
    return one if place[one] <= place[two] else two


@njit(nogil=True, cache=True)
def keys_of(masks: Masks, islands: IntArray, words: WordArray) -> WordArray:
    """`elite.numpy.keys_of`."""
    K, n = masks.shape
    keys: WordArray = np.empty(K, dtype=np.uint64)
    for k in range(K):
        key = words[n + islands[k]]
        for j in range(n):
            if masks[k, j]:
                key += words[j]
        keys[k] = key
    return keys


@njit(nogil=True, cache=True)
def first_unseen(keys: WordArray, visited: WordArray, taken: WordArray) -> IntArray:
    """`elite.numpy.first_unseen`."""
    K, T = keys.shape
    chosen: IntArray = np.full(K, -1, dtype=np.intp)
    gone: WordArray = np.empty(len(taken) + K, dtype=np.uint64)
    count = len(taken)
    for g in range(count):  # assigning a slice would compile numba's messages for arrays of other shapes, for seconds
        gone[g] = taken[g]
    for k in range(K):
        for t in range(T):
            key = keys[k, t]
            low, high = 0, len(visited)
            while low < high:
                middle = (low + high) // 2
                if visited[middle] < key:
                    low = middle + 1
                else:
                    high = middle
            fresh = low == len(visited) or visited[low] != key
            for g in range(count):
                fresh &= gone[g] != key
            if fresh:
                gone[count] = key
                count += 1
                chosen[k] = t
                break
    return chosen
