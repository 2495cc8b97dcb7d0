"""Which estimators the fast engines know: a model alone, or one scaler and a model in a pipeline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.metrics import check_scoring, get_scorer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from subswarm._types import AnyArray, BoolArray, FloatArray
from subswarm.engines.data import Fold, FoldedData, Int64Array

__all__ = ["Recipe", "class_codes", "is_standard_scorer", "recipe_for", "scaled_rows"]

_MOST_CLASSES = int(np.iinfo(np.int16).max)
"""The engines store predicted classes as 16-bit codes."""
_SCALERS = (StandardScaler, MinMaxScaler, RobustScaler)


@dataclass(frozen=True, eq=False)
class Recipe:
    """The parts of an estimator: the scaler that comes first (or None) and the model behind it."""

    scaler: TransformerMixin | None
    model: BaseEstimator


def recipe_for(estimator: BaseEstimator, models: tuple[type, ...]) -> Recipe | None:
    """Return the parts of an estimator that consists of exactly the known types, or None, as for subclasses."""
    if type(estimator) in models:
        return Recipe(None, estimator)
    if type(estimator) is not Pipeline or estimator.memory is not None or len(estimator.steps) != 2:
        return None
    scaler, model = (step for _, step in estimator.steps)
    if type(scaler) not in _SCALERS or type(model) not in models or getattr(estimator, "transform_input", None):
        return None
    return Recipe(scaler, model) if _is_plain(scaler) else None


def _is_plain(scaler: TransformerMixin) -> bool:
    """Return whether the scaler's settings are valid and its output is an array (no ``set_output``)."""
    if getattr(scaler, "_sklearn_output_config", None):
        return False
    try:
        scaler.__class__(**scaler.get_params()).fit_transform(np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 4.0]]))
    except Exception:
        return False
    return True


def is_standard_scorer(estimator: object, data: FoldedData, names: frozenset[str]) -> bool:
    """Return whether the data are scored by scikit-learn's own scorer of that name, and it is one of ``names``."""
    scoring = data.scoring
    if scoring.name not in names:
        return False
    own = check_scoring(estimator, scoring=None)
    if type(scoring.scorer) is type(own) and not isinstance(scoring.scorer, type(get_scorer("accuracy"))):
        return scoring.name in ("accuracy", "r2")
    named = get_scorer(scoring.name)
    return type(scoring.scorer) is type(named) and vars(scoring.scorer) == vars(named)


def class_codes(data: FoldedData) -> tuple[AnyArray, Int64Array] | None:
    """Return the sorted classes and each row's position among them.

    None if the target is not one column of classes, or has more classes than the engines' codes can represent.
    """
    if data.y.ndim != 1:
        return None
    try:
        classes, codes = np.unique(data.y, return_inverse=True)
    except TypeError:
        return None
    return (classes, codes.astype(np.int64)) if len(classes) <= _MOST_CLASSES else None


def scaled_rows(X: FloatArray, fold: Fold, scaler: TransformerMixin | None) -> tuple[FloatArray, FloatArray]:
    """Return the scaled training and test rows of one fold, all columns.

    scikit-learn's scalers treat each column separately, so the columns of a subset are scaled as here. Columns whose
    scaling could depend on the order of a sum (a spread that is nothing but rounding) are NaN: an engine must leave
    subsets with such a column to scikit-learn.
    """
    train, test = np.ascontiguousarray(X[fold.train]), np.ascontiguousarray(X[fold.test])
    if scaler is None:
        return train, test
    fitted = clone(scaler).fit(train)
    doubtful = _doubtful_columns(fitted, train)
    train, test = (np.ascontiguousarray(fitted.transform(rows)) for rows in (train, test))
    train[:, doubtful] = np.nan
    return train, test


def _doubtful_columns(fitted: TransformerMixin, train: FloatArray) -> BoolArray:
    if type(fitted) is not StandardScaler or not fitted.with_std:
        return np.zeros(train.shape[1], dtype=bool)
    constant = train.min(axis=0) == train.max(axis=0)
    rounding = 4 * len(train) * np.finfo(float).eps * np.abs(train).max(axis=0)
    return np.asarray(~constant & (np.sqrt(fitted.var_) <= rounding))
