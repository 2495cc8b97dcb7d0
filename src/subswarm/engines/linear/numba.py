"""Systems of equations and linear scores of many subsets, compiled. Imported only if numba is installed."""

from __future__ import annotations

import numpy as np

from subswarm._njit import njit
from subswarm._types import FloatArray
from subswarm.engines.data import Codes, Int64Array
from subswarm.engines.linear.tables import Scores, Systems, TestRows

__all__ = ["evaluate", "judge", "solve"]

_SUMS = {"contract", "reassoc", "nsz"}
_NOTHING = 1e-11
"""Pivots of a matrix with a diagonal of one that are nothing but rounding."""
_BLOCK = 96
"""Rows of the inverse factor that are computed by loops; longer systems are computed in blocks with BLAS."""


@njit(nogil=True, cache=True, fastmath=_SUMS)
def _invert_rows(matrix: FloatArray, inverse: FloatArray, sums: FloatArray, least: float) -> bool:
    """Compute the inverse of the Cholesky factor of a matrix, row by row; False if a pivot is not above ``least``.

    Row i of the factor is the product of the inverse's rows so far with row i of the matrix. Only the lower triangle
    is read; the upper triangle of the inverse is set to zero.
    """
    k = len(matrix)
    for i in range(k):
        a, row = matrix[i], inverse[i]
        pivot = a[i]
        j = 0
        while j + 4 <= i:
            w, x, y, z = inverse[j], inverse[j + 1], inverse[j + 2], inverse[j + 3]
            s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
            for t in range(j + 4):
                value = a[t]
                s0 += w[t] * value
                s1 += x[t] * value
                s2 += y[t] * value
                s3 += z[t] * value
            sums[j], sums[j + 1], sums[j + 2], sums[j + 3] = s0, s1, s2, s3
            pivot -= s0 * s0 + s1 * s1 + s2 * s2 + s3 * s3
            j += 4
        while j < i:
            w = inverse[j]
            s0 = 0.0
            for t in range(j + 1):
                s0 += w[t] * a[t]
            sums[j] = s0
            pivot -= s0 * s0
            j += 1
        if not pivot > least:
            return False
        root = 1.0 / np.sqrt(pivot)
        row[:k] = 0.0
        j = 0
        while j + 4 <= i:
            w, x, y, z = inverse[j], inverse[j + 1], inverse[j + 2], inverse[j + 3]
            s0, s1, s2, s3 = -root * sums[j], -root * sums[j + 1], -root * sums[j + 2], -root * sums[j + 3]
            for t in range(j + 4):
                row[t] += s0 * w[t] + s1 * x[t] + s2 * y[t] + s3 * z[t]
            j += 4
        while j < i:
            w = inverse[j]
            s0 = -root * sums[j]
            for t in range(j + 1):
                row[t] += s0 * w[t]
            j += 1
        row[i] = root
    return True


@njit(nogil=True, cache=True)
def _invert(matrix: FloatArray, inverse: FloatArray, sums: FloatArray, least: float) -> bool:
    """Do as `_invert_rows`, in blocks: the rows of a block need products with all blocks above."""
    k = len(matrix)
    if k <= _BLOCK:
        return bool(_invert_rows(matrix, inverse, sums, least))
    inverse[:] = 0.0
    for low in range(0, k, _BLOCK):
        high = min(low + _BLOCK, k)
        if low == 0:
            block = np.ascontiguousarray(matrix[:high, :high])
        else:
            above = np.ascontiguousarray(inverse[:low, :low])
            factor = np.dot(np.ascontiguousarray(matrix[low:high, :low]), above.T)
            block = matrix[low:high, low:high] - np.dot(factor, factor.T)
        rows = np.empty((high - low, high - low))
        if not _invert_rows(block, rows, sums, least):
            return False
        inverse[low:high, low:high] = rows
        if low > 0:
            inverse[low:high, :low] = -np.dot(rows, np.dot(factor, above))
    return True


