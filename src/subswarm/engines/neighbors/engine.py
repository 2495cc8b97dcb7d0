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

from functools import partial
from numbers import Real
from typing import ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from subswarm._types import AnyArray, Estimator, FloatArray, IntArray, Mask, Masks
from subswarm.engines.data import Codes, FoldedData
from subswarm.engines.fast import FastEngine
from subswarm.engines.metrics import FixedPredictions, FixedValues, needed_predictions
from subswarm.engines.neighbors.finder import NeighborFinder
from subswarm.engines.neighbors.layout import NeighborLayout, rows_are_distinct
from subswarm.engines.recipe import class_codes, is_standard_scorer, recipe_for
from subswarm.engines.workers import n_threads

__all__ = ["KNeighborsEngine", "is_euclidean"]

_MODELS = (KNeighborsClassifier, KNeighborsRegressor)
_LARGE_OFFSET = 1e3
"""Targets that are larger than their spread by this factor are added up nearest first, as scikit-learn does."""
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
        self._known = [np.unique(self._labels[fold.train]) for fold in data.folds]
        self._is_accuracy = is_standard_scorer(estimator, data, frozenset({"accuracy"}))
        self._adds_in_order = self._regression and not np.abs(data.y).max() <= _LARGE_OFFSET * np.std(data.y)
        self._threads = n_threads(n_jobs)
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
            return np.asarray(self._values(mask[None])[0])
        return np.asarray(self._all_classes[self._codes(mask[None])[0]])

    def _scores(self, masks: Masks) -> FloatArray:
        scores = np.full((len(masks), self._data.n_folds), np.nan)
        sure = ~(masks & self._layout.unsure).any(axis=1)
        for rows in self._blocks(np.flatnonzero(sure)):
            scores[rows] = self._sure_scores(masks[rows])
        return scores

    def _blocks(self, rows: IntArray) -> list[IntArray]:
        """Split the masks so that the neighbours of a block take a share of the memory."""
        if self._is_accuracy and not self._weighted and not self._finder.city_block:
            return [rows] if len(rows) else []
        each = 64 * len(self._truth) * max(self._finder.n_neighbors, self._n_classes)
        length = max(1, self._max_bytes // each)
        return [rows[start : start + length] for start in range(0, len(rows), length)]

    def _sure_scores(self, masks: Masks) -> FloatArray:
        if self._needs == "values":
            values = self._values(masks)
            if self._metric is not None:
                return self._metric.score_all(values, self._threads)
            return np.array([self._score_folds(partial(self._fixed_values, row)) for row in values])
        if self._needs == "labels":
            codes = self._codes(masks)
            if self._is_accuracy:
                return np.asarray(self._layout.count_correct(codes, self._truth) / np.diff(self._layout.test_starts))
            if self._metric is not None:
                return self._metric.score_all(self._places_among_known(codes), self._threads)
            return np.array([self._score_folds(partial(self._fixed_labels, row)) for row in codes])
        shares = self._shares(masks)
        if self._metric is None:
            return np.array([self._score_folds(partial(self._fixed_shares, row)) for row in shares])
        return self._metric.score_all(shares[:, :, 1] if self._needs == "scores" else shares, self._threads)

    def _codes(self, masks: Masks) -> Codes:
        """Return the predicted class of each test row among all classes, (P, all test rows)."""
        if not self._weighted:
            return self._finder.votes(masks, self._labels, self._n_classes)
        nearest, distances = self._finder.neighbors_of(masks, in_order=True)
        labels, weights = self._labels[nearest], self._weights(distances)
        best, codes = np.zeros(nearest.shape[:2]), np.zeros(nearest.shape[:2], dtype=np.int16)
        for c in range(self._n_classes):
            votes = np.where(labels == c, weights, 0.0).sum(axis=2)
            codes[votes > best] = c
            best = np.maximum(votes, best)
        return codes

    def _places_among_known(self, codes: Codes) -> Codes:
        """Return the predicted classes as positions among those of each fold's training rows."""
        if all(len(known) == self._n_classes for known in self._known):
            return codes
        places = [np.searchsorted(known, codes[:, self._layout.rows_of(f)]) for f, known in enumerate(self._known)]
        return np.concatenate(places, axis=1).astype(np.int16)

    def _shares(self, masks: Masks) -> FloatArray:
        """Return the probability of each class for each test row, (P, all test rows, C), as `predict_proba` does."""
        nearest, distances = self._finder.neighbors_of(masks, in_order=self._weighted)
        if self._weighted:
            labels, weights = self._labels[nearest], self._weights(distances)
            votes = np.zeros((*nearest.shape[:2], self._n_classes))
            rows = np.ix_(*(np.arange(length) for length in nearest.shape[:2]))
            for s in range(nearest.shape[2]):
                votes[(*rows, labels[:, :, s])] += weights[:, :, s]
        else:
            votes = self._finder.count_votes(nearest, self._labels, self._n_classes)
        for f, known in enumerate(self._known):
            if len(known) < self._n_classes:
                own = self._layout.rows_of(f)
                votes[:, own, : len(known)] = votes[:, own][:, :, known]
                votes[:, own, len(known) :] = 0.0
        votes /= votes.sum(axis=2, keepdims=True)
        return votes

    def _values(self, masks: Masks) -> FloatArray:
        """Return the mean target of the neighbours of each test row, (P, all test rows)."""
        nearest, distances = self._finder.neighbors_of(masks, in_order=self._weighted or self._adds_in_order)
        if not self._weighted:
            if self._adds_in_order:
                return np.asarray(np.mean(self._data.y[nearest], axis=2))
            return self._finder.mean_values(nearest, np.asarray(self._data.y, dtype=np.float64))
        weights = self._weights(distances)
        return np.asarray(np.sum(self._data.y[nearest] * weights, axis=2) / np.sum(weights, axis=2))

    def _fixed_values(self, values: FloatArray, fold: int) -> tuple[FixedValues, AnyArray]:
        own = values[self._layout.rows_of(fold)]
        return FixedValues(own), own

    def _fixed_labels(self, codes: Codes, fold: int) -> tuple[FixedPredictions, AnyArray]:
        labels = self._all_classes[codes[self._layout.rows_of(fold)]]
        return FixedPredictions(self._all_classes[self._known[fold]], labels), labels

    def _fixed_shares(self, shares: FloatArray, fold: int) -> tuple[FixedPredictions, AnyArray]:
        classes = self._all_classes[self._known[fold]]
        own = np.ascontiguousarray(shares[self._layout.rows_of(fold), : len(classes)])
        return FixedPredictions(classes, classes[own.argmax(axis=1)], own), own

    def _weights(self, distances: FloatArray) -> FloatArray:
        """Return one over the distance; in rows with neighbours at distance zero only these count."""
        lengths = distances if self._finder.city_block else np.sqrt(distances)
        weights = 1.0 / lengths
        infinite = np.isinf(weights)
        at_zero = infinite.any(axis=-1)
        weights[at_zero] = infinite[at_zero]
        return np.asarray(weights)


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
    if model.weights not in ("uniform", "distance"):
        return False
    is_coded = type(model) is KNeighborsRegressor or class_codes(data) is not None
    return is_coded and needed_predictions(data.scoring, estimator, data) is not None


def _settings_are_valid(model: KNeighborsClassifier, data: FoldedData) -> bool:
    """Return whether scikit-learn accepts the model's settings, and every fold has enough rows."""
    try:
        smallest = min(data.folds, key=lambda fold: len(fold.train))
        rows: IntArray = np.arange(len(smallest.train), dtype=np.intp)
        clone(model).fit(rows[:, None].astype(float), data.y[smallest.train]).kneighbors(np.zeros((1, 1)))
    except Exception:
        return False
    return True
