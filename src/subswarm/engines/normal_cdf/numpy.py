"""Sums of table rows for many subsets in plain NumPy; used without numba."""

from __future__ import annotations

import numpy as np

from subswarm._types import FloatArray
from subswarm.engines.data import Codes, Int64Array

__all__ = ["classify"]


def classify(
    first: int,
    last: int,
    columns: Int64Array,
    starts: Int64Array,
    table: FloatArray,
    start_values: FloatArray,
    codes: Codes,
) -> None:
    """Find the class of the largest sum for each test row of a fold, for masks ``first`` to ``last``."""
    for p in range(first, last):
        totals = np.repeat(start_values[:, None], table.shape[2], axis=1)
        for j in columns[starts[p] : starts[p + 1]]:
            totals += table[j]
        codes[p] = totals.argmax(axis=0)