@njit(nogil=True, cache=True, fastmath=_SUMS)
def _invert_singular(matrix: FloatArray, half: FloatArray, sums: FloatArray, least: float) -> int:
    """Compute H (rank, k) with H'H the pseudoinverse of a matrix with a diagonal of one; returns the rank.

    The matrix is L L' up to rounding, where L comes from a Cholesky factorisation that takes the largest pivot first,
    and H is the inverse of L'L times L'. Returns 0 unless what is left is certainly below ``least``. Only the lower
    triangle is read.
    """
    k, rank = len(matrix), 0
    low = np.empty((k, k))
    rest = np.ones(k)
    while rank < k:
        best = np.argmax(rest)
        if not rest[best] > _NOTHING:
            break
        column = low[rank]
        column[: best + 1] = matrix[best, : best + 1]
        for i in range(best + 1, k):
            column[i] = matrix[i, best]
        for t in range(rank):
            share, other = low[t, best], low[t]
            for i in range(k):
                column[i] -= share * other[i]
        share = 1.0 / np.sqrt(rest[best])
        for i in range(k):
            column[i] *= share
            rest[i] -= column[i] * column[i]
        rest[best] = 0.0
        rank += 1
    left = 0.0
    for i in range(k):
        left += abs(rest[i])
    if rank == k or not left <= 0.1 * least:
        return 0
    square, inverse = np.empty((rank, rank)), np.empty((rank, rank))
    for i in range(rank):
        for j in range(i + 1):
            one, other, total = low[i], low[j], 0.0
            for t in range(k):
                total += one[t] * other[t]
            square[i, j] = total
    if not _invert_rows(square, inverse, sums, least):
        return 0
    for i in range(rank - 1, -1, -1):  # the rows of the inverse factor times L', from the last one on
        row = low[i]
        share = inverse[i, i]
        for t in range(k):
            row[t] *= share
        for j in range(i):
            share, other = inverse[i, j], low[j]
            for t in range(k):
                row[t] += share * other[t]
    half[:rank] = 0.0
    for i in range(rank):
        for j in range(i + 1):
            row, share, other = half[j], inverse[i, j], low[i]
            for t in range(k):
                row[t] += share * other[t]
    return rank


@njit(nogil=True, cache=True, fastmath=_SUMS)
def _factor(matrix: FloatArray, sides: FloatArray, factor: FloatArray, least: float) -> bool:
    """Compute the Cholesky factor L of a matrix; False if a pivot is not above ``least``.

    The rows of ``sides`` are replaced by the solutions z of L z = side, as if they were further rows of the matrix.
    The diagonal of the factor is stored inverted. Only the lower triangle is read and written.
    """
    k, C = len(matrix), len(sides)
    j = 0
    while j < k:
        width = min(4, k - j)
        for i in range(j, j + width):
            row = factor[i]
            for c in range(j, i + 1):
                other, value = factor[c], matrix[i, c]
                for t in range(c):
                    value -= row[t] * other[t]
                if c < i:
                    row[c] = value * other[c]
                elif not value > least:
                    return False
                else:
                    row[c] = 1.0 / np.sqrt(value)
        if width == 4:
            i = j + 4
            while i + 2 <= k:
                _eliminate(factor, j, matrix[i], matrix[i + 1], factor[i], factor[i + 1])
                i += 2
            if i < k:
                _eliminate(factor, j, matrix[i], matrix[i], factor[i], factor[i])
            c = 0
            while c + 2 <= C:
                _eliminate(factor, j, sides[c], sides[c + 1], sides[c], sides[c + 1])
                c += 2
            if c < C:
                _eliminate(factor, j, sides[c], sides[c], sides[c], sides[c])
        else:
            for c in range(C):
                row = sides[c]
                for i in range(j, k):
                    other, value = factor[i], row[i]
                    for t in range(i):
                        value -= row[t] * other[t]
                    row[i] = value * other[i]
        j += 4
    return True


