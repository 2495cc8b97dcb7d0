"""Sums of table rows for a swarm in plain NumPy: the same answers as `additive_kernel`, for where numba is not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subswarm.core.types import FloatArray

__all__ = ["classify"]


def classify(
    first: int,
    last: int,
    columns: NDArray[np.int64],
    starts: NDArray[np.int64],
    table: FloatArray,
    start_values: FloatArray,
    codes: NDArray[np.int16],
) -> None:
    """The class of the largest sum for each test row of a fold, for masks ``first`` to ``last``, into ``codes``."""
    for p in range(first, last):
        totals = np.repeat(start_values[:, None], table.shape[2], axis=1)
        for j in columns[starts[p] : starts[p + 1]]:
            totals += table[j]
        codes[p] = totals.argmax(axis=0)
