"""Gaussian log-likelihoods of many subsets, compiled. Imported only if numba is installed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from subswarm._njit import njit
from subswarm._types import FloatArray, Masks
from subswarm.engines.data import Codes, Int64Array
from subswarm.engines.naive_bayes.tables import TOO_SMALL, Gaussians, error_terms, relative_error

__all__ = ["add_constants", "classify", "judge_fold", "judge_row", "log_likelihoods", "widest_columns"]

_TOO_SMALL = TOO_SMALL
_relative_error = njit(nogil=True, inline="always")(relative_error)
_bound: Callable[[float, float, float], tuple[float, float]] = error_terms
_error_terms = njit(nogil=True, inline="always")(_bound)


@njit(nogil=True, cache=True)
def widest_columns(
    masks: Masks, order: Int64Array, alike: Int64Array, slot: Int64Array, widest: Int64Array, slots: Int64Array
) -> bool:
    """Find the first selected column in each fold's ``order`` (n_folds, n), for each mask.

    The column that is ``alike`` goes into ``widest`` (P, n_folds), its slot into ``slots``; returns whether all of
    them have one.
    """
    known = True
    for p in range(widest.shape[0]):
        for f in range(widest.shape[1]):
            for j in order[f]:
                if masks[p, j]:
                    widest[p, f] = alike[f, j]
                    slots[p, f] = slot[f, alike[f, j]]
                    known &= slots[p, f] >= 0
                    break
    return known


@njit(nogil=True, cache=True)
def classify(
    first: int,
    last: int,
    columns: Int64Array,
    starts: Int64Array,
    widest: Int64Array,
    slots: Int64Array,
    g: Gaussians,
    codes: Codes,
    doubts: Int64Array,
) -> None:
    """Classify all test rows for masks ``first`` to ``last``, and count the doubtful rows of each fold.

    If a widest column has no tables (a slot of -1), the entries for the selected columns are computed here.
    """
    terms: FloatArray = np.empty((4, g.theta.shape[2]))
    longest = 0
    for f in range(len(g.sizes)):
        longest = max(longest, g.sizes[f])
    sums: FloatArray = np.empty((g.theta.shape[2] + 5, longest))
    own = _with_room_for_one(g)
    for p in range(first, last):
        chosen = columns[starts[p] : starts[p + 1]]
        answer = 0
        for f in range(g.sizes.shape[0]):
            answers = codes[p, answer : answer + g.sizes[f]]
            if slots[p, f] >= 0:
                add_constants(chosen, f, slots[p, f], g, terms)
                doubts[p, f] = judge_fold(chosen, f, slots[p, f], g, terms, sums, answers)
            else:
                doubts[p, f] = _judge_without(chosen, f, widest[p, f], own, terms, sums, answers)
            answer += g.sizes[f]


@njit(nogil=True, cache=True)
def _with_room_for_one(g: Gaussians) -> Gaussians:
    """Return the same rows and moments, with empty tables for one widest column."""
    n, C = g.theta.shape[1:]
    tables: FloatArray = np.empty((3, 1, n, C))
    magnitude: FloatArray = np.empty((1, C))
    return Gaussians(
        g.rows,
        g.row_starts,
        g.sizes,
        g.n_classes,
        g.theta,
        g.class_variance,
        g.variance,
        g.mean_error,
        g.log_prior,
        tables[0],
        tables[1],
        tables[2],
        magnitude,
        g.slack,
        g.slack_alone,
        g.var_smoothing,
    )


@njit(nogil=True, cache=True)
def _judge_without(
    chosen: Int64Array, f: int, widest: int, own: Gaussians, terms: FloatArray, sums: FloatArray, answers: Codes
) -> int:
    """Classify as `judge_fold` does, after the tables' entries for the chosen columns are computed into ``own``."""
    smoothing = own.var_smoothing * own.variance[f, widest]
    own.magnitude[:] = 0.0
    for j in chosen:
        for c in range(own.n_classes[f]):
            v = own.class_variance[f, j, c] + smoothing
            constant = -0.5 * np.log(2.0 * np.pi * v) if v > _TOO_SMALL else np.nan
            own.constant[0, j, c] = constant
            own.half_precision[0, j, c] = 0.5 / v if v != 0.0 else np.inf
            if len(chosen) == 1:  # otherwise it is not used
                own.swing[0, j, c] = own.mean_error[f, j, c] / np.sqrt(2.0 * v) if v != 0.0 else np.nan
            own.magnitude[0, c] += abs(constant) if abs(constant) < np.inf else 0.0
    only = int(np.int64(0))  # not a literal, for which `judge_fold` would be compiled once more
    add_constants(chosen, f, only, own, terms)
    return judge_fold(chosen, f, only, own, terms, sums, answers)


