"""Nearest neighbours of a swarm, compiled: a product as a filter, the doubtful pairs settled in double precision.

Distances come from a matrix product (float32 or float64) on centred columns. Its rounding error is bounded by
``looseness * (|x|² + |y|²) + floor``, so a list of the smallest *lower* bounds holds the k nearest rows. Where the
bounds leave more than k candidates, these are compared by their distance in difference form (double precision, columns
in order) and, where that is equal, by their row number: that is what "nearest" means here.

Imported only where numba is installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from subswarm.evaluation.knn_products import (
    all_products,
    band_products,
    compact,
    gather,
    in_blocks,
    squared_norms,
    weighted_norms,
)
from subswarm.evaluation.knn_selection import WORD, insert, lane_count, scaled, settle, shortlist

__all__ = ["city_block_neighbors", "neighbors", "votes"]

_BAND = 64
"""Rows of a band of products, a multiple of the width of a block."""
_WIDE = 14
"""Columns from which computing each pair of rows once saves more than copying the other half costs."""


@njit(nogil=True, cache=True)
def neighbors(
    columns: Any,
    X: Any,
    Z: Any,
    unit: float,
    weights: Any,
    mode: int,
    shifts: Any,
    scales: Any,
    tests: Any,
    test_starts: Any,
    barred: Any,
    half_ulp: float,
    underflow: float,
    ordered: bool,
    buffer: Any,
    G: Any,
    nearest: Any,
    distances: Any,
    counts: Any,
) -> None:
    """The nearest training rows of each fold's test rows, into ``nearest`` (all test rows, k).

    Where ``ordered``, they are sorted, and ``distances`` are theirs (squared). Z (blocks, n, rows of a block) are the
    filter's columns, and ``weights`` (F, n) multiply their squared differences, unless the mode is 0: then they are all
    1, and each pair of rows may be computed once, where G has room for all products rather than a band of rows. G and
    ``buffer`` (twice the selected columns) are flat scratch. ``barred`` (F, N) is 1 for rows that are not in a fold's
    training set. ``counts`` learns what `settle` did.
    """
    N, T, width, k = X.shape[0], tests.shape[0], columns.shape[0], nearest.shape[1]
    rows_held = in_blocks(N)
    weighted = mode != 0
    looseness = ((2 * width + 40) if weighted else (width + 32)) * half_ulp
    floor = (width + 8) * underflow
    A = buffer[: rows_held * width].reshape(Z.shape[0], width, Z.shape[2])
    scratch = buffer[rows_held * width : 2 * rows_held * width]
    compact(Z, columns, unit, A)
    chosen = np.zeros((in_blocks(weights.shape[0]) if weighted else 1, width), dtype=A.dtype)
    norms = np.empty((chosen.shape[0], rows_held), dtype=A.dtype)
    if weighted:
        for f in range(weights.shape[0]):
            for c in range(width):
                chosen[f, c] = weights[f, columns[c]]
        weighted_norms(A, chosen, scratch.reshape(A.shape), norms)
    heights = np.empty(rows_held, dtype=A.dtype)
    widths = np.empty(N)
    bounds = np.full((N + WORD - 1) // WORD * WORD, np.inf, dtype=A.dtype)
    lanes = lane_count(k)
    minima = np.empty(lanes, dtype=A.dtype)
    keys = np.empty(4 * lanes, dtype=A.dtype)
    ranks = np.empty(4 * lanes, dtype=np.int32)
    kept = np.empty(4 * lanes + 1, dtype=np.int64)
    rows = np.empty(bounds.shape[0], dtype=np.int64)
    found = np.empty(k)
    whole = not weighted and G.shape[0] >= rows_held * rows_held and (width >= _WIDE or T > N)
    band = T if whole else min(_BAND, G.shape[0] // rows_held)
    left = scratch[: (rows_held if whole else band) * width].reshape(-1, width)
    if whole:
        all_products(A, left, G)
        norms[0] = G[: rows_held * rows_held : rows_held + 1]
    elif not weighted:
        squared_norms(A, norms[0])
    f = -1
    for top in range(0, T, band):
        tall = min(band, T - top)
        if not whole:
            _gather(A, chosen, weighted, tests, test_starts, top, tall, left)
            band_products(left[: in_blocks(tall)], A, G)
        for t in range(top, top + tall):
            while t >= test_starts[f + 1]:
                f += 1
                _bar(norms[f if weighted else 0], barred[f], looseness, floor, heights, widths)
            i = tests[t]
            first = (i if whole else t - top) * rows_held
            own_width = widths[i]
            listed, sure = shortlist(G, first, heights, widths, own_width, k, bounds, minima, keys, ranks, rows, kept)
            if sure and not ordered:
                for s in range(k):
                    nearest[t, s] = kept[s]
                continue
            settle(
                i,
                listed,
                widths,
                own_width,
                bounds,
                minima,
                rows,
                X,
                columns,
                mode,
                shifts,
                scales,
                f,
                found,
                nearest[t],
                counts,
            )
            if ordered:
                distances[t] = found


@njit(nogil=True, cache=True)
def _bar(norms: Any, barred: Any, looseness: float, floor: float, heights: Any, widths: Any) -> None:
    """What a fold's lower bounds start from (infinite for rows it does not train on), and how wide the bounds are."""
    for i in range(barred.shape[0]):
        heights[i] = np.inf if barred[i] else norms[i] * (1.0 - looseness)
        widths[i] = 2.0 * looseness * norms[i] + floor
    heights[barred.shape[0] :] = np.inf


