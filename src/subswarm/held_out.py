"""The honest figure: the whole search repeated inside an outer cross-validation."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline

from subswarm.core.checks import check_int
from subswarm.core.types import FloatArray, Masks
from subswarm.evaluation.folds import fixed_folds

__all__ = ["HeldOut", "held_out"]

_QUIETLY = {"n_jobs": 1, "verbose": 0, "checkpoint": None, "record": False, "callbacks": ()}


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


def held_out(
    selector: Any, X: Any, y: Any, *, folds: int = 5, n_jobs: int | None = None, random_state: int = 0
) -> HeldOut:
    """Repeat the selector's whole search on the training rows of K outer folds; score on the rows left out.

    It costs K more searches, each on a share (K - 1) / K of the rows.

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
    began = time.perf_counter()
    quiet = clone(selector).set_params(**_QUIETLY)
    rows = np.zeros((len(y), 0))
    splits = fixed_folds(folds, rows, np.asarray(y), estimator=selector.estimator, random_state=random_state)
    common = {"cv": [(fold.train, fold.test) for fold in splits], "scoring": selector.scoring, "n_jobs": n_jobs}
    found = cross_validate(
        make_pipeline(quiet, clone(selector.estimator)), X, y, return_estimator=True, error_score="raise", **common
    )
    fitted = [pipeline[0] for pipeline in found["estimator"]]
    return HeldOut(
        scores=np.asarray(found["test_score"], dtype=np.float64),
        baseline_scores=_baseline(selector.estimator, X, y, common),
        inner_scores=np.array([each.best_score_ for each in fitted]),
        supports=np.array([each.support_ for each in fitted]),
        seconds=time.perf_counter() - began,
    )


def _baseline(estimator: Any, X: Any, y: Any, common: dict[str, Any]) -> FloatArray:
    try:
        found = cross_validate(clone(estimator), X, y, error_score="raise", **common)
    except Exception:  # whatever an estimator may raise on all columns is no reason to lose the figure
        return np.full(len(common["cv"]), np.nan)
    return np.asarray(found["test_score"], dtype=np.float64)