@njit(nogil=True, cache=True, inline="always")
def add_constants(chosen: Int64Array, f: int, slot: int, g: Gaussians, terms: FloatArray) -> None:
    """Compute what all rows of a fold share: ``fixed``, ``base`` and ``rate`` of each class (see `tables`).

    They go into the first three rows of ``terms``. The function is inlined: passing all of ``g`` took as long as the
    sums.
    """
    k, C = len(chosen), g.n_classes[f]
    c = 0
    while c + 4 <= C:  # a few classes at a time, in registers
        w, x, y, z = g.log_prior[f, c], g.log_prior[f, c + 1], g.log_prior[f, c + 2], g.log_prior[f, c + 3]
        for i in range(k):
            j = chosen[i]
            w += g.constant[slot, j, c]
            x += g.constant[slot, j, c + 1]
            y += g.constant[slot, j, c + 2]
            z += g.constant[slot, j, c + 3]
        terms[0, c], terms[0, c + 1], terms[0, c + 2], terms[0, c + 3] = w, x, y, z
        c += 4
    while c + 2 <= C:
        w, x = g.log_prior[f, c], g.log_prior[f, c + 1]
        for i in range(k):
            j = chosen[i]
            w += g.constant[slot, j, c]
            x += g.constant[slot, j, c + 1]
        terms[0, c], terms[0, c + 1] = w, x
        c += 2
    if c < C:
        w = g.log_prior[f, c]
        for i in range(k):
            w += g.constant[slot, chosen[i], c]
        terms[0, c] = w
    relative = _relative_error(g.slack_alone if k == 1 else g.slack, k)
    for c in range(C):
        swing = g.swing[slot, chosen[0], c] if k == 1 else 0.0
        size = g.magnitude[slot, c] + abs(g.log_prior[f, c]) + k
        terms[1, c], terms[2, c] = _error_terms(relative, swing, size)
        if not abs(terms[0, c]) < np.inf:
            terms[1, c] = np.inf


@njit(nogil=True, cache=True, fastmath={"contract"})
def judge_fold(
    chosen: Int64Array, f: int, slot: int, g: Gaussians, terms: FloatArray, sums: FloatArray, answers: Codes
) -> int:
    """Classify a fold's test rows, into ``answers``; returns how many are in doubt."""
    size, offset, C, k = g.sizes[f], g.row_starts[f], g.n_classes[f], len(chosen)
    fixed, base, rate = terms[0], terms[1], terms[2]
    for c in range(C):
        sums[c, :size] = 0.0
    i = 0
    while i + 1 < k:
        j, j2 = chosen[i], chosen[i + 1]
        x = g.rows[offset + j * size : offset + (j + 1) * size]
        x2 = g.rows[offset + j2 * size : offset + (j2 + 1) * size]
        for c in range(C):
            mean, weight = g.theta[f, j, c], g.half_precision[slot, j, c]
            mean2, weight2 = g.theta[f, j2, c], g.half_precision[slot, j2, c]
            quadratic = sums[c]
            for s in range(size):
                gap, gap2 = x[s] - mean, x2[s] - mean2
                quadratic[s] += weight * (gap * gap) + weight2 * (gap2 * gap2)
        i += 2
    if i < k:
        j = chosen[i]
        x = g.rows[offset + j * size : offset + (j + 1) * size]
        for c in range(C):
            mean, weight = g.theta[f, j, c], g.half_precision[slot, j, c]
            quadratic = sums[c]
            for s in range(size):
                gap = x[s] - mean
                quadratic[s] += weight * (gap * gap)
    doubt = 0
    if C == 2:
        low, high = sums[0], sums[1]
        lead, both, rate0, rate1 = fixed[1] - fixed[0], base[0] + base[1], rate[0], rate[1]
        for s in range(size):
            margin = lead + (low[s] - high[s])
            sure = abs(margin) > both + rate0 * low[s] + rate1 * high[s]
            answers[s] = margin > 0.0
            doubt += not sure
        return doubt
    best, first_high, second_high, floor, trace = sums[C], sums[C + 1], sums[C + 2], sums[C + 3], sums[C + 4]
    best[:size], first_high[:size], second_high[:size] = 0.0, -np.inf, -np.inf
    floor[:size], trace[:size] = -np.inf, 0.0
    for c in range(C):
        quadratic, low_rate, high_rate = sums[c], 1.0 + rate[c], 1.0 - rate[c]
        down, up = fixed[c] - base[c], fixed[c] + base[c]
        for s in range(size):
            lowest, highest = down - low_rate * quadratic[s], up - high_rate * quadratic[s]
            lesser = highest if highest < first_high[s] else first_high[s]
            best[s] = c if highest > first_high[s] else best[s]
            second_high[s] = lesser if lesser > second_high[s] else second_high[s]
            first_high[s] = highest if highest > first_high[s] else first_high[s]
            floor[s] = lowest if lowest > floor[s] else floor[s]
            trace[s] += highest
    for s in range(size):
        answers[s] = int(best[s])
        doubt += not (floor[s] > second_high[s] and abs(trace[s]) < np.inf)
    return doubt


