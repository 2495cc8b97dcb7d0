"""The matrix products of the neighbour kernels, compiled; for products of this kind they are quicker than BLAS.

The right side of a product is held as (blocks of rows, k columns, `WIDTH` rows), the left side as (rows, k columns).
Imported only where numba is installed.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from subswarm.evaluation.knn_vectors import ROWS, WIDTH, multiply_rows, transpose_block

__all__ = ["all_products", "band_products", "compact", "gather", "in_blocks", "squared_norms", "weighted_norms"]

_PANEL = 1 << 18
"""Bytes of the right side that are multiplied with all rows of the left one before the next: half a cache at most."""


@njit(nogil=True, cache=True)
def in_blocks(count: int) -> int:
    """The count, rounded up to whole blocks."""
    return (count + WIDTH - 1) // WIDTH * WIDTH


@njit(nogil=True, cache=True)
def compact(Z: Any, columns: Any, unit: float, A: Any) -> None:
    """The selected columns of the filter's (blocks, n, `WIDTH`), scaled, into A (blocks, k, `WIDTH`)."""
    for b in range(A.shape[0]):
        for c in range(columns.shape[0]):
            j = columns[c]
            for s in range(WIDTH):
                A[b, c, s] = Z[b, j, s] * unit


@njit(nogil=True, cache=True)
def squared_norms(A: Any, norms: Any) -> None:
    """Sums of A's squares over the columns, for each row."""
    for b in range(A.shape[0]):
        total = norms[b * WIDTH : (b + 1) * WIDTH]
        total[:] = 0.0
        for c in range(A.shape[1]):
            for s in range(WIDTH):
                total[s] += A[b, c, s] * A[b, c, s]


@njit(nogil=True, cache=True)
def weighted_norms(A: Any, chosen: Any, squares: Any, norms: Any) -> None:
    """The same with each of the weights ``chosen`` (multiple of `ROWS`, k), into norms (as many, rows)."""
    for b in range(A.shape[0]):
        for c in range(A.shape[1]):
            for s in range(WIDTH):
                squares[b, c, s] = A[b, c, s] * A[b, c, s]
    band_products(chosen, squares, norms.reshape(-1))


@njit(nogil=True, cache=True)
def gather(A: Any, i: int, t: int, left: Any) -> None:
    """Row i of a right side as row t of a left side."""
    b, s = i // WIDTH, i % WIDTH
    for c in range(left.shape[1]):
        left[t, c] = A[b, c, s]


@njit(nogil=True, cache=True)
def band_products(left: Any, A: Any, G: Any) -> None:
    """Rows (multiple of `ROWS`, k) times A, into the first rows of G (flat)."""
    tall, width = left.shape
    blocks, N = A.shape[0], A.shape[0] * WIDTH
    flat, right = left.reshape(-1), A.reshape(-1)
    step = _panel(A)
    for begin in range(0, blocks, step):
        for t in range(0, tall, ROWS):
            multiply_rows(flat, t, width, right, begin, min(begin + step, blocks), G, t * N, N)


@njit(nogil=True, cache=True)
def all_products(A: Any, left: Any, G: Any) -> None:
    """The products of all rows of A with each other into G (flat), each pair once, then mirrored; left is scratch."""
    blocks, width, N = A.shape[0], A.shape[1], A.shape[0] * WIDTH
    flat, right = left.reshape(-1), A.reshape(-1)
    for i in range(N):
        gather(A, i, i, left)
    step = _panel(A)
    for begin in range(0, blocks, step):
        end = min(begin + step, blocks)
        for t in range(0, end * WIDTH, ROWS):
            multiply_rows(flat, t, width, right, max(begin, t // WIDTH), end, G, t * N, N)
        for b in range(begin, end):
            for s in range(b):
                transpose_block(G, (s * N + b) * WIDTH, N, G, (b * N + s) * WIDTH, N)


@njit(nogil=True, cache=True)
def _panel(A: Any) -> int:
    """How many blocks of rows make up a panel."""
    return int(max(1, _PANEL // (A.shape[1] * WIDTH * A.itemsize)))
