"""Metrics of predicted probabilities: log loss, Brier score, top-k accuracy."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from scipy.special import xlogy

from subswarm._types import AnyArray, BoolArray, FloatArray
from subswarm.engines.data import FoldedData, Int64Array
from subswarm.engines.metrics.base import BatchMetric, Part, metric_kernels

__all__ = ["BrierScore", "LogLoss", "ProbabilityMetric", "TopK"]

_EPS = float(np.finfo(np.float64).eps)


class ProbabilityMetric(BatchMetric):
    """A mean over the rows; ``usable`` says in which folds scikit-learn returns a score."""

    def __init__(self, data: FoldedData, truth: Int64Array, n_classes: int, usable: list[bool]) -> None:
        super().__init__("probabilities", data, truth.astype(np.int16))
        self._n_classes = n_classes
        self._usable = np.array(usable)

    def _scores(self, predictions: AnyArray, part: Part, threads: int) -> FloatArray:
        usable = self._usable[part.folds]
        if not usable.any():
            return np.full((len(predictions), len(usable)), np.nan)
        probabilities = np.asarray(predictions, dtype=np.float64)
        means = self._means(probabilities, part)
        means[:, ~usable] = np.nan
        if not (probabilities.min() >= 0 and probabilities.max() <= 1):
            invalid = ~((probabilities >= 0) & (probabilities <= 1))
            means[metric_kernels().sum_folds(invalid.any(axis=2).astype(np.float64), part.starts) > 0] = np.nan
        return means

    def _means(self, probabilities: FloatArray, part: Part) -> FloatArray:
        rows = np.ascontiguousarray(self._of_rows(probabilities, part.truth.astype(np.intp)))
        return np.asarray(metric_kernels().sum_folds(rows, part.starts) / part.sizes)

    @abstractmethod
    def _of_rows(self, probabilities: FloatArray, truth: Int64Array) -> FloatArray:
        """Return the metric of each row, (P, rows)."""


class LogLoss(ProbabilityMetric):
    """The negative mean logarithm of the true class's probability."""

    def _of_rows(self, probabilities: FloatArray, truth: Int64Array) -> FloatArray:
        if self._n_classes == 2:
            second = probabilities[:, :, 1]
            of_truth = np.where(truth == 1, second, 1 - second)
        else:
            of_truth = probabilities[:, np.arange(len(truth)), truth]
        return np.asarray(-xlogy(1.0, np.clip(of_truth, _EPS, 1 - _EPS)))


class BrierScore(ProbabilityMetric):
    """The mean squared difference of probabilities and truth.

    With ``by_rows``, as in scikit-learn since 1.7, the squares of all classes are added up, and ``scale`` is the factor
    of the mean; without, there is one square for the class ``positive`` of two.
    """

    def __init__(
        self,
        data: FoldedData,
        truth: Int64Array,
        n_classes: int,
        usable: list[bool],
        *,
        positive: int,
        by_rows: bool,
        scale: float,
    ) -> None:
        super().__init__(data, truth, n_classes, usable)
        self._positive, self._by_rows, self._scale = positive, by_rows, scale

    def _means(self, probabilities: FloatArray, part: Part) -> FloatArray:
        means = super()._means(probabilities, part)
        means *= self._scale
        return means

    def _of_rows(self, probabilities: FloatArray, truth: Int64Array) -> FloatArray:
        if self._n_classes == 2:
            own, is_own = probabilities[:, :, self._positive], truth == self._positive
            squares = (is_own - own) ** 2
            return np.asarray(((1 - is_own) - (1 - own)) ** 2 + squares if self._by_rows else squares)
        total = np.zeros(probabilities.shape[:2])
        for c in range(self._n_classes):
            difference = probabilities[:, :, c] - (truth == c)
            difference *= difference
            total += difference
        return total


class TopK(ProbabilityMetric):
    """The share of rows whose class is among the k most probable ones."""

    def __init__(self, data: FoldedData, truth: Int64Array, n_classes: int, usable: list[bool], *, k: int) -> None:
        super().__init__(data, truth, n_classes, usable)
        self._k = k

    def _of_rows(self, probabilities: FloatArray, truth: Int64Array) -> FloatArray:
        return self._hits(probabilities, truth).astype(np.float64)

    def _hits(self, probabilities: FloatArray, truth: Int64Array) -> BoolArray:
        if self._n_classes == 2:
            if self._k > 1:
                return np.ones(probabilities.shape[:2], dtype=bool)
            return np.asarray((probabilities[:, :, 1] > 0.5) == (truth == 1))
        own = np.empty(probabilities.shape[:2])
        for c in range(self._n_classes):
            rows = np.flatnonzero(truth == c)
            own[:, rows] = probabilities[:, rows, c]
        ahead = np.zeros(own.shape, dtype=np.int16)
        for c in range(self._n_classes):
            of_class = probabilities[:, :, c]
            ahead += (of_class > own) | ((of_class == own) & (c > truth))
        return np.asarray(ahead < self._k)
