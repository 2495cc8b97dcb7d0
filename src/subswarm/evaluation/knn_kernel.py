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

__all__ = ["city_block_neighbors", "partition_neighbors", "vote", "weighted_neighbors"]

_TILE = 128


@njit(nogil=True, cache=True)
def _scaled(x: float, mode: int, a: float, b: float) -> float:
    """A value as the fold's scaler gives it, rounded as scikit-learn rounds it."""
    if mode == 0:
        return x
    if mode == 1:
        return (x - a) / b
    return x * a + b


@njit(nogil=True, cache=True)
def _distance(X: Any, i: int, j: int, columns: Any, mode: int, shift: Any, scale: Any) -> float:
    """The squared distance of two rows in difference form, columns in order."""
    total = 0.0
    for c in columns:
        gap = _scaled(X[i, c], mode, shift[c], scale[c]) - _scaled(X[j, c], mode, shift[c], scale[c])
        total += gap * gap
    return total


@njit(nogil=True, cache=True)
def _insert(keys: Any, rows: Any, key: float, row: int) -> None:
    """Put a row into a list sorted by key; the last one drops out. Rows of equal key stay in order of arrival."""
    place = keys.shape[0] - 1
    while place > 0 and keys[place - 1] > key:
        keys[place] = keys[place - 1]
        rows[place] = rows[place - 1]
        place -= 1
    keys[place] = key
    rows[place] = row


@njit(nogil=True, cache=True)
def _insert_exact(distances: Any, rows: Any, distance: float, row: int) -> None:
    """As `_insert`, but rows of equal distance are ordered by number."""
    place = distances.shape[0] - 1
    if distances[place] < distance or (distances[place] == distance and rows[place] < row):
        return
    while place > 0 and (
        distances[place - 1] > distance or (distances[place - 1] == distance and rows[place - 1] > row)
    ):
        distances[place] = distances[place - 1]
        rows[place] = rows[place - 1]
        place -= 1
    distances[place] = distance
    rows[place] = row


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


@njit(nogil=True, cache=True, fastmath={"contract"})
def _mark_pairs(g: Any, height: Any, limit: Any, own_height: Any, own_limit: Any, hits: Any) -> None:
    """Which columns of a row of products may enter the row's list, or have the row enter theirs."""
    for s in range(g.shape[0]):
        twice = g[s] + g[s]
        hits[s] = (height[s] - twice < own_limit) | (own_height - twice < limit[s])


@njit(nogil=True, cache=True, fastmath={"contract"})
def _mark_row(g: Any, height: Any, own_limit: Any, hits: Any) -> None:
    """Which columns of a row of products may enter the row's list."""
    for s in range(g.shape[0]):
        hits[s] = height[s] - (g[s] + g[s]) < own_limit


@njit(nogil=True, cache=True)
def _offer(keys: Any, lists: Any, limits: Any, fold_of: Any, i: int, j: int, key: float) -> None:
    """Offer row j to the lists of row i in every partition that has them in different folds."""
    N, last = fold_of.shape[1], keys.shape[1] - 1
    worst = keys[i, 0]
    for r in range(fold_of.shape[0]):
        at = r * N + i
        if key < keys[at, last] and fold_of[r, i] != fold_of[r, j]:
            place = last
            while place > 0 and keys[at, place - 1] > key:
                keys[at, place] = keys[at, place - 1]
                lists[at, place] = lists[at, place - 1]
                place -= 1
            keys[at, place] = key
            lists[at, place] = j
        worst = max(worst, keys[at, last])
    limits[i] = min(limits[i], worst)


@njit(nogil=True, cache=True)
def _take_hits(
    products: Any,
    hits: Any,
    words: Any,
    top: int,
    left: int,
    height: Any,
    limit: Any,
    heights: Any,
    fold_of: Any,
    keys: Any,
    lists: Any,
    limits: Any,
) -> None:
    """Offer the pairs marked in a tile to the lists of both their rows (of the tile's rows only, on the diagonal)."""
    wide = products.shape[1]
    for t in range(products.shape[0]):
        i = top + t
        if top == left:
            _mark_row(products[t], height, limits[i], hits)
        else:
            _mark_pairs(products[t], height, limit, heights[i], limits[i], hits)
        for w in range(words.shape[0]):
            if words[w] != 0:
                for s in range(8 * w, min(8 * w + 8, wide)):
                    if hits[s]:
                        j = left + s
                        twice = products[t, s] + products[t, s]
                        if heights[j] - twice < limits[i]:
                            _offer(keys, lists, limits, fold_of, i, j, heights[j] - twice)
                        if top != left and heights[i] - twice < limits[j]:
                            _offer(keys, lists, limits, fold_of, j, i, heights[i] - twice)


