"""Selecting the k nearest rows, compiled: a few candidates by lower bounds, and the doubtful pairs settled exactly.

Imported only where numba is installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from subswarm.evaluation.knn_vectors import WIDTH, bound_row, count_no_larger, hits_from, least_of_rank, lowest_bit

__all__ = ["WORD", "insert", "lane_count", "scaled", "settle", "shortlist"]

WORD = 4 * WIDTH
"""Bounds that are compared at a time."""
_ONE = np.uint64(1)
_TIE = 1e-9
"""Relative difference of two distances that no precision of the filter tells apart."""


@njit(nogil=True, cache=True)
def scaled(x: float, mode: int, a: float, b: float) -> float:
    """A value as the fold's scaler gives it, rounded as scikit-learn rounds it."""
    if mode == 0:
        return x
    if mode == 1:
        return (x - a) / b
    return x * a + b


@njit(nogil=True, cache=True)
def _four_distances(
    X: Any, i: int, rows: Any, start: int, end: int, columns: Any, mode: int, shifts: Any, scales: Any, f: int
) -> tuple[float, float, float, float]:
    """Squared distances of row i and four others in difference form, columns in order; four sums run side by side."""
    last = end - 1
    j, k = rows[start], rows[min(start + 1, last)]
    m, n = rows[min(start + 2, last)], rows[min(start + 3, last)]
    to_j = to_k = to_m = to_n = 0.0
    for c in columns:
        a, b = shifts[f, c], scales[f, c]
        own = scaled(X[i, c], mode, a, b)
        gap = own - scaled(X[j, c], mode, a, b)
        to_j += gap * gap
        gap = own - scaled(X[k, c], mode, a, b)
        to_k += gap * gap
        gap = own - scaled(X[m, c], mode, a, b)
        to_m += gap * gap
        gap = own - scaled(X[n, c], mode, a, b)
        to_n += gap * gap
    return to_j, to_k, to_m, to_n


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
def lane_count(k: int) -> int:
    """How many minima of a row's bounds to take, so that one in two or fewer is among the k + 1 smallest."""
    lanes = WIDTH
    while lanes < 2 * (k + 1):
        lanes *= 2
    return lanes


@njit(nogil=True, cache=True)
def _ceiling(minima: Any, rank: int, highest: Any) -> Any:
    """The smallest of the minima than which ``rank`` of them are no larger, or the highest finite number."""
    least = highest
    for start in range(0, minima.shape[0], WIDTH):
        least = min(least, least_of_rank(minima, start, rank))
    return least


@njit(nogil=True, cache=True)
def _collect(bounds: Any, ceiling: Any, rows: Any) -> int:
    """The rows whose bound is at most the ceiling, in order; returns how many there are."""
    found = 0
    for start in range(0, bounds.shape[0], WORD):
        word = hits_from(bounds, start, ceiling)
        while word:
            rows[found] = start + lowest_bit(word)
            found += 1
            word &= word - _ONE
    return found


@njit(nogil=True, cache=True)
def shortlist(
    G: Any,
    first: int,
    heights: Any,
    widths: Any,
    own_width: float,
    k: int,
    bounds: Any,
    minima: Any,
    keys: Any,
    ranks: Any,
    rows: Any,
    chosen: Any,
) -> Any:
    """The rows with the smallest lower bounds ``heights - 2 G[first:]``, at least k + 1 of them, into ``rows``.

    Returns how many, and whether k of them are certainly nearer than all others: those are in ``chosen``. The (k+1)-th
    smallest of a few minima is not far above the (k+1)-th smallest bound, so that few rows are looked at one by one.
    ``widths[j] + own_width`` is how far the upper bound of row j is above the lower one.
    """
    bound_row(G, first, heights, bounds, minima)
    found = _collect(bounds, _ceiling(minima, k + 1, np.finfo(bounds.dtype).max), rows)
    if found > keys.shape[0]:
        return found, False
    for s in range(found):
        keys[s] = bounds[rows[s]]
    for start in range(0, found, WIDTH):
        count_no_larger(keys, found, start, ranks)
    highest, following = -np.inf, np.inf
    members = 0
    for s in range(found):
        row, key = rows[s], np.float64(keys[s])
        upper = key + widths[row]
        inside = ranks[s] <= k
        chosen[members] = row
        members += inside
        upper = upper if inside else -np.inf
        lower = np.inf if inside else key
        highest = upper if upper > highest else highest
        following = lower if lower < following else following
    return found, members == k and highest + own_width < following


@njit(nogil=True, cache=True)
def settle(
    i: int,
    found: int,
    widths: Any,
    own_width: float,
    bounds: Any,
    minima: Any,
    rows: Any,
    X: Any,
    columns: Any,
    mode: int,
    shifts: Any,
    scales: Any,
    f: int,
    distances: Any,
    nearest: Any,
    counts: Any,
) -> None:
    """The k nearest rows of row i in fold f, from a shortlist ``rows[:found]``, into ``nearest`` and ``distances``.

    All rows whose lower bound is no higher than the k-th upper bound are compared. ``counts`` learns of one row in
    doubt, of how many rows were compared, and of how many but for rounding: those of rows whose neighbours do not tie.
    """
    k = nearest.shape[0]
    distances[:] = np.inf
    nearest[:] = X.shape[0]
    for s in range(found):
        upper = bounds[rows[s]] + widths[rows[s]] + own_width
        if upper < distances[k - 1]:
            insert(distances, nearest, upper, rows[s])
    highest = np.finfo(bounds.dtype).max
    minima[0] = min(distances[k - 1], highest)
    compared = _collect(bounds, min(np.nextafter(minima[0], minima.dtype.type(np.inf)), highest), rows)
    distances[:] = np.inf
    nearest[:] = X.shape[0]
    following = np.inf
    for start in range(0, compared, 4):
        four = _four_distances(X, i, rows, start, compared, columns, mode, shifts, scales, f)
        for s in range(start, min(start + 4, compared)):
            distance = four[s - start]
            following = min(following, max(distance, distances[k - 1]))
            if distance < distances[k - 1]:
                insert(distances, nearest, distance, rows[s])
    counts[0] += 1
    counts[1] += compared
    if following > distances[k - 1] * (1.0 + _TIE):
        counts[2] += compared
