"""The scorer of a search, and how its score becomes a loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.utils.multiclass import type_of_target

from subswarm._checks import shown, suggest
from subswarm._types import AnyArray, Estimator, Scorer, Scorings
from subswarm.engines.data import WORST_LOSS, Scoring
from subswarm.errors import ScoringError

__all__ = ["first_scoring", "resolve_all", "resolve_scoring", "scoring_for_target"]

S = TypeVar("S")

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


def first_scoring(scoring: Scorings) -> str | Scorer | None:
    """Return the scorer that a search optimises: the only one, or the first of several."""
    return next(iter(_by_name(scoring).values()))


def resolve_all(estimator: Estimator, scoring: Scorings) -> dict[str, Scoring]:
    """Return all scorers by name, the one that a search optimises first."""
    found = {name: _resolve(estimator, each) for name, each in _by_name(scoring).items()}
    return {name or each.name: each for name, each in found.items()}


def resolve_scoring(estimator: Estimator, scoring: Scorings = None) -> Scoring:
    """Return the scorer that scikit-learn would use (the first of several), with its rule for the loss."""
    return next(iter(resolve_all(estimator, scoring).values()))


def _by_name(scoring: Scorings) -> dict[str, str | Scorer | None]:
    """Return the scorers by name; a single one is called ""."""
    if scoring is None or isinstance(scoring, str) or callable(scoring):
        return {"": scoring}
    if isinstance(scoring, Mapping):
        named: dict[str, str | Scorer | None] = dict(scoring)
        if named and all(
            isinstance(name, str) and (isinstance(each, str) or callable(each)) for name, each in named.items()
        ):
            return named
    elif isinstance(scoring, list | tuple):
        names = [name for name in scoring if isinstance(name, str)]
        if names and len(set(names)) == len(scoring):
            return {name: name for name in names}
    raise ScoringError(
        "scoring must be a scorer (a name, a callable or None), a list of different names, or a dict of scorers by "
        f"name; got {shown(scoring)}."
    )


def _resolve(estimator: Estimator, scoring: str | Scorer | None) -> Scoring:
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


def scoring_for_target(estimator: Estimator, scoring: Scorings, y: AnyArray) -> Scorings:
    """Return the scoring to use for a target: "roc_auc" of more than two classes is that of each against the rest.

    ScoringError for a scoring of classes if the estimator predicts numbers.
    """
    if isinstance(scoring, Mapping):
        return {name: _for_target(estimator, each, y) for name, each in scoring.items()}
    if isinstance(scoring, list | tuple):
        found = [_for_target(estimator, each, y) for each in scoring]
        return scoring if found == list(scoring) else found
    return None if scoring is None else _for_target(estimator, scoring, y)


def _for_target(estimator: Estimator, scoring: S, y: AnyArray) -> S | str:
    """Return one scorer for a target."""
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
    return 2.0 if name == "matthews_corrcoef" else WORST_LOSS
