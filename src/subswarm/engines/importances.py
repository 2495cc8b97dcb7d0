"""Importances of the columns, taken from the models that are fitted to score a subset."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.pipeline import Pipeline

from subswarm._types import AnyArray, Estimator, FloatArray, Mask, Scorer
from subswarm.engines.data import FoldedData, is_frame
from subswarm.engines.reference import try_scores

__all__ = ["FoldFit", "importances_of", "offers_importances", "score_fold"]

MOST_ROWS = 200
"""Rows on which the change of predictions is measured."""
MOST_NUMBERS = 4_000_000
"""Numbers in the largest table of permuted rows that is predicted at once."""


@dataclass(frozen=True, eq=False)
class FoldFit:
    """What the fits on the folds of a subset give.

    Attributes
    ----------
    scores : the score in each fold, or the exception of an estimator that failed
    importances : mean importances of the columns, shape (n,). Those of one model sum to 1; they are 0 for columns that
        the mask leaves out, and where the model has none
    offered : whether the model has importances of its own
    """

    scores: FloatArray | Exception
    importances: FloatArray
    offered: bool


def score_fold(estimator: Estimator, data: FoldedData, mask: Mask) -> FoldFit:
    """Score a subset in the folds of ``data``, and take the importances of its columns from the same fits."""
    watcher = _Watcher(data.scoring.scorer, int(mask.sum()))
    watched = replace(data, scoring=replace(data.scoring, scorer=watcher))
    scores = try_scores(estimator, watched, mask)
    importances = np.zeros(len(mask))
    if watcher.found:
        importances[mask] = np.mean(watcher.found, axis=0)
    return FoldFit(scores, importances, watcher.offered)


class _Watcher:
    """A scorer that notes the importances of the columns in each model it scores."""

    def __init__(self, scorer: Scorer, n_columns: int) -> None:
        self._scorer = scorer
        self._n_columns = n_columns
        self.found: list[FloatArray] = []
        self.offered = False

    def __call__(self, model: object, X: AnyArray, *args: object, **params: object) -> float:
        score = self._scorer(model, X, *args, **params)
        self.offered = offers_importances(model)
        found = importances_of(model, self._n_columns)
        if found is None:
            found = _prediction_changes(model, X, self._n_columns)
        total = found.sum()
        self.found.append(found / total if total > 0 else found)
        return score

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_scorer":  # copies and pickles look for these before there is a scorer
            raise AttributeError(name)
        return getattr(self._scorer, name)  # such as the metadata that a scikit-learn scorer requests


def offers_importances(model: object) -> bool:
    """Return whether a fitted model has ``feature_importances_`` or ``coef_``, or is histogram gradient boosting.

    For the latter, which has none, the changes of its predictions take their place.
    """
    return _raw_importances(model) is not None or isinstance(
        _last_step(model), HistGradientBoostingClassifier | HistGradientBoostingRegressor
    )


def importances_of(model: object, n_columns: int) -> FloatArray | None:
    """Return ``feature_importances_``, or the mean size of ``coef_``, of a fitted model or of a pipeline's last step.

    None if there are none, or not one for each column (because an earlier step of a pipeline makes other columns).
    """
    raw = _raw_importances(model)
    try:
        found = np.abs(np.asarray(raw, dtype=np.float64))
    except (TypeError, ValueError):
        return None
    found = found.reshape(-1, found.shape[-1]).mean(axis=0) if found.ndim else found
    return found if found.shape == (n_columns,) and np.isfinite(found).all() else None


def _last_step(model: object) -> object:
    """Return the model inside pipelines and searches over settings."""
    while isinstance(model, Pipeline) or hasattr(model, "best_estimator_"):
        model = model[-1] if isinstance(model, Pipeline) else model.best_estimator_
    return model


def _raw_importances(model: object) -> object:
    model = _last_step(model)
    found = getattr(model, "feature_importances_", None)
    return getattr(model, "coef_", None) if found is None else found


def _prediction_changes(model: Any, X: Any, n_columns: int) -> FloatArray:
    """Return how much the predictions change on average if a column is permuted among the rows.

    This takes predictions and no fit, and not the target. It is zero if the model cannot predict such rows.
    """
    try:
        rows = X[:MOST_ROWS]
        count = rows.shape[0]
        predict = next(
            getattr(model, name) for name in ("predict_proba", "decision_function", "predict") if hasattr(model, name)
        )
        usual = np.asarray(predict(rows)).reshape(count, -1)
        changes = np.zeros(n_columns)
        at_once = max(1, MOST_NUMBERS // (count * n_columns))
        for first in range(0, n_columns, at_once):
            columns = range(first, min(first + at_once, n_columns))
            found = np.asarray(predict(_permuted(rows, columns))).reshape(len(columns), *usual.shape)
            differences = np.abs(found - usual) if usual.dtype.kind in "fiu" else found != usual
            changes[columns.start : columns.stop] = differences.mean(axis=(1, 2))
    except Exception:  # a model that refuses these rows
        return np.zeros(n_columns)
    return changes if np.isfinite(changes).all() else np.zeros(n_columns)


def _permuted(rows: Any, columns: range) -> Any:
    """Return the rows once for each of these columns, one below the other, each time with this column permuted."""
    count = rows.shape[0]
    usual = np.tile(np.arange(count), len(columns))
    if sparse.issparse(rows):
        return type(rows)(_permuted(rows.toarray(), columns))
    table = rows.iloc[usual].reset_index(drop=True) if hasattr(rows, "iloc") else rows[usual]
    for place, column in enumerate(columns):
        order = usual.copy()
        order[place * count : (place + 1) * count] = np.roll(np.arange(count), count // 2)
        if hasattr(rows, "iloc"):
            table.isetitem(column, rows.iloc[order, column].array)
        elif is_frame(rows):
            table = table.with_columns(rows.to_series(column)[order])
        else:
            table[:, column] = rows[order, column]
    return table
