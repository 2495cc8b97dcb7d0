"""Sums of table rows for many subsets, compiled. Imported only if numba is installed."""

from __future__ import annotations

import numpy as np

from subswarm._njit import njit
from subswarm._types import FloatArray
from subswarm.engines.data import Codes, Int64Array

__all__ = ["classify"]


@njit(nogil=True, cache=True)
def classify(
    first: int,
    last: int,
    columns: Int64Array,
    starts: Int64Array,
    table: FloatArray,
    start_values: FloatArray,
    codes: Codes,
) -> None:
    """Find the class of the largest sum for each test row of a fold, for masks ``first`` to ``last``, into ``codes``.

    ``table`` (n, C, rows) is summed over the selected columns in order, from ``start_values`` (C,).
    """
    C, size = table.shape[1], table.shape[2]
    totals = np.empty((C, size))
    for p in range(first, last):
        for c in range(C):
            totals[c] = start_values[c]
        i, stop = starts[p], starts[p + 1]
        while i + 4 <= stop:
            first_four = table[columns[i]], table[columns[i + 1]], table[columns[i + 2]], table[columns[i + 3]]
            for c in range(C):
                w, x, y, z, total = first_four[0][c], first_four[1][c], first_four[2][c], first_four[3][c], totals[c]
                for s in range(size):
                    total[s] = (((total[s] + w[s]) + x[s]) + y[s]) + z[s]
            i += 4
        for j in columns[i:stop]:
            for c in range(C):
                row, total = table[j, c], totals[c]
                for s in range(size):
                    total[s] += row[s]
        for s in range(size):
            best = 0
            for c in range(1, C):
                if totals[c, s] > totals[best, s]:
                    best = c
            codes[p, s] = best
