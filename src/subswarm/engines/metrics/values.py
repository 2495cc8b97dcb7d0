"""Metrics of predicted numbers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from subswarm._types import AnyArray, FloatArray
from subswarm.engines.data import FoldedData
from subswarm.engines.metrics.base import BatchMetric, Part, metric_kernels

__all__ = [
    "ValueMetric",
    "explained_variance",
    "max_error",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_squared_error",
    "mean_squared_log_error",
    "median_absolute_error",
    "r2",
]

ValueFormula = Callable[[FloatArray, Part], FloatArray]


class ValueMetric(BatchMetric):
    """A formula of the predicted numbers (P, rows) and the true ones; with ``root`` its square root."""

    def __init__(self, data: FoldedData, formula: ValueFormula, *, root: bool = False) -> None:
        super().__init__("values", data, np.asarray(data.y, dtype=np.float64))
        self._formula, self._root = formula, root

    def _scores(self, predictions: AnyArray, part: Part, threads: int) -> FloatArray:
        values = np.ascontiguousarray(predictions, dtype=np.float64)
        scores = self._formula(values, part)
        if self._root:
            scores = np.sqrt(scores)
        finite = np.isfinite(values)
        if not finite.all():
            scores[metric_kernels().sum_folds((~finite).astype(np.float64), part.starts) > 0] = np.nan
        return scores


def r2(values: FloatArray, part: Part) -> FloatArray:
    """Return the share of the variance that is explained, as `sklearn.metrics.r2_score`."""
    errors = _sums((part.truth - values) ** 2, part)
    spread = _sums((part.truth - _spread_out(_means(part.truth[None], part), part)) ** 2, part)
    scores = _share(errors, spread)
    scores[:, part.sizes < 2] = np.nan
    return scores


def explained_variance(values: FloatArray, part: Part) -> FloatArray:
    """Return the same of the errors' variance."""
    errors = part.truth - values
    unexplained = _means((errors - _spread_out(_means(errors, part), part)) ** 2, part)
    spread = _means((part.truth - _spread_out(_means(part.truth[None], part), part)) ** 2, part)
    return _share(unexplained, spread)


def mean_squared_error(values: FloatArray, part: Part) -> FloatArray:
    """Return the mean squared error."""
    return _means((part.truth - values) ** 2, part)


def mean_absolute_error(values: FloatArray, part: Part) -> FloatArray:
    """Return the mean absolute error."""
    return _means(np.abs(values - part.truth), part)


def mean_absolute_percentage_error(values: FloatArray, part: Part) -> FloatArray:
    """Return the mean absolute error relative to the true value."""
    least = np.maximum(np.abs(part.truth), np.finfo(np.float64).eps)
    return _means(np.abs(values - part.truth) / least, part)


def mean_squared_log_error(values: FloatArray, part: Part) -> FloatArray:
    """Return the mean squared error of the logarithms; NaN where a value is -1 or less."""
    refused = (values <= -1) | (part.truth <= -1)
    scores = _means((np.log1p(part.truth) - np.log1p(values)) ** 2, part)
    if refused.any():
        scores[_sums(refused.astype(np.float64), part) > 0] = np.nan
    return scores


def median_absolute_error(values: FloatArray, part: Part) -> FloatArray:
    """Return the median absolute error."""
    errors = np.abs(values - part.truth)
    return np.stack([np.median(errors[:, start:stop], axis=1) for start, stop in pairwise(part.starts)], axis=1)


def max_error(values: FloatArray, part: Part) -> FloatArray:
    """Return the largest absolute error."""
    return np.asarray(np.maximum.reduceat(np.abs(part.truth - values), part.starts[:-1], axis=1))


def _share(errors: FloatArray, spread: FloatArray) -> FloatArray:
    """Return 1 - errors / spread; without spread 1 if there are no errors either, else 0."""
    shares = 1 - errors / spread
    shares[errors == 0] = 1.0
    shares[(errors != 0) & (spread == 0)] = 0.0
    return np.asarray(shares)


def _sums(values: FloatArray, part: Part) -> FloatArray:
    return np.asarray(metric_kernels().sum_folds(values, part.starts))


def _means(values: FloatArray, part: Part) -> FloatArray:
    return np.asarray(_sums(values, part) / part.sizes)


def _spread_out(of_folds: FloatArray, part: Part) -> FloatArray:
    """Repeat a number of each fold, (P, F), for its rows, (P, rows)."""
    return np.repeat(of_folds, part.sizes, axis=1)
