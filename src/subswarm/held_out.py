"""The honest figure: the whole search repeated inside an outer cross-validation."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, cross_validate
from sklearn.pipeline import Pipeline

from subswarm.core.checks import check_int
from subswarm.core.errors import SettingError
from subswarm.core.types import FloatArray, Masks
from subswarm.evaluation.folds import Fold, fixed_folds

__all__ = ["HeldOut", "check_repeatable", "cost_sentence", "held_out"]

_QUIETLY = {"held_out": None, "n_jobs": 1, "verbose": 0, "checkpoint": None, "record": False, "callbacks": ()}


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Scores on rows that the search had never seen, one for each of K outer folds.

    Attributes
    ----------
    scores : of the model with the columns selected on the other folds' rows, shape (K,)
    baseline_scores : of the model with all columns, on the same rows; NaN where it fails
    inner_scores : what each search itself reported for its selection, shape (K,)
    supports : the columns selected in each fold, shape (K, n)
    seconds : how long it took
    """

    scores: FloatArray
    baseline_scores: FloatArray
    inner_scores: FloatArray
    supports: Masks
    seconds: float

    @property
    def score(self) -> float:
        """Mean of ``scores``."""
        return float(self.scores.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of ``score`` over the folds (which share training rows, so it is a rough guide)."""
        return float(self.scores.std(ddof=1) / np.sqrt(len(self.scores)))

    @property
    def baseline_score(self) -> float:
        """Mean of ``baseline_scores``."""
        return float(self.baseline_scores.mean())

    def sentence(self) -> str:
        """The figures in words."""
        sizes = self.supports.sum(axis=1).mean()
        return (
            f"{self.score:.4f} ± {self.standard_error:.4f} with {sizes:.1f} features on rows that {len(self.scores)} "
            f"searches never saw; {self.baseline_score:.4f} with all of them"
        )


def held_out(
    selector: Any,
    X: Any,
    y: Any,
    *,
    folds: int = 5,
    n_jobs: int | None = None,
    random_state: int = 0,
    groups: Any = None,
    params: Mapping[str, Any] | None = None,
) -> HeldOut:
    """Repeat the selector's whole search on the training rows of K outer folds; score on the rows left out.

    It costs K more searches, each on a share (K - 1) / K of the rows. ``SwarmSelector(held_out=K)`` does it in ``fit``.

    Parameters
    ----------
    selector : SwarmSelector
        Cloned; whether it is fitted does not matter.
    X, y : the table and its target
    folds : int, default=5
        K; the folds are shuffled, and stratified for a classifier.
    n_jobs : int or None
        Searches that run at the same time.
    random_state : int
        Draws the outer folds.
    groups : array of shape (N,), optional
        Rows of one group are never parted by an outer fold; the searches get their part of it too.
    params : dict, optional
        Metadata for the estimator's ``fit``, such as ``sample_weight``.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from subswarm import SwarmSelector
    >>> X, y = load_wine(return_X_y=True)
    >>> honest = held_out(SwarmSelector(GaussianNB(), cv=3, max_evaluations=60, random_state=0), X, y, folds=3)
    >>> honest.scores.shape, honest.supports.shape
    ((3,), (3, 13))
    """
    check_int("folds", folds, low=2)
    params = dict(params or {})
    check_repeatable(selector, params if groups is None else {**params, "groups": groups})
    began = time.perf_counter()
    quiet = clone(selector).set_params(**_QUIETLY)
    pipeline = Pipeline([("select", quiet), ("model", clone(selector.estimator))])
    splits = _outer_folds(selector.estimator, y, groups, folds, random_state)
    common = {
        "cv": [(fold.train, fold.test) for fold in splits],
        "scoring": selector.scoring,
        "n_jobs": n_jobs,
        "error_score": "raise",
    }
    for_search = params if groups is None else {**params, "groups": groups}
    for_both = {
        **{f"select__{name}": value for name, value in for_search.items()},
        **{f"model__{name}": value for name, value in params.items()},
    }
    found = cross_validate(pipeline, X, y, return_estimator=True, params=for_both or None, **common)
    fitted = [each[0] for each in found["estimator"]]
    return HeldOut(
        scores=np.asarray(found["test_score"], dtype=np.float64),
        baseline_scores=_baseline(selector.estimator, X, y, params, common),
        inner_scores=np.array([each.best_score_ for each in fitted]),
        supports=np.array([each.support_ for each in fitted]),
        seconds=time.perf_counter() - began,
    )


def check_repeatable(selector: Any, metadata: Mapping[str, Any]) -> None:
    """Refuse, before any search, a selector whose search cannot be repeated on a part of the rows."""
    cv = selector.cv
    if not (cv is None or isinstance(cv, int | np.integer) or hasattr(cv, "split")):
        raise SettingError(
            "the held-out figure repeats the search on parts of the rows, where a list of splits has no meaning; give "
            "cv as a number of folds or a splitter."
        )
    if metadata and get_config().get("enable_metadata_routing", False):
        raise SettingError(
            f"the held-out figure cannot route {', '.join(metadata)} while enable_metadata_routing is set; "
            "cross-validate a pipeline of the selector and the model with scikit-learn's cross_validate instead."
        )


def cost_sentence(folds: int, n_jobs: int | None, seconds: float) -> str:
    """What the held-out figure will cost, where one search took so many seconds."""
    workers = min(folds, int(effective_n_jobs(n_jobs)))
    about = seconds * (folds - 1) / folds * -(-folds // workers)
    words = f"{about:.0f} s" if about < 90 else f"{about / 60:.0f} min"
    return f"held-out figure: {folds} more searches on parts of the rows, {workers} at a time, about {words}"


def _outer_folds(estimator: Any, y: Any, groups: Any, folds: int, random_state: int) -> tuple[Fold, ...]:
    cv: Any = folds
    if groups is not None:
        stratified = is_classifier(estimator)
        cv = StratifiedGroupKFold(folds, shuffle=True, random_state=random_state) if stratified else GroupKFold(folds)
    rows = np.zeros((len(y), 0))
    return fixed_folds(cv, rows, np.asarray(y), estimator=estimator, groups=groups, random_state=random_state)


def _baseline(estimator: Any, X: Any, y: Any, params: Mapping[str, Any], common: dict[str, Any]) -> FloatArray:
    try:
        found = cross_validate(clone(estimator), X, y, params=dict(params) or None, **common)
    except Exception:  # whatever an estimator may raise on all columns is no reason to lose the figure
        return np.full(len(common["cv"]), np.nan)
    return np.asarray(found["test_score"], dtype=np.float64)
