"""Nearest neighbours of many subsets, compiled: a matrix product as a filter, exact distances where it decides nothing.

The product (float32 or float64) of centred columns gives bounds of all distances (see `_start_bounds`), so a list of
the smallest *lower* bounds contains the k nearest rows. If the bounds leave more than k candidates, these are compared
by their distance in difference form (double precision, columns in order) and, where that is equal, by their row number:
this is the definition of "nearest" here (see `engine`).

Imported only if numba is installed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from subswarm._types import AnyArray, FloatArray
from subswarm.engines.data import Codes, Int32Array, Int64Array
from subswarm.engines.neighbors.lanes import (
    WIDTH,
    bound_row,
    count_no_larger,
    hits_from,
    kernel,
    least_of_rank,
    lowest_bit,
)
from subswarm.engines.neighbors.layout import Filter, FoldRows, ScaledRows, Scratch, SingleScratch, share_rounding
from subswarm.engines.neighbors.products_numba import (
    all_products,
    band_products,
    compact,
    gather,
    in_blocks,
    squared_norms,
    weighted_norms,
)

__all__ = ["city_block_neighbors", "count_votes", "list_neighbors", "mean_values", "neighbors", "votes"]

_BAND = 64
"""Rows of a band of products, a multiple of the width of a block."""
_WIDE = 14
"""Columns from which computing each pair of rows once saves more than copying the other half costs."""
_WORD = 4 * WIDTH
"""Bounds that are compared at a time."""
_ONE = np.uint64(1)
_TIE = 1e-9
"""Relative difference of two distances that no precision of the filter tells apart."""
_HALF_ULP = 2.0**-53


class _Lists(NamedTuple):
    """Scratch for the candidates of one test row.

    ``bounds`` (N in whole words) are the lower bounds and ``rows`` (as many) the candidates. ``minima`` (a few lanes)
    are minima of the bounds, ``keys`` and ``ranks`` the candidates' bounds and their ranks, ``chosen`` the k nearest.
    """

    bounds: AnyArray
    minima: AnyArray
    keys: AnyArray
    ranks: Int32Array
    rows: Int64Array
    chosen: Int64Array


@kernel
def neighbors(
    columns: Int64Array,
    unit: float,
    rows: ScaledRows,
    folds: FoldRows,
    filter: Filter,
    scratch: Scratch | SingleScratch,
    ordered: bool,
    counts: Int64Array,
) -> None:
    """Find the nearest training rows of each fold's test rows, into ``scratch.nearest`` (all test rows, k).

    ``unit`` is a power of two that brings the filter's selected columns to at most 1. With ``ordered`` the neighbours
    are sorted, and ``scratch.distances`` holds their squared distances. The filter's weights are 1 and its rounding 0
    if the mode is 0; then each pair of rows is computed once, if ``scratch.products`` has room for all products rather
    than for a band of rows. ``scratch.columns`` has room for twice the selected columns. ``counts`` is updated by
    `_settle`.
    """
    N, T, width, k = rows.X.shape[0], folds.rows.shape[0], columns.shape[0], scratch.nearest.shape[1]
    # Each access to a field of a tuple costs the time of a reference count, so fields are read once, outside of loops.
    G, blocks, weights, half_ulp = scratch.products, filter.blocks, filter.weights, filter.half_ulp
    nearest, distances, tests, starts, barred = (
        scratch.nearest,
        scratch.distances,
        folds.rows,
        folds.starts,
        folds.barred,
    )
    rows_held = in_blocks(N)
    weighted = rows.mode != 0
    looseness = (2 * width + 40) * half_ulp + (2 * width + 24) * _HALF_ULP
    floor = (width + 8) * filter.underflow
    A = scratch.columns[: rows_held * width].reshape(blocks.shape[0], width, blocks.shape[2])
    spare = scratch.columns[rows_held * width : 2 * rows_held * width]
    compact(blocks, columns, unit, A)
    chosen = np.zeros((in_blocks(weights.shape[0]) if weighted else 1, width), dtype=A.dtype)
    norms = np.empty((chosen.shape[0], rows_held), dtype=A.dtype)
    if weighted:
        for f in range(weights.shape[0]):
            for c in range(width):
                chosen[f, c] = weights[f, columns[c]]
        weighted_norms(A, chosen, spare.reshape(A.shape), norms)
    heights = np.empty(rows_held, dtype=A.dtype)
    widths = np.empty(N)
    lists = _make_lists(N, k, heights)
    chosen_rows = lists.chosen
    found = np.empty(k)
    whole = not weighted and G.shape[0] >= rows_held * rows_held and (width >= _WIDE or T > N)
    band = T if whole else min(_BAND, G.shape[0] // rows_held)
    left = spare[: (rows_held if whole else band) * width].reshape(-1, width)
    if whole:
        all_products(A, left, G)
        norms[0] = G[: rows_held * rows_held : rows_held + 1]
    elif not weighted:
        squared_norms(A, norms[0])
    f = -1
    for top in range(0, T, band):
        tall = min(band, T - top)
        if not whole:
            _gather_tests(A, chosen, weighted, folds, top, tall, left)
            band_products(left[: in_blocks(tall)], A, G)
        for t in range(top, top + tall):
            while t >= starts[f + 1]:
                f += 1
                share, rest = 0.0, 0.0
                if weighted:
                    share, rest = _share_rounding(unit * _total(filter.rounding[f], columns), half_ulp)
                own_norms = norms[f if weighted else 0]
                _start_bounds(own_norms, barred[f], looseness + share, floor + rest, heights, widths)
            i = tests[t]
            first = (i if whole else t - top) * rows_held
            listed, sure = _shortlist(G, first, heights, widths, widths[i], k, lists)
            if sure and not ordered:
                for s in range(k):
                    nearest[t, s] = chosen_rows[s]
                continue
            _settle(i, f, listed, widths, lists, rows, columns, found, nearest[t], counts)
            if ordered:
                distances[t] = found


@kernel
def votes(
    first: int,
    last: int,
    columns: Int64Array,
    starts: Int64Array,
    units: FloatArray,
    rows: ScaledRows,
    folds: FoldRows,
    filter: Filter,
    scratch: Scratch | SingleScratch,
    labels: Int64Array,
    n_classes: int,
    codes: Codes,
    counts: Int64Array,
) -> None:
    """Predict the labels (P, all test rows) of subsets ``first`` to ``last`` by the votes of their `neighbors`."""
    ballots, nearest = np.empty(n_classes, dtype=np.int64), scratch.nearest
    for p in range(first, last):
        neighbors(columns[starts[p] : starts[p + 1]], units[p], rows, folds, filter, scratch, False, counts[p])
        _vote(nearest, labels, ballots, codes[p])


@kernel
def list_neighbors(
    first: int,
    last: int,
    columns: Int64Array,
    starts: Int64Array,
    units: FloatArray,
    rows: ScaledRows,
    folds: FoldRows,
    filter: Filter,
    scratch: Scratch | SingleScratch,
    ordered: bool,
    nearest: Int64Array,
    distances: FloatArray,
    counts: Int64Array,
) -> None:
    """Find the `neighbors` of subsets ``first`` to ``last``, into ``nearest`` (P, all test rows, k)."""
    for p in range(first, last):
        neighbors(columns[starts[p] : starts[p + 1]], units[p], rows, folds, filter, scratch, ordered, counts[p])
        nearest[p] = scratch.nearest
        if ordered:
            distances[p] = scratch.distances


@kernel
def count_votes(nearest: Int64Array, labels: Int64Array, counts: FloatArray) -> None:
    """Count how many of the neighbours (rows, k) have each label, (rows, C)."""
    counts[:] = 0.0
    for m in range(nearest.shape[0]):
        for s in range(nearest.shape[1]):
            counts[m, labels[nearest[m, s]]] += 1.0


@kernel
def mean_values(nearest: Int64Array, values: FloatArray, means: FloatArray) -> None:
    """Compute the mean value of the neighbours (rows, k), which are added up in the order of their row number."""
    k = nearest.shape[1]
    order = np.empty(k, dtype=np.int64)
    for m in range(nearest.shape[0]):
        for s in range(k):
            row, place = nearest[m, s], s
            while place > 0 and order[place - 1] > row:
                order[place] = order[place - 1]
                place -= 1
            order[place] = row
        total = 0.0
        for s in range(k):
            total += values[order[s]]
        means[m] = total / k


@kernel
def city_block_neighbors(
    columns: Int64Array,
    rows: ScaledRows,
    folds: FoldRows,
    nearest: Int64Array,
    distances: FloatArray,
) -> None:
    """Find neighbours by the sum of absolute differences, which no product gives: in full, in double precision."""
    X, mode, shifts, scales = rows.X, rows.mode, rows.shifts, rows.scales
    tests, starts, barred = folds.rows, folds.starts, folds.barred
    N, width = X.shape[0], columns.shape[0]
    Z = np.empty((width, N))
    totals = np.empty(N)
    for f in range(barred.shape[0]):
        for c in range(width):
            j = columns[c]
            for i in range(N):
                Z[c, i] = _scaled(X[i, j], mode, shifts[f, j], scales[f, j])
        for t in range(starts[f], starts[f + 1]):
            totals[:] = 0.0
            for c in range(width):
                own, column = Z[c, tests[t]], Z[c]
                for i in range(N):
                    totals[i] += abs(own - column[i])
            found, found_rows = distances[t], nearest[t]
            found[:] = np.inf
            found_rows[:] = N
            for i in range(N):
                if totals[i] < found[-1] and not barred[f, i]:
                    _insert(found, found_rows, totals[i], i)


@kernel
def _vote(nearest: Int64Array, labels: Int64Array, ballots: Int64Array, codes: Codes) -> None:
    """Set each code to the most frequent label among the neighbours (rows, k), the lowest of several."""
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


@kernel
def _gather_tests(
    A: AnyArray, chosen: AnyArray, weighted: bool, folds: FoldRows, top: int, tall: int, left: AnyArray
) -> None:
    """Copy ``tall`` test rows, from ``top`` on, into ``left`` (rows, k), weighted by their folds."""
    tests, starts = folds.rows, folds.starts
    f = np.searchsorted(starts, top, side="right") - 1
    for t in range(tall):
        gather(A, tests[top + t], t, left)
        if weighted:
            while top + t >= starts[f + 1]:
                f += 1
            for c in range(left.shape[1]):
                left[t, c] *= chosen[f, c]


@kernel
def _start_bounds(
    norms: AnyArray, barred: Int32Array, looseness: float, floor: float, heights: AnyArray, widths: FloatArray
) -> None:
    """Set what a fold's lower bounds start from (infinity for rows it does not train on), and how wide the bounds are.

    With |x|² the squared norms of the centred columns, a distance differs from |x|² + |y|² - 2 xy as computed by at
    most looseness (|x|² + |y|²) + floor.
    """
    for i in range(barred.shape[0]):
        heights[i] = np.inf if barred[i] else norms[i] * (1.0 - looseness)
        widths[i] = 2.0 * looseness * norms[i] + floor
    heights[barred.shape[0] :] = np.inf


_share_rounding = kernel(share_rounding)


@kernel
def _total(values: FloatArray, columns: Int64Array) -> float:
    total = 0.0
    for j in columns:
        total += values[j]
    return total


@kernel
def _make_lists(n_rows: int, k: int, like: AnyArray) -> _Lists:
    """Allocate the lists of a batch; there are so many minima that at most every other is among the k + 1 smallest."""
    lanes = WIDTH
    while lanes < 2 * (k + 1):
        lanes *= 2
    bounds = np.full((n_rows + _WORD - 1) // _WORD * _WORD, np.inf, dtype=like.dtype)
    return _Lists(
        bounds,
        np.empty(lanes, dtype=like.dtype),
        np.empty(4 * lanes, dtype=like.dtype),
        np.empty(4 * lanes, dtype=np.int32),
        np.empty(bounds.shape[0], dtype=np.int64),
        np.empty(4 * lanes + 1, dtype=np.int64),
    )


@kernel
def _shortlist(
    G: AnyArray, first: int, heights: AnyArray, widths: FloatArray, own_width: float, k: int, lists: _Lists
) -> tuple[int, bool]:
    """List the rows with the smallest lower bounds ``heights - 2 G[first:]``, at least k + 1, in ``lists.rows``.

    Returns how many there are, and whether k of them are certainly nearer than all others: those are in
    ``lists.chosen``. The (k+1)-th smallest of a few minima is not far above the (k+1)-th smallest bound, so few rows
    are examined one by one. ``widths[j] + own_width`` is the difference of the upper and the lower bound of row j.
    """
    bounds, minima, keys, ranks = lists.bounds, lists.minima, lists.keys, lists.ranks
    rows, chosen = lists.rows, lists.chosen
    bound_row(G, first, heights, bounds, minima)
    found = _collect(bounds, _ceiling(minima, k + 1, np.finfo(bounds.dtype).max), rows)
    if found > keys.shape[0]:
        return found, False
    for s in range(found):
        keys[s] = bounds[rows[s]]
    for start in range(0, found, WIDTH):
        count_no_larger(keys, found, start, ranks)
    highest, following = -np.inf, np.inf
    members = 0
    for s in range(found):
        row, key = rows[s], np.float64(keys[s])
        upper = key + widths[row]
        inside = ranks[s] <= k
        chosen[members] = row
        members += inside
        upper = upper if inside else -np.inf
        lower = np.inf if inside else key
        highest = upper if upper > highest else highest
        following = lower if lower < following else following
    return found, members == k and highest + own_width < following


@kernel
def _settle(
    i: int,
    f: int,
    found: int,
    widths: FloatArray,
    lists: _Lists,
    table: ScaledRows,
    columns: Int64Array,
    distances: FloatArray,
    nearest: Int64Array,
    counts: Int64Array,
) -> None:
    """Find the k nearest rows of row i in fold f from a shortlist ``lists.rows[:found]``, by their exact distances.

    All rows whose lower bound is no higher than the k-th upper bound are compared. Added to ``counts``: one doubtful
    row, how many rows were compared, and how many of these because of rounding: those of rows whose neighbours do not
    tie.
    """
    bounds, minima, rows = lists.bounds, lists.minima, lists.rows
    k = nearest.shape[0]
    distances[:] = np.inf
    nearest[:] = table.X.shape[0]
    for s in range(found):
        upper = bounds[rows[s]] + widths[rows[s]] + widths[i]
        if upper < distances[k - 1]:
            _insert(distances, nearest, upper, rows[s])
    highest = np.finfo(bounds.dtype).max
    minima[0] = min(distances[k - 1], highest)
    compared = _collect(bounds, min(np.nextafter(minima[0], minima.dtype.type(np.inf)), highest), rows)
    distances[:] = np.inf
    nearest[:] = table.X.shape[0]
    following = np.inf
    for start in range(0, compared, 4):
        four = _four_distances(table, i, rows, start, compared, columns, f)
        for s in range(start, min(start + 4, compared)):
            distance = four[s - start]
            following = min(following, max(distance, distances[k - 1]))
            if distance < distances[k - 1]:
                _insert(distances, nearest, distance, rows[s])
    counts[0] += 1
    counts[1] += compared
    if following > distances[k - 1] * (1.0 + _TIE):
        counts[2] += compared


@kernel
def _scaled(x: float, mode: int, a: float, b: float) -> float:
    """Return a value as the fold's scaler does, rounded as scikit-learn rounds it."""
    if mode == 0:
        return x
    if mode == 1:
        return (x - a) / b
    return x * a + b