@njit(nogil=True, cache=True, fastmath={"contract"})
def judge_row(chosen: Int64Array, f: int, s: int, slot: int, g: Gaussians, terms: FloatArray, answers: Codes) -> bool:
    """Classify one test row, into ``answers[s]``; returns whether it is in doubt."""
    size, offset, C = g.sizes[f], g.row_starts[f], g.n_classes[f]
    fixed, base, rate, quadratic = terms[0], terms[1], terms[2], terms[3]
    quadratic[:C] = 0.0
    for j in chosen:
        x = g.rows[offset + j * size + s]
        for c in range(C):
            gap = x - g.theta[f, j, c]
            quadratic[c] += g.half_precision[slot, j, c] * (gap * gap)
    best = 0
    for c in range(1, C):
        if fixed[c] - quadratic[c] > fixed[best] - quadratic[best]:
            best = c
    answers[s] = best
    floor = fixed[best] - base[best] - (1.0 + rate[best]) * quadratic[best]
    for c in range(C):
        highest = fixed[c] + base[c] - (1.0 - rate[c]) * quadratic[c]
        if c != best and not (floor > highest and abs(highest) < np.inf):
            return True
    return False


@njit(nogil=True, cache=True)
def log_likelihoods(
    first: int,
    last: int,
    columns: Int64Array,
    starts: Int64Array,
    widest: Int64Array,
    slots: Int64Array,
    g: Gaussians,
    likelihoods: FloatArray,
    doubts: Int64Array,
) -> None:
    """Compute the joint log-likelihoods (C, P, all test rows) of masks ``first`` to ``last``, as scikit-learn does.

    All sums are in NumPy's order. A class that a fold does not have gets -infinity. In ``doubts`` (P, F) folds are
    marked in which a likelihood is not finite.
    """
    n = g.theta.shape[1]
    blocks: Int64Array = np.empty((2, n // 32 + 2), dtype=np.int64)
    sums: FloatArray = np.empty((8 + 64, g.sizes.max()))
    weights: FloatArray = np.empty((2, n))
    for p in range(first, last):
        chosen = columns[starts[p] : starts[p + 1]]
        n_blocks = _split_as_numpy(len(chosen), blocks)
        answer = 0
        for f in range(g.sizes.shape[0]):
            size, slot = g.sizes[f], slots[p, f]
            smoothing = g.var_smoothing * g.variance[f, widest[p, f]]
            rows = g.rows[g.row_starts[f] : g.row_starts[f] + n * size]
            for c in range(likelihoods.shape[0]):
                target = likelihoods[c, p, answer : answer + size]
                if c >= g.n_classes[f]:
                    target[:] = -np.inf
                    continue
                for i in range(len(chosen)):
                    weights[0, i] = g.constant[slot, chosen[i], c]
                    weights[1, i] = g.class_variance[f, chosen[i], c] + smoothing
                fixed = _sum_in_order(weights[0], blocks[:, :n_blocks])
                _sum_squares(chosen, blocks[:, :n_blocks], rows, size, g.theta[f, :, c], weights[1], sums)
                prior, squares, trace = g.log_prior[f, c], sums[8], 0.0
                for s in range(size):
                    target[s] = prior + (fixed - 0.5 * squares[s])
                    trace += 0.0 * target[s]
                if trace != 0.0:
                    doubts[p, f] = 1
            answer += size


@njit(nogil=True, cache=True)
def _split_as_numpy(n: int, blocks: Int64Array) -> int:
    """Split n terms as NumPy's sum does: blocks of at most 128, added up in pairs; returns how many blocks there are.

    The first row of ``blocks`` is the block's length, the second how many additions of pairs follow it.
    """
    pending: Int64Array = np.empty((2, 64), dtype=np.int64)
    open_depths: Int64Array = np.empty(64, dtype=np.int64)
    pending[0, 0], pending[1, 0] = n, 0
    waiting, n_open, count = 1, 0, 0
    while waiting:
        waiting -= 1
        length, depth = pending[0, waiting], pending[1, waiting]
        if length > 128:
            half = length // 2
            half -= half % 8
            pending[0, waiting], pending[1, waiting] = length - half, depth + 1
            pending[0, waiting + 1], pending[1, waiting + 1] = half, depth + 1
            waiting += 2
            continue
        additions = 0
        open_depths[n_open] = depth
        n_open += 1
        while n_open > 1 and open_depths[n_open - 1] == open_depths[n_open - 2]:
            n_open -= 1
            open_depths[n_open - 1] -= 1
            additions += 1
        blocks[0, count], blocks[1, count] = length, additions
        count += 1
    return count


@njit(nogil=True, cache=True)
def _sum_in_order(values: FloatArray, blocks: Int64Array) -> float:
    """Sum the values in NumPy's order."""
    parts: FloatArray = np.empty(8)
    totals: FloatArray = np.empty(64)
    start, level = 0, 0
    for block in range(blocks.shape[1]):
        n = blocks[0, block]
        whole = 0 if n < 8 else n - n % 8
        parts[:] = 0.0
        for i in range(start, start + whole, 8):
            for r in range(8):
                parts[r] += values[i + r]
        total = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]))
        for i in range(start + whole, start + n):
            total += values[i]
        for _ in range(blocks[1, block]):
            level -= 1
            total = totals[level] + total
        totals[level] = total
        level += 1
        start += n
    return float(totals[0])


