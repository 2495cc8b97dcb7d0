"""Lists of columns; counts, sums and ranks of predictions. Compiled; imported only if numba is installed."""

from __future__ import annotations

import numpy as np

from subswarm._njit import njit
from subswarm._types import FloatArray, IntArray, Masks
from subswarm.engines.data import Codes, Int64Array

__all__ = ["column_lists", "count_correct", "count_labels", "rank_scores", "sum_folds"]


@njit(nogil=True, cache=True)
def column_lists(masks: Masks) -> tuple[Int64Array, Int64Array]:
    """Return the selected columns of all masks one after the other, and where each mask's columns start and end."""
    P, n = masks.shape
    starts: Int64Array = np.zeros(P + 1, dtype=np.int64)
    for p in range(P):
        count = 0
        for j in range(n):
            count += masks[p, j]
        starts[p + 1] = starts[p] + count
    columns: Int64Array = np.empty(starts[P] + 1, dtype=np.int64)
    for p in range(P):
        place = starts[p]
        for j in range(n):
            columns[place] = j  # overwritten by the next column unless this one is selected: no branch to mispredict
            place += masks[p, j]
    return columns[: starts[P]], starts


@njit(nogil=True, cache=True)
def count_correct(codes: Codes, truth: Codes, starts: IntArray) -> Int64Array:
    """Count the correct codes (P, all test rows) of each fold, (P, n_folds); folds start and end at ``starts``."""
    counts: Int64Array = np.empty((len(codes), len(starts) - 1), dtype=np.int64)
    for p in range(len(codes)):
        for f in range(len(starts) - 1):
            predicted, expected, count = codes[p, starts[f] : starts[f + 1]], truth[starts[f] : starts[f + 1]], 0
            for s in range(len(predicted)):
                count += predicted[s] == expected[s]
            counts[p, f] = count
    return counts


_FEW = 256
"""Scores of one class up to which they are compared with those of the other one by one, instead of sorted."""


@njit(nogil=True, cache=True)
def count_labels(
    codes: Codes, truth: Codes, places: Codes, starts: IntArray, right: FloatArray, predicted: FloatArray
) -> None:
    """Count how often each class is predicted, and rightly predicted, in each fold: (P, F, K).

    ``codes`` (P, rows) are positions among a fold's classes, and ``places`` (F, C) gives the positions of these among
    all K classes, as in ``truth`` (rows,).
    """
    right[:] = 0.0
    predicted[:] = 0.0
    for p in range(codes.shape[0]):
        for f in range(starts.shape[0] - 1):
            for t in range(starts[f], starts[f + 1]):
                c = places[f, codes[p, t]]
                predicted[p, f, c] += 1.0
                right[p, f, c] += c == truth[t]


@njit(nogil=True, cache=True)
def sum_folds(values: FloatArray, starts: IntArray) -> FloatArray:
    """Sum the values (P, rows) of each fold, (P, F), in the order in which NumPy sums them."""
    sums = np.empty((values.shape[0], starts.shape[0] - 1))
    for p in range(values.shape[0]):
        for f in range(starts.shape[0] - 1):
            sums[p, f] = _pairwise_sum(values[p], starts[f], starts[f + 1] - starts[f])
    return sums


@njit(nogil=True, cache=True)
def rank_scores(
    first: int,
    last: int,
    scores: FloatArray,
    marks: Codes,
    starts: IntArray,
    precision: bool,
    result: FloatArray,
) -> None:
    """Compute the area under the ROC curve of each fold, (P, F), for subsets ``first`` to ``last``.

    With ``precision`` it is the average precision. ``marks`` (rows,) is 1 for rows of the positive class, 0 for those
    of the negative one, and -1 for rows that do not count. Pairs of rows are compared where that takes less time than
    to sort them.
    """
    longest = 0
    for f in range(starts.shape[0] - 1):
        longest = max(longest, starts[f + 1] - starts[f])
    upper, lower, terms = np.empty(longest), np.empty(longest), np.empty(longest)
    for f in range(starts.shape[0] - 1):
        for p in range(first, last):
            n_upper = n_lower = 0
            is_number = True
            for t in range(starts[f], starts[f + 1]):
                upper[n_upper], lower[n_lower] = scores[p, t], scores[p, t]
                n_upper += marks[t] == 1
                n_lower += marks[t] == 0
                is_number &= marks[t] < 0 or scores[p, t] == scores[p, t]
            if n_upper == 0 or n_lower == 0 or not is_number:
                result[p, f] = np.nan
                continue
            high, low = upper[:n_upper], lower[:n_lower]
            if precision:
                result[p, f] = _average_precision(high, low, terms)
            else:
                result[p, f] = _area(high, low)


