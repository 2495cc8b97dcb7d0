"""What the fast engines share: losses from predictions, and the reference engine for the subsets they cannot score."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Protocol

import numpy as np
from sklearn.base import clone

from subswarm._compilation import kernels_of, ready_or_none
from subswarm._types import AnyArray, Estimator, FloatArray, IntArray, Masks
from subswarm.engines.data import Codes, Fold, FoldedData, Int64Array
from subswarm.engines.metrics import FixedPredictions, batch_metric, needed_predictions
from subswarm.engines.reference import EstimatorEngine

_MANY_COLUMNS = 2000
"""Columns of a table from which on NumPy lists the selected ones faster than a loop: most of them are not selected."""

__all__ = ["FastEngine", "FoldClasses", "codes_of", "column_lists", "kernels_of", "ready_or_none"]


class Classifier(Estimator, Protocol):
    """What the engines use of a fitted classifier."""

    def predict(self, X: FloatArray) -> AnyArray: ...

    def predict_proba(self, X: FloatArray) -> FloatArray: ...


class FastEngine(ABC):
    """An engine that scores most subsets itself and leaves the rest to `EstimatorEngine`."""

    def __init__(self, estimator: Estimator, data: FoldedData, *, n_jobs: int | None, max_bytes: int) -> None:
        self._estimator = estimator
        self._data = data
        self._n_jobs = n_jobs
        self._max_bytes = max_bytes
        self._reference = EstimatorEngine(estimator, data, n_jobs=n_jobs)
        self._metric = batch_metric(data.scoring, estimator, data)
        self._needs = needed_predictions(data.scoring, estimator, data)

    @property
    def error(self) -> Exception | None:
        """The first exception that the estimator raised, or None."""
        return self._reference.error

    def fold_losses(self, masks: Masks) -> FloatArray:
        """Return losses of shape (P, n_folds); a row of NaN where the estimator failed."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            scores = self._scores(np.ascontiguousarray(masks))
        accepted = self._data.scoring.accepts(scores)
        if accepted.all():
            return self._data.scoring.loss(scores)
        scored = accepted.all(axis=1)
        losses = np.empty_like(scores)
        losses[scored] = self._data.scoring.loss(scores[scored])
        losses[~scored] = self._reference.fold_losses(masks[~scored])
        return losses

    @abstractmethod
    def _scores(self, masks: Masks) -> FloatArray:
        """Return scores of shape (P, n_folds), with NaN in the row of a mask that is left to the reference engine."""

    def _score_folds(self, predict: Callable[[int], tuple[object, AnyArray]]) -> FloatArray:
        """Score each fold with the scorer; NaN from the first fold on in which it fails.

        ``predict`` returns a fitted model for a fold, or one with fixed predictions, and the rows to score it on.
        """
        scores = np.full(self._data.n_folds, np.nan)
        for f, fold in enumerate(self._data.folds):
            try:
                model, rows = predict(f)
                scores[f] = self._data.scoring.scorer(model, rows, self._data.y[fold.test])
            except Exception:
                break
        return scores

    @property
    def facts(self) -> dict[str, int]:
        """What the engine counts, by name, for benchmarks."""
        return {}

    def _fitted(self, columns: IntArray, fold: Fold) -> tuple[Classifier, FloatArray]:
        """Fit the estimator on a fold's training rows as ``cross_val_score`` does; returns it and the test rows."""
        X = self._data.X[:, columns]
        return clone(self._estimator).fit(X[fold.train], self._data.y[fold.train]), X[fold.test]


@dataclass(frozen=True, eq=False)
class FoldClasses:
    """Each fold's classes, and the test rows' positions among them (-1 for a class without training rows)."""

    classes: tuple[AnyArray, ...]
    codes: Codes
    sizes: IntArray
    starts: IntArray

    @classmethod
    def of(cls, data: FoldedData) -> FoldClasses:
        """Encode the target of each fold."""
        classes = tuple(np.unique(data.y[fold.train]) for fold in data.folds)
        codes = [codes_of(data.y[fold.test], known) for fold, known in zip(data.folds, classes, strict=True)]
        sizes = np.array([len(fold.test) for fold in data.folds])
        return cls(classes, np.concatenate(codes), sizes, np.concatenate([[0], np.cumsum(sizes)]))

    @property
    def n_tests(self) -> int:
        """The number of test rows of all folds."""
        return len(self.codes)

    def accuracy(self, codes: Codes) -> FloatArray:
        """Return the share of correct codes in each fold, (P, n_folds), for codes of shape (P, all test rows)."""
        return np.asarray(_counting().count_correct(codes, self.codes, self.starts) / self.sizes)

    def rows_of(self, fold: int) -> slice:
        """Return where a fold's test rows are among all test rows."""
        return slice(int(self.starts[fold]), int(self.starts[fold + 1]))

    def fixed(self, codes: Codes, fold: int) -> tuple[FixedPredictions, AnyArray]:
        """Return a model that predicts these codes (all test rows) in a fold, and stand-ins for the fold's rows."""
        classes, rows = self.classes[fold], codes[self.rows_of(fold)]
        return FixedPredictions(classes, classes[rows]), rows


def codes_of(labels: AnyArray, classes: AnyArray) -> Codes:
    """Return the position of each label among the sorted classes, -1 if it is not one of them."""
    places = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return np.where(classes[places] == labels, places, -1).astype(np.int16)


def column_lists(masks: Masks) -> tuple[Int64Array, Int64Array]:
    """Return the selected columns of all masks one after the other, and where each mask's columns start and end."""
    if masks.shape[1] > _MANY_COLUMNS:
        row, columns = np.divmod(np.flatnonzero(masks), masks.shape[1])
        return columns, np.searchsorted(row, np.arange(len(masks) + 1))
    columns, starts = _counting().column_lists(masks)
    return columns, starts


def _counting() -> ModuleType:
    return kernels_of("subswarm.engines.metrics.")
