"""Logistic regression of many subsets by Newton's method, compiled. Imported only if numba is installed."""

from __future__ import annotations

import numpy as np

from subswarm._njit import njit
from subswarm._types import FloatArray
from subswarm.engines.data import Int64Array
from subswarm.engines.linear.logistic_tables import CLOSE, CONVERGED, STEPS, LogisticRows
from subswarm.engines.linear.numba import _invert
from subswarm.engines.linear.tables import Scores

__all__ = ["fit_logistic"]

_BLOCK = 24
"""Rows of a symmetric product that are computed at a time."""
_ENOUGH = 20
"""Rows for each weight from which a sample gives a good Hessian for the steps of all rows together."""
_MOST_TOGETHER, _MOST_IN_FOLDS = 300, 1000
"""Weights of all classes together up to which the Hessian is one matrix; beyond, each class has its own."""
_MOST_WEIGHTS, _MOST_COLUMNS = 4000, 700
"""Weights of all classes together, and of one class, from which on scikit-learn's solver takes less time."""
_MORE_STEPS = 16
"""Multiplications by all rows that a step of a fold needs, times the number of such steps that a factor pays for."""
_MEMORY = 10
"""Last steps that improve on an old Hessian."""
_FULL_STEPS = 3
"""Steps that follow a new Hessian."""
_PATIENCE = 0.3
"""Share of the cost of a new Hessian that steps with the old one take before it is given up."""
_MAGIC = 6755399441055744.0
_LOG2E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10


@njit(nogil=True, cache=True, fastmath={"contract"})
def _exp(values: FloatArray, work: FloatArray) -> None:
    """Replace values of at most 700 by their exponentials, to about 1e-15; below -700 they count as -700.

    The loops have no calls, so that they are vectorised: exp(x) = 2^n exp(r) with |r| at most ln(2) / 2.
    """
    bits = work.view(np.int64)
    results = values.view(np.int64)
    for i in range(len(values)):
        x = max(values[i], -700.0)
        shifted = x * _LOG2E + _MAGIC
        work[i] = shifted
        n = shifted - _MAGIC
        r = (x - n * _LN2_HIGH) - n * _LN2_LOW
        s = 2.08767569878681e-9 * r + 2.505210838544172e-8
        s = s * r + 2.755731922398589e-7
        s = s * r + 2.7557319223985893e-6
        s = s * r + 2.48015873015873e-5
        s = s * r + 1.984126984126984e-4
        s = s * r + 1.3888888888888889e-3
        s = s * r + 8.333333333333333e-3
        s = s * r + 4.1666666666666664e-2
        s = s * r + 0.16666666666666666
        s = s * r + 0.5
        values[i] = (s * r + 1.0) * r + 1.0
    for i in range(len(values)):
        results[i] += bits[i] << 52


@njit(nogil=True, cache=True, fastmath={"contract"})
def _set_probabilities(margins: FloatArray, K: int, work: FloatArray) -> None:
    """Replace the scores of blocks of K rows by probabilities; with K = 1 they are those of the second class."""
    N = margins.shape[1]
    if K == 1:
        for b in range(len(margins)):
            row = margins[b]
            for i in range(N):
                row[i] = min(max(-row[i], -700.0), 700.0)
            _exp(row, work)
            for i in range(N):
                row[i] = 1.0 / (1.0 + row[i])
        return
    top = np.empty(N)
    for b in range(0, len(margins), K):
        top[:] = margins[b]
        for c in range(1, K):
            row = margins[b + c]
            for i in range(N):
                top[i] = max(top[i], row[i])
        for c in range(K):
            row = margins[b + c]
            for i in range(N):
                row[i] -= top[i]
            _exp(row, work)
        top[:] = margins[b]
        for c in range(1, K):
            row = margins[b + c]
            for i in range(N):
                top[i] += row[i]
        for c in range(K):
            row = margins[b + c]
            for i in range(N):
                row[i] /= top[i]