@njit(nogil=True, cache=True, inline="always", fastmath=_SUMS)
def _eliminate(
    factor: FloatArray, j: int, given: FloatArray, next_given: FloatArray, row: FloatArray, next_row: FloatArray
) -> None:
    """Compute columns ``j`` to ``j + 3`` of two rows below the diagonal of a Cholesky factor."""
    w, x, y, z = factor[j], factor[j + 1], factor[j + 2], factor[j + 3]
    a0, a1, a2, a3 = 0.0, 0.0, 0.0, 0.0
    b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0
    for t in range(j):
        u, v = row[t], next_row[t]
        a0 += w[t] * u
        a1 += x[t] * u
        a2 += y[t] * u
        a3 += z[t] * u
        b0 += w[t] * v
        b1 += x[t] * v
        b2 += y[t] * v
        b3 += z[t] * v
    a0 = (given[j] - a0) * w[j]
    b0 = (next_given[j] - b0) * w[j]
    a1 = (given[j + 1] - a1 - a0 * x[j]) * x[j + 1]
    b1 = (next_given[j + 1] - b1 - b0 * x[j]) * x[j + 1]
    a2 = (given[j + 2] - a2 - a0 * y[j] - a1 * y[j + 1]) * y[j + 2]
    b2 = (next_given[j + 2] - b2 - b0 * y[j] - b1 * y[j + 1]) * y[j + 2]
    a3 = (given[j + 3] - a3 - a0 * z[j] - a1 * z[j + 1] - a2 * z[j + 2]) * z[j + 3]
    b3 = (next_given[j + 3] - b3 - b0 * z[j] - b1 * z[j + 1] - b2 * z[j + 2]) * z[j + 3]
    row[j], row[j + 1], row[j + 2], row[j + 3] = a0, a1, a2, a3
    next_row[j], next_row[j + 1], next_row[j + 2], next_row[j + 3] = b0, b1, b2, b3


@njit(nogil=True, cache=True, fastmath=_SUMS)
def _substitute_back(factor: FloatArray, sides: FloatArray, solutions: FloatArray) -> None:
    """Solve L' x = side for each side, for a factor whose diagonal is stored inverted."""
    k, C = len(factor), len(sides)
    for c in range(C):
        solutions[c, :k] = sides[c, :k]
    for i in range(k - 1, -1, -1):
        row = factor[i]
        for c in range(C):
            solution = solutions[c]
            value = solution[i] * row[i]
            solution[i] = value
            for j in range(i):
                solution[j] -= value * row[j]


@njit(nogil=True, cache=True)
def _relative_error(
    systems: Systems, k: int, size: int, noise: float, kappa: float, spread: float, trace: float, ridge: float
) -> float:
    """Return how far the weights of ``k`` columns with variance, of ``size`` in all, may be off."""
    error = 16.0 * (noise + (k + systems.rounding) * 2.3e-16) * kappa
    if systems.condition_power > 0.0:
        error += 16.0 * k * 2.3e-16 * (spread * trace) ** systems.condition_power
    if size > systems.least_rows:
        error += 16.0 * 2.3e-16 * systems.rounding * trace / ridge if ridge > 0.0 else np.inf
    return float(error)


