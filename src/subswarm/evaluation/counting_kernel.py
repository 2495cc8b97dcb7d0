"""What is counted before and after every batch, compiled. Imported only where numba is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["column_lists", "rights"]


@njit(nogil=True, cache=True)
def column_lists(masks: Any) -> Any:
    """The selected columns of all masks in a row, and where each mask's begin (and the last one's end)."""
    P, n = masks.shape
    starts: NDArray[np.int64] = np.zeros(P + 1, dtype=np.int64)
    for p in range(P):
        count = 0
        for j in range(n):
            count += masks[p, j]
        starts[p + 1] = starts[p] + count
    columns: NDArray[np.int64] = np.empty(starts[P] + 1, dtype=np.int64)
    for p in range(P):
        place = starts[p]
        for j in range(n):
            columns[place] = j  # overwritten by the next one unless this one is selected: no branch to mispredict
            place += masks[p, j]
    return columns[: starts[P]], starts


@njit(nogil=True, cache=True)
def rights(answers: Any, truth: Any, starts: Any) -> Any:
    """How many codes (P, all test rows) are right in each fold, (P, n_folds); folds begin (and end) at ``starts``."""
    counts: NDArray[np.int64] = np.empty((len(answers), len(starts) - 1), dtype=np.int64)
    for p in range(len(answers)):
        for f in range(len(starts) - 1):
            given, wanted, count = answers[p, starts[f] : starts[f + 1]], truth[starts[f] : starts[f + 1]], 0
            for s in range(len(given)):
                count += given[s] == wanted[s]
            counts[p, f] = count
    return counts
