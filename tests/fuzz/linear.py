"""Linear models: classes that equal scikit-learn's, and numbers that agree to as many digits as documented."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import Pipeline

from .case import pick
from .scorers import uses_labels

__all__ = [
    "BORDER",
    "difference",
    "least_squares",
    "linear_classifier",
    "logistic",
    "room_of_score",
    "solved_tightly",
    "weights_for",
]

_SURE = 1e-7
"""The error of a prediction, relative to its terms, that the engine accepts before it asks scikit-learn."""
BORDER = 1e-3
"""Probabilities that are closer than this may be of either class for logistic regression."""


def least_squares(rng: np.random.Generator) -> Any:
    """A linear model of numbers."""
    fit_intercept = bool(rng.random() < 0.8)
    return pick(
        rng,
        (
            LinearRegression(fit_intercept=fit_intercept),
            Ridge(alpha=pick(rng, (1.0, 1e-6, 100.0, 0.0)), fit_intercept=fit_intercept),
            Ridge(alpha=0.1, solver=pick(rng, ("svd", "cholesky"))),
        ),
    )


def linear_classifier(rng: np.random.Generator, y: Any) -> Any:
    """A linear model of classes that the engine decides exactly."""
    weight = pick(rng, (None, None, "balanced"))
    priors = rng.dirichlet(np.full(len(np.unique(y)), 5.0)) if rng.random() < 0.2 else None
    return pick(
        rng,
        (
            RidgeClassifier(alpha=pick(rng, (1.0, 1e-3)), solver="svd"),
            NearestCentroid(metric=pick(rng, ("euclidean", "euclidean", "manhattan"))),
            QuadraticDiscriminantAnalysis(reg_param=pick(rng, (0.0, 0.1, 1e-3)), priors=priors),
            RidgeClassifier(alpha=pick(rng, (1.0, 1e-6, 10.0)), class_weight=weight),
            RidgeClassifier(fit_intercept=False),
            LinearDiscriminantAnalysis(priors=priors),
            LinearDiscriminantAnalysis(solver="lsqr", shrinkage=pick(rng, (None, 0.1, 1.0)), priors=priors),
            LinearDiscriminantAnalysis(solver="eigen", shrinkage=pick(rng, (None, 0.3))),
        ),
    )


def logistic(rng: np.random.Generator) -> Any:
    """A logistic regression; without a scaler, with or without an intercept."""
    return LogisticRegression(C=pick(rng, (1.0, 0.01, 30.0)), class_weight=pick(rng, (None, None, "balanced")))


def solved_tightly(estimator: Any) -> Any:
    """The same logistic regression, solved until the gradient is zero but for rounding."""
    tight = clone(estimator)
    _last(tight).set_params(solver="newton-cholesky", tol=1e-11, max_iter=1000)
    return tight


def weights_for(rng: np.random.Generator, estimator: Any, n_rows: int) -> dict[str, Any]:
    """Weights of the rows, some of them zero, by the name under which ``fit`` takes them."""
    weights = rng.exponential(size=n_rows)
    weights[rng.random(n_rows) < 0.2] = 0.0
    prefix = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
    return {f"{prefix}sample_weight": weights}


def difference(estimator: Any, data: Any, mask: Any, f: int, ours: float, theirs: float) -> bool:
    """Whether a loss of a fold differs from scikit-learn's by more than the documentation allows."""
    if np.isclose(ours, theirs, rtol=1e-9, atol=1e-11, equal_nan=True):
        return False
    model = _last(estimator)
    fitted, test = _fitted(estimator, data, mask, data.folds[f])
    if fitted is None:
        return False  # scikit-learn itself has not converged, so that there is nothing to compare with
    if isinstance(model, LogisticRegression):
        return not _is_near_the_border(fitted, test, data, f, ours, theirs)
    if isinstance(model, LinearRegression | Ridge):
        return abs(ours - theirs) > _room(fitted, test, data, f)
    if not uses_labels(data.scoring):  # equal rows tie here; there a product may round them by their place in the table
        truth = data.y[data.folds[f].test]
        once = float(data.scoring.loss(np.array([data.scoring.scorer(_EachRowOnce(fitted), test, truth)]))[0])
        return not np.isclose(ours, once, rtol=1e-9, atol=1e-11)
    return True


class _EachRowOnce(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier that gives equal rows the same scores."""

    def __init__(self, fitted: Any) -> None:
        self.fitted = fitted
        self.classes_ = fitted.classes_

    def decision_function(self, X: Any) -> Any:
        return self._of_each(X, self.fitted.decision_function)

    def predict_proba(self, X: Any) -> Any:
        return self._of_each(X, self.fitted.predict_proba)

    def _of_each(self, X: Any, answer: Any) -> Any:
        rows, places = np.unique(X, axis=0, return_inverse=True)
        return answer(rows)[places.ravel()]


def _room(fitted: Any, test: Any, data: Any, f: int) -> float:
    """How far a score moves if every prediction is off by what the engine accepts."""
    model, truth = _last(fitted), data.y[data.folds[f].test]
    rows = fitted[:-1].transform(test) if isinstance(fitted, Pipeline) else test
    terms = np.abs(rows * model.coef_.ravel()).sum(axis=1) + abs(float(np.ravel(model.intercept_)[0]))
    off = _SURE * float(np.max(np.concatenate([terms, np.abs(truth)])))
    return room_of_score(truth, fitted.predict(test), off)


def room_of_score(truth: Any, predicted: Any, off: float) -> float:
    """How far a score of numbers moves if every prediction is off by this much."""
    gaps = truth - predicted
    moved = 2 * float(np.abs(gaps).max()) * off + off * off
    spread = float(truth.var())
    smallest = float(np.abs(truth).min())
    ratios = [moved / spread] if spread > 0 else [np.inf]
    return max(moved, off, np.sqrt(moved), *ratios, off / max(smallest, np.finfo(float).eps))


def _is_near_the_border(fitted: Any, test: Any, data: Any, f: int, ours: float, theirs: float) -> bool:
    shares = np.sort(fitted.predict_proba(test), axis=1)
    if not uses_labels(data.scoring) and data.scoring.scorer._score_func in (log_loss, brier_score_loss):
        return bool(np.isclose(ours, theirs, rtol=1e-4, atol=1e-6))
    if not uses_labels(data.scoring):  # the order of the rows, which is open where two of them are this close
        return bool((np.diff(np.sort(fitted.predict_proba(test), axis=0), axis=0) < BORDER).any())
    return bool((shares[:, -1] - shares[:, -2] < BORDER).any())


def _fitted(estimator: Any, data: Any, mask: Any, fold: Any) -> tuple[Any, Any]:
    """The model of a fold and its test rows; None for one that warns that it has not converged."""
    X = data.X[:, mask]
    params = {name: np.asarray(value)[fold.train] for name, value in data.params.items()}
    with warnings.catch_warnings(record=True) as said, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        fitted = clone(estimator).fit(X[fold.train], data.y[fold.train], **params)
    has_failed = isinstance(_last(estimator), LogisticRegression) and bool(said)
    return (None if has_failed else fitted), X[fold.test]


def _last(estimator: Any) -> Any:
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
