"""How each linear model becomes one system of equations for each fold."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier

from subswarm._types import AnyArray, FloatArray
from subswarm.engines.linear.tables import EPS, FoldSystem, SystemRules

__all__ = ["MODELS", "fold_system", "has_known_settings", "is_number", "rules_for"]

MODELS = (LinearRegression, Ridge, RidgeClassifier, LinearDiscriminantAnalysis)
_SURE_ENOUGH = 1e-7
"""Largest relative error of a prediction that is accepted, by a bound that is far above the errors seen."""
_DROPPED = 1e-15
"""Singular values up to this are zero for the solver "svd" of ridge regression, whatever the others are."""


def has_known_settings(model: BaseEstimator) -> bool:
    """Return whether the engine knows what scikit-learn does with these settings."""
    if type(model) is LinearDiscriminantAnalysis:
        return _knows_discriminant(model)
    if model.positive is not False or not isinstance(model.fit_intercept, bool):
        return False
    if type(model) is LinearRegression:
        return True
    return is_number(model.alpha) and 0 <= model.alpha < np.inf and model.solver in ("auto", "cholesky", "svd")


def _knows_discriminant(model: LinearDiscriminantAnalysis) -> bool:
    if model.n_components is not None or model.covariance_estimator is not None:
        return False
    if not (is_number(model.tol) and 0 <= model.tol < 1e-2):
        return False
    if model.solver == "svd":
        return model.shrinkage is None
    shrinkage = model.shrinkage
    return model.solver in ("lsqr", "eigen") and (shrinkage is None or (is_number(shrinkage) and 0 <= shrinkage <= 1))


def rules_for(model: BaseEstimator, n_rows: int) -> SystemRules:
    """Return what the systems of all folds share; ``n_rows`` is the number of training rows."""
    rounding = 4.0 * float(np.sqrt(n_rows))
    if type(model) is LinearRegression:
        tolerance = float(model.tol) if _has_relative_tolerance() else n_rows * EPS
        return SystemRules(
            drops=True, rounding=rounding, most_error=_SURE_ENOUGH, least_share=4.0 * max(tolerance, n_rows * EPS) ** 2
        )
    if type(model) is Ridge:
        return replace(_ridge_rules(model, n_rows, rounding), most_error=_SURE_ENOUGH)
    if type(model) is RidgeClassifier:
        return _ridge_rules(model, n_rows, rounding)
    if model.solver == "svd":
        least = max(float(model.tol), 4.0 * EPS) ** 2
        return SystemRules(quadratic=True, drops=True, rounding=rounding, most_kappa=0.25 / least, least_between=least)
    return SystemRules(
        quadratic=True,
        uncentred=True,
        drops=model.solver == "lsqr",
        rounding=rounding,
        condition_power=1.0 if model.solver == "lsqr" else 0.0,
        shrink=float(model.shrinkage or 0.0),
    )


def _ridge_rules(model: Ridge | RidgeClassifier, n_rows: int, rounding: float) -> SystemRules:
    return SystemRules(
        ridge=float(model.alpha),
        rounding=rounding,
        condition_power=0.5 if model.solver == "svd" else 0.0,
        least_rows=float(n_rows),
    )


def fold_system(
    model: BaseEstimator,
    train: FloatArray,
    test: FloatArray,
    target: AnyArray,
    weights: FloatArray | None,
    n_scores: int,
) -> FoldSystem:
    """Return the system of one fold; ``target`` holds numbers, or the positions of classes for a classifier.

    With one score for two classes it is that of the second class.
    """
    if type(model) is LinearDiscriminantAnalysis:
        return _discriminant_system(model, train, test, target)
    values = np.asarray(target, dtype=np.float64)[:, None]
    if type(model) is RidgeClassifier:
        n_classes = int(target.max()) + 1
        values = np.where(target[:, None] == np.arange(n_classes), 1.0, -1.0)
        values = values[:, 1:] if n_scores == 1 else values
    system = _least_squares_system(model.fit_intercept, train, test, values, weights)
    if getattr(model, "solver", "") == "svd":
        squares = system.gram.diagonal()
        system.noise[(squares > 0) & (squares < (1e3 * _DROPPED) ** 2)] = np.inf
    return system


def _least_squares_system(
    fit_intercept: bool, train: FloatArray, test: FloatArray, values: FloatArray, weights: FloatArray | None
) -> FoldSystem:
    n, T = train.shape[1], values.shape[1]
    centre, offset, level = np.zeros(n), np.zeros(T), np.zeros(T)
    constant = np.zeros(n, dtype=bool)
    if fit_intercept:
        centre, offset = np.average(train, axis=0, weights=weights), np.average(values, axis=0, weights=weights)
        level = np.average(np.abs(values), axis=0, weights=weights)
        constant = train.min(axis=0) == train.max(axis=0)
    centred, values = train - centre, values - offset
    total = float(len(train))
    if weights is not None:
        roots = np.sqrt(weights)[:, None]
        centred, values, total = centred * roots, values * roots, float(weights.sum())
    residue = np.where(constant, (centred**2).sum(axis=0), 0.0)
    centred[:, constant] = 0.0
    noise = 4.0 * EPS * np.sqrt(total) * np.abs(train).max(axis=0)
    return FoldSystem(
        gram=centred.T @ centred,
        target=centred.T @ values,
        spread=np.zeros(n),
        offset=offset,
        level=level,
        prior=np.zeros(T),
        noise=noise,
        residue=residue,
        shift=centre,
        test=test - centre,
    )


def _discriminant_system(
    model: LinearDiscriminantAnalysis, train: FloatArray, test: FloatArray, codes: AnyArray
) -> FoldSystem:
    counts = np.bincount(codes)
    means = np.zeros((len(counts), train.shape[1]))
    np.add.at(means, codes, train)
    means /= counts[:, None]
    prior = counts / len(train) if model.priors is None else np.asarray(model.priors, dtype=np.float64)
    if abs(prior.sum() - 1.0) > 1e-5:
        prior = prior / prior.sum()
    centred = train - means[codes]
    noise = 4.0 * EPS * np.abs(train).max(axis=0)
    if model.solver == "svd":
        scale = _within_scale(len(train), len(counts))
        noise[(centred.std(axis=0) == 0) & centred.any(axis=0)] = np.inf
        gram = centred.T @ centred * scale
        spread = np.zeros(len(gram))
    else:
        weighted = centred * np.sqrt(prior / counts)[codes, None]
        gram = weighted.T @ weighted
        spread = gram.diagonal().copy()
        gram *= 1.0 - (model.shrinkage or 0.0)
    middle = prior @ means
    return FoldSystem(
        gram=gram,
        target=np.ascontiguousarray((means - middle).T),
        spread=spread,
        offset=np.log(prior),
        level=np.abs(np.log(prior)),
        prior=prior,
        noise=noise,
        residue=np.zeros(len(gram)),
        shift=middle,
        test=test - middle,
    )


def _within_scale(n_rows: int, n_classes: int) -> float:
    """Return what linear discriminant analysis multiplies the scatter within classes by; releases differ."""
    return 1.0 / n_rows if _divides_by_rows() else 1.0 / (n_rows - n_classes)


@cache
def _divides_by_rows() -> bool:
    X, y = np.array([[0.0], [2.0], [4.0], [6.0]]), [0, 0, 1, 1]
    fitted = LinearDiscriminantAnalysis().fit(X, y)
    return bool(abs(fitted.coef_[0, 0] - 4.0) < 1e-6)  # a difference of 4 over a variance of 4 / 4, not of 4 / 2


@cache
def _has_relative_tolerance() -> bool:
    """Return whether ``LinearRegression`` drops directions by its ``tol``; old releases have their own limit."""
    X = np.array([[1.0, 0.0], [0.0, 1e-3]])
    try:
        model = LinearRegression(fit_intercept=False, tol=0.1)
    except TypeError:
        return False
    return bool(model.fit(X, [1.0, 1.0]).coef_[1] == 0.0)


def is_number(value: object, *, finite: bool = True) -> bool:
    """Return whether a setting is a number, and with ``finite`` neither infinite nor missing."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    return bool(np.isfinite(float(value))) if finite else not np.isnan(float(value))