@njit(nogil=True, cache=True)
def _area(upper: FloatArray, lower: FloatArray) -> float:
    """Return the share of pairs of an upper and a lower score that are in order; equal scores count half."""
    wins = 0
    if len(upper) > _FEW and len(lower) > _FEW:
        upper.sort()
        lower.sort()
        below, up_to = 0, 0
        for value in upper:
            while below < len(lower) and lower[below] < value:
                below += 1
            up_to = max(up_to, below)
            while up_to < len(lower) and lower[up_to] == value:
                up_to += 1
            wins += below + up_to
    elif len(upper) <= len(lower):
        for value in upper:
            wins += _twice_below(value, lower)
    else:
        wins = 2 * len(upper) * len(lower)
        for value in lower:
            wins -= _twice_below(value, upper)
    return wins / (2.0 * len(upper) * len(lower))


@njit(nogil=True, cache=True)
def _twice_below(value: float, others: FloatArray) -> int:
    """Count the others that are below a value twice, and those that equal it once."""
    count = 0
    for i in range(len(others)):
        count += (others[i] < value) + (others[i] <= value)
    return count


@njit(nogil=True, cache=True)
def _count_from(value: float, others: FloatArray) -> int:
    """Count the others that are not below a value."""
    count = 0
    for i in range(len(others)):
        count += others[i] >= value
    return count


@njit(nogil=True, cache=True)
def _average_precision(upper: FloatArray, lower: FloatArray, terms: FloatArray) -> float:
    """Return the mean precision at the scores of the positive rows."""
    n = len(upper)
    if n > _FEW:
        upper.sort()
        lower.sort()
        ahead, i = len(lower), 0
        while i < n:
            value, first = upper[i], i
            while ahead > 0 and lower[len(lower) - ahead] < value:
                ahead -= 1
            while i < n and upper[i] == value:
                terms[i] = (n - first) / (n - first + ahead)
                i += 1
    else:
        for i in range(n):
            hits = _count_from(upper[i], upper)
            terms[i] = hits / (hits + _count_from(upper[i], lower))
    return float(_pairwise_sum(terms, 0, n)) / n


@njit(nogil=True, cache=True)
def _pairwise_sum(values: FloatArray, start: int, n: int) -> float:
    """Sum ``n`` values from ``start`` on, in the order of NumPy's sum of a contiguous array."""
    if n <= 128:
        return float(_block_sum(values, start, n))
    lengths, depths = np.empty(64, dtype=np.int64), np.empty(64, dtype=np.int64)
    totals, levels = np.empty(64), np.empty(64, dtype=np.int64)
    lengths[0], depths[0] = n, 0
    waiting, found = 1, 0
    while waiting:
        waiting -= 1
        length, depth = lengths[waiting], depths[waiting]
        if length > 128:
            half = length // 2
            half -= half % 8
            lengths[waiting], depths[waiting] = length - half, depth + 1
            lengths[waiting + 1], depths[waiting + 1] = half, depth + 1
            waiting += 2
            continue
        totals[found], levels[found] = _block_sum(values, start, length), depth
        start += length
        found += 1
        while found > 1 and levels[found - 1] == levels[found - 2]:
            found -= 1
            totals[found - 1] += totals[found]
            levels[found - 1] -= 1
    return float(totals[0])


@njit(nogil=True, cache=True)
def _block_sum(values: FloatArray, start: int, n: int) -> float:
    """Sum at most 128 values: eight sums side by side, then the rest."""
    if n < 8:
        total = 0.0
        for i in range(start, start + n):
            total += values[i]
        return total
    a, b, c, d = values[start], values[start + 1], values[start + 2], values[start + 3]
    e, f, g, h = values[start + 4], values[start + 5], values[start + 6], values[start + 7]
    stop = start + n - n % 8
    for i in range(start + 8, stop, 8):
        a += values[i]
        b += values[i + 1]
        c += values[i + 2]
        d += values[i + 3]
        e += values[i + 4]
        f += values[i + 5]
        g += values[i + 6]
        h += values[i + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(stop, start + n):
        total += values[i]
    return float(total)
