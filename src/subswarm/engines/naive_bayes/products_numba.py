"""Gaussian naive Bayes by products of masks and tables, compiled. Imported only if numba is installed."""

from __future__ import annotations

import numpy as np

from subswarm._njit import njit
from subswarm._types import BoolArray, Float32Array, FloatArray
from subswarm.engines.data import Codes, Int64Array
from subswarm.engines.naive_bayes.numba import add_constants, judge_fold, judge_row
from subswarm.engines.naive_bayes.products import (
    IMMENSE,
    LARGEST,
    LEVEL_ERROR,
    NOTHING,
    WIDEST_LEVEL,
    ProductTables,
)
from subswarm.engines.naive_bayes.tables import Gaussians

__all__ = ["classify_by_products", "fill_differences", "fill_squares", "look_up"]

_UNIT = 2.0**-24
_IMMENSE, _LARGEST = np.float32(IMMENSE), np.float32(LARGEST)
_WIDE, _DENSE, _DENSE_WIDE = 256, 0.3, 0.6
"""If masks select more than this share of the columns, the product is faster than adding up the selected rows."""


@njit(nogil=True, cache=True, error_model="numpy")
def fill_differences(
    rows: FloatArray, theta: FloatArray, v: FloatArray, follows: BoolArray, table: Float32Array
) -> bool:
    """Compute the squares of two classes, first minus second, of a fold's test rows (n, rows), and their sums.

    The sums are the last row of ``table``. Means, variances, and whether a square depends on the smoothing more than a
    level allows, are given as (n, C). If such a square is not almost zero, the row's sum is infinite.
    """
    n, size = rows.shape
    reach: FloatArray = np.zeros(size)
    for j in range(n):
        mean, mean2, weight, weight2 = theta[j, 0], theta[j, 1], 0.5 / v[j, 0], 0.5 / v[j, 1]
        least = NOTHING / WIDEST_LEVEL if follows[j, 0] else LARGEST
        least2 = NOTHING / WIDEST_LEVEL if follows[j, 1] else LARGEST
        for s in range(size):
            gap, gap2 = rows[j, s] - mean, rows[j, s] - mean2
            square, square2 = weight * (gap * gap), weight2 * (gap2 * gap2)
            known = square < least and square2 < least2
            table[j * size + s] = square - square2 if known else 0.0
            reach[s] += square + square2 if known else np.inf
    for s in range(size):  # assigning a slice would compile numba's messages for arrays of other shapes, for seconds
        table[n * size + s] = reach[s]
    return True


@njit(nogil=True, cache=True, error_model="numpy")
def fill_squares(rows: FloatArray, theta: FloatArray, v: FloatArray, follows: BoolArray, table: Float32Array) -> bool:
    """Compute the squares of class after class; False if one follows the smoothing and is neither tiny nor immense."""
    n, size = rows.shape
    C, usable = v.shape[1], True
    for j in range(n):
        for c in range(C):
            mean, weight, start = theta[j, c], 0.5 / v[j, c], (j * C + c) * size
            least = NOTHING / WIDEST_LEVEL if follows[j, c] else LARGEST
            for s in range(size):
                gap = rows[j, s] - mean
                square = weight * (gap * gap)
                usable &= square < least or not square < 2 * IMMENSE
                table[start + s] = square if square < LARGEST else LARGEST
    return usable


@njit(nogil=True, cache=True, error_model="numpy")
def look_up(
    widest: Int64Array,
    level: Int64Array,
    start: Int64Array,
    variance: FloatArray,
    starts: Int64Array,
    stretch: FloatArray,
) -> bool:
    """Look up where the tables for the widest columns (P, F) start, and the ratio of the smoothings, into the last two.

    Returns whether all tables that may be made are made.
    """
    made = True
    for p in range(widest.shape[0]):
        for f in range(widest.shape[1]):
            stands = level[f, widest[p, f]]
            starts[p, f] = start[f, stands]
            stretch[p, f] = 1.0001 * variance[f, stands] / variance[f, widest[p, f]]
            made &= starts[p, f] != -1
    return made


