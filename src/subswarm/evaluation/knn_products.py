"""The matrix products of the neighbour kernels, compiled: selected columns one after the other, rows in whole blocks.

BLAS is for tables that do not fit the cache; up to there a plain kernel is quicker, and can leave out what is not
wanted. Imported only where numba is installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from subswarm.evaluation.knn_vectors import ROWS, WIDTH, multiply_rows, transpose_block

__all__ = ["BAND", "all_products", "band_products", "compact", "in_blocks", "squared_norms"]

BAND = 128
"""Rows of one product, a multiple of `WIDTH`."""
_CACHED = 1 << 19
"""Bytes of selected columns up to which they are taken to stay in the cache."""


@njit(nogil=True, cache=True)
def in_blocks(count: int) -> int:
    """The count, rounded up to whole blocks."""
    return (count + WIDTH - 1) // WIDTH * WIDTH


@njit(nogil=True, cache=True)
def compact(Z: Any, columns: Any, unit: float, A: Any) -> None:
    """The selected columns of the filter's (n, N), scaled, into A (k, rows in blocks); rows to spare are 0."""
    N = Z.shape[1]
    for c in range(columns.shape[0]):
        j = columns[c]
        for i in range(N):
            A[c, i] = Z[j, i] * unit
        for i in range(N, A.shape[1]):
            A[c, i] = 0.0


@njit(nogil=True, cache=True)
def squared_norms(A: Any, norms: Any) -> None:
    """Sums of squares over the columns A (k, rows)."""
    norms[:] = 0.0
    for c in range(A.shape[0]):
        for i in range(A.shape[1]):
            norms[i] += A[c, i] * A[c, i]


@njit(nogil=True, cache=True)
def band_products(left: Any, A: Any, G: Any) -> None:
    """Rows (multiple of `ROWS`, k) times A (k, rows), into the first rows of G (flat)."""
    tall, width = left.shape
    N = A.shape[1]
    if A.size * A.itemsize > _CACHED:
        np.dot(left, A, G[: tall * N].reshape(tall, N))
        return
    flat, right = left.reshape(-1), A.reshape(-1)
    for t in range(0, tall, ROWS):
        multiply_rows(flat, t, width, right, 0, N, G, t * N)


@njit(nogil=True, cache=True)
def all_products(A: Any, G: Any) -> None:
    """The products of all rows of A (k, rows) with each other into G (flat), each pair once, then mirrored."""
    if A.size * A.itemsize > _CACHED:
        _all_products_by_blas(A, G)
        return
    width, N = A.shape
    left, right = np.empty((WIDTH, width), dtype=A.dtype), A.reshape(-1)
    flat = left.reshape(-1)
    for top in range(0, N, WIDTH):
        for c in range(width):
            for t in range(WIDTH):
                left[t, c] = A[c, top + t]
        for t in range(0, WIDTH, ROWS):
            multiply_rows(flat, t, width, right, top, N, G, (top + t) * N)
        for s in range(top + WIDTH, N, WIDTH):
            transpose_block(G, top * N + s, N, G, s * N + top, N)


@njit(nogil=True, cache=True)
def _all_products_by_blas(A: Any, G: Any) -> None:
    N = A.shape[1]
    across = np.ascontiguousarray(A.T)
    buffer = np.empty(min(BAND, N) * N, dtype=A.dtype)
    for top in range(0, N, BAND):
        tall, wide = min(BAND, N - top), N - top
        tile = buffer[: tall * wide]
        np.dot(across[top : top + tall], across[top:].T, tile.reshape(tall, wide))
        for t in range(tall):
            start = (top + t) * N + top
            G[start : start + wide] = tile[t * wide : (t + 1) * wide]
        for s in range(tall, wide, WIDTH):
            for t in range(0, tall, WIDTH):
                transpose_block(tile, t * wide + s, wide, G, (top + s) * N + top + t, N)