@njit(nogil=True, cache=True, fastmath={"contract"})
def _set_residuals(p: FloatArray, targets: FloatArray, weights: FloatArray, out: FloatArray) -> None:
    """Write weighted differences of probabilities and targets, (K, N), into ``out``."""
    for c in range(len(p)):
        of_class, wanted, answer = p[c], targets[c], out[c]
        for i in range(p.shape[1]):
            answer[i] = weights[i] * (of_class[i] - wanted[i])


@njit(nogil=True, cache=True, fastmath={"contract"})
def _set_hessian(Z: FloatArray, p: FloatArray, weights: FloatArray, work: FloatArray, hessian: FloatArray) -> None:
    """Write the second derivatives of the loss for the rows (k, N) and their probabilities (K, N).

    The shape is (1, K k, K k), or (K, k, k) for the derivatives within each class only.
    """
    K, k = len(p), len(Z)
    N = Z.shape[1]
    curvature = np.empty(N)
    for a in range(K):
        for b in range(a + 1):
            if a != b and len(hessian) > 1:
                continue
            first, second = p[a], p[b]
            if a == b:
                for i in range(N):
                    curvature[i] = weights[i] * first[i] * (1.0 - first[i])
            else:
                for i in range(N):
                    curvature[i] = -weights[i] * first[i] * second[i]
            for j in range(k):
                row, scaled = Z[j], work[j]
                for i in range(N):
                    scaled[i] = row[i] * curvature[i]
            block = hessian[a] if len(hessian) > 1 else hessian[0, a * k : (a + 1) * k, b * k : (b + 1) * k]
            for low in range(0, k, _BLOCK):  # symmetric, so that half of it is enough
                high = min(low + _BLOCK, k)
                block[low:high, :high] = np.dot(work[low:high], Z[:high].T)
            if a != b:
                for j in range(k):
                    for i in range(j):
                        block[i, j] = block[j, i]


@njit(nogil=True, cache=True)
def _factor(hessian: FloatArray, penalty: FloatArray, share: float, inverse: FloatArray) -> bool:
    """Invert the factors of ``share`` times the Hessian with its penalty, scaled to a diagonal of one.

    Returns False if it is singular. If it is one matrix for several classes, their scores may all move together; a
    multiple of that direction makes the matrix regular without changing a step, since no gradient points there.
    """
    size, k = hessian.shape[1], len(penalty)
    K = size // k
    matrix, sums, scale = np.empty((size, size)), np.empty(size), np.empty(size)
    for block in range(len(hessian)):
        for i in range(size):
            for j in range(i + 1):
                matrix[i, j] = share * hessian[block, i, j]
            matrix[i, i] += penalty[i % k]
        if K > 1:
            for j in range(k):
                if penalty[j] == 0.0:
                    extra = matrix[j, j]
                    for a in range(K):
                        for b in range(a + 1):
                            matrix[a * k + j, b * k + j] += extra
        for i in range(size):
            if not matrix[i, i] > 0.0:
                return False
            scale[i] = 1.0 / np.sqrt(matrix[i, i])
        for i in range(size):
            for j in range(i + 1):
                matrix[i, j] *= scale[i] * scale[j]
        of_block = inverse[block]
        if not _invert(matrix, of_block, sums, 1e-11):
            return False
        for i in range(size):
            for j in range(i + 1):
                of_block[i, j] *= scale[j]
    return True


