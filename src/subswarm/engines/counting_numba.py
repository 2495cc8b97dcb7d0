"""Column lists and counts of correct predictions, compiled. Imported only if numba is installed."""

from __future__ import annotations

import numpy as np

from subswarm._njit import njit
from subswarm._types import IntArray, Masks
from subswarm.engines.data import Codes, Int64Array

__all__ = ["column_lists", "count_correct"]


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
