"""k nearest neighbours for a whole swarm: one matrix product per subset as a filter, exact distances where it matters.

"Nearest" means: the smallest sum over the columns, in order, of squared (or absolute) differences in double precision;
rows at the same distance in the order of their number; votes tie to the lowest class. scikit-learn's own pick among
rows at the same distance depends on its search tree or on the rounding of its products, so there, and only there, the
two may differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.extmath import weighted_mode

from subswarm.core.types import FloatArray, IntArray, Masks
from subswarm.evaluation.answers import LABEL_SCORERS, REGRESSION_SCORERS, Answers, NumericAnswers
from subswarm.evaluation.fast_engine import FastEngine
from subswarm.evaluation.folds import FoldedData
from subswarm.evaluation.knn_layout import NeighborLayout, rows_are_distinct
from subswarm.evaluation.neighbors import NeighborFinder
from subswarm.evaluation.recipe import class_codes, recipe_for, standard_scorer
from subswarm.evaluation.threads import n_threads

__all__ = ["KNeighborsEngine"]

_MODELS = (KNeighborsClassifier, KNeighborsRegressor)
_EUCLIDEAN, _CITY_BLOCK = ("euclidean", "l2"), ("manhattan", "l1", "cityblock")
_PROBABILITY_SCORERS = frozenset({"roc_auc", "roc_auc_ovo", "roc_auc_ovr"})


class KNeighborsEngine(FastEngine):
    """`KNeighborsClassifier` and `KNeighborsRegressor`, bare or behind one of scikit-learn's scalers."""

    name: ClassVar[str] = "knn"

    def __init__(self, estimator: Any, data: FoldedData, *, n_jobs: int | None = None, max_bytes: int) -> None:
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
            city_block=_metric(model) == "city block",
            threads=n_threads(n_jobs),
            max_bytes=max_bytes,
        )

    @classmethod
    def is_usable_for(cls, estimator: Any, data: FoldedData, device: str) -> bool:
        recipe = recipe_for(estimator, _MODELS)
        return (
            recipe is not None
            and device == "cpu"
            and not data.params
            and data.y.ndim == 1
            and _metric(recipe.model) is not None
            and not (type(recipe.scaler) is MinMaxScaler and recipe.scaler.clip)
            and _is_scored_here(estimator, recipe.model, data)
            and not np.isnan(data.X).any()
            and rows_are_distinct(data.folds)
            and _settings_are_sound(recipe.model, data)
        )

    @property
    def rechecked(self) -> tuple[int, int]:
        """Test rows so far that the filter left in doubt, and distances computed for them in double precision."""
        return self._finder.rechecked

    def neighbors(self, mask: NDArray[np.bool_]) -> tuple[NDArray[np.int64], FloatArray]:
        """The nearest training rows of all test rows, fold after fold, nearest first, and the distances."""
        return self._finder.in_order(np.flatnonzero(mask))

    def predictions(self, mask: NDArray[np.bool_]) -> NDArray[Any]:
        """What is predicted for all test rows, fold after fold."""
        if self._regression:
            return self._values(self.neighbors(mask)[0])
        return np.asarray(self._all_classes[self._codes(mask[None])[0]])

    def _scores(self, masks: Masks) -> FloatArray:
        scores = np.full((len(masks), self._data.n_folds), np.nan)
        sure = ~(masks & self._layout.unsure).any(axis=1)
        if sure.any():
            scores[sure] = self._sure_scores(masks[sure])
        return scores

    def _sure_scores(self, masks: Masks) -> FloatArray:
        if self._regression:
            return self._per_mask(masks, self._regression_scores)
        if self._data.scoring.name in _PROBABILITY_SCORERS:
            return self._per_mask(masks, self._probability_scores)
        codes = self._codes(masks)
        if self._data.scoring.name == "accuracy":
            starts, sizes = self._layout.test_starts[:-1], np.diff(self._layout.test_starts)
            return np.asarray(np.add.reduceat(codes == self._truth, starts, axis=1, dtype=np.int32) / sizes)
        return np.array([self._label_scores(row) for row in codes])

    def _per_mask(self, masks: Masks, score: Callable[[NDArray[np.int64], FloatArray], FloatArray]) -> FloatArray:
        return np.array([score(*self._finder.in_order(np.flatnonzero(mask))) for mask in masks])

    def _codes(self, masks: Masks) -> NDArray[np.int16]:
        if not self._weighted:
            return self._finder.votes(masks, self._labels, self._n_classes)
        codes = np.empty((len(masks), len(self._truth)), dtype=np.int16)
        for p, mask in enumerate(masks):
            nearest, distances = self._finder.in_order(np.flatnonzero(mask))
            codes[p] = weighted_mode(self._labels[nearest], self._weights(distances), axis=1)[0].ravel()
        return codes

    def _label_scores(self, codes: NDArray[np.int16]) -> FloatArray:
        labels = self._all_classes[codes]

        def answer(f: int) -> tuple[Any, Any]:
            known = np.unique(self._data.y[self._data.folds[f].train])
            rows = self._rows(f)
            return Answers(known, labels[rows]), labels[rows]

        return self._score_folds(answer)

    def _probability_scores(self, nearest: NDArray[np.int64], distances: FloatArray) -> FloatArray:
        weights = self._weights(distances) if self._weighted else np.ones(nearest.shape)
        votes = np.zeros((len(nearest), self._n_classes))
        for s in range(nearest.shape[1]):
            votes[np.arange(len(nearest)), self._labels[nearest[:, s]]] += weights[:, s]

        def answer(f: int) -> tuple[Any, Any]:
            known = np.unique(self._labels[self._data.folds[f].train])
            rows = self._rows(f)
            ballots = np.ascontiguousarray(votes[rows][:, known])
            shares = ballots / ballots.sum(axis=1)[:, None]
            classes = self._all_classes[known]
            return Answers(classes, classes[shares.argmax(axis=1)], shares), shares

        return self._score_folds(answer)

    def _regression_scores(self, nearest: NDArray[np.int64], distances: FloatArray) -> FloatArray:
        values = self._values(nearest)
        return self._score_folds(lambda f: (NumericAnswers(values[self._rows(f)]), values[self._rows(f)]))

    def _values(self, nearest: NDArray[np.int64]) -> FloatArray:
        return np.asarray(np.mean(self._data.y[nearest], axis=1))

    def _weights(self, distances: FloatArray) -> FloatArray:
        """One over the distance; rows with neighbours at no distance at all count only these."""
        lengths = distances if self._finder.city_block else np.sqrt(distances)
        weights = 1.0 / lengths
        infinite = np.isinf(weights)
        at_zero = infinite.any(axis=1)
        weights[at_zero] = infinite[at_zero]
        return weights

    def _rows(self, fold: int) -> slice:
        return slice(int(self._layout.test_starts[fold]), int(self._layout.test_starts[fold + 1]))


