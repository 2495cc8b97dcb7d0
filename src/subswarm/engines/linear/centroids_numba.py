"""Distances to the centroids of many subsets, compiled. Imported only if numba is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subswarm._njit import njit
from subswarm._types import FloatArray
from subswarm.engines.data import Int64Array

if TYPE_CHECKING:
    from subswarm.engines.linear.centroids import ColumnTerms

__all__ = ["add_terms"]


@njit(nogil=True, cache=True)
def add_terms(
    first: int,
    last: int,
    columns: Int64Array,
    starts: Int64Array,
    table: ColumnTerms,
    out: FloatArray,
    bounds: FloatArray,
) -> None:
    """Add the terms of each subset's columns, into ``out`` (P, T, rows), and bound the errors, (P, rows)."""
    n = table.reach.shape[1]
    for p in range(first, last):
        chosen = columns[starts[p] : starts[p + 1]]
        k = len(chosen)
        for f in range(len(table.sizes)):
            size, low = table.sizes[f], table.starts[f]
            reach, varies = 0.0, False
            for j in chosen:
                reach += table.reach[f, j]
                varies |= table.varies[f, j]
            if not (varies and reach < np.inf):
                out[p, :, low : low + size] = 0.0
                bounds[p, low : low + size] = np.inf
                continue
            largest = 0.0
            for t in range(table.n_scores[f]):
                terms = table.terms[table.offsets[f] + t * n * size :]
                answers = out[p, t, low : low + size]
                answers[:] = table.constant[f, t]
                largest = max(largest, abs(table.constant[f, t]))
                i = 0
                while i + 4 <= k:
                    a = terms[chosen[i] * size : (chosen[i] + 1) * size]
                    b = terms[chosen[i + 1] * size : (chosen[i + 1] + 1) * size]
                    c = terms[chosen[i + 2] * size : (chosen[i + 2] + 1) * size]
                    d = terms[chosen[i + 3] * size : (chosen[i + 3] + 1) * size]
                    for s in range(size):
                        answers[s] += (a[s] + b[s]) + (c[s] + d[s])
                    i += 4
                while i < k:
                    a = terms[chosen[i] * size : (chosen[i] + 1) * size]
                    for s in range(size):
                        answers[s] += a[s]
                    i += 1
            bounds[p, low : low + size] = reach * (k + table.more[f]) + 16.0 * 2.3e-16 * largest