@njit(nogil=True, cache=True, fastmath=_SUMS)
def solve(first: int, last: int, columns: Int64Array, starts: Int64Array, systems: Systems, scores: Scores) -> None:
    """Solve the systems of all folds for masks ``first`` to ``last``, into ``scores``."""
    F, T = systems.target.shape[0], systems.target.shape[2]
    most = 1
    for p in range(first, last):
        most = max(most, starts[p + 1] - starts[p])
    matrices, inverses = np.empty(most * most), np.empty(most * most)
    sums, scale = np.empty(max(most, T)), np.empty(most)
    sides, solved, found = np.empty((T, most)), np.empty((T, most)), np.empty((T, most))
    between, between_inverse = np.empty((T, T)), np.empty((T, T))
    kept = np.empty(most, dtype=np.int64)
    for f in range(F):  # the products of one fold at a time stay in the cache
        for p in range(first, last):
            chosen = columns[starts[p] : starts[p + 1]]
            weights = scores.weights[f, :, starts[p] : starts[p + 1]]
            scores.rate[p, f], scores.base[p, f] = np.inf, np.inf
            C = systems.n_targets[f]
            ridge = systems.ridge
            if systems.shrink > 0.0:
                total = 0.0
                for j in chosen:
                    total += systems.spread[f, j]
                ridge += systems.shrink * total / len(chosen)
            k, noise, trace, residue = 0, 0.0, 0.0, 0.0
            for i in range(len(chosen)):
                j = chosen[i]
                square = systems.gram[f, j, j] + ridge
                residue += systems.residue[f, j]
                if square == 0.0:
                    continue
                kept[k] = i
                scale[k] = 1.0 / np.sqrt(square)
                noise = max(noise, systems.noise[f, j] * scale[k])
                trace += square
                k += 1
            if (k < len(chosen) and not systems.drops) or k == 0:
                continue
            if ridge == 0.0 and not residue * k <= 0.1 * systems.least_share * trace:
                continue  # with a penalty, what rounding left of a column is like other rounding
            matrix = matrices[: k * k].reshape(k, k)
            inverse = inverses[: k * k].reshape(k, k)
            gram = systems.gram[f]
            for i in range(k):
                row = gram[chosen[kept[i]]]
                for j in range(i):
                    matrix[i, j] = row[chosen[kept[j]]] * (scale[i] * scale[j])
                matrix[i, i] = 1.0
            for c in range(C):
                for i in range(k):
                    sides[c, i] = systems.target[f, chosen[kept[i]], c] * scale[i]
            kappa, spread, rank = 0.0, 0.0, k
            for i in range(k):
                ceiling = systems.ceiling[f, chosen[kept[i]]]
                kappa += ceiling
                spread += ceiling * scale[i] * scale[i]
            error = _relative_error(systems, k, len(chosen), noise, kappa, spread, trace, ridge)
            is_factor = error <= min(systems.small_error, systems.most_error) and kappa <= systems.most_kappa
            if is_factor and spread * trace * systems.least_share <= 1.0 and not systems.uncentred:
                solved[:C, :k] = sides[:C, :k]
                is_factor = _factor(matrix, solved[:C, :k], inverse, 1e-13)
            else:
                is_factor = False
            if not is_factor:
                if not _invert(matrix, inverse, sums, max(1e-13, 0.5 / systems.most_kappa)):
                    if not systems.least_between > 0.0:
                        continue
                    rank = _invert_singular(matrix, inverse, sums, systems.least_between)
                    if rank == 0:
                        continue
                diagonal = sums
                diagonal[:k] = 0.0
                for i in range(rank):
                    for j in range(i + 1 if rank == k else k):
                        diagonal[j] += inverse[i, j] * inverse[i, j]
                kappa, spread = 0.0, 0.0
                for j in range(k):
                    kappa += diagonal[j]
                    spread += diagonal[j] * scale[j] * scale[j]
                error = _relative_error(systems, k, len(chosen), noise, kappa, spread, trace, ridge)
                if rank < k:
                    error += 32.0 * (noise + (k + systems.rounding) * 2.3e-16) * kappa
                if not (error <= systems.most_error and kappa <= systems.most_kappa):
                    continue
                if not spread * trace * systems.least_share <= 1.0:
                    continue
            if is_factor:
                _substitute_back(inverse, solved[:C, :k], found[:C, :k])
            weights[:C] = 0.0
            largest, farthest, constant = 0.0, 0.0, 0.0
            for c in range(C):
                z, w = solved[c], found[c]
                length = 0.0
                for i in range(k):
                    length += sides[c, i] * sides[c, i]
                farthest = max(farthest, length)
                if not is_factor:
                    for i in range(rank):
                        value = 0.0
                        for j in range(i + 1 if rank == k else k):
                            value += inverse[i, j] * sides[c, j]
                        z[i] = value
                    w[:k] = 0.0
                    for i in range(rank):
                        for j in range(i + 1 if rank == k else k):
                            w[j] += inverse[i, j] * z[i]
                square = 0.0
                for i in range(rank):
                    square += z[i] * z[i]
                length = 0.0
                for i in range(k):
                    length += w[i] * w[i]
                    weights[c, kept[i]] = w[i] * scale[i]
                largest = max(largest, length)
                scores.constant[p, f, c] = systems.offset[f, c] - (0.5 * square if systems.quadratic else 0.0)
                constant = max(constant, systems.level[f, c] + 0.5 * square)
            if systems.least_between > 0.0 and C > 2:
                prior = systems.prior[f, :C]
                if not _spans(solved[:C, :rank], prior, systems.least_between, error, between, between_inverse):
                    continue
            scores.rate[p, f] = error * np.sqrt(largest)
            scores.base[p, f] = 16.0 * 2.3e-16 * (k + 2) * constant
            if systems.quadratic:
                scores.base[p, f] += error * np.sqrt(largest * farthest)
            if rank < k:  # the means may point in directions that are dropped, and rounding turns these
                scores.rate[p, f] += error * kappa * np.sqrt(farthest)
                scores.base[p, f] += error * kappa * farthest
            length = 0.0
            for i in range(k):
                sums[i] = systems.shift[f, chosen[kept[i]]] * scale[i]
                length += sums[i] * sums[i]
            length = np.sqrt(length)
            scores.base[p, f] += 16.0 * 2.3e-16 * (k + 2) * np.sqrt(largest) * length
            if systems.uncentred:
                own = _solution_length(inverse, sums, solved[0])
                scores.rate[p, f] += error * own
                scores.base[p, f] += error * (own + np.sqrt(largest)) * length


