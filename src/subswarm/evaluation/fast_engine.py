"""What all fast engines share: answers become losses, and a subset an engine cannot answer goes to scikit-learn."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from subswarm.core.types import FloatArray, IntArray, Masks
from subswarm.evaluation.estimator import EstimatorEngine
from subswarm.evaluation.folds import Fold, FoldedData

__all__ = ["FastEngine", "FoldClasses", "codes_of", "column_lists"]


class FastEngine(ABC):
    """An engine that answers most subsets itself and leaves the rest to `EstimatorEngine`."""

    def __init__(self, estimator: Any, data: FoldedData, *, n_jobs: int | None, max_bytes: int) -> None:
        self._estimator = estimator
        self._data = data
        self._n_jobs = n_jobs
        self._max_bytes = max_bytes
        self._slow = EstimatorEngine(estimator, data, n_jobs=n_jobs)

    @property
    def error(self) -> Exception | None:
        """The first exception the estimator raised, if it ever did."""
        return self._slow.error

    def fold_losses(self, masks: Masks) -> FloatArray:
        """Losses of shape (P, n_folds); a row of NaN where the estimator failed."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            scores = self._scores(np.ascontiguousarray(masks))
        finite = np.isfinite(scores)
        if finite.all():
            return self._data.scoring.loss(scores)
        answered = finite.all(axis=1)
        losses = np.empty_like(scores)
        losses[answered] = self._data.scoring.loss(scores[answered])
        losses[~answered] = self._slow.fold_losses(masks[~answered])
        return losses

    @abstractmethod
    def _scores(self, masks: Masks) -> FloatArray:
        """Scores of shape (P, n_folds); NaN in the row of a mask that scikit-learn had better score."""

    def _score_folds(self, answer: Callable[[int], Any]) -> FloatArray:
        """The scorer's word on each fold's answer; NaN from the fold on where it fails."""
        scores = np.full(self._data.n_folds, np.nan)
        for f, fold in enumerate(self._data.folds):
            try:
                model, rows = answer(f)
                scores[f] = self._data.scoring.scorer(model, rows, self._data.y[fold.test])
            except Exception:
                break
        return scores

    def _fitted(self, columns: IntArray, fold: Fold) -> tuple[Any, FloatArray]:
        """The estimator itself, fitted on a fold's training rows, and the test rows, as ``cross_val_score`` does it."""
        X = self._data.X[:, columns]
        return clone(self._estimator).fit(X[fold.train], self._data.y[fold.train]), X[fold.test]


@dataclass(frozen=True, eq=False)
class FoldClasses:
    """Each fold's classes, and the test rows' places among them (-1: a class the training rows do not have)."""

    classes: tuple[NDArray[Any], ...]
    codes: NDArray[np.int16]
    sizes: IntArray
    starts: IntArray

    @classmethod
    def of(cls, data: FoldedData) -> FoldClasses:
        classes = tuple(np.unique(data.y[fold.train]) for fold in data.folds)
        codes = [codes_of(data.y[fold.test], known) for fold, known in zip(data.folds, classes, strict=True)]
        sizes = np.array([len(fold.test) for fold in data.folds])
        return cls(classes, np.concatenate(codes), sizes, np.concatenate([[0], np.cumsum(sizes)]))

    def accuracy(self, answers: NDArray[np.int16]) -> FloatArray:
        """The share of right codes in each fold, (P, n_folds), from codes of shape (P, all test rows)."""
        return np.asarray(_counting().rights(answers, self.codes, self.starts) / self.sizes)

    def rows_of(self, fold: int) -> slice:
        """Where a fold's test rows lie among all of them."""
        return slice(int(self.starts[fold]), int(self.starts[fold + 1]))


def codes_of(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int16]:
    """The place of each label among the sorted classes, -1 where it is none of them."""
    places = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return np.where(classes[places] == labels, places, -1).astype(np.int16)


def _counting() -> Any:
    try:
        from subswarm.evaluation import counting_kernel as kernels
    except ImportError:
        from subswarm.evaluation import counting_numpy as kernels  # type: ignore[no-redef]
    return kernels


def column_lists(masks: Masks) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The selected columns of all masks in a row, and where each mask's begin (and the last one's end)."""
    columns, starts = _counting().column_lists(masks)
    return columns, starts
