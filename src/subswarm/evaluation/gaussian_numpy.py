"""Gaussian log-likelihoods of a swarm in plain NumPy: the same answers as `gaussian_kernel`, for where numba is not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from subswarm.core.types import FloatArray

__all__ = ["classify", "widest_columns"]

_EPS = 2.0**-52


def widest_columns(
    columns: NDArray[np.int64], starts: NDArray[np.int64], spread: FloatArray, widest: NDArray[np.int64]
) -> None:
    """The selected column of largest ``spread`` (n_folds, n) for each mask and fold, into ``widest`` (P, n_folds)."""
    for p in range(len(widest)):
        chosen = columns[starts[p] : starts[p + 1]]
        widest[p] = chosen[np.argmax(spread[:, chosen], axis=1)]


def classify(
    first: int,
    last: int,
    columns: NDArray[np.int64],
    starts: NDArray[np.int64],
    slots: NDArray[np.int64],
    rows: FloatArray,
    row_starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    n_classes: NDArray[np.int64],
    theta: FloatArray,
    log_prior: FloatArray,
    constant: FloatArray,
    half_precision: FloatArray,
    risk: FloatArray,
    slack: float,
    slack_alone: float,
    codes: NDArray[np.int16],
    doubts: NDArray[np.int64],
) -> None:
    """Classes of all test rows for masks ``first`` to ``last``, and how many rows of a fold are too close to call."""
    n = theta.shape[2]
    for p in range(first, last):
        chosen = columns[starts[p] : starts[p + 1]]
        k, answer = len(chosen), 0
        for f, size in enumerate(sizes):
            block = rows[row_starts[f] : row_starts[f] + n * size].reshape(n, size)[chosen]
            classes, slot = np.arange(n_classes[f]), slots[p, f]
            means, weights = theta[f, classes][:, chosen], half_precision[slot, classes][:, chosen]
            quadratic = np.stack([w @ (block - m[:, None]) ** 2 for m, w in zip(means, weights, strict=True)])
            terms = constant[slot, classes][:, chosen]
            fixed = log_prior[f, classes] + terms.sum(axis=1)
            danger = risk[slot, classes][:, chosen].sum(axis=1) * (k == 1)
            relative = (slack_alone if k == 1 else slack) + (k + 16) * _EPS + danger
            swing = np.sqrt(danger / (k + 1.0))
            magnitude = np.abs(log_prior[f, classes]) + np.abs(terms).sum(axis=1) + k
            base = relative * magnitude + swing * (k + 1.0)
            bound = base[:, None] + (relative + swing)[:, None] * quadratic
            value = fixed[:, None] - quadratic
            best = value.argmax(axis=0)
            every = np.arange(size)
            beaten = (value - bound)[best, every] > value + bound
            codes[p, answer : answer + size] = best
            doubts[p, f] = (beaten.sum(axis=0) < len(classes) - 1).sum()
            answer += size
