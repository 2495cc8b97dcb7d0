"""scikit-learn's own scorers, applied to predictions that are already known."""

from __future__ import annotations

from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from subswarm._types import AnyArray, FloatArray

__all__ = [
    "LABEL_SCORERS",
    "FixedPredictions",
    "FixedValues",
]

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
