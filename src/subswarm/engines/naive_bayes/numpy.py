"""Gaussian log-likelihoods of many subsets in plain NumPy; used without numba."""

from __future__ import annotations

import numpy as np

from subswarm._types import FloatArray, Masks
from subswarm.engines.data import Codes, Int64Array
from subswarm.engines.naive_bayes.tables import Gaussians, error_terms, relative_error, tables_for

__all__ = ["classify", "log_likelihoods", "widest_columns"]


def widest_columns(
    masks: Masks,
    order: Int64Array,
    alike: Int64Array,
    slot: Int64Array,
    widest: Int64Array,
    slots: Int64Array,
) -> bool:
    """Find the first selected column in each fold's ``order`` (n_folds, n), for each mask.

    The column that is ``alike`` goes into ``widest`` (P, n_folds), its slot into ``slots``; returns whether all of
    them have one.
    """
    for f, columns in enumerate(order):
        widest[:, f] = alike[f, columns[masks[:, columns].argmax(axis=1)]]
        slots[:, f] = slot[f, widest[:, f]]
    return bool((slots >= 0).all())


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
    n = g.theta.shape[1]
    for p in range(first, last):
        chosen = columns[starts[p] : starts[p + 1]]
        k, answer = len(chosen), 0
        for f, size in enumerate(g.sizes):
            block = g.rows[g.row_starts[f] : g.row_starts[f] + n * size].reshape(n, size)[chosen]
            C = g.n_classes[f]
            constant, half_precision, swing, magnitude = _tables(chosen, f, widest[p, f], slots[p, f], g)
            means, weights = g.theta[f, chosen, :C].T, half_precision[:, :C].T
            quadratic = np.stack([w @ (block - m[:, None]) ** 2 for m, w in zip(means, weights, strict=True)])
            log_prior = g.log_prior[f, :C]
            fixed = log_prior + constant[:, :C].sum(axis=0)
            relative = np.full(C, relative_error(g.slack_alone if k == 1 else g.slack, k))
            own_swing = swing[0, :C] if k == 1 else np.zeros(C)
            base, rate = error_terms(relative, own_swing, np.abs(log_prior) + magnitude[:C] + k)
            base[~np.isfinite(fixed)] = np.inf
            bound = base[:, None] + rate[:, None] * quadratic
            value = fixed[:, None] - quadratic
            best = value.argmax(axis=0)
            every = np.arange(size)
            beaten = (value - bound)[best, every] > value + bound
            codes[p, answer : answer + size] = best
            doubts[p, f] = (beaten.sum(axis=0) < C - 1).sum()
            answer += size


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

    All sums are in the same order. A class that a fold does not have gets -infinity. In ``doubts`` (P, F) folds are
    marked in which a likelihood is not finite.
    """
    n = g.theta.shape[1]
    for p in range(first, last):
        chosen, answer = columns[starts[p] : starts[p + 1]], 0
        for f, size in enumerate(g.sizes):
            C, target = g.n_classes[f], likelihoods[:, p, answer : answer + size]
            block = g.rows[g.row_starts[f] : g.row_starts[f] + n * size].reshape(n, size)[chosen]
            rows = np.ascontiguousarray(block.T)
            theta = np.ascontiguousarray(g.theta[f, chosen, :C].T)
            v = np.ascontiguousarray(g.class_variance[f, chosen, :C].T) + g.var_smoothing * g.variance[f, widest[p, f]]
            fixed = np.ascontiguousarray(g.constant[slots[p, f], chosen, :C].T).sum(axis=1)
            squares = ((rows - theta[:, None]) ** 2 / v[:, None]).sum(axis=2)
            target[:C] = g.log_prior[f, :C, None] + (fixed[:, None] - 0.5 * squares)
            target[C:] = -np.inf
            doubts[p, f] |= not np.isfinite(target[:C]).all()
            answer += size


def _tables(
    chosen: Int64Array, f: int, widest: int, slot: int, g: Gaussians
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return constants, half precisions and swings of the chosen columns, (k, C), and the magnitude (C,)."""
    if slot >= 0:
        return g.constant[slot, chosen], g.half_precision[slot, chosen], g.swing[slot, chosen], g.magnitude[slot]
    v = g.class_variance[f, chosen] + g.var_smoothing * g.variance[f, widest]
    (constant, half_precision, swing), magnitude = tables_for(v, g.mean_error[f, chosen])
    return constant, half_precision, swing, magnitude
