"""Quadratic discriminant analysis of many subsets, compiled. Imported only if numba is installed."""

from __future__ import annotations

import numpy as np

from subswarm._njit import njit
from subswarm._types import FloatArray
from subswarm.engines.data import Int64Array
from subswarm.engines.linear.numba import _invert
from subswarm.engines.linear.quadratic_tables import Covariances, TestColumns

__all__ = ["fit_quadratic"]

_EPS = 2.3e-16


@njit(nogil=True, cache=True, fastmath={"contract"})
def fit_quadratic(
    first: int,
    last: int,
    columns: Int64Array,
    starts: Int64Array,
    classes: Covariances,
    tests: TestColumns,
    out: FloatArray,
    bounds: FloatArray,
) -> None:
    """Compute the scores of all test rows, into ``out`` (P, C, rows), and bounds on their errors (P, rows).

    Bounds are infinite in folds that are left to scikit-learn.
    """
    most = 1
    for p in range(first, last):
        most = max(most, starts[p + 1] - starts[p])
    room = most * max(most, tests.sizes.max())
    matrices, inverses = np.empty(most * most), np.empty(most * most)
    row_store, white_store = np.empty(room), np.empty(room)
    sums, scale = np.empty(most), np.empty(most)
    for p in range(first, last):
        chosen = columns[starts[p] : starts[p + 1]]
        k = len(chosen)
        matrix, inverse = matrices[: k * k].reshape(k, k), inverses[: k * k].reshape(k, k)
        for f in range(len(tests.sizes)):
            size, low = tests.sizes[f], tests.starts[f]
            reach = bounds[p, low : low + size]
            reach[:] = 0.0
            rows = tests.rows[tests.offsets[f] :]
            z, white = row_store[: k * size].reshape(k, size), white_store[: k * size].reshape(k, size)
            known = classes.n_classes[f] > 0
            for c in range(classes.n_classes[f]):
                known = k <= classes.most_columns[f, c]
                if not known:
                    break
                log_det, rate, root = _factor(classes, f, c, chosen, matrix, inverse, sums, scale)
                known = rate < np.inf
                if not known:
                    break
                for i in range(k):
                    source = rows[chosen[i] * size : (chosen[i] + 1) * size]
                    mean, factor = classes.mean[f, c, chosen[i]], scale[i]
                    for s in range(size):
                        z[i, s] = (source[s] - mean) * factor
                np.dot(inverse, z, white)
                answers = out[p, c, low : low + size]
                answers[:] = 0.0
                for i in range(k):
                    for s in range(size):
                        answers[s] += white[i, s] * white[i, s]
                prior = classes.log_prior[f, c]
                base = rate + 16.0 * _EPS * (k + 2) * (abs(log_det) + abs(prior) + 1.0)
                for s in range(size):
                    q = answers[s]
                    answers[s] = prior - 0.5 * (q + log_det)
                    reach[s] = max(reach[s], rate * q + root * np.sqrt(q) + base)
            if not known:
                reach[:] = np.inf
                out[p, :, low : low + size] = 0.0


@njit(nogil=True, cache=True, fastmath={"contract"})
def _factor(
    classes: Covariances,
    f: int,
    c: int,
    chosen: Int64Array,
    matrix: FloatArray,
    inverse: FloatArray,
    sums: FloatArray,
    scale: FloatArray,
) -> tuple[float, float, float]:
    """Compute the inverse of the covariance's Cholesky factor, for columns that are divided by their deviation.

    Returns the logarithm of the determinant, and how far rounding can move a squared distance: relative to it, and to
    its root. They are infinite if the covariance is left to scikit-learn.
    """
    k = len(chosen)
    gram = classes.gram[f, c]
    ridge = classes.ridge
    if classes.shrink > 0.0:
        total = 0.0
        for j in chosen:
            total += classes.spread[f, c, j]
        ridge += classes.shrink * total / k
    noise, trace, log_det = 0.0, 0.0, 0.0
    for i in range(k):
        square = gram[chosen[i], chosen[i]] + ridge
        if not square > 0.0:
            return 0.0, np.inf, np.inf
        scale[i] = 1.0 / np.sqrt(square)
        noise = max(noise, classes.noise[f, c, chosen[i]] * scale[i])
        trace += square
        log_det += np.log(square)
    for i in range(k):
        row = gram[chosen[i]]
        for j in range(i):
            matrix[i, j] = row[chosen[j]] * (scale[i] * scale[j])
        matrix[i, i] = 1.0
    if not _invert(matrix, inverse, sums, 1e-13):
        return 0.0, np.inf, np.inf
    diagonal = sums
    diagonal[:k] = 0.0
    for i in range(k):
        log_det -= 2.0 * np.log(inverse[i, i])
        for j in range(i + 1):
            diagonal[j] += inverse[i, j] * inverse[i, j]
    kappa, spread = 0.0, 0.0
    for j in range(k):
        kappa += diagonal[j]
        spread += diagonal[j] * scale[j] * scale[j]
    if not (classes.ridge > 1.01 * classes.least or spread * 1.01 * classes.least < 1.0):
        return 0.0, np.inf, np.inf
    condition = trace * spread
    theirs = np.sqrt(condition) if classes.squares else condition
    rate = 16.0 * ((noise + (k + classes.rounding) * _EPS) * kappa + k * _EPS * theirs)
    if not rate < 1e-3:
        return 0.0, np.inf, np.inf
    return log_det, rate, 4.0 * noise * np.sqrt(k * kappa)