@njit(nogil=True, cache=True, fastmath=_SUMS)
def _solution_length(inverse: FloatArray, side: FloatArray, room: FloatArray) -> float:
    """Return the length of the solution of a system, given the inverse of its Cholesky factor and the right side.

    ``side`` is overwritten.
    """
    k = len(inverse)
    for i in range(k):
        value = 0.0
        for j in range(i + 1):
            value += inverse[i, j] * side[j]
        room[i] = value
    side[:k] = 0.0
    for i in range(k):
        for j in range(i + 1):
            side[j] += inverse[i, j] * room[i]
    total = 0.0
    for i in range(k):
        total += side[i] * side[i]
    return float(np.sqrt(total))


@njit(nogil=True, cache=True, fastmath=_SUMS)
def _spans(
    solved: FloatArray, prior: FloatArray, least: float, error: float, matrix: FloatArray, inverse: FloatArray
) -> bool:
    """Return whether the whitened class means certainly span as many dimensions as they can.

    The ratio of the smallest to the largest variance among the directions must be above ``least``, with room for the
    relative ``error`` of the means. The sum of the inverse's diagonal bounds the smallest one from below.
    """
    C, k = solved.shape
    size = min(C, k)
    for i in range(size):
        for j in range(i + 1):
            value = 0.0
            if k < C:
                for c in range(C):
                    value += solved[c, i] * solved[c, j] * prior[c]
            else:
                for t in range(k):
                    value += solved[i, t] * solved[j, t]
                value *= np.sqrt(prior[i] * prior[j])
            matrix[i, j] = value
    trace = 0.0
    for i in range(size):
        trace += matrix[i, i]
    if not trace > 0.0:
        return False
    for i in range(size):
        for j in range(i + 1):
            matrix[i, j] /= trace
            if k >= C:  # the weighted means add up to zero: fill in the direction that they never have
                matrix[i, j] += np.sqrt(prior[i] * prior[j])
    sums = np.empty(size)
    if not _invert_rows(matrix[:size, :size], inverse[:size, :size], sums, 0.25 * least):
        return False
    total = 0.0
    for i in range(size):
        for j in range(i + 1):
            total += inverse[i, j] * inverse[i, j]
    return total * (4.0 * least + error) < 1.0


