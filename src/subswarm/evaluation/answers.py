"""From predicted classes to losses: scikit-learn's own scorers, asked about predictions that are already there."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from subswarm.core.types import FloatArray

__all__ = ["LABEL_SCORERS", "REGRESSION_SCORERS", "Answers", "NumericAnswers"]

_AVERAGED = ("f1", "precision", "recall", "jaccard")
LABEL_SCORERS = frozenset(
    {"accuracy", "balanced_accuracy", "matthews_corrcoef"}
    | set(_AVERAGED)
    | {f"{name}_{average}" for name in _AVERAGED for average in ("macro", "micro", "weighted")}
)
"""Scorers that look at predicted classes only."""
REGRESSION_SCORERS = frozenset(
    {
        "r2",
        "neg_mean_squared_error",
        "neg_root_mean_squared_error",
        "neg_mean_absolute_error",
        "neg_median_absolute_error",
        "explained_variance",
    }
)
"""Scorers that look at predicted numbers only."""


class Answers(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose predictions are known: a scorer may ask for them, whatever rows it shows."""

    def __init__(self, classes: NDArray[Any], labels: NDArray[Any], probabilities: FloatArray | None = None) -> None:
        self.classes = classes
        self.labels = labels
        self.probabilities = probabilities

    @property
    def classes_(self) -> NDArray[Any]:
        return self.classes

    def predict(self, X: Any) -> NDArray[Any]:
        return self.labels

    def predict_proba(self, X: Any) -> FloatArray | None:
        return self.probabilities


class NumericAnswers(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor whose predictions are known."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values

    def predict(self, X: Any) -> NDArray[Any]:
        return self.values