@njit(nogil=True, cache=True)
def _sum_squares(
    chosen: Int64Array,
    blocks: Int64Array,
    rows: FloatArray,
    size: int,
    means: FloatArray,
    variances: FloatArray,
    sums: FloatArray,
) -> None:
    """Sum (x - mean)² / variance over the chosen columns in NumPy's order, into ``sums[8]``."""
    start, level = 0, 8
    for block in range(blocks.shape[1]):
        n = blocks[0, block]
        total = sums[level]
        if n < 8:
            total[:size] = 0.0
            whole = 0
        else:
            sums[:8, :size] = 0.0
            whole = n - n % 8
            for r in range(8):
                _add_squares(chosen, start + r, start + whole, 8, rows, size, means, variances, sums[r])
            a, b, c, d = sums[0], sums[1], sums[2], sums[3]
            e, f, g, h = sums[4], sums[5], sums[6], sums[7]
            for s in range(size):
                total[s] = ((a[s] + b[s]) + (c[s] + d[s])) + ((e[s] + f[s]) + (g[s] + h[s]))
        _add_squares(chosen, start + whole, start + n, 1, rows, size, means, variances, total)
        for _ in range(blocks[1, block]):
            level -= 1
            sums[level, :size] += sums[level + 1, :size]
        level += 1
        start += n


@njit(nogil=True, cache=True)
def _add_squares(
    chosen: Int64Array,
    first: int,
    last: int,
    step: int,
    rows: FloatArray,
    size: int,
    means: FloatArray,
    variances: FloatArray,
    total: FloatArray,
) -> None:
    """Add (x - mean)² / variance of every ``step``-th chosen column from ``first`` on, one after the other.

    Two columns at a time: on short folds, the start of a loop takes longer than its rounds.
    """
    i = first
    while i + step < last:
        j, k = chosen[i], chosen[i + step]
        x, y = rows[j * size : (j + 1) * size], rows[k * size : (k + 1) * size]
        _add_two_squares(x, y, means[j], means[k], variances[i], variances[i + step], total)
        i += 2 * step
    if i < last:
        j = chosen[i]
        _add_square(rows[j * size : (j + 1) * size], means[j], variances[i], total)


@njit(nogil=True, cache=True, error_model="numpy")
def _add_two_squares(
    x: FloatArray, y: FloatArray, mean: float, other_mean: float, variance: float, other: float, total: FloatArray
) -> None:
    for s in range(len(x)):
        gap, other_gap = x[s] - mean, y[s] - other_mean
        total[s] = (total[s] + gap * gap / variance) + other_gap * other_gap / other


@njit(nogil=True, cache=True, error_model="numpy")
def _add_square(x: FloatArray, mean: float, variance: float, total: FloatArray) -> None:
    for s in range(len(x)):
        gap = x[s] - mean
        total[s] += gap * gap / variance
