"""Nearest centroids of many subsets at once: a distance is a sum over the columns of a subset.

`NearestCentroid` compares distances to the centroids if the classes are equally probable, and otherwise, and for
probabilities, squared distances of columns that are divided by their deviation within the classes. What each column
adds is the same in all subsets and is computed once for each fold. Distances that rounding does not decide are left to
scikit-learn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestCentroid

from subswarm._compilation import kernels_of
from subswarm._types import AnyArray, BoolArray, Estimator, FloatArray, Masks
from subswarm.engines.data import FoldedData, Int64Array
from subswarm.engines.fast import column_lists
from subswarm.engines.linear.predictions import PredictionEngine
from subswarm.engines.linear.tables import EPS
from subswarm.engines.metrics import needed_predictions
from subswarm.engines.recipe import recipe_for

__all__ = ["CentroidEngine", "ColumnTerms"]


class ColumnTerms(NamedTuple):
    """What each of n columns adds to the scores of the test rows of F folds.

    Attributes
    ----------
    terms : fold after fold, score after score, column after column; a fold begins at its entry of ``offsets``
    starts, sizes : (F,), the position of a fold among all test rows, and its number of rows
    constant : (F, T), added to the sum of a subset's terms
    n_scores : (F,), scores in use
    reach : (F, n), what a column adds to the error of a score, for each column of the subset; infinite if the column is
        left to scikit-learn
    more : (F,), how many columns to count in addition
    varies : (F, n), whether a column has different values in training; scikit-learn refuses subsets without one
    """

    terms: FloatArray
    offsets: Int64Array
    starts: Int64Array
    sizes: Int64Array
    constant: FloatArray
    n_scores: Int64Array
    reach: FloatArray
    more: FloatArray
    varies: BoolArray


class _FoldTerms(NamedTuple):
    """One fold's part of `ColumnTerms`; the terms are (T, n, rows)."""

    terms: FloatArray
    constant: FloatArray
    reach: FloatArray
    more: float
    varies: BoolArray


