"""Nearest neighbours in plain NumPy, with the same results as the compiled kernels; used without numba."""

from __future__ import annotations

import numpy as np

from subswarm._types import FloatArray, IntArray
from subswarm.engines.data import Int64Array
from subswarm.engines.neighbors.layout import AS_IS, SHIFT_THEN_DIVIDE, NeighborLayout

__all__ = ["count_votes", "mean_values", "neighbors"]


def neighbors(
    layout: NeighborLayout, columns: IntArray, k: int, city_block: bool, max_bytes: int
) -> tuple[Int64Array, FloatArray]:
    """Return the k nearest training rows of every test row, nearest first, and their distances.

    Distances are sums of squared or absolute differences over the columns in order; rows at the same distance are in
    the order of their number.
    """
    nearest = np.empty((len(layout.tests), k), dtype=np.int64)
    distances = np.empty((len(layout.tests), k))
    N = len(layout.X)
    step = max(1, max_bytes // (32 * N))
    for f in range(len(layout.barred)):
        train = np.flatnonzero(layout.barred[f] == 0)
        Z = _scale(layout, columns, f)
        for start in range(layout.test_starts[f], layout.test_starts[f + 1], step):
            stop = min(start + step, layout.test_starts[f + 1])
            total = np.zeros((stop - start, len(train)))
            for column in Z.T:
                gap = column[layout.tests[start:stop], None] - column[train]
                total += np.abs(gap) if city_block else gap * gap
            order = np.argsort(total, axis=1, kind="stable")[:, :k]
            nearest[start:stop] = train[order]
            distances[start:stop] = np.take_along_axis(total, order, axis=1)
    return nearest, distances


def count_votes(nearest: Int64Array, labels: Int64Array, counts: FloatArray) -> None:
    """Count how many of the neighbours (rows, k) have each label, (rows, C)."""
    counts[:] = 0.0
    rows = np.arange(len(nearest))
    for column in nearest.T:
        counts[rows, labels[column]] += 1.0


def mean_values(nearest: Int64Array, values: FloatArray, means: FloatArray) -> None:
    """Compute the mean value of the neighbours (rows, k), which are added up in the order of their row number."""
    means[:] = 0.0
    for column in np.sort(nearest, axis=1).T:
        means += values[column]
    means /= nearest.shape[1]


def _scale(layout: NeighborLayout, columns: IntArray, fold: int) -> FloatArray:
    X = layout.X[:, columns]
    if layout.mode == AS_IS:
        return X
    a, b = layout.shifts[fold, columns], layout.scales[fold, columns]
    return np.asarray((X - a) / b if layout.mode == SHIFT_THEN_DIVIDE else X * a + b)
