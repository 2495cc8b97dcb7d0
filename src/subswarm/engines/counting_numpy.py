"""Column lists and counts of correct predictions in plain NumPy; used without numba."""

from __future__ import annotations

import numpy as np

from subswarm._types import IntArray, Masks
from subswarm.engines.data import Codes, Int64Array

__all__ = ["column_lists", "count_correct"]


def column_lists(masks: Masks) -> tuple[Int64Array, Int64Array]:
    """Return the selected columns of all masks one after the other, and where each mask's columns start and end."""
    columns = np.nonzero(masks)[1].astype(np.int64, copy=False)
    starts = np.concatenate([[0], np.cumsum(masks.sum(axis=1))]).astype(np.int64, copy=False)
    return columns, starts


def count_correct(codes: Codes, truth: Codes, starts: IntArray) -> IntArray:
    """Count the correct codes (P, all test rows) of each fold, (P, n_folds); folds start and end at ``starts``."""
    return np.add.reduceat(codes == truth, starts[:-1], axis=1, dtype=np.intp)
