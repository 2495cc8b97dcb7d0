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
_MORE_STEPS = 16
"""Multiplications by all rows that a step of a fold needs, times the number of such steps that a factor pays for."""
_MEMORY = 8
"""Steps of a fold that improve on an old Hessian."""
_SLOW = 0.25
"""How much shorter a step must be than the last one (squared) as long as a fold keeps its Hessian."""
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
def _add_hessian(Z: FloatArray, p: FloatArray, weights: FloatArray, work: FloatArray, hessian: FloatArray) -> None:
    """Write the second derivatives of the loss, (K k, K k), for the rows (k, N) and their probabilities (K, N)."""
    K, k = len(p), len(Z)
    N = Z.shape[1]
    curvature = np.empty(N)
    for a in range(K):
        for b in range(a + 1):
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
            block = hessian[a * k : (a + 1) * k, b * k : (b + 1) * k]
            for low in range(0, k, _BLOCK):  # symmetric, so that half of it is enough
                high = min(low + _BLOCK, k)
                block[low:high, :high] = np.dot(work[low:high], Z[:high].T)
            if a != b:
                for j in range(k):
                    for i in range(j):
                        block[i, j] = block[j, i]


@njit(nogil=True, cache=True)
def _factor(hessian: FloatArray, penalty: FloatArray, K: int, matrix: FloatArray, inverse: FloatArray) -> bool:
    """Invert the factor of the Hessian with its penalty, after scaling it to a diagonal of one; False if singular.

    With K > 1 the classes' scores may all move together; a multiple of that direction makes the matrix regular
    without changing a step, since no gradient points there.
    """
    d, k = len(hessian), len(penalty)
    for i in range(d):
        matrix[i, : i + 1] = hessian[i, : i + 1]
        matrix[i, i] += penalty[i % k]
    if K > 1:
        for j in range(k):
            if penalty[j] == 0.0:
                extra = matrix[j, j]
                for a in range(K):
                    for b in range(a + 1):
                        matrix[a * k + j, b * k + j] += extra
    sums = np.empty(d)
    scale = np.empty(d)
    for i in range(d):
        if not matrix[i, i] > 0.0:
            return False
        scale[i] = 1.0 / np.sqrt(matrix[i, i])
    for i in range(d):
        for j in range(i + 1):
            matrix[i, j] *= scale[i] * scale[j]
    if not _invert(matrix, inverse, sums, 1e-11):
        return False
    for i in range(d):
        for j in range(i + 1):
            inverse[i, j] *= scale[j]
    return True


@njit(nogil=True, cache=True)
def _step(inverse: FloatArray, gradient: FloatArray, step: FloatArray) -> float:
    """Write the Newton step, and return its product with the gradient."""
    whitened = np.dot(inverse, gradient)
    step[:] = np.dot(inverse.T, whitened)
    return float(np.dot(whitened, whitened))


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _remember(
    pairs: FloatArray, curvatures: FloatArray, place: int, step: FloatArray, before: FloatArray, after: FloatArray
) -> None:
    """Store the last step and how it changed the gradient."""
    moved, change, total = pairs[place, 0], pairs[place, 1], 0.0
    for i in range(len(step)):
        moved[i] = -step[i]
        change[i] = after[i] - before[i]
        total += moved[i] * change[i]
    curvatures[place] = total


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _quasi_newton_step(
    inverse: FloatArray, gradient: FloatArray, pairs: FloatArray, curvatures: FloatArray, step: FloatArray
) -> float:
    """Compute the step of L-BFGS from an old factor and the steps since then; returns its squared length."""
    rest, shares = gradient.copy(), np.empty(len(pairs))
    for m in range(len(pairs) - 1, -1, -1):
        moved, change, total = pairs[m, 0], pairs[m, 1], 0.0
        for i in range(len(rest)):
            total += moved[i] * rest[i]
        shares[m] = total / curvatures[m] if curvatures[m] > 0.0 else 0.0
        for i in range(len(rest)):
            rest[i] -= shares[m] * change[i]
    _step(inverse, rest, step)
    for m in range(len(pairs)):
        moved, change, total = pairs[m, 0], pairs[m, 1], 0.0
        for i in range(len(rest)):
            total += change[i] * step[i]
        share = shares[m] - total / curvatures[m] if curvatures[m] > 0.0 else 0.0
        for i in range(len(rest)):
            step[i] += share * moved[i]
    total = 0.0
    for i in range(len(rest)):
        total += gradient[i] * step[i]
    return total


