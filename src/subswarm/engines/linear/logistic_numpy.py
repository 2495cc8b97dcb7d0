"""The function of `subswarm.engines.linear.logistic_numba` in NumPy, for machines without numba."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, softmax

from subswarm._types import FloatArray
from subswarm.engines.data import Int64Array
from subswarm.engines.linear.logistic_tables import CONVERGED, STEPS, LogisticRows
from subswarm.engines.linear.tables import Scores

__all__ = ["fit_logistic"]

_MOST_WEIGHTS = 300
"""Weights of all classes together; Newton's method takes longer than scikit-learn's solver from there on."""


def fit_logistic(
    first: int, last: int, columns: Int64Array, starts: Int64Array, rows: LogisticRows, scores: Scores
) -> None:
    """Fit all folds for masks ``first`` to ``last``, into ``scores``; a rate of 0 says that a fold converged."""
    K, F = len(rows.targets), len(rows.weights) - 1
    for p in range(first, last):
        chosen = columns[starts[p] : starts[p + 1]]
        Z = rows.columns[chosen]
        if rows.intercept:
            Z = np.vstack([Z, np.ones(Z.shape[1])])
        scores.rate[p] = scores.base[p] = np.inf
        if K * len(Z) > _MOST_WEIGHTS:
            continue
        common = np.zeros((K, len(Z)))
        for f in [F, *range(F)]:
            penalty = np.zeros(len(Z))
            penalty[: len(chosen)] = rows.penalty[f, chosen]
            try:
                found = _minimise(Z, rows.targets, rows.weights[f], penalty, common)
            except np.linalg.LinAlgError:
                found = None
            if f == F:
                common = np.zeros_like(common) if found is None else found
            elif found is not None:
                scores.rate[p, f] = scores.base[p, f] = 0.0
                scores.weights[f, :, starts[p] : starts[p + 1]] = found[:, : len(chosen)]
                scores.constant[p, f, :K] = found[:, -1] if rows.intercept else 0.0


def _minimise(
    Z: FloatArray, targets: FloatArray, weights: FloatArray, penalty: FloatArray, start: FloatArray
) -> FloatArray | None:
    """Return the weights (K, k) of least loss by Newton's method; None if it does not converge."""
    K, k = start.shape
    U, step, decrement, tried = start.copy(), np.zeros_like(start), np.inf, 1.0
    for turn in range(STEPS):
        scores = U @ Z
        p = expit(scores) if K == 1 else softmax(scores, axis=0)
        gradient = (weights * (p - targets)) @ Z.T + penalty * U
        slope = -float((gradient * step).sum())
        if turn > 0 and slope > 0.5 * decrement and tried > 1e-3:
            share = decrement / (decrement + slope)
            U += (1.0 - share) * tried * step
            tried *= share
            continue
        hessian = np.empty((K, k, K, k))
        for a in range(K):
            for b in range(K):
                hessian[a, :, b] = (Z * (weights * p[a] * ((a == b) - p[b]))) @ Z.T
        matrix = hessian.reshape(K * k, K * k) + np.diag(np.tile(penalty, K))
        if K > 1:
            free = np.flatnonzero(penalty == 0)
            for j in free:
                places = np.arange(K) * k + j
                matrix[np.ix_(places, places)] += matrix[j, j]
        scale = 1.0 / np.sqrt(matrix.diagonal())
        factor = cho_factor(matrix * np.outer(scale, scale))
        step = (scale * cho_solve(factor, scale * gradient.ravel())).reshape(K, k)
        decrement, tried = float((gradient * step).sum()), 1.0
        U -= step
        if decrement <= CONVERGED:
            return U
    return None
