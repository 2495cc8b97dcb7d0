"""Sums of table rows for a swarm, compiled. Imported only where numba is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["classify"]


@njit(nogil=True, cache=True)
def classify(first: int, last: int, columns: Any, starts: Any, table: Any, start_values: Any, codes: Any) -> None:
    """The class of the largest sum for each test row of a fold, for masks ``first`` to ``last``, into ``codes``.

    ``table`` (n, C, rows) is summed over the selected columns in order, from ``start_values`` (C,).
    """
    C, size = table.shape[1], table.shape[2]
    totals = np.empty((C, size))
    for p in range(first, last):
        for c in range(C):
            totals[c] = start_values[c]
        for i in range(starts[p], starts[p + 1]):
            block = table[columns[i]]
            for c in range(C):
                for s in range(size):
                    totals[c, s] += block[c, s]
        for s in range(size):
            best = 0
            for c in range(1, C):
                if totals[c, s] > totals[best, s]:
                    best = c
            codes[p, s] = best
