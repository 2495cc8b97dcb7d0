"""Metrics of predicted classes, from the counts of right and of all predictions of each class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from subswarm._types import AnyArray, BoolArray, FloatArray
from subswarm.engines.data import FoldedData, Int64Array
from subswarm.engines.metrics.base import BatchMetric, Part, metric_kernels

__all__ = [
    "Averaged",
    "Counts",
    "LabelMetric",
    "accuracy",
    "balanced_accuracy",
    "cohen_kappa",
    "f_score",
    "jaccard",
    "matthews_corrcoef",
    "precision",
    "recall",
]


@dataclass(frozen=True, eq=False)
class Counts:
    """How often each of K classes is predicted, predicted rightly, and true, for P subsets and F folds.

    Attributes
    ----------
    right, predicted : (P, F, K)
    true : (F, K)
    sizes : (F,), test rows
    """

    right: FloatArray
    predicted: FloatArray
    true: FloatArray
    sizes: FloatArray

    @property
    def present(self) -> BoolArray:
        """Whether a class is predicted or true, (P, F, K): scikit-learn averages over such classes only."""
        return np.asarray((self.predicted > 0) | (self.true > 0))


Formula = Callable[[Counts], FloatArray]
Ratio = tuple[FloatArray, FloatArray]
"""Numerator and denominator of a metric of each class."""


class LabelMetric(BatchMetric):
    """A formula of the counts."""

    def __init__(self, data: FoldedData, classes: AnyArray, truth: Int64Array, formula: Formula) -> None:
        super().__init__("labels", data, truth.astype(np.int16))
        self._formula = formula
        known = [np.unique(truth[fold.train]) for fold in data.folds]
        self._places = np.zeros((data.n_folds, max(map(len, known))), dtype=np.int16)
        for places, codes in zip(self._places, known, strict=True):
            places[: len(codes)] = codes
        self._true = np.array([np.bincount(truth[test], minlength=len(classes)) for test in self._tests], dtype=float)

    def _scores(self, predictions: AnyArray, part: Part, threads: int) -> FloatArray:
        true, codes = self._true[part.folds], np.asarray(predictions, dtype=np.int16)
        right, predicted = np.empty((2, len(codes), *true.shape))
        metric_kernels().count_labels(codes, part.truth, self._places[part.folds], part.starts, right, predicted)
        return self._formula(Counts(right, predicted, true, part.sizes.astype(np.float64)))


def accuracy(counts: Counts) -> FloatArray:
    """Return the share of right predictions."""
    return np.asarray(counts.right.sum(axis=-1) / counts.sizes)


def balanced_accuracy(counts: Counts, *, adjusted: bool) -> FloatArray:
    """Return the mean recall of the classes that have test rows."""
    there = counts.true > 0
    score = _mean(counts.right / counts.true, np.broadcast_to(there, counts.right.shape))
    if adjusted:
        chance = 1 / there.sum(axis=-1)
        score = (score - chance) / (1 - chance)
    return score


def matthews_corrcoef(counts: Counts) -> FloatArray:
    """Return the correlation of predicted and true classes."""
    n_right, n = counts.right.sum(axis=-1), counts.sizes
    covariance = n_right * n - (counts.predicted * counts.true).sum(axis=-1)
    spread = (n**2 - (counts.predicted**2).sum(axis=-1)) * (n**2 - (counts.true**2).sum(axis=-1))
    return np.where(spread == 0, 0.0, covariance / np.sqrt(spread))


def cohen_kappa(counts: Counts) -> FloatArray:
    """Return the agreement beyond what independent predictions would have."""
    n = counts.sizes
    differ = n - counts.right.sum(axis=-1)
    expected = (n**2 - (counts.predicted * counts.true).sum(axis=-1)) / n
    return np.asarray(1 - differ / expected)


def precision(counts: Counts) -> Ratio:
    """Return right and all predictions of each class."""
    return counts.right, counts.predicted


def recall(counts: Counts) -> Ratio:
    """Return the right predictions and the rows of each class."""
    return counts.right, np.broadcast_to(counts.true[..., :], counts.right.shape)


def f_score(counts: Counts, *, beta: float) -> Ratio:
    """Return the terms of the weighted harmonic mean of precision and recall."""
    beta2 = beta**2
    return (1 + beta2) * counts.right, beta2 * counts.true + counts.predicted


def jaccard(counts: Counts) -> Ratio:
    """Return the sizes of intersection and union of predicted and true rows."""
    return counts.right, counts.predicted + counts.true - counts.right


@dataclass(frozen=True, eq=False)
class Averaged:
    """A ratio of each class, averaged over the classes.

    Attributes
    ----------
    ratio : numerator and denominator of each class
    average : "binary" (the only class in ``labels``), "macro", "micro" or "weighted"
    labels : positions of the classes that count (-1 for one that the target does not have), or None for all present
    zero_division : the value if the denominator is 0; NaN leaves the class out
    """

    ratio: Callable[[Counts], Ratio]
    average: str
    labels: tuple[int, ...] | None
    zero_division: float

    def __call__(self, counts: Counts) -> FloatArray:
        """Return the average, (P, F)."""
        if self.labels is not None:
            counts = _selected(counts, self.labels)
            there: BoolArray = np.ones(counts.right.shape, dtype=bool)
        else:
            there = counts.present
        if self.average == "micro":
            counts = Counts(
                counts.right.sum(axis=-1, keepdims=True),
                counts.predicted.sum(axis=-1, keepdims=True),
                counts.true.sum(axis=-1, keepdims=True),
                counts.sizes,
            )
            there = np.ones(counts.right.shape, dtype=bool)
        numerator, denominator = self.ratio(counts)
        undefined = denominator == 0
        values = np.where(undefined, self.zero_division, numerator / np.where(undefined, 1.0, denominator))
        if np.isnan(self.zero_division):
            there = there & ~undefined
        if self.average == "weighted":
            weights = np.broadcast_to(counts.true, values.shape)
            total = _sum(weights, there)
            weighted = _sum(values * weights, there) / total
            return np.where(total == 0, _mean(values, there), weighted)
        return _mean(values, there)


def _selected(counts: Counts, labels: tuple[int, ...]) -> Counts:
    def pick(array: FloatArray) -> FloatArray:
        padded = np.concatenate([array, np.zeros((*array.shape[:-1], 1))], axis=-1)
        return np.ascontiguousarray(padded[..., list(labels)])

    return Counts(pick(counts.right), pick(counts.predicted), pick(counts.true), counts.sizes)


def _mean(values: FloatArray, there: BoolArray) -> FloatArray:
    return np.asarray(_sum(values, there) / there.sum(axis=-1))


def _sum(values: FloatArray, there: BoolArray) -> FloatArray:
    """Sum the values that are there along the last axis, in the order in which NumPy sums an array of only these."""
    if there.all():
        return np.asarray(values.sum(axis=-1))
    values = np.where(there, values, 0.0)
    if values.shape[-1] < 8:  # a sum of few terms is computed one by one, where zeros change nothing
        return np.asarray(values.sum(axis=-1))
    packed = np.take_along_axis(values, np.argsort(~there, axis=-1, kind="stable"), axis=-1)
    lengths, sums = there.sum(axis=-1), np.zeros(values.shape[:-1])
    for length in np.unique(lengths):
        same = lengths == length
        sums[same] = packed[same][:, :length].sum(axis=-1)
    return sums