@njit(nogil=True, cache=True)
def _newton_step(inverse: FloatArray, gradient: FloatArray, step: FloatArray) -> None:
    """Write the Newton step for the inverse factors of the Hessian."""
    B, size = inverse.shape[0], inverse.shape[1]
    for b in range(B):
        own = slice(b * size, (b + 1) * size)
        step[own] = np.dot(inverse[b].T, np.dot(inverse[b], gradient[own]))
    if B > 1:  # the gradients of the classes add up to zero, and so do the weights
        for i in range(size):
            mean = 0.0
            for b in range(B):
                mean += step[b * size + i]
            mean /= B
            for b in range(B):
                step[b * size + i] -= mean


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _dot(one: FloatArray, other: FloatArray) -> float:
    total = 0.0
    for i in range(len(one)):
        total += one[i] * other[i]
    return total


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _quasi_newton_step(
    inverse: FloatArray, gradient: FloatArray, pairs: FloatArray, curvatures: FloatArray, count: int, step: FloatArray
) -> float:
    """Compute the step of L-BFGS from an old factor and the last of ``count`` moves; returns its squared length."""
    rest, M = gradient.copy(), len(pairs)
    shares = np.empty(M)
    oldest = max(0, count - M)
    for m in range(count - 1, oldest - 1, -1):
        moved, change = pairs[m % M, 0], pairs[m % M, 1]
        shares[m % M] = _dot(moved, rest) / curvatures[m % M] if curvatures[m % M] > 0.0 else 0.0
        for i in range(len(rest)):
            rest[i] -= shares[m % M] * change[i]
    _newton_step(inverse, rest, step)
    for m in range(oldest, count):
        moved, change = pairs[m % M, 0], pairs[m % M, 1]
        share = shares[m % M] - _dot(change, step) / curvatures[m % M] if curvatures[m % M] > 0.0 else 0.0
        for i in range(len(rest)):
            step[i] += share * moved[i]
    return float(_dot(gradient, step))


@njit(nogil=True, cache=True)
def _is_too_old(decrement: float, first: float, steps: int, goal: float, cost_step: float, cost_hessian: float) -> bool:
    """Return whether a new Hessian pays off ``steps`` steps after the last one, when the decrement was ``first``."""
    if not decrement < 1e100:
        return True
    if decrement <= goal or steps * cost_step < _PATIENCE * cost_hessian:
        return False
    rate = min((decrement / first) ** (1.0 / steps), 0.99)
    left = np.log(decrement / goal) / -np.log(rate)
    return bool(left * cost_step > cost_hessian + _FULL_STEPS * cost_step)


@njit(nogil=True, cache=True)
def fit_logistic(
    first: int, last: int, columns: Int64Array, starts: Int64Array, rows: LogisticRows, scores: Scores
) -> None:
    """Fit all folds for masks ``first`` to ``last``, into ``scores``; a rate of 0 says that a fold converged.

    All rows together come first. The Hessian of a fold is that of all rows less that of the rows it leaves out, so the
    Hessians of all folds take no longer than one. Each fold then needs a few steps with its own gradient. With many
    weights, a Hessian is made only if it takes less time than the steps that it saves.
    """
    N, K, F = rows.columns.shape[1], len(rows.targets), len(rows.weights) - 1
    one = 1 if rows.intercept else 0
    most = 1
    for p in range(first, last):
        most = max(most, starts[p + 1] - starts[p] + one)
    store, scaled_store, margins = np.empty((most, N)), np.empty((most, N)), np.empty((F * K, N))
    residuals, work, p_all = np.empty((F * K, N)), np.empty(N), np.empty((K, N))
    for p in range(first, last):
        chosen = columns[starts[p] : starts[p + 1]]
        size = len(chosen)
        k = size + one
        for f in range(F):
            scores.rate[p, f], scores.base[p, f] = np.inf, np.inf
        if K * k > _MOST_WEIGHTS or k > _MOST_COLUMNS:
            continue
        Z, scaled = store[:k], scaled_store[:k]
        for i in range(size):
            Z[i] = rows.columns[chosen[i]]
        if one:
            Z[size] = 1.0
        U, G = np.zeros((K, k)), np.empty((K, k))
        if _fit_all(chosen, rows, Z, U, G, p_all, residuals[:K], work):
            _fit_folds(p, starts[p], chosen, rows, scores, Z, scaled, U, G, p_all, margins, residuals, work)


