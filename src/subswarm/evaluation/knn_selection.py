"""Selecting the k nearest rows, compiled: a shortlist by lower bounds, and the doubtful pairs settled exactly.

Imported only where numba is installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["insert", "is_clear", "lane_counts", "scaled", "settle", "shortlist"]


@njit(nogil=True, cache=True)
def scaled(x: float, mode: int, a: float, b: float) -> float:
    """A value as the fold's scaler gives it, rounded as scikit-learn rounds it."""
    if mode == 0:
        return x
    if mode == 1:
        return (x - a) / b
    return x * a + b


@njit(nogil=True, cache=True)
def _distance(X: Any, i: int, j: int, columns: Any, mode: int, shift: Any, scale: Any) -> float:
    """The squared distance of two rows in difference form, columns in order."""
    total = 0.0
    for c in columns:
        gap = scaled(X[i, c], mode, shift[c], scale[c]) - scaled(X[j, c], mode, shift[c], scale[c])
        total += gap * gap
    return total


@njit(nogil=True, cache=True)
def insert(keys: Any, rows: Any, key: float, row: int) -> None:
    """Put a row into a list sorted by key; the last one drops out. Rows of equal key stay in order of arrival."""
    place = keys.shape[0] - 1
    while place > 0 and keys[place - 1] > key:
        keys[place] = keys[place - 1]
        rows[place] = rows[place - 1]
        place -= 1
    keys[place] = key
    rows[place] = row


@njit(nogil=True, cache=True)
def _insert_exact(distances: Any, rows: Any, distance: float, row: int) -> None:
    """As `insert`, but rows of equal distance are ordered by number."""
    place = distances.shape[0] - 1
    if distances[place] < distance or (distances[place] == distance and rows[place] < row):
        return
    while place > 0 and (
        distances[place - 1] > distance or (distances[place - 1] == distance and rows[place - 1] > row)
    ):
        distances[place] = distances[place - 1]
        rows[place] = rows[place - 1]
        place -= 1
    distances[place] = distance
    rows[place] = row


@njit(nogil=True, cache=True, fastmath={"contract"})
def _lower_bounds(g: Any, heights: Any, group: Any, own: int, bounds: Any) -> None:
    """Lower bounds of a row's distances (less a constant), infinite for the rows that are not trained on."""
    for j in range(g.shape[0]):
        bound = heights[j] - (g[j] + g[j])
        bounds[j] = np.inf if group[j] == own else bound


@njit(nogil=True, cache=True)
def _column_minima(table: Any, minima: Any) -> None:
    for s in range(minima.shape[0]):
        minima[s] = table[0, s]
    for b in range(1, table.shape[0]):
        for s in range(minima.shape[0]):
            minima[s] = min(table[b, s], minima[s])


@njit(nogil=True, cache=True)
def _kth_smallest(values: Any, K: int, ranks: Any) -> Any:
    """By counting, for each value, those that are no larger: no branches, unlike sorting."""
    for s in range(values.shape[0]):
        ranks[s] = 0
    for t in range(values.shape[0]):
        value = values[t]
        for s in range(values.shape[0]):
            ranks[s] += np.int32(value <= values[s])
    kth = values.max()
    for s in range(values.shape[0]):
        kth = values[s] if ranks[s] >= K and values[s] < kth else kth
    return kth


@njit(nogil=True, cache=True)
def _mark(bounds: Any, ceiling: Any, hits: Any) -> None:
    for j in range(bounds.shape[0]):
        hits[j] = bounds[j] <= ceiling


@njit(nogil=True, cache=True)
def shortlist(
    g: Any,
    heights: Any,
    group: Any,
    own: int,
    bounds: Any,
    table: Any,
    minima: Any,
    second_table: Any,
    second_minima: Any,
    ranks: Any,
    hits: Any,
    words: Any,
    keys: Any,
    rows: Any,
) -> None:
    """The rows with the smallest lower bounds, as many as ``rows`` has room for, into ``keys`` and ``rows``, sorted.

    ``table`` is another view of ``bounds`` (padded with infinity), ``second_table`` of ``minima``, ``words`` of
    ``hits``. The K-th smallest of many minima is not far above the K-th smallest of all bounds, so that few rows more
    than are wanted are looked at one by one.
    """
    _lower_bounds(g, heights, group, own, bounds)
    last = keys.shape[0] - 1
    _column_minima(table, minima)
    _column_minima(second_table, second_minima)
    _mark(bounds, _kth_smallest(second_minima, last + 1, ranks), hits)
    for s in range(last + 1):
        keys[s] = np.inf
        rows[s] = -1
    for w in range(words.shape[0]):
        if words[w] != 0:
            for j in range(8 * w, 8 * w + 8):
                if hits[j]:
                    key = bounds[j]
                    if key < keys[last]:
                        place = last
                        while place > 0 and keys[place - 1] > key:
                            keys[place] = keys[place - 1]
                            rows[place] = rows[place - 1]
                            place -= 1
                        keys[place] = key
                        rows[place] = j


@njit(nogil=True, cache=True)
def is_clear(keys: Any, rows: Any, k: int, widths: Any, own_width: float) -> Any:
    """Whether the first k of a shortlist are certainly nearer than all other rows."""
    highest = 0.0 + keys[0]
    for s in range(k):
        highest = max(highest, keys[s] + widths[rows[s]])
    return highest + own_width < keys[k]


@njit(nogil=True, cache=True)
def settle(
    i: int,
    keys: Any,
    rows: Any,
    widths: Any,
    own_width: float,
    bounds: Any,
    hits: Any,
    words: Any,
    X: Any,
    columns: Any,
    mode: int,
    shift: Any,
    scale: Any,
    distances: Any,
    nearest: Any,
    counts: Any,
) -> None:
    """The k nearest rows of row i, from its list of smallest lower bounds, into ``nearest`` (and ``distances``).

    ``widths[j] + own_width`` is how far the upper bound is above the lower one. Where the list may be too short, all
    rows whose lower bound is no higher than the k-th upper bound are compared.
    """
    k, K = nearest.shape[0], keys.shape[0]
    distances[:] = np.inf
    nearest[:] = -1
    for s in range(K):
        if rows[s] >= 0:
            upper = keys[s] + widths[rows[s]] + own_width
            if upper < distances[k - 1]:
                insert(distances, nearest, upper, rows[s])
    ceiling = distances[k - 1]
    candidates = 0
    while candidates < K and rows[candidates] >= 0 and keys[candidates] <= ceiling:
        candidates += 1
    distances[:] = np.inf
    nearest[:] = X.shape[0]
    if candidates < K:
        counts[0] += 1
        for s in range(candidates):
            _insert_exact(distances, nearest, _distance(X, i, rows[s], columns, mode, shift, scale), rows[s])
        return
    counts[1] += 1
    _mark(bounds, ceiling, hits)
    for w in range(words.shape[0]):
        if words[w] != 0:
            for j in range(8 * w, 8 * w + 8):
                if hits[j]:
                    _insert_exact(distances, nearest, _distance(X, i, j, columns, mode, shift, scale), j)


@njit(nogil=True, cache=True)
def lane_counts(N: int, K: int) -> tuple[int, int]:
    """How many minima to take last (twice K at least), and how many first, so that both steps cost about the same."""
    lanes = 16
    while lanes < 2 * K:
        lanes *= 2
    span = lanes
    while span * span < N * lanes:
        span *= 2
    return lanes, span