def _metric(model: Any) -> str | None:
    """What the model's distance comes down to; None where it is neither euclidean nor city block."""
    if model.metric_params is not None or not isinstance(model.metric, str):
        return None
    if model.metric in _EUCLIDEAN or (model.metric == "minkowski" and model.p == 2):
        return "euclidean"
    if model.metric in _CITY_BLOCK or (model.metric == "minkowski" and model.p == 1):
        return "city block"
    return None


def _is_scored_here(estimator: Any, model: Any, data: FoldedData) -> bool:
    if type(model) is KNeighborsRegressor:
        return model.weights == "uniform" and standard_scorer(estimator, data, REGRESSION_SCORERS)
    return (
        model.weights in ("uniform", "distance")
        and class_codes(data) is not None
        and standard_scorer(estimator, data, LABEL_SCORERS | _PROBABILITY_SCORERS)
    )


def _settings_are_sound(model: Any, data: FoldedData) -> bool:
    """Whether scikit-learn accepts the model's settings, and every fold has rows enough."""
    try:
        smallest = min(data.folds, key=lambda fold: len(fold.train))
        rows: IntArray = np.arange(len(smallest.train), dtype=np.intp)
        clone(model).fit(rows[:, None].astype(float), data.y[smallest.train]).kneighbors(np.zeros((1, 1)))
    except Exception:
        return False
    return True
