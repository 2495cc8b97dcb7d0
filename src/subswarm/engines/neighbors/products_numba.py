"""The matrix products of the neighbour kernels, compiled; for products of this shape they are faster than BLAS.

The right side of a product is stored as (blocks of rows, k columns, `WIDTH` rows), the left side as (rows, k columns).
Imported only if numba is installed.
"""

from __future__ import annotations

from subswarm._types import AnyArray, FloatArray
from subswarm.engines.data import Int64Array
from subswarm.engines.neighbors.lanes import ROWS, WIDTH, kernel, multiply_rows, transpose_block

__all__ = ["all_products", "band_products", "compact", "gather", "in_blocks", "squared_norms", "weighted_norms"]

_PANEL = 1 << 18
"""Bytes of the right side that are multiplied by all rows of the left side at a time: half a cache at most."""


@kernel
def in_blocks(count: int) -> int:
    """Round a count up to whole blocks."""
    return (count + WIDTH - 1) // WIDTH * WIDTH


@kernel
def compact(blocks: FloatArray, columns: Int64Array, unit: float, A: AnyArray) -> None:
    """Copy the selected columns of the filter (blocks, n, `WIDTH`), times ``unit``, into A (blocks, k, `WIDTH`)."""
    for b in range(A.shape[0]):
        for c in range(columns.shape[0]):
            j = columns[c]
            for s in range(WIDTH):
                A[b, c, s] = blocks[b, j, s] * unit


@kernel
def squared_norms(A: AnyArray, norms: AnyArray) -> None:
    """Sum A's squares over the columns, for each row."""
    for b in range(A.shape[0]):
        total = norms[b * WIDTH : (b + 1) * WIDTH]
        total[:] = 0.0
        for c in range(A.shape[1]):
            for s in range(WIDTH):
                total[s] += A[b, c, s] * A[b, c, s]


@kernel
def weighted_norms(A: AnyArray, chosen: AnyArray, squares: AnyArray, norms: AnyArray) -> None:
    """Sum A's squares with each row of weights ``chosen`` (multiple of `ROWS`, k), into norms (as many, rows)."""
    for b in range(A.shape[0]):
        for c in range(A.shape[1]):
            for s in range(WIDTH):
                squares[b, c, s] = A[b, c, s] * A[b, c, s]
    band_products(chosen, squares, norms.reshape(-1))


@kernel
def gather(A: AnyArray, i: int, t: int, left: AnyArray) -> None:
    """Copy row i of a right side to row t of a left side."""
    b, s = i // WIDTH, i % WIDTH
    for c in range(left.shape[1]):
        left[t, c] = A[b, c, s]


@kernel
def band_products(left: AnyArray, A: AnyArray, G: AnyArray) -> None:
    """Multiply rows (multiple of `ROWS`, k) by A, into the first rows of G (flat)."""
    tall, width = left.shape
    blocks, N = A.shape[0], A.shape[0] * WIDTH
    flat, right = left.reshape(-1), A.reshape(-1)
    step = _panel(A)
    for begin in range(0, blocks, step):
        for t in range(0, tall, ROWS):
            multiply_rows(flat, t, width, right, begin, min(begin + step, blocks), G, t * N, N)


@kernel
def all_products(A: AnyArray, left: AnyArray, G: AnyArray) -> None:
    """Multiply all rows of A by each other into G (flat), each pair once and then mirrored; ``left`` is scratch."""
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


@kernel
def _panel(A: AnyArray) -> int:
    """Return how many blocks of rows make up a panel."""
    return int(max(1, _PANEL // (A.shape[1] * WIDTH * A.itemsize)))
