"""A metric that is computed for all subsets of a batch at once, and models whose predictions are known."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from subswarm._compilation import kernels_of
from subswarm._types import AnyArray, BoolArray, FloatArray, IntArray
from subswarm.engines.data import FoldedData

__all__ = ["LABEL_SCORERS", "BatchMetric", "FixedPredictions", "FixedValues", "Needs", "Part", "metric_kernels"]

Needs = Literal["labels", "scores", "probabilities", "values"]


@dataclass(frozen=True, eq=False)
class Part:
    """The test rows of some folds, one fold after the other.

    Attributes
    ----------
    folds : numbers of the folds
    starts : where each fold starts among the rows, and the end
    truth : the rows' classes, as positions among all classes of the target (int16), or their values (float)
    """

    folds: slice
    starts: IntArray
    truth: AnyArray

    @cached_property
    def sizes(self) -> IntArray:
        """The number of test rows of each fold."""
        return np.diff(self.starts)


class BatchMetric(ABC):
    """A scorer of scikit-learn, for the predictions of all subsets of a batch.

    ``needs`` says which predictions it takes, for P subsets:

    ============= ================= ================================================================================
    needs         shape             meaning
    ============= ================= ================================================================================
    labels        (P, rows) int     predicted classes, as positions among the sorted classes of the fold's training
                                    rows
    scores        (P, rows) float   decision values, or probabilities of the second class (``classes_[1]``), of a
                                    model of two classes; only their order matters, and which of them are equal
    probabilities (P, rows, C) float probabilities of the classes of the fold's training rows
    values        (P, rows) float   predicted numbers
    ============= ================= ================================================================================

    A score is NaN where scikit-learn raises an error or returns a score that is not finite; such subsets are to be left
    to the reference engine. Scores equal scikit-learn's, up to rounding of at most 1e-12.
    """

    def __init__(self, needs: Needs, data: FoldedData, truth: AnyArray) -> None:
        self.needs = needs
        self.sign = 1.0
        self.refused: BoolArray | None = None  # folds on which scikit-learn's scorer raises an error, (F,)
        self._tests = [fold.test for fold in data.folds]
        sizes = [len(test) for test in self._tests]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        self._all = Part(slice(0, len(sizes)), starts, truth[np.concatenate(self._tests)])
        self._parts: dict[int, Part] = {}

    def score(self, fold: int, predictions: AnyArray) -> FloatArray:
        """Return the score of each subset on one fold, (P,), from predictions for the fold's test rows."""
        if fold not in self._parts:
            start, stop = self._all.starts[fold : fold + 2]
            rows = self._all.truth[start:stop]
            self._parts[fold] = Part(slice(fold, fold + 1), np.array([0, stop - start], dtype=np.intp), rows)
        return self._signed(predictions, self._parts[fold], 1)[:, 0]

    def score_all(self, predictions: AnyArray, threads: int = 1) -> FloatArray:
        """Return the score of each subset on each fold, (P, F), from predictions for all test rows, fold after fold."""
        return self._signed(predictions, self._all, threads)

    def _signed(self, predictions: AnyArray, part: Part, threads: int) -> FloatArray:
        with np.errstate(all="ignore"):
            scores = self._scores(predictions, part, threads)
        if self.refused is not None:
            scores = np.where(self.refused[part.folds], np.nan, scores)
        return np.asarray(np.where(np.isfinite(scores), self.sign * scores, np.nan))

    @abstractmethod
    def _scores(self, predictions: AnyArray, part: Part, threads: int) -> FloatArray:
        """Return the metric of each subset on each fold of the part, (P, folds)."""


def metric_kernels() -> ModuleType:
    """Return the compiled kernels, or the same functions in NumPy without numba."""
    return kernels_of("subswarm.engines.metrics.")


_AVERAGED = ("f1", "precision", "recall", "jaccard")
LABEL_SCORERS = frozenset(
    {"accuracy", "balanced_accuracy", "matthews_corrcoef"}
    | set(_AVERAGED)
    | {f"{name}_{average}" for name in _AVERAGED for average in ("macro", "micro", "weighted")}
)
"""Scorers that use predicted classes only."""


class FixedPredictions(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose predictions are known, whatever rows it is given."""

    def __init__(self, classes: AnyArray, labels: AnyArray, probabilities: FloatArray | None = None) -> None:
        self.classes = classes
        self.labels = labels
        self.probabilities = probabilities

    @property
    def classes_(self) -> AnyArray:
        return self.classes

    def predict(self, X: object) -> AnyArray:
        return self.labels

    def predict_proba(self, X: object) -> FloatArray | None:
        return self.probabilities


class FixedValues(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor whose predictions are known, whatever rows it is given."""

    def __init__(self, values: FloatArray) -> None:
        self.values = values

    def predict(self, X: object) -> FloatArray:
        return self.values
