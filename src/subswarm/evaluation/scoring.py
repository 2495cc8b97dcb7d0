"""A scorer, and how its score becomes a loss that is minimised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import check_scoring

from subswarm.core.errors import ScoringError
from subswarm.core.types import FloatArray

__all__ = ["Scoring", "resolve_scoring"]

UNBOUNDED_WORST = 1e300
_WITHIN_ONE = (
    "accuracy",
    "average_precision",
    "balanced_accuracy",
    "f1",
    "jaccard",
    "precision",
    "recall",
    "roc_auc",
    "top_k_accuracy",
)


@dataclass(frozen=True, eq=False)
class Scoring:
    """How a fitted estimator is scored, and how the score becomes a loss of at least zero.

    Attributes
    ----------
    name : the scorer's name; "accuracy" or "r2" where the estimator's own ``score`` is meant
    scorer : ``scorer(estimator, X, y) -> float``, higher is better
    negated : the loss is ``-score`` (scorers called ``neg_...``) instead of ``1 - score``
    worst : the finite loss of an empty or failed subset
    """

    name: str
    scorer: Callable[..., float]
    negated: bool
    worst: float

    def loss(self, scores: FloatArray) -> FloatArray:
        """Scores as losses, elementwise; ScoringError where a score is so high that the loss would be negative."""
        losses = (0.0 if self.negated else 1.0) - scores
        if (losses < 0).any():
            limit = 0 if self.negated else 1
            raise ScoringError(
                f"scoring {self.name!r} gave a score of {np.nanmax(scores):g}; a loss of at least zero needs scores of "
                f"at most {limit}. Scale the scorer, or negate an error and name it 'neg_...'."
            )
        return np.asarray(losses + 0.0)  # + 0.0 turns -0.0 into 0.0

    def score(self, loss: float) -> float:
        """The score behind a loss, up to rounding."""
        return (0.0 if self.negated else 1.0) - loss


def resolve_scoring(estimator: Any, scoring: Any = None) -> Scoring:
    """The scorer scikit-learn would use, with its rule for the loss."""
    if scoring is not None and not isinstance(scoring, str) and not callable(scoring):
        raise ScoringError(
            f"scoring must be one scorer: a name, a callable or None; got {type(scoring).__name__}. "
            "A search minimises one loss; choose one of them."
        )
    try:
        scorer = check_scoring(estimator, scoring=scoring)
    except (ValueError, TypeError) as error:
        raise ScoringError(f"scoring={scoring!r} cannot be used with {type(estimator).__name__}: {error}") from error
    name = (
        scoring
        if isinstance(scoring, str)
        else _default_name(estimator)
        if scoring is None
        else _callable_name(scoring)
    )
    return Scoring(name=name, scorer=scorer, negated=name.startswith("neg_"), worst=_worst(name))


def _default_name(estimator: Any) -> str:
    if is_classifier(estimator):
        return "accuracy"
    return "r2" if is_regressor(estimator) else "score"


def _callable_name(scorer: Any) -> str:
    return getattr(scorer, "__name__", type(scorer).__name__)


def _worst(name: str) -> float:
    if name.startswith(_WITHIN_ONE):
        return 1.0
    return 2.0 if name == "matthews_corrcoef" else UNBOUNDED_WORST
