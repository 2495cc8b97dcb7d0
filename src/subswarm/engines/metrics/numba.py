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
    of the negative one, and -1 for rows that do not count. Points of the curve and terms of the sum are scikit-learn's.
    """
    longest = 0
    for f in range(starts.shape[0] - 1):
        longest = max(longest, starts[f + 1] - starts[f])
    upper, lower = np.empty(longest), np.empty(longest)
    tps, fps, terms = np.empty(longest + 1), np.empty(longest + 1), np.empty(longest + 1)
    for f in range(starts.shape[0] - 1):
        for p in range(first, last):
            n_upper = n_lower = 0
            for t in range(starts[f], starts[f + 1]):
                upper[n_upper], lower[n_lower] = scores[p, t], scores[p, t]
                n_upper += marks[t] == 1
                n_lower += marks[t] == 0
            if n_upper == 0 or n_lower == 0:
                result[p, f] = np.nan
                continue
            upper[:n_upper].sort()
            lower[:n_lower].sort()
            n_points = _curve(upper, lower, n_upper, n_lower, tps, fps)
            if n_points < 0:
                result[p, f] = np.nan
            elif precision:
                result[p, f] = _average_precision(tps, fps, n_points, terms)
            else:
                result[p, f] = _area(tps, fps, _corners(tps, fps, n_points), terms)


@njit(nogil=True, cache=True)
def _curve(upper: FloatArray, lower: FloatArray, n_upper: int, n_lower: int, tps: FloatArray, fps: FloatArray) -> int:
    """Count true and false positives at each distinct score, from the highest one; -1 if a score is NaN."""
    if np.isnan(upper[n_upper - 1]) or np.isnan(lower[n_lower - 1]):
        return -1
    i, j, points = n_upper - 1, n_lower - 1, 0
    while i >= 0 or j >= 0:
        top = max(upper[i], lower[j]) if i >= 0 and j >= 0 else upper[i] if i >= 0 else lower[j]
        while i >= 0 and upper[i] == top:
            i -= 1
        while j >= 0 and lower[j] == top:
            j -= 1
        tps[points], fps[points] = n_upper - 1 - i, n_lower - 1 - j
        points += 1
    return points


@njit(nogil=True, cache=True)
def _corners(tps: FloatArray, fps: FloatArray, n_points: int) -> int:
    """Drop points that lie between two others on a line, as ``roc_curve`` does; returns how many are left."""
    left = 1
    before_tp, before_fp = tps[0], fps[0]
    for i in range(1, n_points):
        tp, fp = tps[i], fps[i]
        straight = i + 1 < n_points and tps[i + 1] - tp == tp - before_tp and fps[i + 1] - fp == fp - before_fp
        before_tp, before_fp = tp, fp
        tps[left], fps[left] = tp, fp
        left += not straight
    return left


@njit(nogil=True, cache=True)
def _area(tps: FloatArray, fps: FloatArray, n_points: int, terms: FloatArray) -> float:
    n_upper, n_lower = tps[n_points - 1], fps[n_points - 1]
    x = y = 0.0
    for i in range(n_points):
        next_x, next_y = fps[i] / n_lower, tps[i] / n_upper
        terms[i] = (next_x - x) * (next_y + y) / 2.0
        x, y = next_x, next_y
    return float(_pairwise_sum(terms, 0, n_points))


@njit(nogil=True, cache=True)
def _average_precision(tps: FloatArray, fps: FloatArray, n_points: int, terms: FloatArray) -> float:
    n_upper = tps[n_points - 1]
    for i in range(n_points):
        point = n_points - 1 - i
        recall = tps[point] / n_upper
        next_recall = tps[point - 1] / n_upper if point > 0 else 0.0
        terms[i] = (next_recall - recall) * (tps[point] / (tps[point] + fps[point]))
    return max(0.0, -float(_pairwise_sum(terms, 0, n_points)))


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
