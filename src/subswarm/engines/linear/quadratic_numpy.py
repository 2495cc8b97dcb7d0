"""The function of `subswarm.engines.linear.quadratic_numba` in NumPy, for machines without numba."""

from __future__ import annotations

import numpy as np

from subswarm._types import FloatArray
from subswarm.engines.data import Int64Array
from subswarm.engines.linear.numpy import inverse_factor
from subswarm.engines.linear.quadratic_tables import Covariances, TestColumns
from subswarm.engines.linear.tables import EPS

__all__ = ["fit_quadratic"]


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
    """Compute the scores of all test rows, into ``out`` (P, C, rows), and bounds on their errors (P, rows)."""
    for p in range(first, last):
        chosen = columns[starts[p] : starts[p + 1]]
        for f, (size, low) in enumerate(zip(tests.sizes, tests.starts, strict=True)):
            place = slice(low, low + size)
            out[p, :, place], bounds[p, place] = 0.0, 0.0
            start = tests.offsets[f]
            rows = tests.rows[start : start + size * classes.mean.shape[2]].reshape(-1, size)[chosen]
            count = int(classes.n_classes[f])
            for c in range(count):
                found = _factor(classes, f, c, chosen)
                if found is None:
                    count = 0
                    break
                factor, log_det, rate, root = found
                distances = ((factor @ (rows - classes.mean[f, c, chosen, None])) ** 2).sum(axis=0)
                prior = classes.log_prior[f, c]
                out[p, c, place] = prior - 0.5 * (distances + log_det)
                base = rate + 16.0 * EPS * (len(chosen) + 2) * (abs(log_det) + abs(prior) + 1.0)
                reach = rate * distances + root * np.sqrt(distances) + base
                bounds[p, place] = np.maximum(bounds[p, place], reach)
            if count == 0:
                out[p, :, place], bounds[p, place] = 0.0, np.inf


def _factor(classes: Covariances, f: int, c: int, chosen: Int64Array) -> tuple[FloatArray, float, float, float] | None:
    """Return the inverse of the covariance's Cholesky factor, the logarithm of its determinant, and two errors.

    They are relative to a squared distance and to its root. None if the covariance is left to scikit-learn.
    """
    k = len(chosen)
    if k > classes.most_columns[f, c]:
        return None
    ridge = classes.ridge + classes.shrink * float(classes.spread[f, c, chosen].mean())
    covariance = classes.gram[f, c][np.ix_(chosen, chosen)] + ridge * np.eye(k)
    squares = covariance.diagonal()
    if not squares.min() > 0:
        return None
    scale = 1.0 / np.sqrt(squares)
    inverse = inverse_factor(covariance * np.outer(scale, scale), 1e-13)
    if inverse is None:
        return None
    diagonal = (inverse**2).sum(axis=0)
    kappa, spread = float(diagonal.sum()), float(diagonal @ scale**2)
    if not (classes.ridge > 1.01 * classes.least or spread * 1.01 * classes.least < 1.0):
        return None
    condition = float(squares.sum()) * spread
    noise = float((classes.noise[f, c, chosen] * scale).max())
    theirs = np.sqrt(condition) if classes.squares else condition
    rate = 16.0 * ((noise + (k + classes.rounding) * EPS) * kappa + k * EPS * theirs)
    if not rate < 1e-3:
        return None
    log_det = float(np.log(squares).sum() - 2.0 * np.log(inverse.diagonal()).sum())
    return inverse * scale, log_det, rate, 4.0 * noise * np.sqrt(k * kappa)