@njit(nogil=True, cache=True, fastmath=True)
def _dot(A: Any, i: int, j: int) -> float:
    x, y = A[i], A[j]
    total = x[0] * y[0]
    for c in range(1, x.shape[0]):
        total += x[c] * y[c]
    return total


@njit(nogil=True, cache=True)
def _first_limits(A: Any, heights: Any, widths: Any, fold_of: Any, lists: Any, limits: Any) -> None:
    """A limit for each row that K rows are certainly under: where the K nearest rows of the last subset are now."""
    N = A.shape[0]
    limits[:] = -np.inf
    for r in range(fold_of.shape[0]):
        for i in range(N):
            at = r * N + i
            for s in range(lists.shape[1]):
                j = lists[at, s]
                if j < 0:
                    limits[i] = np.inf
                    break
                key = heights[j] - 2.0 * _dot(A, i, j) + 2.0 * (widths[i] + widths[j])
                if key > limits[i]:
                    limits[i] = key


@njit(nogil=True, cache=True)
def _fill_lists(A: Any, heights: Any, widths: Any, fold_of: Any, keys: Any, lists: Any) -> None:
    """The K smallest lower bounds of each row's distances, in each partition, from one product over all pairs.

    ``lists`` come with the nearest rows of another subset (or -1): they tell what is too far to be looked at.
    """
    N = A.shape[0]
    limits = np.empty(N, dtype=A.dtype)
    _first_limits(A, heights, widths, fold_of, lists, limits)
    keys[:] = np.inf
    lists[:] = -1
    buffer = np.empty(_TILE * _TILE, dtype=A.dtype)
    hits = np.zeros(_TILE, dtype=np.bool_)
    words = hits.view(np.uint64)
    for top in range(0, N, _TILE):
        tall = min(_TILE, N - top)
        for left in range(top, N, _TILE):
            wide = min(_TILE, N - left)
            products = buffer[: tall * wide].reshape(tall, wide)
            np.dot(A[top : top + tall], A[left : left + wide].T, products)
            hits[:] = False
            height, limit = heights[left : left + wide], limits[left : left + wide]
            _take_hits(
                products, hits, words, top, left, height, limit, heights, fold_of, keys, lists, limits
            )


