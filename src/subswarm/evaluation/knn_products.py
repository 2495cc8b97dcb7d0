"""The matrix products of the neighbour kernels, compiled: selected columns side by side, rows in whole blocks.

Imported only where numba is installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from subswarm.evaluation.knn_vectors import WIDTH, transpose_block

__all__ = ["BAND", "all_products", "compact", "in_blocks", "squared_norms"]

BAND = 128
"""Rows of one product, a multiple of the width of a block."""


@njit(nogil=True, cache=True)
def in_blocks(count: int) -> int:
    """The count, rounded up to whole blocks."""
    return (count + WIDTH - 1) // WIDTH * WIDTH


@njit(nogil=True, cache=True)
def compact(X: Any, columns: Any, center: Any, factor: Any, unit: float, A: Any) -> None:
    """The selected columns, centred and scaled for the filter, into A (rows in blocks, k); rows to spare are 0."""
    for i in range(X.shape[0]):
        for c in range(columns.shape[0]):
            j = columns[c]
            A[i, c] = (X[i, j] - center[j]) * factor[j] * unit
    A[X.shape[0] :] = 0.0


@njit(nogil=True, cache=True, fastmath=True)
def squared_norms(A: Any, norms: Any) -> None:
    for i in range(A.shape[0]):
        total = A[i, 0] * A[i, 0]
        for c in range(1, A.shape[1]):
            total += A[i, c] * A[i, c]
        norms[i] = total


@njit(nogil=True, cache=True)
def all_products(A: Any, G: Any) -> None:
    """A times its transpose into G (flat), each pair of rows once: what is right of the diagonal, and its mirror."""
    N = A.shape[0]
    buffer = np.empty(min(BAND, N) * N, dtype=A.dtype)
    for top in range(0, N, BAND):
        tall, wide = min(BAND, N - top), N - top
        tile = buffer[: tall * wide]
        np.dot(A[top : top + tall], A[top:].T, tile.reshape(tall, wide))
        for t in range(tall):
            start = (top + t) * N + top
            G[start : start + wide] = tile[t * wide : (t + 1) * wide]
        for s in range(tall, wide, WIDTH):
            for t in range(0, tall, WIDTH):
                transpose_block(tile, t * wide + s, wide, G, (top + s) * N + top + t, N)
