"""The steps of the neighbour kernels that `simd` writes as vector instructions, as plain numba functions.

Same names, same arguments, same results. Used where the intrinsics of `simd` do not compile, or where the environment
variable SUBSWARM_SIMD is 0 (see `numba`). Imported only if numba is installed.
"""

from __future__ import annotations

import numpy as np

from subswarm._njit import njit
from subswarm._types import AnyArray
from subswarm.engines.data import Int32Array

__all__ = [
    "ROWS",
    "WIDTH",
    "bound_row",
    "count_no_larger",
    "hits_from",
    "least_of_rank",
    "lowest_bit",
    "multiply_rows",
    "transpose_block",
]

WIDTH = 16
ROWS = 4
_ONE = np.uint64(1)


@njit(nogil=True, fastmath={"contract"})
def multiply_rows(
    left: AnyArray,
    row: int,
    width: int,
    right: AnyArray,
    begin: int,
    end: int,
    target: AnyArray,
    place: int,
    stride: int,
) -> None:
    """Multiply `ROWS` rows of the left side, from ``row`` on, by blocks ``begin`` to ``end`` of the right side."""
    for block in range(begin, end):
        for r in range(ROWS):
            goal = place + r * stride + block * WIDTH
            total = target[goal : goal + WIDTH]
            total[:] = 0.0
            for c in range(width):
                factor, start = left[(row + r) * width + c], (block * width + c) * WIDTH
                for s in range(WIDTH):
                    total[s] += factor * right[start + s]


@njit(nogil=True)
def bound_row(G: AnyArray, first: int, heights: AnyArray, bounds: AnyArray, minima: AnyArray) -> None:
    """Set ``bounds = heights - 2 G[first:]``, and each of ``minima`` to the least of every len(minima)-th bound."""
    lanes = minima.shape[0]
    minima[:] = np.inf
    for start in range(0, heights.shape[0], lanes):
        for s in range(min(lanes, heights.shape[0] - start)):
            product = G[first + start + s]
            bound = heights[start + s] - (product + product)
            bounds[start + s] = bound
            minima[s] = bound if bound < minima[s] else minima[s]


@njit(nogil=True)
def count_no_larger(keys: AnyArray, length: int, start: int, ranks: Int32Array) -> None:
    """Count, for each of the `WIDTH` keys from ``start`` on, how many of the first ``length`` are no larger."""
    for s in range(start, start + WIDTH):
        count = 0
        for other in range(length):
            count += keys[other] <= keys[s]
        ranks[s] = count


@njit(nogil=True)
def least_of_rank(keys: AnyArray, start: int, rank: int) -> float:
    """Return the least of the `WIDTH` keys from ``start`` on that is no smaller than ``rank`` keys, or infinity."""
    least: float = keys.dtype.type(np.inf)
    for s in range(start, start + WIDTH):
        count = 0
        for other in range(keys.shape[0]):
            count += keys[other] <= keys[s]
        if count >= rank and keys[s] < least:
            least = keys[s]
    return least


@njit(nogil=True)
def hits_from(bounds: AnyArray, start: int, ceiling: float) -> np.uint64:
    """Return which of the four blocks of bounds from ``start`` on are at most the ceiling, as bits of one number."""
    word = np.uint64(0)
    for s in range(4 * WIDTH):
        if bounds[start + s] <= ceiling:
            word |= _ONE << np.uint64(s)
    return word


@njit(nogil=True)
def lowest_bit(word: np.uint64) -> int:
    """Return the position of the lowest set bit of a number that is not 0."""
    place = 0
    while not word & _ONE:
        word >>= _ONE
        place += 1
    return place


@njit(nogil=True)
def transpose_block(source: AnyArray, start: int, stride: int, target: AnyArray, place: int, step: int) -> None:
    """Copy `WIDTH` rows of a flat array, ``stride`` apart, as columns of another, whose rows are ``step`` apart."""
    for r in range(WIDTH):
        for s in range(WIDTH):
            target[place + s * step + r] = source[start + r * stride + s]