@njit(nogil=True, cache=True)
def _settle(
    i: int,
    keys: Any,
    rows: Any,
    widths: Any,
    own_width: float,
    A: Any,
    b: Any,
    heights: Any,
    excluded: Any,
    own_fold: int,
    X: Any,
    columns: Any,
    mode: int,
    shift: Any,
    scale: Any,
    ordered: bool,
    products: Any,
    distances: Any,
    nearest: Any,
    counts: Any,
) -> None:
    """The k nearest rows of row i, from its list of smallest lower bounds, into ``nearest`` (and ``distances``).

    ``excluded[j] == own_fold`` says that row j is not to be trained on; ``widths[j] + own_width`` is how far the upper
    bound is above the lower one.
    """
    k, K = nearest.shape[0], keys.shape[0]
    distances[:] = np.inf
    nearest[:] = -1
    for s in range(K):
        if rows[s] >= 0:
            upper = keys[s] + widths[rows[s]] + own_width
            if upper < distances[k - 1]:
                _insert(distances, nearest, upper, rows[s])
    ceiling = distances[k - 1]
    candidates = 0
    while candidates < K and rows[candidates] >= 0 and keys[candidates] <= ceiling:
        candidates += 1
    if candidates == k and not ordered:
        nearest[:] = rows[:k]
        return
    distances[:] = np.inf
    nearest[:] = X.shape[0]
    if candidates < K:
        counts[0] += 1
        for s in range(candidates):
            _insert_exact(
                distances, nearest, _distance(X, i, rows[s], columns, mode, shift, scale), rows[s]
            )
        return
    counts[1] += 1
    np.dot(A, b, products)
    for j in range(A.shape[0]):
        if excluded[j] != own_fold and heights[j] - (products[j] + products[j]) <= ceiling:
            _insert_exact(distances, nearest, _distance(X, i, j, columns, mode, shift, scale), j)


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
    A: Any,
    keys: Any,
    lists: Any,
    nearest: Any,
    distances: Any,
    counts: Any,
) -> None:
    """The nearest rows of every row, in each of R partitions into folds, from one symmetric product.

    Into ``nearest`` (R N, k) and, where ``ordered``, ``distances`` (squared). ``keys``, ``lists`` (R N, K) and A
    (N, k columns) are scratch; ``counts`` learns how many rows were settled among their candidates and by a full scan.
    """
    N = X.shape[0]
    norms = np.empty(N, dtype=A.dtype)
    heights = np.empty(N, dtype=A.dtype)
    widths = np.empty(N)
    products = np.empty(N, dtype=A.dtype)
    found = np.empty(nearest.shape[1])
    nothing = np.empty(X.shape[1])
    _compact(X, columns, center, factor, unit, A)
    _norms(A, norms)
    for i in range(N):
        heights[i] = norms[i] * (1.0 - looseness)
        widths[i] = 2.0 * looseness * norms[i] + floor
    _fill_lists(A, heights, widths, fold_of, keys, lists)
    for r in range(fold_of.shape[0]):
        for i in range(N):
            _settle(
                i,
                keys[r * N + i],
                lists[r * N + i],
                widths,
                widths[i],
                A,
                A[i],
                heights,
                fold_of[r],
                fold_of[r, i],
                X,
                columns,
                0,
                nothing,
                nothing,
                ordered,
                products,
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
    A: Any,
    keys: Any,
    lists: Any,
    nearest: Any,
    distances: Any,
    counts: Any,
) -> None:
    """The nearest training rows of each fold's test rows, each fold with its own weight for each column.

    ``weights`` (F, n) multiply squared differences of the filter's columns; ``barred`` (F, N) is 1 for rows that are
    not in a fold's training set. Results go to ``nearest`` (all test rows, k).
    """
    N, F, width = X.shape[0], weights.shape[0], columns.shape[0]
    chosen = np.empty((width, F), dtype=A.dtype)
    squares = np.empty((N, width), dtype=A.dtype)
    heights = np.empty(N, dtype=A.dtype)
    widths = np.empty(N)
    products = np.empty(N, dtype=A.dtype)
    found = np.empty(nearest.shape[1])
    buffer = np.empty(_TILE * _TILE, dtype=A.dtype)
    block = np.empty(_TILE * width, dtype=A.dtype)
    hits = np.zeros(_TILE, dtype=np.bool_)
    words = hits.view(np.uint64)
    _compact(X, columns, center, factor, unit, A)
    for i in range(N):
        for c in range(width):
            squares[i, c] = A[i, c] * A[i, c]
    for f in range(F):
        for c in range(width):
            chosen[c, f] = weights[f, columns[c]]
    norms = np.dot(squares, chosen)
    keys[:] = np.inf
    lists[:] = -1
    for f in range(F):
        for i in range(N):
            heights[i] = norms[i, f] * (1.0 - looseness)
            widths[i] = 2.0 * looseness * norms[i, f] + floor
        for top in range(test_starts[f], test_starts[f + 1], _TILE):
            tall = min(_TILE, test_starts[f + 1] - top)
            B = block[: tall * width].reshape(tall, width)
            for t in range(tall):
                for c in range(width):
                    B[t, c] = A[tests[top + t], c] * chosen[c, f]
            for left in range(0, N, _TILE):
                wide = min(_TILE, N - left)
                tile = buffer[: tall * wide].reshape(tall, wide)
                np.dot(B, A[left : left + wide].T, tile)
                hits[:] = False
                for t in range(tall):
                    g, row_keys = tile[t], keys[top + t]
                    _mark_row(g, heights[left : left + wide], row_keys[-1], hits)
                    for w in range(words.shape[0]):
                        if words[w] != 0:
                            for s in range(8 * w, min(8 * w + 8, wide)):
                                key = heights[left + s] - (g[s] + g[s])
                                if hits[s] and not barred[f, left + s] and key < row_keys[-1]:
                                    _insert(row_keys, lists[top + t], key, left + s)
            for t in range(tall):
                i = tests[top + t]
                _settle(
                    i,
                    keys[top + t],
                    lists[top + t],
                    widths,
                    widths[i],
                    A,
                    B[t],
                    heights,
                    barred[f],
                    1,
                    X,
                    columns,
                    mode,
                    shifts[f],
                    scales[f],
                    ordered,
                    products,
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
                Z[c, i] = _scaled(X[i, j], mode, shifts[f, j], scales[f, j])
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
                    _insert(found, rows, totals[i], i)


@njit(nogil=True, cache=True)
def vote(nearest: Any, labels: Any, ballots: Any, codes: Any) -> None:
    """The most frequent label among each row's neighbours (n_rows, k), the lowest where several are."""
    for i in range(nearest.shape[0]):
        ballots[:] = 0
        for s in range(nearest.shape[1]):
            ballots[labels[nearest[i, s]]] += 1
        best = 0
        for c in range(1, ballots.shape[0]):
            if ballots[c] > ballots[best]:
                best = c
        codes[i] = best
