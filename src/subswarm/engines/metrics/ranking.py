"""Metrics of the order of scores: the area under the ROC curve, and average precision."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from subswarm._types import AnyArray, FloatArray
from subswarm.engines.data import Codes, FoldedData, Int64Array
from subswarm.engines.metrics.base import BatchMetric, Needs, Part, metric_kernels
from subswarm.engines.workers import spread

__all__ = ["BinaryRanking", "MulticlassRanking", "has_all_classes"]

_WORTH_THREADS = 20_000
"""Scores to sort in a batch (about 0.5 ms of work) from which threads pay off."""


def has_all_classes(data: FoldedData, truth: Int64Array, n_classes: int, *, tests: bool = True) -> list[bool]:
    """Return, for each fold, whether its training rows (and with ``tests`` its test rows) have all classes."""
    parts = [(fold.train, fold.test) if tests else (fold.train,) for fold in data.folds]
    return [all(len(np.unique(truth[rows])) == n_classes for rows in part) for part in parts]


class BinaryRanking(BatchMetric):
    """The area under the ROC curve, or the average precision, of a target of two classes.

    Attributes
    ----------
    is_precision : whether it is the average precision
    positive : which class is the positive one, 0 or 1
    column : which column of probabilities holds the scores
    flipped : whether high scores mean the other class
    """

    def __init__(
        self,
        needs: Needs,
        data: FoldedData,
        truth: Int64Array,
        *,
        precision: bool,
        positive: int = 1,
        column: int = 1,
        flipped: bool = False,
    ) -> None:
        super().__init__(needs, data, truth.astype(np.int16))
        self.is_precision, self._positive, self._column, self._flipped = precision, positive, column, flipped
        self._usable = np.array(has_all_classes(data, truth, 2))

    def _scores(self, predictions: AnyArray, part: Part, threads: int) -> FloatArray:
        scores = np.asarray(predictions, dtype=np.float64)
        if scores.ndim == 3:
            scores = scores[:, :, self._column]
        if self._flipped:
            scores = -scores
        marks = (part.truth == self._positive).astype(np.int16)
        areas = _rank(scores, marks, part, self.is_precision, threads)
        areas[:, ~self._usable[part.folds]] = np.nan
        return areas


class MulticlassRanking(BatchMetric):
    """The same for three classes or more: averages over classes, or (``pairs``) over pairs of classes.

    Attributes
    ----------
    is_precision : whether it is the average precision
    """

    def __init__(
        self,
        data: FoldedData,
        truth: Int64Array,
        n_classes: int,
        *,
        precision: bool,
        pairs: bool,
        weighted: bool,
    ) -> None:
        super().__init__("probabilities", data, truth.astype(np.int16))
        self._n_classes, self.is_precision, self._pairs, self._weighted = n_classes, precision, pairs, weighted
        self._usable = np.array(has_all_classes(data, truth, n_classes))
        self._counts = np.array([np.bincount(truth[test], minlength=n_classes) for test in self._tests])

    def _scores(self, predictions: AnyArray, part: Part, threads: int) -> FloatArray:
        usable = self._usable[part.folds]
        if not usable.any():
            return np.full((len(predictions), len(usable)), np.nan)
        columns = np.ascontiguousarray(np.moveaxis(np.asarray(predictions, dtype=np.float64), 2, 0)[: self._n_classes])
        average = self._over_pairs if self._pairs else self._over_classes
        areas = average(columns, part, threads)
        areas[:, ~usable] = np.nan
        return areas

    def _over_classes(self, columns: FloatArray, part: Part, threads: int) -> FloatArray:
        areas = np.stack(
            [
                _rank(column, (part.truth == c).astype(np.int16), part, self.is_precision, threads)
                for c, column in enumerate(columns)
            ],
            axis=2,
        )
        if not self._weighted:
            return np.asarray(areas.mean(axis=2))
        weights = self._counts[part.folds]
        return np.asarray((areas * weights).sum(axis=2) / weights.sum(axis=1))

    def _over_pairs(self, columns: FloatArray, part: Part, threads: int) -> FloatArray:
        pairs = list(combinations(range(self._n_classes), 2))
        areas = np.empty((columns.shape[1], len(part.sizes), len(pairs)))
        for number, (a, b) in enumerate(pairs):
            both = []
            for one, other in ((a, b), (b, a)):
                marks = np.where(part.truth == one, 1, np.where(part.truth == other, 0, -1)).astype(np.int16)
                both.append(_rank(columns[one], marks, part, self.is_precision, threads))
            areas[:, :, number] = (both[0] + both[1]) / 2
        if not self._weighted:
            return np.asarray(areas.mean(axis=2))
        counts = self._counts[part.folds]
        weights = np.stack([(counts[:, a] + counts[:, b]) / part.sizes for a, b in pairs], axis=1)
        return np.asarray((areas * weights).sum(axis=2) / weights.sum(axis=1))


def _rank(scores: FloatArray, marks: Codes, part: Part, precision: bool, threads: int) -> FloatArray:
    result = np.empty((len(scores), len(part.sizes)))
    scores, kernel = np.ascontiguousarray(scores), metric_kernels().rank_scores

    def rank(first: int, last: int) -> None:
        kernel(first, last, scores, marks, part.starts, precision, result)

    spread(rank, len(scores), threads if scores.size > _WORTH_THREADS else 1)
    return result
