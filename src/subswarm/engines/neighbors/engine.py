"""k nearest neighbours for many subsets at once: a matrix product as a filter, and exact distances where needed.

What "exact" means for nearest neighbours
-----------------------------------------
The engine uses one fixed rule. The nearest rows are those with the smallest sum, over the columns in order, of squared
(or absolute) differences of the scaled values in double precision. Rows at the same distance are taken in the order of
their row number. Votes that tie go to the lowest class.

The losses equal scikit-learn's except where distances tie or differ by rounding only. There scikit-learn's own choice
depends on its search tree, or on the rounding of its matrix product, and another row can be taken for a neighbour.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.utils.extmath import weighted_mode

from subswarm._types import AnyArray, Estimator, FloatArray, IntArray, Mask, Masks
from subswarm.engines.data import Codes, FoldedData, Int64Array
from subswarm.engines.fast import FastEngine
from subswarm.engines.metrics import (
    LABEL_SCORERS,
    RANKING_SCORERS,
    REGRESSION_SCORERS,
    FixedPredictions,
    FixedValues,
)
from subswarm.engines.neighbors.finder import NeighborFinder
from subswarm.engines.neighbors.layout import NeighborLayout, rows_are_distinct
from subswarm.engines.recipe import class_codes, is_standard_scorer, recipe_for
from subswarm.engines.threads import n_threads

__all__ = ["KNeighborsEngine", "is_euclidean"]

_MODELS = (KNeighborsClassifier, KNeighborsRegressor)
_EUCLIDEAN, _CITY_BLOCK = ("euclidean", "l2"), ("manhattan", "l1", "cityblock")


class KNeighborsEngine(FastEngine):
    """Scores `KNeighborsClassifier` and `KNeighborsRegressor`, alone or behind one of scikit-learn's scalers."""

    name: ClassVar[str] = "knn"

    def __init__(self, estimator: Estimator, data: FoldedData, *, n_jobs: int | None = None, max_bytes: int) -> None:
        super().__init__(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)
        recipe = recipe_for(estimator, _MODELS)
        assert recipe is not None
        model = recipe.model
        self._layout = NeighborLayout.of(data, recipe.scaler)
        self._weighted = model.weights == "distance"
        self._regression = type(model) is KNeighborsRegressor
        coded = None if self._regression else class_codes(data)
        self._labels = np.zeros(len(data.X), dtype=np.int64) if coded is None else coded[1]
        self._n_classes = 0 if coded is None else len(coded[0])
        self._all_classes = np.empty(0) if coded is None else coded[0]
        self._truth = self._labels[self._layout.tests].astype(np.int16)
        self._finder = NeighborFinder(
            self._layout,
            n_neighbors=int(model.n_neighbors),
            city_block=_is_city_block(model),
            threads=n_threads(n_jobs),
            max_bytes=max_bytes,
        )

    @classmethod
    def is_usable_for(cls, estimator: Estimator, data: FoldedData) -> bool:
        """Return whether the engine scores this estimator, data and scorer exactly (see above)."""
        recipe = recipe_for(estimator, _MODELS)
        return (
            recipe is not None
            and not data.params
            and data.y.ndim == 1
            and (is_euclidean(recipe.model) or _is_city_block(recipe.model))
            and not getattr(recipe.scaler, "clip", False)
            and _has_known_scorer(estimator, recipe.model, data)
            and not np.isnan(data.X).any()
            and rows_are_distinct(data.folds)
            and _settings_are_valid(recipe.model, data)
        )

    @property
    def facts(self) -> dict[str, int]:
        """Test rows so far that the filter left in doubt, and distances computed for them in double precision."""
        rows, distances = self._finder.rechecked
        return {"rechecked": rows, "distances": distances}

    def predictions(self, mask: Mask) -> AnyArray:
        """Return the predictions for all test rows, fold after fold; no column may be left to scikit-learn."""
        if self._regression:
            return self._values(self._finder.in_order(np.flatnonzero(mask))[0])
        return np.asarray(self._all_classes[self._codes(mask[None])[0]])

    def _scores(self, masks: Masks) -> FloatArray:
        scores = np.full((len(masks), self._data.n_folds), np.nan)
        sure = ~(masks & self._layout.unsure).any(axis=1)
        if sure.any():
            scores[sure] = self._sure_scores(masks[sure])
        return scores

    def _sure_scores(self, masks: Masks) -> FloatArray:
        if self._regression:
            return self._score_each(masks, self._regression_scores)
        if self._data.scoring.name in RANKING_SCORERS:
            return self._score_each(masks, self._probability_scores)
        codes = self._codes(masks)
        if self._data.scoring.name == "accuracy":
            return np.asarray(self._layout.count_correct(codes, self._truth) / np.diff(self._layout.test_starts))
        return np.array([self._label_scores(row) for row in codes])

    def _score_each(self, masks: Masks, score: Callable[[Int64Array, FloatArray], FloatArray]) -> FloatArray:
        return np.array([score(*self._finder.in_order(np.flatnonzero(mask))) for mask in masks])

    def _codes(self, masks: Masks) -> Codes:
        """Return the predicted class of each test row, (P, all test rows)."""
        if not self._weighted:
            return self._finder.votes(masks, self._labels, self._n_classes)
        codes = np.empty((len(masks), len(self._truth)), dtype=np.int16)
        for p, mask in enumerate(masks):
            nearest, distances = self._finder.in_order(np.flatnonzero(mask))
            codes[p] = weighted_mode(self._labels[nearest], self._weights(distances), axis=1)[0].ravel()
        return codes

    def _label_scores(self, codes: Codes) -> FloatArray:
        labels = self._all_classes[codes]

        def predict(f: int) -> tuple[FixedPredictions, AnyArray]:
            known = np.unique(self._data.y[self._data.folds[f].train])
            rows = self._layout.rows_of(f)
            return FixedPredictions(known, labels[rows]), labels[rows]

        return self._score_folds(predict)

    def _probability_scores(self, nearest: Int64Array, distances: FloatArray) -> FloatArray:
        weights = self._weights(distances) if self._weighted else np.ones(nearest.shape)
        votes = np.zeros((len(nearest), self._n_classes))
        for s in range(nearest.shape[1]):
            votes[np.arange(len(nearest)), self._labels[nearest[:, s]]] += weights[:, s]

        def predict(f: int) -> tuple[FixedPredictions, AnyArray]:
            known = np.unique(self._labels[self._data.folds[f].train])
            ballots = np.ascontiguousarray(votes[self._layout.rows_of(f)][:, known])
            shares = ballots / ballots.sum(axis=1)[:, None]
            classes = self._all_classes[known]
            return FixedPredictions(classes, classes[shares.argmax(axis=1)], shares), shares

        return self._score_folds(predict)

    def _regression_scores(self, nearest: Int64Array, distances: FloatArray) -> FloatArray:
        values = self._values(nearest)

        def predict(f: int) -> tuple[FixedValues, AnyArray]:
            rows = self._layout.rows_of(f)
            return FixedValues(values[rows]), values[rows]

        return self._score_folds(predict)

    def _values(self, nearest: Int64Array) -> FloatArray:
        return np.asarray(np.mean(self._data.y[nearest], axis=1))

    def _weights(self, distances: FloatArray) -> FloatArray:
        """Return one over the distance; in rows with neighbours at distance zero only these count."""
        lengths = distances if self._finder.city_block else np.sqrt(distances)
        weights = 1.0 / lengths
        infinite = np.isinf(weights)
        at_zero = infinite.any(axis=1)
        weights[at_zero] = infinite[at_zero]
        return weights


