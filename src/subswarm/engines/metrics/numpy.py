"""Lists of columns; counts, sums and ranks of predictions in plain NumPy; used without numba."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from subswarm._types import BoolArray, FloatArray, IntArray, Masks
from subswarm.engines.data import Codes, Int64Array

__all__ = ["column_lists", "count_correct", "count_labels", "rank_scores", "sum_folds"]


def column_lists(masks: Masks) -> tuple[Int64Array, Int64Array]:
    """Return the selected columns of all masks one after the other, and where each mask's columns start and end."""
    columns = np.nonzero(masks)[1].astype(np.int64, copy=False)
    starts = np.concatenate([[0], np.cumsum(masks.sum(axis=1))]).astype(np.int64, copy=False)
    return columns, starts


def count_correct(codes: Codes, truth: Codes, starts: IntArray) -> IntArray:
    """Count the correct codes (P, all test rows) of each fold, (P, n_folds); folds start and end at ``starts``."""
    return np.add.reduceat(codes == truth, starts[:-1], axis=1, dtype=np.intp)


def count_labels(
    codes: Codes, truth: Codes, places: Codes, starts: IntArray, right: FloatArray, predicted: FloatArray
) -> None:
    """Count how often each class is predicted, and rightly predicted, in each fold: (P, F, K).

    ``codes`` (P, rows) are positions among a fold's classes, and ``places`` (F, C) gives the positions of these among
    all K classes, as in ``truth`` (rows,).
    """
    P, _, K = right.shape
    subsets = np.arange(P)[:, None] * K
    for f, (start, stop) in enumerate(pairwise(starts)):
        found = places[f][codes[:, start:stop]]
        cells = subsets + found
        predicted[:, f] = np.bincount(cells.ravel(), minlength=P * K).reshape(P, K)
        right[:, f] = np.bincount(cells[found == truth[start:stop]], minlength=P * K).reshape(P, K)


def sum_folds(values: FloatArray, starts: IntArray) -> FloatArray:
    """Sum the values (P, rows) of each fold, (P, F)."""
    return np.stack([values[:, start:stop].sum(axis=1) for start, stop in pairwise(starts)], axis=1)


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
    for f, (start, stop) in enumerate(pairwise(starts)):
        rows = start + np.flatnonzero(marks[start:stop] >= 0)
        positive = marks[rows] == 1
        for p in range(first, last):
            values = scores[p, rows]
            if positive.all() or not positive.any() or np.isnan(values).any():
                result[p, f] = np.nan
            else:
                result[p, f] = _average_precision(values, positive) if precision else _area(values, positive)


def _curve(values: FloatArray, positive: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the counts of true and false positives at each distinct score, from the highest one."""
    order = np.argsort(-values, kind="stable")
    last = np.append(np.flatnonzero(np.diff(values[order])), len(values) - 1)
    tps = np.cumsum(positive[order])[last].astype(np.float64)
    return tps, 1.0 + last - tps


def _area(values: FloatArray, positive: BoolArray) -> float:
    tps, fps = _curve(values, positive)
    corners = np.ones(len(tps), dtype=bool)
    corners[1:-1] = (np.diff(tps, 2) != 0) | (np.diff(fps, 2) != 0)
    y, x = (np.concatenate([[0.0], counts[corners]]) / counts[-1] for counts in (tps, fps))
    return float((np.diff(x) * (y[1:] + y[:-1]) / 2.0).sum())


def _average_precision(values: FloatArray, positive: BoolArray) -> float:
    tps, fps = _curve(values, positive)
    recall, precision = (tps / tps[-1])[::-1], (tps / (tps + fps))[::-1]
    return max(0.0, -float(np.sum(np.diff(np.append(recall, 0.0)) * precision)))