@njit(nogil=True, cache=True)
def _gather(A: Any, chosen: Any, weighted: bool, tests: Any, test_starts: Any, top: int, tall: int, left: Any) -> None:
    """The test rows from ``top`` on, as many as are ``tall``, weighted by their folds, into ``left`` (rows, k)."""
    f = np.searchsorted(test_starts, top, side="right") - 1
    for t in range(tall):
        gather(A, tests[top + t], t, left)
        if weighted:
            while top + t >= test_starts[f + 1]:
                f += 1
            for c in range(left.shape[1]):
                left[t, c] *= chosen[f, c]


@njit(nogil=True, cache=True)
def city_block_neighbors(
    columns: Any,
    X: Any,
    mode: int,
    shifts: Any,
    scales: Any,
    tests: Any,
    test_starts: Any,
    barred: Any,
    nearest: Any,
    distances: Any,
) -> None:
    """As `neighbors`, by the sum of absolute differences, which no product gives: in full, in doubles."""
    N, width = X.shape[0], columns.shape[0]
    Z = np.empty((width, N))
    totals = np.empty(N)
    for f in range(barred.shape[0]):
        for c in range(width):
            j = columns[c]
            for i in range(N):
                Z[c, i] = scaled(X[i, j], mode, shifts[f, j], scales[f, j])
        for t in range(test_starts[f], test_starts[f + 1]):
            totals[:] = 0.0
            for c in range(width):
                own, column = Z[c, tests[t]], Z[c]
                for i in range(N):
                    totals[i] += abs(own - column[i])
            found, rows = distances[t], nearest[t]
            found[:] = np.inf
            rows[:] = N
            for i in range(N):
                if totals[i] < found[-1] and not barred[f, i]:
                    insert(found, rows, totals[i], i)


@njit(nogil=True, cache=True)
def _vote(nearest: Any, labels: Any, ballots: Any, codes: Any) -> None:
    """The most frequent label among the neighbours (rows, k), the lowest where several are."""
    for m in range(nearest.shape[0]):
        for c in range(ballots.shape[0]):
            ballots[c] = 0
        best = 0
        for s in range(nearest.shape[1]):
            ballots[labels[nearest[m, s]]] += 1
        for c in range(1, ballots.shape[0]):
            if ballots[c] > ballots[best]:
                best = c
        codes[m] = best


@njit(nogil=True, cache=True)
def votes(
    first: int,
    last: int,
    columns: Any,
    starts: Any,
    X: Any,
    Z: Any,
    units: Any,
    weights: Any,
    mode: int,
    shifts: Any,
    scales: Any,
    tests: Any,
    test_starts: Any,
    barred: Any,
    half_ulp: float,
    underflow: float,
    buffer: Any,
    G: Any,
    nearest: Any,
    labels: Any,
    n_classes: int,
    codes: Any,
    counts: Any,
) -> None:
    """Predicted labels (P, all test rows) of subsets ``first`` to ``last`` by `neighbors`."""
    nothing = np.empty((0, 0))
    ballots = np.empty(n_classes, dtype=np.int64)
    for p in range(first, last):
        neighbors(
            columns[starts[p] : starts[p + 1]],
            X,
            Z,
            units[p],
            weights,
            mode,
            shifts,
            scales,
            tests,
            test_starts,
            barred,
            half_ulp,
            underflow,
            False,
            buffer,
            G,
            nearest,
            nothing,
            counts[p],
        )
        _vote(nearest, labels, ballots, codes[p])