@njit(nogil=True, cache=True)
def _fit_all(
    chosen: Int64Array,
    rows: LogisticRows,
    Z: FloatArray,
    U: FloatArray,
    G: FloatArray,
    p_all: FloatArray,
    residuals: FloatArray,
    work: FloatArray,
) -> bool:
    """Fit all rows together, roughly; returns whether that succeeds.

    The weights are ``U``, their gradient without the penalty ``G``, the probabilities ``p_all``.
    """
    K, k = U.shape
    d, N, F = K * k, Z.shape[1], len(rows.weights) - 1
    B = 1 if d <= _MOST_TOGETHER else K
    penalty = np.zeros(k)
    for i in range(len(chosen)):
        penalty[i] = rows.penalty[F, chosen[i]]
    hessian, inverse = np.empty((B, d // B, d // B)), np.empty((B, d // B, d // B))
    stride = max(1, N // (_ENOUGH * d))
    n_sample = (N + stride - 1) // stride
    cost_step = 2.0 * N * d + d * (d // B)
    cost_hessian = (K * (K + 1) / 2 if B == 1 else K) * n_sample * k * k * 0.6 + 0.5 * d * float(d // B) ** 2
    gradient, before, step = np.empty(d), np.empty(d), np.empty(d)
    pairs, curvatures, known = np.empty((_MEMORY, 2, d)), np.empty(_MEMORY), 0
    decrement, highest, tried, steps = np.inf, np.inf, 1.0, 0
    for turn in range(2 * STEPS):
        np.dot(U, Z, p_all)
        _set_probabilities(p_all, K, work)
        _set_residuals(p_all, rows.targets, rows.weights[F], residuals)
        np.dot(residuals, Z.T, G)
        for c in range(K):
            for i in range(k):
                gradient[c * k + i] = G[c, i] + penalty[i] * U[c, i]
        if turn > 0:
            slope = -_dot(gradient, step)
            if slope > 0.5 * decrement and tried > 1e-3:  # too far: go back to where the slope should vanish
                share = decrement / (decrement + slope)
                for c in range(K):
                    for i in range(k):
                        U[c, i] += (1.0 - share) * tried * step[c * k + i]
                tried *= share
                continue
            if decrement <= CLOSE:
                return True
            _remember(pairs[known % _MEMORY], curvatures, known % _MEMORY, tried, step, before, gradient)
            known += 1
        renews = turn == 0
        if turn == 0:
            _first_hessian(rows, chosen, K, hessian)
        else:
            steps += 1
            decrement = _quasi_newton_step(inverse, gradient, pairs, curvatures, known, step)
            renews = _is_too_old(decrement, highest, steps, CLOSE, cost_step, cost_hessian)
            if renews:
                sample, sample_weights = _sample(Z, rows.weights[F], stride)
                p_sample = np.empty((K, n_sample))
                for c in range(K):
                    p_sample[c] = p_all[c, ::stride]
                _set_hessian(sample, p_sample, sample_weights, np.empty((k, n_sample)), hessian)
        if renews:
            if not _factor(hessian, penalty, 1.0, inverse):
                return False
            decrement = _quasi_newton_step(inverse, gradient, pairs, curvatures, 0, step)
            known, steps, highest = 0, 0, decrement
        if not decrement < 1e100:
            return False
        tried = 1.0
        before[:] = gradient
        for c in range(K):
            for i in range(k):
                U[c, i] -= step[c * k + i]
    return False


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _remember(
    pair: FloatArray,
    curvatures: FloatArray,
    place: int,
    share: float,
    step: FloatArray,
    before: FloatArray,
    after: FloatArray,
) -> None:
    """Store the last step, or the share of it that was taken, and how it changed the gradient."""
    total = 0.0
    for i in range(len(step)):
        pair[0, i] = -share * step[i]
        pair[1, i] = after[i] - before[i]
        total += pair[0, i] * pair[1, i]
    curvatures[place] = total


@njit(nogil=True, cache=True)
def _sample(Z: FloatArray, weights: FloatArray, stride: int) -> tuple[FloatArray, FloatArray]:
    """Return each ``stride``-th row of the columns and weights that add up to those of all rows."""
    if stride == 1:
        return Z, weights
    chosen = weights[::stride].copy()
    total = chosen.sum()
    if total > 0.0:
        chosen *= weights.sum() / total
    sample = np.empty((len(Z), len(chosen)))
    for j in range(len(Z)):
        sample[j] = Z[j, ::stride]
    return sample, chosen


@njit(nogil=True, cache=True)
def _first_hessian(rows: LogisticRows, chosen: Int64Array, K: int, hessian: FloatArray) -> None:
    """Write the Hessian at weights of zero, where all rows have the same probabilities."""
    size, n = len(chosen), len(rows.columns)
    k = size + 1 if rows.intercept else size
    for a in range(K):
        for b in range(a + 1):
            if a != b and len(hessian) > 1:
                continue
            share = 0.25 if K == 1 else (1.0 / K if a == b else 0.0) - 1.0 / K**2
            block = hessian[a] if len(hessian) > 1 else hessian[0, a * k : (a + 1) * k, b * k : (b + 1) * k]
            for i in range(k):
                source = chosen[i] if i < size else n
                for j in range(k):
                    other = chosen[j] if j < size else n
                    block[i, j] = share * rows.gram[source, other]


@njit(nogil=True, cache=True)
def _take_left_out(
    f: int, rows: LogisticRows, Z: FloatArray, p_all: FloatArray, part: FloatArray, p_left: FloatArray
) -> Int64Array:
    """Copy the columns and probabilities of the rows that a fold leaves out; returns these rows."""
    start, stop = rows.left_starts[f], rows.left_starts[f + 1]
    left = rows.left[start:stop]
    if rows.is_partition:
        for j in range(len(Z)):
            part[j] = Z[j, start:stop]
        for c in range(len(p_all)):
            p_left[c] = p_all[c, start:stop]
        return left
    for j in range(len(Z)):
        for i in range(len(left)):
            part[j, i] = Z[j, left[i]]
    for c in range(len(p_all)):
        for i in range(len(left)):
            p_left[c, i] = p_all[c, left[i]]
    return left


@njit(nogil=True, cache=True)
def _fit_folds(
    p: int,
    start: int,
    chosen: Int64Array,
    rows: LogisticRows,
    scores: Scores,
    Z: FloatArray,
    scaled: FloatArray,
    U: FloatArray,
    G_all: FloatArray,
    p_all: FloatArray,
    margins: FloatArray,
    residuals: FloatArray,
    work: FloatArray,
) -> None:
    """Fit the folds, from weights ``U`` for all rows, their gradient and the probabilities that they give."""
    K, F, k = len(U), len(rows.weights) - 1, len(Z)
    d, size, N = K * k, len(chosen), Z.shape[1]
    B = 1 if d <= _MOST_IN_FOLDS else K
    # one Hessian for all folds needs more steps, and pays off if factors take longer than these
    shared = B > 1 or d * d * d > _MORE_STEPS * N * k * K
    cost_step = 2.0 * N * d + d * (d // B)
    cost_hessian = (K * (K + 1) / 2 if B == 1 else K) * N * k * k * 0.6 + 0.5 * d * float(d // B) ** 2
    whole = np.zeros((B, d // B, d // B))
    parts, inverses = np.empty((1 if shared else F, B, d // B, d // B)), np.empty((F + 1, B, d // B, d // B))
    penalties, slots = np.zeros((F, k)), np.arange(F)
    gradients = np.empty((F, K, k))
    for f in range(F):
        for i in range(size):
            penalties[f, i] = rows.penalty[f, chosen[i]]
        if shared and not rows.are_weights_common:
            continue
        n_left = rows.left_starts[f + 1] - rows.left_starts[f]
        part, p_left = np.empty((k, n_left)), np.empty((K, n_left))
        left = _take_left_out(f, rows, Z, p_all, part, p_left)
        weights, wanted = rows.weights[F][left], np.empty((K, n_left))
        if rows.are_weights_common:
            for c in range(K):
                wanted[c] = rows.targets[c][left]
            _set_residuals(p_left, wanted, weights, wanted)
            np.dot(wanted, part.T, gradients[f])
        if not shared:
            _set_hessian(part, p_left, weights, np.empty((k, n_left)), parts[f])
            if rows.is_partition:
                for i in range(d):
                    for j in range(i + 1):
                        whole[0, i, j] += parts[f, 0, i, j]
    if shared or not rows.is_partition:
        _set_hessian(Z, p_all, rows.weights[F], scaled, whole)
    if shared:
        share = rows.weights[:F].sum() / F / rows.weights[F].sum()
        penalty = np.zeros(k)
        for f in range(F):
            penalty += penalties[f] / F
        if not _factor(whole, penalty, share, inverses[F]):
            return
        slots[:] = F
    V, G, steps = np.empty((F * K, k)), np.empty((F * K, k)), np.zeros((F, d))
    active, decrements, tried = np.empty(F, dtype=np.int64), np.full(F, np.inf), np.ones(F)
    highest, taken = np.full(F, np.inf), np.zeros(F, dtype=np.int64)
    before, pairs = np.empty((F, d)), np.empty((F, _MEMORY, 2, d))
    curvatures, known = np.empty((F, _MEMORY)), np.zeros(F, dtype=np.int64)
    count = 0
    for f in range(F):
        if not shared:
            for i in range(d):
                for j in range(i + 1):
                    parts[f, 0, i, j] = whole[0, i, j] - parts[f, 0, i, j]
            if not _factor(parts[f], penalties[f], 1.0, inverses[f]):
                continue
        active[count] = f
        V[count * K : (count + 1) * K] = U
        count += 1
    for turn in range(2 * STEPS):
        if count == 0:
            return
        if turn == 0 and rows.are_weights_common:
            for a in range(count):
                G[a * K : (a + 1) * K] = G_all - gradients[active[a]]
        else:
            if turn > 0:
                np.dot(V[: count * K], Z, margins[: count * K])
                _set_probabilities(margins[: count * K], K, work)
            for a in range(count):
                found = margins[a * K : (a + 1) * K] if turn > 0 else p_all
                _set_residuals(found, rows.targets, rows.weights[active[a]], residuals[a * K : (a + 1) * K])
            np.dot(residuals[: count * K], Z.T, G[: count * K])
        kept = 0
        for a in range(count):
            f = active[a]
            own = V[a * K : (a + 1) * K].copy()
            gradient = G[a * K : (a + 1) * K].copy()
            for c in range(K):
                for i in range(k):
                    gradient[c, i] += penalties[f, i] * own[c, i]
            flat, previous = gradient.reshape(d), decrements[f]
            slope = -_dot(flat, steps[f])
            if turn > 0 and slope > 0.5 * previous and tried[f] > 1e-3:  # too far
                share = previous / (previous + slope)
                for c in range(K):
                    for i in range(k):
                        own[c, i] += (1.0 - share) * tried[f] * steps[f, c * k + i]
                tried[f] *= share
                active[kept] = f
                V[kept * K : (kept + 1) * K] = own
                kept += 1
                continue
            if turn > 0:
                place = known[f] % _MEMORY
                _remember(pairs[f, place], curvatures[f], place, tried[f], steps[f], before[f], flat)
                known[f] += 1
            before[f], tried[f] = flat, 1.0
            decrement = _quasi_newton_step(inverses[slots[f]], flat, pairs[f], curvatures[f], known[f], steps[f])
            if turn > 0 and _is_too_old(decrement, highest[f], taken[f], CONVERGED, cost_step, cost_hessian):
                part = parts[0 if shared else f]
                _set_hessian(Z, margins[a * K : (a + 1) * K], rows.weights[f], scaled, part)
                if not _factor(part, penalties[f], 1.0, inverses[f]):
                    continue
                slots[f], known[f], taken[f] = f, 0, 0
                decrement = _quasi_newton_step(inverses[f], flat, pairs[f], curvatures[f], 0, steps[f])
            if taken[f] == 0:
                highest[f] = decrement
            taken[f] += 1
            decrements[f] = decrement
            for c in range(K):
                for i in range(k):
                    own[c, i] -= steps[f, c * k + i]
            # the last step is done; what is left after it is as much shorter as it is shorter than the one before
            if decrement <= CONVERGED or (turn > 0 and decrement * (decrement / previous) <= 0.1 * CONVERGED):
                scores.rate[p, f], scores.base[p, f] = 0.0, 0.0
                for c in range(K):
                    scores.constant[p, f, c] = own[c, size] if rows.intercept else 0.0
                    for i in range(size):
                        scores.weights[f, c, start + i] = own[c, i]
            else:
                active[kept] = f
                V[kept * K : (kept + 1) * K] = own
                kept += 1
        count = kept
