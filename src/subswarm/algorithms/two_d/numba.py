"""Compiled versions of `two_d.numpy`, with bit-identical results. Imported only if numba is installed."""

from __future__ import annotations

import numpy as np

from subswarm._njit import njit
from subswarm._types import FloatArray, IntArray, Masks

__all__ = ["add_pull", "ranked_features", "roulette_slots"]

_HALVINGS = 40
"""Bisections of a likelihood's range before the row is sorted instead."""


@njit(nogil=True, cache=True)
def add_pull(velocity: FloatArray, exemplar: Masks, position: Masks, weight: FloatArray, whole_exemplar: bool) -> None:
    """`two_d.numpy.add_pull`."""
    P, _, n = velocity.shape
    for p in range(P):
        teacher, own, features = exemplar[p % len(exemplar)], position[p], velocity[p, 1]
        weights, size = weight[p, weight.shape[1] - 1], 0
        for j in range(n):
            size += teacher[j]
        if size:
            velocity[p, 0, size - 1] += weight[p, 0, (size - 1) % weight.shape[2]]
        if weight.shape[2] < n:
            alike = weights[0]
            if whole_exemplar:
                for j in range(n):
                    features[j] += alike * teacher[j]
            else:
                for j in range(n):
                    features[j] += alike * (teacher[j] > own[j])
        else:
            for j in range(n):
                features[j] += weights[j] * (teacher[j] and (whole_exemplar or not own[j]))


@njit(nogil=True, cache=True)
def roulette_slots(likelihood: FloatArray, turn: FloatArray, raw: bool) -> IntArray:
    """`two_d.numpy.roulette_slots`."""
    P, n = likelihood.shape
    slots: IntArray = np.empty(P, dtype=np.intp)
    cumulative: FloatArray = np.empty(n)
    for p in range(P):
        total, hopeful = 0.0, raw
        for j in range(n):
            share = likelihood[p, j]
            hopeful |= share > 0.0
            total += share if raw or not share < 0.0 else 0.0
            cumulative[j] = total
        if not hopeful:
            for j in range(n):
                cumulative[j] = j + 1.0
        spin, slot = turn[p] * cumulative[n - 1], n - 1
        for j in range(n):
            if cumulative[j] >= spin:
                slot = j
                break
        slots[p] = slot
    return slots


@njit(nogil=True, cache=True)
def ranked_features(likelihood: FloatArray, cardinality: IntArray) -> Masks:
    """`two_d.numpy.ranked_features`.

    A limit that exactly ``cardinality`` likelihoods reach replaces a sort. Bisection finds one in about a dozen passes
    unless likelihoods are equal.
    """
    P, n = likelihood.shape
    masks: Masks = np.empty((P, n), dtype=np.bool_)
    row: FloatArray = np.empty(n)
    for p in range(P):
        low, high, wanted = np.inf, -np.inf, cardinality[p]
        for j in range(n):
            row[j] = likelihood[p, j]
            low, high = min(low, row[j]), max(high, row[j])
        limit, reached = low, n
        for _ in range(_HALVINGS):
            if reached == wanted:
                break
            limit, reached = 0.5 * low + 0.5 * high, 0
            for j in range(n):
                reached += row[j] >= limit
            if reached > wanted:
                low = limit
            else:
                high = limit
        if reached == wanted:
            for j in range(n):
                masks[p, j] = row[j] >= limit
            continue
        limit = np.sort(row)[n - wanted]
        above = 0
        for j in range(n):
            above += row[j] > limit
        for j in range(n):
            level = row[j] == limit and above < wanted
            above += level
            masks[p, j] = level or row[j] > limit
    return masks
