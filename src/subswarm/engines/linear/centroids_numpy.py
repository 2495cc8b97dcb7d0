"""The function of `subswarm.engines.linear.centroids_numba` in NumPy, for machines without numba."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from subswarm._types import FloatArray
from subswarm.engines.data import Int64Array
from subswarm.engines.linear.tables import EPS

if TYPE_CHECKING:
    from subswarm.engines.linear.centroids import ColumnTerms

__all__ = ["add_terms"]


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
        for f, (size, low) in enumerate(zip(table.sizes, table.starts, strict=True)):
            place, reach = slice(low, low + size), table.reach[f, chosen].sum()
            out[p, :, place], bounds[p, place] = 0.0, np.inf
            if not (table.varies[f, chosen].any() and np.isfinite(reach)):
                continue
            T = int(table.n_scores[f])
            start, constant = table.offsets[f], table.constant[f, :T]
            terms = table.terms[start : start + T * n * size].reshape(T, n, size)
            out[p, :T, place] = terms[:, chosen].sum(axis=1) + constant[:, None]
            bounds[p, place] = reach * (len(chosen) + table.more[f]) + 16.0 * EPS * np.abs(constant).max()