class CentroidEngine(PredictionEngine):
    """Scores `NearestCentroid` without shrinking, alone or behind a scaler."""

    name: ClassVar[str] = "centroids"
    models: ClassVar[tuple[type, ...]] = (NearestCentroid,)
    subtracts: ClassVar[bool] = False

    def __init__(self, estimator: Estimator, data: FoldedData, *, n_jobs: int | None = None, max_bytes: int) -> None:
        super().__init__(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)
        self._whole: ColumnTerms | None = None

    @classmethod
    def is_usable_for(cls, estimator: Estimator, data: FoldedData) -> bool:
        """Return whether the engine scores this estimator, data and scorer as scikit-learn does."""
        if not super().is_usable_for(estimator, data):
            return False
        recipe = recipe_for(estimator, cls.models)
        assert recipe is not None
        if recipe.model.metric == "euclidean":
            return True
        priors = [_prior(recipe.model, np.unique(data.y[fold.train], return_counts=True)[1]) for fold in data.folds]
        return needed_predictions(data.scoring, estimator, data) == "labels" and all(
            _is_uniform(prior) for prior in priors
        )

    @classmethod
    def _knows(cls, model: BaseEstimator) -> bool:
        priors = getattr(model, "priors", "uniform")
        return (
            model.metric in ("euclidean", "manhattan")
            and model.shrink_threshold is None
            and (not isinstance(priors, str) or priors in ("uniform", "empirical"))
            and priors is not None
        )

    def _n_scores(self) -> int:
        most = super()._n_scores()
        return 1 if most == 2 else most

    def _evaluate(self, masks: Masks, out: FloatArray, bounds: FloatArray) -> None:
        columns, starts = column_lists(masks)
        for first, last, terms in self._blocks():
            found = out[:, :, self._starts[first] : self._starts[last]]
            errors = bounds[:, self._starts[first] : self._starts[last]]

            def add(
                low: int,
                high: int,
                terms: ColumnTerms = terms,
                found: FloatArray = found,
                errors: FloatArray = errors,
            ) -> None:
                _kernels().add_terms(low, high, columns, starts, terms, found, errors)

            self._spread(add, len(masks), len(columns) * found.shape[1] * found.shape[2])

    def _blocks(self) -> Iterator[tuple[int, int, ColumnTerms]]:
        """Yield as many folds at a time as there is room for; all of them are kept if they fit."""
        F, rows = self._data.n_folds, max(len(fold.test) for fold in self._data.folds)
        if self._whole is None:
            length = max(1, self._max_bytes // (16 * self._data.n_features * rows * self._n_scores()))
            for start in range(0, F, length):
                folds = [self._fold_terms(f) for f in range(start, min(start + length, F))]
                block = _stack(folds)
                if length >= F:
                    self._whole = block
                else:
                    yield start, start + len(folds), block
        if self._whole is not None:
            yield 0, F, self._whole

    def _fold_terms(self, f: int) -> _FoldTerms:
        train, test, codes = self._fold_rows(f)
        model = self._recipe.model
        counts = np.bincount(codes)
        prior = _prior(model, counts)
        centroids = np.array([_centroid(train[codes == c], model.metric) for c in range(len(counts))])
        size = np.abs(train).max(axis=0)
        reach, constant = np.zeros(len(size)), np.zeros(len(counts))
        varies = np.ptp(train, axis=0) != 0
        if self._needs != "labels" or not _is_uniform(prior):
            constant = 2.0 * np.log(prior)
            deviations = np.sqrt(((train - centroids[codes]) ** 2).sum(axis=0) / (len(train) - len(counts)))
            unclear = (deviations <= 4 * len(train) * EPS * size) & (train != np.round(train)).any(axis=0)
            reach[unclear] = np.inf
            divisor = np.where(deviations == 0, 1.0, deviations)
            test, centroids, size = test / divisor, centroids / divisor, size / divisor
        size = np.maximum(size, np.abs(test).max(axis=0))
        gaps = test.T - centroids[:, :, None]
        if model.metric == "manhattan":
            terms, reach = -np.abs(gaps), reach + size
        else:
            terms, reach = -(gaps**2), reach + size**2
        if self._n_scores() == 1:
            terms, constant = terms[1:] - terms[:1], constant[1:] - constant[:1]
        reach[~np.isfinite(terms).all(axis=(0, 2)) | ~np.isfinite(reach)] = np.inf
        return _FoldTerms(terms, constant, 16.0 * EPS * reach, 8.0 + 4.0 * float(np.sqrt(len(train))), varies)


def _stack(folds: Sequence[_FoldTerms]) -> ColumnTerms:
    sizes = np.array([fold.terms.shape[2] for fold in folds], dtype=np.int64)
    T = max(len(fold.constant) for fold in folds)
    return ColumnTerms(
        np.concatenate([fold.terms.ravel() for fold in folds]),
        np.concatenate([[0], np.cumsum([fold.terms.size for fold in folds])[:-1]]).astype(np.int64),
        np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64),
        sizes,
        np.stack([np.pad(fold.constant, (0, T - len(fold.constant))) for fold in folds]),
        np.array([len(fold.constant) for fold in folds], dtype=np.int64),
        np.stack([fold.reach for fold in folds]),
        np.array([fold.more for fold in folds]),
        np.stack([fold.varies for fold in folds]),
    )


def _centroid(rows: FloatArray, metric: str) -> FloatArray:
    return np.asarray(np.median(rows, axis=0) if metric == "manhattan" else rows.mean(axis=0))


def _prior(model: NearestCentroid, counts: AnyArray) -> FloatArray:
    """Return the probabilities of the classes as the model sets them."""
    given = getattr(model, "priors", "uniform")
    if isinstance(given, str):
        return counts / counts.sum() if given == "empirical" else np.full(len(counts), 1 / len(counts))
    prior = np.asarray(given, dtype=np.float64)
    return prior if np.isclose(prior.sum(), 1.0) else prior / prior.sum()


def _is_uniform(prior: FloatArray) -> bool:
    return bool(np.isclose(prior, 1 / len(prior)).all())


def _kernels() -> ModuleType:
    return kernels_of("subswarm.engines.linear.centroids_")
