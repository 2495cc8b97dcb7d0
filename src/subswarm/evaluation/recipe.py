"""Which estimators the fast engines know: a bare model, or one scaler and a model in a pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import check_scoring, get_scorer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from subswarm.evaluation.folds import FoldedData

__all__ = ["Recipe", "class_codes", "recipe_for", "standard_scorer"]

_SCALERS = (StandardScaler, MinMaxScaler, RobustScaler)


@dataclass(frozen=True, eq=False)
class Recipe:
    """An estimator taken apart: the scaler that goes first (None where there is none) and the model behind it."""

    scaler: Any
    model: Any


def recipe_for(estimator: Any, models: tuple[type, ...]) -> Recipe | None:
    """The recipe of an estimator built of exactly the types we know; None for anything else, subclasses included."""
    if type(estimator) in models:
        return Recipe(None, estimator)
    if type(estimator) is not Pipeline or estimator.memory is not None or len(estimator.steps) != 2:
        return None
    scaler, model = (step for _, step in estimator.steps)
    if type(scaler) not in _SCALERS or type(model) not in models or getattr(estimator, "transform_input", None):
        return None
    return Recipe(scaler, model) if _is_plain(scaler) else None


def _is_plain(scaler: Any) -> bool:
    """Whether the scaler's settings are in range and its output is an array (no ``set_output``)."""
    if getattr(scaler, "_sklearn_output_config", None):
        return False
    try:
        scaler.__class__(**scaler.get_params()).fit_transform(np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 4.0]]))
    except Exception:
        return False
    return True


def standard_scorer(estimator: Any, data: FoldedData, names: frozenset[str]) -> bool:
    """Whether the data are scored by scikit-learn's own scorer of that name, and it is one of ``names``."""
    scoring = data.scoring
    if scoring.name not in names:
        return False
    own = check_scoring(estimator, scoring=None)
    if type(scoring.scorer) is type(own) and not isinstance(scoring.scorer, type(get_scorer("accuracy"))):
        return scoring.name in ("accuracy", "r2")
    named = get_scorer(scoring.name)
    return type(scoring.scorer) is type(named) and vars(scoring.scorer) == vars(named)


def class_codes(data: FoldedData) -> tuple[NDArray[Any], NDArray[np.int64]] | None:
    """The sorted classes and each row's position among them; None where the target is not one column of classes."""
    if data.y.ndim != 1:
        return None
    try:
        classes, codes = np.unique(data.y, return_inverse=True)
    except TypeError:
        return None
    return classes, codes.astype(np.int64)