def is_euclidean(model: KNeighborsClassifier) -> bool:
    """Return whether the model's distance is the euclidean one."""
    return _has_plain_metric(model) and (model.metric in _EUCLIDEAN or (model.metric == "minkowski" and model.p == 2))


def _is_city_block(model: KNeighborsClassifier) -> bool:
    return _has_plain_metric(model) and (model.metric in _CITY_BLOCK or (model.metric == "minkowski" and model.p == 1))


def _has_plain_metric(model: KNeighborsClassifier) -> bool:
    return model.metric_params is None and isinstance(model.metric, str) and isinstance(model.p, Real)


def _has_known_scorer(estimator: Estimator, model: KNeighborsClassifier, data: FoldedData) -> bool:
    if not isinstance(model.weights, str):
        return False
    if type(model) is KNeighborsRegressor:
        return model.weights == "uniform" and is_standard_scorer(estimator, data, REGRESSION_SCORERS)
    return (
        model.weights in ("uniform", "distance")
        and class_codes(data) is not None
        and is_standard_scorer(estimator, data, LABEL_SCORERS | RANKING_SCORERS)
    )


def _settings_are_valid(model: KNeighborsClassifier, data: FoldedData) -> bool:
    """Return whether scikit-learn accepts the model's settings, and every fold has enough rows."""
    try:
        smallest = min(data.folds, key=lambda fold: len(fold.train))
        rows: IntArray = np.arange(len(smallest.train), dtype=np.intp)
        clone(model).fit(rows[:, None].astype(float), data.y[smallest.train]).kneighbors(np.zeros((1, 1)))
    except Exception:
        return False
    return True
