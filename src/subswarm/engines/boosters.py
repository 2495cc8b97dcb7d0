"""Gradient boosting of LightGBM, XGBoost and CatBoost: early stopping, and classes of any type."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from inspect import signature
from typing import Any, Protocol, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, _safe_indexing, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from subswarm._checks import check_int, shown
from subswarm._types import AnyArray, Estimator, FloatArray, IntArray
from subswarm.engines.data import library_of
from subswarm.errors import SettingError

__all__ = ["Booster", "model_has", "stopped_early"]

E = TypeVar("E", bound=Estimator)

BOOSTERS = ("lightgbm", "xgboost", "catboost")
VALIDATION_SHARE = 0.1
"""The share of the training rows that decide when to stop."""


class WithModel(Protocol):
    """An estimator that fits another one, its model."""

    estimator: Estimator


def model_has(method: str) -> Callable[[WithModel], bool]:
    """Return a check that the model inside an estimator has a method, for `available_if`."""

    def check(outer: WithModel) -> bool:
        getattr(getattr(outer, "estimator_", outer.estimator), method)  # AttributeError if it has none
        return True

    return check


class Booster(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A model of LightGBM, XGBoost or CatBoost that stops adding trees when left-out rows are predicted no better.

    The left-out rows are drawn from the rows passed to ``fit``; in a cross-validation these are the training rows of a
    fold, so its test rows are never used. A classifier's classes may be text for XGBoost too.

    Parameters
    ----------
    estimator : model of LightGBM, XGBoost or CatBoost
        CatBoost without ``cat_features`` gets the columns of dtype ``category`` of a pandas frame as categories, as
        text, with the missing ones as a category of their own.
    early_stopping : int or None
        Stop after this many trees without a better score on the left-out rows. None never stops.
    random_state : int
        Draws the left-out rows.

    Attributes
    ----------
    estimator_ : the fitted model
    classes_ : the classes of a classifier
    validation_rows_ : positions of the left-out rows; empty without early stopping
    """

    def __init__(self, estimator: Estimator, early_stopping: int | None = None, random_state: int = 0) -> None:
        self.estimator = estimator
        self.early_stopping = early_stopping
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: object) -> Self:
        """Fit the model on most rows, and stop by the others."""
        target: AnyArray = np.asarray(y)
        X, categories = self._for_catboost(X)
        if is_classifier(self.estimator):
            self.classes_, codes = np.unique(target, return_inverse=True)
            if library_of(self.estimator) == "xgboost":
                target = codes.reshape(target.shape)
        weights = None if sample_weight is None else np.asarray(sample_weight)
        self.validation_rows_ = self._draw_validation_rows(target)
        rows = np.setdiff1d(np.arange(len(target)), self.validation_rows_)
        model: Any = clone(self.estimator)
        arguments = dict(params)
        if categories:
            arguments["cat_features"] = categories
        if weights is not None:
            arguments["sample_weight"] = weights[rows]
        if len(self.validation_rows_):
            held = self.validation_rows_
            held_weights = None if weights is None else weights[held]
            self._add_validation(model, arguments, _safe_indexing(X, held), target[held], held_weights)
            X, target = _safe_indexing(X, rows), target[rows]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The argument 'eval_set' is deprecated")
            self.estimator_ = model.fit(X, target, **arguments)
        return self

    def _for_catboost(self, X: Any) -> tuple[Any, list[str]]:
        """Return the table as CatBoost needs it, and its columns of categories."""
        if library_of(self.estimator) != "catboost" or not hasattr(X, "iloc"):
            return X, []
        if self.estimator.get_params().get("cat_features") is not None:
            return X, []
        names = [name for name, dtype in X.dtypes.items() if str(dtype) == "category"]
        X = X.copy()
        for name in names:
            X[name] = X[name].astype(object).where(X[name].notna(), "missing").astype(str)
        return X, names

    def _draw_validation_rows(self, y: AnyArray) -> IntArray:
        """Return the rows that decide when to stop: a share of each class, but never all rows of a class."""
        if self.early_stopping is None:
            return np.empty(0, dtype=np.intp)
        rng = np.random.default_rng(self.random_state)
        codes = np.unique(y, return_inverse=True)[1].reshape(-1) if is_classifier(self.estimator) else np.zeros(len(y))
        parts = []
        for code in np.unique(codes):
            members = np.flatnonzero(codes == code)
            count = min(max(1, round(VALIDATION_SHARE * len(members))), len(members) - 1)
            parts.append(rng.permutation(members)[:count])
        return np.sort(np.concatenate(parts)).astype(np.intp)

    def _add_validation(
        self, model: Any, arguments: dict[str, object], X: object, y: AnyArray, weights: AnyArray | None
    ) -> None:
        """Pass the left-out rows to the model, in the way of its library."""
        library = library_of(self.estimator)
        if library == "lightgbm":
            from lightgbm import LGBMModel, early_stopping

            arguments["callbacks"] = [early_stopping(self.early_stopping, verbose=False)]
            if "eval_set" in signature(LGBMModel.fit).parameters:  # deprecated, but eval_y of 4.7 must not be text
                arguments["eval_set"] = [(X, y)]
            else:
                arguments |= {"eval_X": (X,), "eval_y": (y,)}
            if weights is not None:
                arguments["eval_sample_weight"] = [weights]
        elif library == "xgboost":
            model.set_params(early_stopping_rounds=self.early_stopping)
            arguments |= {"eval_set": [(X, y)], "verbose": False}
            if weights is not None:
                arguments["sample_weight_eval_set"] = [weights]
        else:
            arguments |= {"eval_set": (X, y), "early_stopping_rounds": self.early_stopping, "verbose": False}

    @available_if(model_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: object) -> AnyArray:
        """Predict the target."""
        check_is_fitted(self)
        found: AnyArray = np.asarray(self.estimator_.predict(self._for_catboost(X)[0]))
        if found.ndim == 2 and found.shape[1] == 1:  # CatBoost, with more than two classes
            found = found[:, 0]
        return self.classes_[found] if library_of(self.estimator) == "xgboost" and hasattr(self, "classes_") else found

    @available_if(model_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: object) -> FloatArray:
        """Predict the probabilities of the classes."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(self._for_catboost(X)[0]))

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """Return the accuracy of a classifier, or R² of a regressor."""
        from sklearn.metrics import accuracy_score, r2_score

        score = accuracy_score if is_classifier(self) else r2_score
        return float(score(y, self.predict(X), sample_weight=sample_weight))

    @property
    def feature_importances_(self) -> FloatArray:
        """The importances of the columns that the model computes."""
        return np.asarray(self.estimator_.feature_importances_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.input_tags = inner.input_tags
        tags.target_tags.required = True
        return tags


def stopped_early(estimator: E, rounds: int | None, random_state: int = 0) -> E:
    """Return the estimator with early stopping: the booster itself, or a pipeline that ends with one.

    Raises
    ------
    SettingError
        If the estimator does not add trees one after the other.
    """
    check_int("early_stopping", rounds, low=1, optional=True)
    if rounds is None:
        return estimator
    if isinstance(estimator, Pipeline) and hasattr(estimator.steps[-1][1], "fit"):
        name, last = estimator.steps[-1]
        steps = [*estimator.steps[:-1], (name, stopped_early(last, rounds, random_state))]
        return cast(E, copy(estimator).set_params(steps=steps))
    if isinstance(estimator, HistGradientBoostingClassifier | HistGradientBoostingRegressor):
        return cast(E, clone(estimator).set_params(early_stopping=True, n_iter_no_change=rounds))
    if isinstance(estimator, Booster):
        return cast(E, clone(estimator).set_params(early_stopping=rounds))
    if library_of(estimator) in BOOSTERS:
        return cast(E, Booster(estimator, early_stopping=rounds, random_state=random_state))
    raise SettingError(
        f"early_stopping={rounds} needs a model of LightGBM, XGBoost or CatBoost, or HistGradientBoosting; got "
        f"{shown(estimator)}."
    )
