"""Nearest neighbours of a swarm, compiled: a product as a filter, the doubtful pairs settled in double precision.

Distances come from one matrix product (float32 or float64) on centred columns. Its rounding error is bounded by
``looseness * (|x|² + |y|²) + floor``, so a list of the few smallest *lower* bounds holds the k nearest rows, or is
known not to. Where the bounds leave more than k candidates, these are compared by their distance in difference form
(double precision, columns in order) and, where that is equal, by their row number: that is what "nearest" means here.

Imported only where numba is installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from subswarm.evaluation.knn_selection import insert, is_clear, lane_counts, scaled, settle, shortlist

__all__ = [
    "city_block_neighbors",
    "partition_neighbors",
    "partition_votes",
    "vote",
    "weighted_neighbors",
    "weighted_votes",
]

_TILE = 128
_WIDE = 96
"""Columns from which computing each pair of rows once saves more than copying the other half costs."""


@njit(nogil=True, cache=True)
def _compact(X: Any, columns: Any, center: Any, factor: Any, unit: float, A: Any) -> None:
    """The selected columns, centred and scaled for the filter, into A (N, k)."""
    for i in range(A.shape[0]):
        row = X[i]
        for c in range(columns.shape[0]):
            j = columns[c]
            A[i, c] = (row[j] - center[j]) * factor[j] * unit


@njit(nogil=True, cache=True, fastmath=True)
def _norms(A: Any, norms: Any) -> None:
    for i in range(A.shape[0]):
        row = A[i]
        total = 0.0
        for c in range(A.shape[1]):
            total += row[c] * row[c]
        norms[i] = total


@njit(nogil=True, cache=True)
def _all_products(A: Any, G: Any) -> None:
    """A times its transpose into G, each pair once."""
    N = A.shape[0]
    buffer = np.empty(_TILE * _TILE, dtype=A.dtype)
    for top in range(0, N, _TILE):
        tall = min(_TILE, N - top)
        for left in range(top, N, _TILE):
            wide = min(_TILE, N - left)
            tile = buffer[: tall * wide].reshape(tall, wide)
            np.dot(A[top : top + tall], A[left : left + wide].T, tile)
            G[top : top + tall, left : left + wide] = tile
            if left > top:
                for s in range(wide):
                    line = G[left + s, top : top + tall]
                    for t in range(tall):
                        line[t] = tile[t, s]


@njit(nogil=True, cache=True)
def partition_neighbors(
    columns: Any,
    X: Any,
    center: Any,
    factor: Any,
    unit: float,
    fold_of: Any,
    looseness: float,
    floor: float,
    ordered: bool,
    spare: int,
    A: Any,
    G: Any,
    nearest: Any,
    distances: Any,
    counts: Any,
) -> None:
    """The nearest rows of every row, in each of R partitions into folds, all from the same products.

    Into ``nearest`` (R N, k) and, where ``ordered``, ``distances`` (squared). A (N, k columns) is scratch, and so is G:
    (N, N) for all products at once, each pair once, or a band of rows where that would be too large. ``counts`` learns
    how many rows were settled among their candidates and by a full scan.
    """
    N, k = X.shape[0], nearest.shape[1]
    K = k + spare
    norms = np.empty(N, dtype=A.dtype)
    heights = np.empty(N, dtype=A.dtype)
    widths = np.empty(N)
    found = np.empty(k)
    nothing = np.empty(X.shape[1])
    lanes, span = lane_counts(N, K)
    padding = np.full((N + span - 1) // span * span, np.inf, dtype=A.dtype)
    bounds, table = padding[:N], padding.reshape(-1, span)
    minima = np.empty(span, dtype=A.dtype)
    second_table, second_minima = minima.reshape(-1, lanes), np.empty(lanes, dtype=A.dtype)
    ranks = np.empty(lanes, dtype=np.int32)
    marks = np.zeros((N + 7) // 8 * 8, dtype=np.bool_)
    hits, words = marks[:N], marks.view(np.uint64)
    keys = np.empty(K, dtype=A.dtype)
    rows = np.empty(K, dtype=np.int64)
    _compact(X, columns, center, factor, unit, A)
    _norms(A, norms)
    for i in range(N):
        heights[i] = norms[i] * (1.0 - looseness)
        widths[i] = 2.0 * looseness * norms[i] + floor
    whole = G.shape[0] == N and columns.shape[0] >= _WIDE
    if whole:
        _all_products(A, G)
    band = N if whole else min(G.shape[0], _TILE)
    for top in range(0, N, band):
        tall = min(band, N - top)
        if not whole:
            np.dot(A[top : top + tall], A.T, G[:tall])
        for t in range(tall):
            i = top + t
            g = G[t]
            for r in range(fold_of.shape[0]):
                group, own = fold_of[r], fold_of[r, i]
                shortlist(
                    g,
                    heights,
                    group,
                    own,
                    bounds,
                    table,
                    minima,
                    second_table,
                    second_minima,
                    ranks,
                    hits,
                    words,
                    keys,
                    rows,
                )
                if not ordered and is_clear(keys, rows, k, widths, widths[i]):
                    for s in range(k):
                        nearest[r * N + i, s] = rows[s]
                else:
                    settle(
                        i,
                        keys,
                        rows,
                        widths,
                        widths[i],
                        bounds,
                        hits,
                        words,
                        X,
                        columns,
                        0,
                        nothing,
                        nothing,
                        found,
                        nearest[r * N + i],
                        counts,
                    )
                    if ordered:
                        distances[r * N + i] = found


@njit(nogil=True, cache=True)
def weighted_neighbors(
    columns: Any,
    X: Any,
    center: Any,
    factor: Any,
    unit: float,
    weights: Any,
    mode: int,
    shifts: Any,
    scales: Any,
    tests: Any,
    test_starts: Any,
    barred: Any,
    looseness: float,
    floor: float,
    ordered: bool,
    spare: int,
    A: Any,
    G: Any,
    nearest: Any,
    distances: Any,
    counts: Any,
) -> None:
    """The nearest training rows of each fold's test rows, each fold with its own weight for each column.

    ``weights`` (F, n) multiply squared differences of the filter's columns; ``barred`` (F, N) is 1 for rows that are
    not in a fold's training set; G holds the products of a band of test rows. Results go to ``nearest`` (all test
    rows, k).
    """
    N, F, width, k = X.shape[0], weights.shape[0], columns.shape[0], nearest.shape[1]
    K = k + spare
    chosen = np.empty((width, F), dtype=A.dtype)
    squares = np.empty((N, width), dtype=A.dtype)
    heights = np.empty(N, dtype=A.dtype)
    widths = np.empty(N)
    found = np.empty(k)
    lanes, span = lane_counts(N, K)
    padding = np.full((N + span - 1) // span * span, np.inf, dtype=A.dtype)
    bounds, table = padding[:N], padding.reshape(-1, span)
    minima = np.empty(span, dtype=A.dtype)
    second_table, second_minima = minima.reshape(-1, lanes), np.empty(lanes, dtype=A.dtype)
    ranks = np.empty(lanes, dtype=np.int32)
    marks = np.zeros((N + 7) // 8 * 8, dtype=np.bool_)
    hits, words = marks[:N], marks.view(np.uint64)
    keys = np.empty(K, dtype=A.dtype)
    rows = np.empty(K, dtype=np.int64)
    band = min(G.shape[0], _TILE)
    block = np.empty(band * width, dtype=A.dtype)
    _compact(X, columns, center, factor, unit, A)
    for i in range(N):
        for c in range(width):
            squares[i, c] = A[i, c] * A[i, c]
    for f in range(F):
        for c in range(width):
            chosen[c, f] = weights[f, columns[c]]
    norms = np.dot(squares, chosen)
    for f in range(F):
        for i in range(N):
            heights[i] = norms[i, f] * (1.0 - looseness)
            widths[i] = 2.0 * looseness * norms[i, f] + floor
        for top in range(test_starts[f], test_starts[f + 1], band):
            tall = min(band, test_starts[f + 1] - top)
            B = block[: tall * width].reshape(tall, width)
            for t in range(tall):
                for c in range(width):
                    B[t, c] = A[tests[top + t], c] * chosen[c, f]
            np.dot(B, A.T, G[:tall])
            for t in range(tall):
                i = tests[top + t]
                shortlist(
                    G[t],
                    heights,
                    barred[f],
                    1,
                    bounds,
                    table,
                    minima,
                    second_table,
                    second_minima,
                    ranks,
                    hits,
                    words,
                    keys,
                    rows,
                )
                if not ordered and is_clear(keys, rows, k, widths, widths[i]):
                    for s in range(k):
                        nearest[top + t, s] = rows[s]
                else:
                    settle(
                        i,
                        keys,
                        rows,
                        widths,
                        widths[i],
                        bounds,
                        hits,
                        words,
                        X,
                        columns,
                        mode,
                        shifts[f],
                        scales[f],
                        found,
                        nearest[top + t],
                        counts,
                    )
                    if ordered:
                        distances[top + t] = found


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
    """As `weighted_neighbors`, by the sum of absolute differences, which no product gives: in full, in doubles."""
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
def vote(nearest: Any, places: Any, labels: Any, ballots: Any, codes: Any) -> None:
    """The most frequent label among the neighbours (rows, k) at each of ``places``, the lowest where several are."""
    for m in range(places.shape[0]):
        for c in range(ballots.shape[0]):
            ballots[c] = 0
        best = 0
        for s in range(nearest.shape[1]):
            ballots[labels[nearest[places[m], s]]] += 1
        for c in range(1, ballots.shape[0]):
            if ballots[c] > ballots[best]:
                best = c
        codes[m] = best


@njit(nogil=True, cache=True)
def partition_votes(
    first: int,
    last: int,
    columns: Any,
    starts: Any,
    X: Any,
    center: Any,
    factor: Any,
    units: Any,
    fold_of: Any,
    half_ulp: float,
    floor: float,
    spare: int,
    buffer: Any,
    G: Any,
    nearest: Any,
    places: Any,
    labels: Any,
    ballots: Any,
    codes: Any,
    counts: Any,
) -> None:
    """Predicted labels (P, places) of subsets ``first`` to ``last`` by `partition_neighbors`."""
    nothing = np.empty((0, 0))
    for p in range(first, last):
        chosen = columns[starts[p] : starts[p + 1]]
        k = chosen.shape[0]
        A = buffer[: X.shape[0] * k].reshape(X.shape[0], k)
        partition_neighbors(
            chosen,
            X,
            center,
            factor,
            units[p],
            fold_of,
            (k + 32) * half_ulp,
            (k + 8) * floor,
            False,
            spare,
            A,
            G,
            nearest,
            nothing,
            counts[p],
        )
        vote(nearest, places, labels, ballots, codes[p])


@njit(nogil=True, cache=True)
def weighted_votes(
    first: int,
    last: int,
    columns: Any,
    starts: Any,
    X: Any,
    center: Any,
    factor: Any,
    units: Any,
    weights: Any,
    mode: int,
    shifts: Any,
    scales: Any,
    tests: Any,
    test_starts: Any,
    barred: Any,
    half_ulp: float,
    floor: float,
    spare: int,
    buffer: Any,
    G: Any,
    nearest: Any,
    places: Any,
    labels: Any,
    ballots: Any,
    codes: Any,
    counts: Any,
) -> None:
    """Predicted labels (P, places) of subsets ``first`` to ``last`` by `weighted_neighbors`."""
    nothing = np.empty((0, 0))
    for p in range(first, last):
        chosen = columns[starts[p] : starts[p + 1]]
        k = chosen.shape[0]
        A = buffer[: X.shape[0] * k].reshape(X.shape[0], k)
        weighted_neighbors(
            chosen,
            X,
            center,
            factor,
            units[p],
            weights,
            mode,
            shifts,
            scales,
            tests,
            test_starts,
            barred,
            (2 * k + 40) * half_ulp,
            (k + 8) * floor,
            False,
            spare,
            A,
            G,
            nearest,
            nothing,
            counts[p],
        )
        vote(nearest, places, labels, ballots, codes[p])
