"""What is counted before and after every batch, in plain NumPy: `counting_kernel` for where numba is not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subswarm.core.types import IntArray, Masks

__all__ = ["column_lists", "rights"]


def column_lists(masks: Masks) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The selected columns of all masks in a row, and where each mask's begin (and the last one's end)."""
    columns = np.nonzero(masks)[1].astype(np.int64, copy=False)
    starts = np.concatenate([[0], np.cumsum(masks.sum(axis=1))]).astype(np.int64, copy=False)
    return columns, starts


def rights(answers: NDArray[np.int16], truth: NDArray[np.int16], starts: IntArray) -> IntArray:
    """How many codes (P, all test rows) are right in each fold, (P, n_folds); folds begin (and end) at ``starts``."""
    return np.add.reduceat(answers == truth, starts[:-1], axis=1, dtype=np.intp)