@njit(nogil=True, cache=True)
def classify_by_products(
    first: int,
    last: int,
    block: int,
    columns: Int64Array,
    starts: Int64Array,
    slots: Int64Array,
    g: Gaussians,
    tables: ProductTables,
    codes: Codes,
    doubts: Int64Array,
) -> None:
    """Compute classes and doubts as `numba.classify` does, for the pieces ``first`` to ``last``.

    A piece is a fold and ``block`` masks, fold after fold.
    """
    masks, store, table_starts, paired = tables.masks, tables.store, tables.starts, tables.paired
    P, n = masks.shape
    blocks = (P + block - 1) // block
    most, longest = g.theta.shape[2], g.sizes.max()
    terms: FloatArray = np.empty((4, most))
    sums: FloatArray = np.empty((most + 5, longest))
    gathered: Float32Array = np.empty(block * n, dtype=np.float32)
    results: Float32Array = np.empty(block * most * longest, dtype=np.float32)
    highs: Float32Array = np.empty((3, longest), dtype=np.float32)
    unsure: BoolArray = np.empty(longest, dtype=np.bool_)
    members: Int64Array = np.empty(block, dtype=np.int64)
    waiting: BoolArray = np.empty(block, dtype=np.bool_)
    for piece in range(first, last):
        f, start = piece // blocks, (piece % blocks) * block
        stop = min(start + block, P)
        size, answer, C = g.sizes[f], g.sizes[:f].sum(), g.n_classes[f]
        width = size if paired[f] else C * size
        waiting[:] = True
        for p in range(start, stop):
            if not waiting[p - start]:
                continue
            table_start, count, total = table_starts[p, f], 0, 0
            for q in range(p, stop):
                if table_starts[q, f] == table_start:
                    total += starts[q + 1] - starts[q]
                    members[count] = q
                    waiting[q - start] = False
                    count += 1
            if table_start >= 0:
                table = store[table_start : table_start + n * width].reshape(n, width)
                found = results[: count * width].reshape(count, width)
                if total > (_DENSE_WIDE if width >= _WIDE else _DENSE) * count * n and count > 1:
                    together = gathered[: count * n].reshape(count, n)
                    for i in range(count):
                        for j in range(n):  # not a slice, as in `fill_differences`
                            together[i, j] = masks[members[i], j]
                    np.dot(together, table, found)
                else:
                    for i in range(count):
                        _add_rows(columns[starts[members[i]] : starts[members[i] + 1]], table, found[i])
            for i in range(count):
                q = members[i]
                chosen, slot = columns[starts[q] : starts[q + 1]], slots[q, f]
                answers = codes[q, answer : answer + size]
                add_constants(chosen, f, slot, g, terms)
                if table_start < 0 or len(chosen) == 1:
                    doubts[q, f] = judge_fold(chosen, f, slot, g, terms, sums, answers)
                    continue
                product = results[i * width : (i + 1) * width]
                rate = 1.1 * ((len(chosen) + 8) * _UNIT + LEVEL_ERROR)
                if paired[f]:
                    reach = store[table_start + n * width : table_start + (n + 1) * width]
                    open_rows = _judge_differences(product, reach, len(chosen), rate, terms, unsure, answers)
                else:
                    open_rows = _judge_sums(
                        product, C, len(chosen), rate, tables.stretch[q, f], terms, highs, unsure, answers
                    )
                doubt = 0
                if 4 * open_rows > size:
                    doubt = judge_fold(chosen, f, slot, g, terms, sums, answers)
                elif open_rows:
                    for s in range(size):
                        if unsure[s]:
                            doubt += judge_row(chosen, f, s, slot, g, terms, answers)
                doubts[q, f] = doubt


@njit(nogil=True, cache=True, fastmath={"contract"})
def _add_rows(chosen: Int64Array, table: Float32Array, total: Float32Array) -> None:
    """Sum the chosen rows of a table, eight at a time."""
    total[:] = 0.0
    i = 0
    while i + 8 <= len(chosen):
        a, b, c, d = table[chosen[i]], table[chosen[i + 1]], table[chosen[i + 2]], table[chosen[i + 3]]
        e, f, g, h = table[chosen[i + 4]], table[chosen[i + 5]], table[chosen[i + 6]], table[chosen[i + 7]]
        for s in range(len(total)):
            total[s] += ((a[s] + b[s]) + (c[s] + d[s])) + ((e[s] + f[s]) + (g[s] + h[s]))
        i += 8
    for j in chosen[i:]:
        row = table[j]
        for s in range(len(total)):
            total[s] += row[s]


@njit(nogil=True, cache=True)
def _judge_differences(
    product: Float32Array,
    reach: Float32Array,
    k: int,
    rate: float,
    terms: FloatArray,
    unsure: BoolArray,
    answers: Codes,
) -> int:
    """Classify by differences of squares, into ``answers``; returns how many rows are ``unsure``."""
    lead, base = terms[0, 1] - terms[0, 0], terms[1, 0] + terms[1, 1] + 2 * k * NOTHING
    rate += terms[2, 0] + terms[2, 1]
    count = 0
    for s in range(len(product)):
        margin = lead + product[s]
        answers[s] = margin > 0.0
        unsure[s] = not abs(margin) > base + rate * reach[s]
        count += unsure[s]
    return count


@njit(nogil=True, cache=True, fastmath={"contract"})
def _judge_sums(
    product: Float32Array,
    C: int,
    k: int,
    rate: float,
    stretch: float,
    terms: FloatArray,
    highs: Float32Array,
    unsure: BoolArray,
    answers: Codes,
) -> int:
    """Classify by sums of squares, into ``answers``; returns how many rows are ``unsure``.

    The class of the highest upper bound wins if its lower bound is above the next upper bound.
    """
    size = len(answers)
    first, second, best = highs[0], highs[1], highs[2]
    first[:size], second[:size], best[:size] = -np.inf, -np.inf, 0.0
    spare, most, steepest = 0.0, 0.0, 0.0
    for c in range(C):
        spare, most = max(spare, terms[1, c]), max(most, abs(terms[0, c]))
        steepest = max(steepest, terms[2, c])
    spare += k * NOTHING + 8 * _UNIT * most
    rate += 8 * _UNIT + steepest
    slope = np.float32(1.0 - rate)
    for c in range(C):
        quadratic, up = product[c * size : (c + 1) * size], np.float32(terms[0, c] + spare)
        number = np.float32(c)
        for s in range(size):
            high = up - slope * quadratic[s]
            leads = high > first[s]
            lesser = first[s] if leads else high
            second[s] = lesser if lesser > second[s] else second[s]
            best[s] = number if leads else best[s]
            first[s] = high if leads else first[s]
    count = 0
    for s in range(size):
        winner = int(best[s])
        total = product[winner * size + s]
        floor = terms[0, winner] - spare - (1.0 + rate) * (total if total < _IMMENSE else stretch * total)
        answers[s] = winner
        unsure[s] = not (total < _LARGEST and spare < np.inf and floor > second[s])
        count += unsure[s]
    return count
