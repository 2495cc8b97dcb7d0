"""The scorer of a search, and how its score becomes a loss."""

from __future__ import annotations

from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.utils.multiclass import type_of_target

from subswarm._checks import shown, suggest
from subswarm._types import AnyArray, Estimator, Scorer
from subswarm.engines.data import Scoring
from subswarm.errors import ScoringError

__all__ = ["resolve_scoring", "scoring_for_target"]

_UNBOUNDED_WORST = 1e300
"""The loss of a failed subset for scorers without a lower bound."""
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

_OF_CLASSES = (*_WITHIN_ONE, "matthews_corrcoef", "neg_log_loss", "neg_brier_score")


def resolve_scoring(estimator: Estimator, scoring: str | Scorer | None = None) -> Scoring:
    """Return the scorer that scikit-learn would use, with its rule for the loss."""
    if scoring is not None and not isinstance(scoring, str) and not callable(scoring):
        raise ScoringError(
            f"scoring must be one scorer: a name, a callable or None; got {type(scoring).__name__}. "
            "A search minimises one loss; choose one scorer."
        )
    try:
        scorer = check_scoring(estimator, scoring=scoring)
    except (ValueError, TypeError) as error:
        if isinstance(scoring, str) and scoring not in get_scorer_names():
            meant = suggest(scoring, get_scorer_names(), most=3)
            raise ScoringError(
                f"there is no scoring {shown(scoring)}.{meant} sklearn.metrics.get_scorer_names() lists them all."
            ) from None
        raise ScoringError(f"scoring={scoring!r} cannot be used with {type(estimator).__name__}: {error}") from error
    name = (
        scoring
        if isinstance(scoring, str)
        else _default_name(estimator)
        if scoring is None
        else _callable_name(scoring)
    )
    return Scoring(name=name, scorer=scorer, negated=name.startswith("neg_"), worst=_worst(name), given=scoring)


def scoring_for_target(estimator: Estimator, scoring: str | Scorer | None, y: AnyArray) -> str | Scorer | None:
    """Return the scoring to use for a target: "roc_auc" of more than two classes is that of each against the rest.

    ScoringError for a scoring of classes if the estimator predicts numbers.
    """
    if not isinstance(scoring, str):
        return scoring
    if is_regressor(estimator) and scoring.startswith(_OF_CLASSES):
        raise ScoringError(
            f"scoring={scoring!r} is for classes, and {type(estimator).__name__} predicts numbers; use 'r2' or "
            "'neg_mean_absolute_error', or a classifier."
        )
    if scoring == "roc_auc" and is_classifier(estimator) and type_of_target(y) == "multiclass":
        return "roc_auc_ovr"
    return scoring


def _default_name(estimator: Estimator) -> str:
    if is_classifier(estimator):
        return "accuracy"
    return "r2" if is_regressor(estimator) else "score"


def _callable_name(scorer: Scorer) -> str:
    return str(getattr(scorer, "__name__", type(scorer).__name__))


def _worst(name: str) -> float:
    if name.startswith(_WITHIN_ONE):
        return 1.0
    return 2.0 if name == "matthews_corrcoef" else _UNBOUNDED_WORST
