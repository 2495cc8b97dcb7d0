"""Gaussian log-likelihoods of a swarm in plain NumPy: the same answers as `gaussian_kernel`, for where numba is not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subswarm.core.types import FloatArray, Masks
from subswarm.evaluation.gaussian_tables import Gaussians, tables_for

__all__ = ["classify", "widest_columns"]

_EPS = 2.0**-52


def widest_columns(
    masks: Masks,
    order: NDArray[np.int64],
    alike: NDArray[np.int64],
    slot: NDArray[np.int64],
    widest: NDArray[np.int64],
    slots: NDArray[np.int64],
) -> bool:
    """The first selected column in each fold's ``order`` (n_folds, n), or that ``alike`` it, for each mask.

    It goes into ``widest`` (P, n_folds), its slot into ``slots``; returns whether all of them have one.
    """
    for f, columns in enumerate(order):
        widest[:, f] = alike[f, columns[masks[:, columns].argmax(axis=1)]]
        slots[:, f] = slot[f, widest[:, f]]
    return bool((slots >= 0).all())


def classify(
    first: int,
    last: int,
    columns: NDArray[np.int64],
    starts: NDArray[np.int64],
    widest: NDArray[np.int64],
    slots: NDArray[np.int64],
    g: Gaussians,
    codes: NDArray[np.int16],
    doubts: NDArray[np.int64],
) -> None:
    """Classes of all test rows for masks ``first`` to ``last``, and how many rows of a fold are too close to call.

    Where a widest column has no tables (a slot of -1), what the chosen columns need of them is reckoned here.
    """
    n = g.theta.shape[1]
    for p in range(first, last):
        chosen = columns[starts[p] : starts[p + 1]]
        k, answer = len(chosen), 0
        for f, size in enumerate(g.sizes):
            block = g.rows[g.row_starts[f] : g.row_starts[f] + n * size].reshape(n, size)[chosen]
            C = g.n_classes[f]
            constant, half_precision, risk, magnitude = _tables(chosen, f, widest[p, f], slots[p, f], g)
            means, weights = g.theta[f, chosen, :C].T, half_precision[:, :C].T
            quadratic = np.stack([w @ (block - m[:, None]) ** 2 for m, w in zip(means, weights, strict=True)])
            log_prior = g.log_prior[f, :C]
            fixed = log_prior + constant[:, :C].sum(axis=0)
            danger = risk[:, :C].sum(axis=0) * (k == 1)
            relative = (g.slack_alone if k == 1 else g.slack) + (k + 16) * _EPS + danger
            swing = np.sqrt(danger / (k + 1.0))
            base = relative * (np.abs(log_prior) + magnitude[:C] + k) + swing * (k + 1.0)
            base[~np.isfinite(fixed)] = np.inf
            bound = base[:, None] + (relative + swing)[:, None] * quadratic
            value = fixed[:, None] - quadratic
            best = value.argmax(axis=0)
            every = np.arange(size)
            beaten = (value - bound)[best, every] > value + bound
            codes[p, answer : answer + size] = best
            doubts[p, f] = (beaten.sum(axis=0) < C - 1).sum()
            answer += size


def _tables(
    chosen: NDArray[np.int64], f: int, widest: int, slot: int, g: Gaussians
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Constants, half precisions and risks of the chosen columns, (k, C), and the magnitude (C,)."""
    if slot >= 0:
        return g.constant[slot, chosen], g.half_precision[slot, chosen], g.risk[slot, chosen], g.magnitude[slot]
    v = g.class_variance[f, chosen] + g.var_smoothing * g.variance[f, widest]
    (constant, half_precision, risk), magnitude = tables_for(v, g.mean_error[f, chosen])
    return constant, half_precision, risk, magnitude