@njit(nogil=True, cache=True)
def fit_logistic(
    first: int, last: int, columns: Int64Array, starts: Int64Array, rows: LogisticRows, scores: Scores
) -> None:
    """Fit all folds for masks ``first`` to ``last``, into ``scores``; a rate of 0 says that a fold converged.

    All rows together come first. The Hessian of a fold is that of all rows less that of the rows it leaves out, so the
    Hessians of all folds take no longer than one. Each fold then needs a few steps with its own gradient.
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
        d = K * k
        for f in range(F):
            scores.rate[p, f], scores.base[p, f] = np.inf, np.inf
        if d > rows.most_parameters:
            continue
        Z, scaled = store[:k], scaled_store[:k]
        for i in range(size):
            Z[i] = rows.columns[chosen[i]]
        if one:
            Z[size] = 1.0
        penalty = np.zeros(k)
        matrix, inverse, hessian = np.empty((d, d)), np.empty((d, d)), np.empty((d, d))
        U, G = np.zeros((K, k)), np.empty((K, k))
        step = np.empty(d)
        for i in range(size):
            penalty[i] = rows.penalty[F, chosen[i]]
        decrement, tried, ok = np.inf, 1.0, False
        stride = max(1, N // (_ENOUGH * d))
        sample, sample_weights = _sample(Z, rows.weights[F], stride)
        p_sample, sample_work = np.empty((K, sample.shape[1])), np.empty((k, sample.shape[1]))
        for turn in range(STEPS):
            np.dot(U, Z, p_all)
            _set_probabilities(p_all, K, work)
            _set_residuals(p_all, rows.targets, rows.weights[F], residuals[:K])
            np.dot(residuals[:K], Z.T, G)
            for c in range(K):
                for i in range(k):
                    G[c, i] += penalty[i] * U[c, i]
            if turn > 0:
                slope = -np.dot(G.reshape(d), step)
                if slope > 0.5 * decrement and tried > 1e-3:  # too far: go back to where the slope should vanish
                    share = decrement / (decrement + slope)
                    for c in range(K):
                        for i in range(k):
                            U[c, i] += (1.0 - share) * tried * step[c * k + i]
                    tried *= share
                    continue
            if turn == 0:
                _first_hessian(rows, chosen, K, hessian)
            elif decrement > CLOSE:
                for c in range(K):
                    p_sample[c] = p_all[c, ::stride]
                _add_hessian(sample, p_sample, sample_weights, sample_work, hessian)
            else:
                ok = True
                break
            if not _factor(hessian, penalty, K, matrix, inverse):
                break
            decrement = _step(inverse, G.reshape(d), step)
            if not decrement < 1e100:
                break
            tried = 1.0
            for c in range(K):
                for i in range(k):
                    U[c, i] -= step[c * k + i]
        if not ok:
            continue
        _fit_folds(p, starts[p], chosen, rows, scores, Z, scaled, U, p_all, margins, residuals, work)


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
            share = 0.25 if K == 1 else (1.0 / K if a == b else 0.0) - 1.0 / K**2
            for i in range(k):
                source = chosen[i] if i < size else n
                for j in range(k):
                    other = chosen[j] if j < size else n
                    hessian[a * k + i, b * k + j] = share * rows.gram[source, other]


@njit(nogil=True, cache=True)
def _add_left_out(f: int, rows: LogisticRows, Z: FloatArray, p_all: FloatArray, hessian: FloatArray) -> None:
    """Write the Hessian of the rows that a fold leaves out."""
    K, k = len(p_all), len(Z)
    left = rows.left[rows.left_starts[f] : rows.left_starts[f + 1]]
    part, p_left = np.empty((k, len(left))), np.empty((K, len(left)))
    weights = np.empty(len(left))
    for i in range(len(left)):
        weights[i] = rows.weights[len(rows.weights) - 1, left[i]]
    for j in range(k):
        for i in range(len(left)):
            part[j, i] = Z[j, left[i]]
    for c in range(K):
        for i in range(len(left)):
            p_left[c, i] = p_all[c, left[i]]
    _add_hessian(part, p_left, weights, np.empty((k, len(left))), hessian)


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
    p_all: FloatArray,
    margins: FloatArray,
    residuals: FloatArray,
    work: FloatArray,
) -> None:
    """Fit the folds, from weights ``U`` for all rows and the probabilities ``p_all`` that they give."""
    K, F, k = len(U), len(rows.weights) - 1, len(Z)
    d, size = K * k, len(chosen)
    # one Hessian for all folds needs more steps, and pays off if factors take longer than these
    shared = d * d * d > _MORE_STEPS * Z.shape[1] * k * K
    matrix, whole = np.empty((d, d)), np.zeros((d, d))
    parts, inverses = np.empty((1 if shared else F, d, d)), np.empty((F + 1, d, d))
    penalties, slots = np.zeros((F, k)), np.arange(F)
    for f in range(F):
        for i in range(size):
            penalties[f, i] = rows.penalty[f, chosen[i]]
        if not shared:
            _add_left_out(f, rows, Z, p_all, parts[f])
            if rows.is_partition:
                for i in range(d):
                    for j in range(i + 1):
                        whole[i, j] += parts[f, i, j]
    if shared or not rows.is_partition:
        _add_hessian(Z, p_all, rows.weights[F], scaled, whole)
    if shared:
        share = rows.weights[:F].sum() / F / rows.weights[F].sum()
        penalty = np.zeros(k)
        for f in range(F):
            penalty += penalties[f] / F
        for i in range(d):
            for j in range(i + 1):
                whole[i, j] *= share
        if not _factor(whole, penalty, K, matrix, inverses[F]):
            return
        slots[:] = F
    V, G, steps = np.empty((F * K, k)), np.empty((F * K, k)), np.zeros((F, d))
    active, decrements = np.empty(F, dtype=np.int64), np.full(F, np.inf)
    gradients, pairs = np.empty((F, d)), np.empty((F, _MEMORY, 2, d))
    curvatures, known = np.empty((F, _MEMORY)), np.zeros(F, dtype=np.int64)
    count = 0
    for f in range(F):
        if not shared:
            for i in range(d):
                for j in range(i + 1):
                    parts[f, i, j] = whole[i, j] - parts[f, i, j]
            if not _factor(parts[f], penalties[f], K, matrix, inverses[f]):
                continue
        active[count] = f
        V[count * K : (count + 1) * K] = U
        count += 1
    for turn in range(STEPS):
        if count == 0:
            return
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
            flat = gradient.reshape(d)
            if turn > 0 and known[f] < _MEMORY:
                _remember(pairs[f], curvatures[f], known[f], steps[f], gradients[f], flat)
                known[f] += 1
            gradients[f] = flat
            decrement = _quasi_newton_step(inverses[slots[f]], flat, pairs[f, : known[f]], curvatures[f], steps[f])
            if turn > 0 and not decrement < _SLOW * decrements[f]:  # the Hessian is too old
                found = margins[a * K : (a + 1) * K]
                part = parts[0 if shared else f]
                _add_hessian(Z, found, rows.weights[f], scaled, part)
                if not _factor(part, penalties[f], K, matrix, inverses[f]):
                    continue
                slots[f], known[f] = f, 0
                decrement = _step(inverses[f], flat, steps[f])
                if decrement > decrements[f]:
                    steps[f] *= 0.5
            decrements[f] = decrement
            for c in range(K):
                for i in range(k):
                    own[c, i] -= steps[f, c * k + i]
            if decrement <= CONVERGED:
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