@njit(nogil=True, cache=True, inline="always", fastmath={"contract"})
def _add_columns(chosen: Int64Array, weights: FloatArray, rows: FloatArray, size: int, out: FloatArray) -> None:
    """Add weighted columns of a fold's test rows to ``out``, in the order of the columns."""
    k = len(chosen)
    i = 0
    while i + 4 <= k:
        w0, w1, w2, w3 = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        x0 = rows[chosen[i] * size : (chosen[i] + 1) * size]
        x1 = rows[chosen[i + 1] * size : (chosen[i + 1] + 1) * size]
        x2 = rows[chosen[i + 2] * size : (chosen[i + 2] + 1) * size]
        x3 = rows[chosen[i + 3] * size : (chosen[i + 3] + 1) * size]
        for s in range(size):
            out[s] += (w0 * x0[s] + w1 * x1[s]) + (w2 * x2[s] + w3 * x3[s])
        i += 4
    while i < k:
        w0 = weights[i]
        x0 = rows[chosen[i] * size : (chosen[i] + 1) * size]
        for s in range(size):
            out[s] += w0 * x0[s]
        i += 1


@njit(nogil=True, cache=True)
def evaluate(
    first: int,
    last: int,
    columns: Int64Array,
    starts: Int64Array,
    tests: TestRows,
    scores: Scores,
    out: FloatArray,
    bounds: FloatArray,
) -> None:
    """Compute the scores of all test rows, into ``out`` (P, T, rows), and bounds on their errors (P, rows)."""
    for p in range(first, last):
        chosen = columns[starts[p] : starts[p + 1]]
        for f in range(len(tests.sizes)):
            size, low = tests.sizes[f], tests.starts[f]
            rate, base = scores.rate[p, f], scores.base[p, f]
            if not rate < np.inf:
                bounds[p, low : low + size] = np.inf
                out[p, :, low : low + size] = 0.0
                continue
            rows = tests.rows[tests.offsets[f] :]
            for s in range(low, low + size):
                bounds[p, s] = rate * tests.lengths[s] + base
            for c in range(tests.n_targets[f]):
                answers = out[p, c, low : low + size]
                answers[:] = scores.constant[p, f, c]
                _add_columns(chosen, scores.weights[f, c, starts[p] : starts[p + 1]], rows, size, answers)


@njit(nogil=True, cache=True)
def judge(
    first: int,
    last: int,
    out: FloatArray,
    bounds: FloatArray,
    starts: Int64Array,
    n_classes: Int64Array,
    codes: Codes,
    doubts: Int64Array,
) -> None:
    """Take the class of the highest score for each test row, and count the rows of each fold that are in doubt."""
    longest = 0
    for f in range(len(n_classes)):
        longest = max(longest, starts[f + 1] - starts[f])
    top, second = np.empty(longest), np.empty(longest)
    for p in range(first, last):
        for f in range(len(n_classes)):
            low, high, C = starts[f], starts[f + 1], n_classes[f]
            doubt = 0
            if C == 2:
                for s in range(low, high):
                    margin = out[p, 0, s] if out.shape[1] == 1 else out[p, 1, s] - out[p, 0, s]
                    codes[p, s] = margin > 0.0
                    doubt += not abs(margin) > 2.0 * bounds[p, s]
            else:
                size = high - low
                of_fold, reach = codes[p, low:high], bounds[p, low:high]
                values = out[p, 0, low:high]
                for s in range(size):
                    top[s], second[s], of_fold[s] = values[s], -np.inf, 0
                for c in range(1, C):
                    values = out[p, c, low:high]
                    for s in range(size):
                        value = values[s]
                        of_fold[s] = c if value > top[s] else of_fold[s]
                        second[s] = max(second[s], min(value, top[s]))
                        top[s] = max(value, top[s])
                for s in range(size):
                    doubt += not top[s] - second[s] > 2.0 * reach[s]
            doubts[p, f] = doubt