@kernel
def _four_distances(
    table: ScaledRows, i: int, rows: Int64Array, start: int, end: int, columns: Int64Array, f: int
) -> tuple[float, float, float, float]:
    """Return the squared distances of row i to four others, columns in order; the four sums run side by side."""
    X, mode, shifts, scales = table.X, table.mode, table.shifts, table.scales
    last = end - 1
    j, k = rows[start], rows[min(start + 1, last)]
    m, n = rows[min(start + 2, last)], rows[min(start + 3, last)]
    to_j = to_k = to_m = to_n = 0.0
    for c in columns:
        a, b = shifts[f, c], scales[f, c]
        own = _scaled(X[i, c], mode, a, b)
        gap = own - _scaled(X[j, c], mode, a, b)
        to_j += gap * gap
        gap = own - _scaled(X[k, c], mode, a, b)
        to_k += gap * gap
        gap = own - _scaled(X[m, c], mode, a, b)
        to_m += gap * gap
        gap = own - _scaled(X[n, c], mode, a, b)
        to_n += gap * gap
    return to_j, to_k, to_m, to_n


@kernel
def _insert(keys: FloatArray, rows: Int64Array, key: float, row: int) -> None:
    """Insert a row into a list sorted by key; the last one drops out. Rows of equal key stay in order of arrival."""
    place = keys.shape[0] - 1
    while place > 0 and keys[place - 1] > key:
        keys[place] = keys[place - 1]
        rows[place] = rows[place - 1]
        place -= 1
    keys[place] = key
    rows[place] = row


@kernel
def _ceiling(minima: AnyArray, rank: int, highest: float) -> float:
    """Return the smallest of the minima that is no smaller than ``rank`` of them, or the highest finite number."""
    least = highest
    for start in range(0, minima.shape[0], WIDTH):
        least = min(least, least_of_rank(minima, start, rank))
    return least


@kernel
def _collect(bounds: AnyArray, ceiling: float, rows: Int64Array) -> int:
    """List the rows whose bound is at most the ceiling, in order; returns how many there are."""
    found = 0
    for start in range(0, bounds.shape[0], _WORD):
        word = hits_from(bounds, start, ceiling)
        while word:
            rows[found] = start + lowest_bit(word)
            found += 1
            word &= word - _ONE
    return found
