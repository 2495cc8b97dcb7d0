"""Logistic regression for many subsets at once: Newton's method on all rows, then a few steps for each fold.

What "exact" means for logistic regression
------------------------------------------
The engine computes the weights of least loss. scikit-learn's solvers stop at a gradient of ``tol``, or after
``max_iter`` steps, some way before that. The classes are equal but for rows that are close to the border, and the
probabilities agree to about four digits, if scikit-learn converges: on columns of very different scales it may not.
The scores that a fitted selector reports are scikit-learn's own, and ``engine="estimator"`` searches with them too.
"""

from __future__ import annotations

from types import ModuleType
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.class_weight import compute_sample_weight

from subswarm._compilation import kernels_of
from subswarm._types import Estimator, FloatArray, IntArray, Masks
from subswarm.engines.data import FoldedData
from subswarm.engines.fast import column_lists
from subswarm.engines.linear.logistic_tables import LogisticRows
from subswarm.engines.linear.predictions import PredictionEngine, kernels, training_weights
from subswarm.engines.linear.systems import is_number
from subswarm.engines.linear.tables import Scores, TestRows
from subswarm.engines.recipe import class_codes, recipe_for

__all__ = ["LogisticEngine"]

_SEPARATED = 30.0
"""Without a penalty, weights of this size (columns of variance 1) say that the classes are separated: no optimum."""
_SOLVERS = ("lbfgs", "newton-cg", "newton-cholesky", "sag", "saga")


class LogisticEngine(PredictionEngine):
    """Scores `LogisticRegression` without a penalty or with an L2 penalty, alone or behind a scaler."""

    name: ClassVar[str] = "logistic"
    models: ClassVar[tuple[type, ...]] = (LogisticRegression,)
    decides_exactly: ClassVar[bool] = False

    def __init__(self, estimator: Estimator, data: FoldedData, *, n_jobs: int | None = None, max_bytes: int) -> None:
        super().__init__(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)
        self._made: tuple[LogisticRows, TestRows] | None = None

    @classmethod
    def is_usable_for(cls, estimator: Estimator, data: FoldedData) -> bool:
        """Return whether the engine scores this estimator and scorer, on folds that train on most rows."""
        if not super().is_usable_for(estimator, data):
            return False
        recipe = recipe_for(estimator, cls.models)
        assert recipe is not None
        model = recipe.model
        if recipe.scaler is not None and (not model.fit_intercept or getattr(recipe.scaler, "clip", False)):
            return False  # a shift of the columns matters then
        if data.params and model.class_weight is not None:
            return False
        if not _has_weight_in_all_classes(training_weights(estimator, recipe, data), data):
            return False  # there is no optimum
        count = len(np.unique(data.y))
        return all(
            2 * len(fold.train) > len(data.X)
            and len(np.unique(fold.train)) == len(fold.train)
            and len(np.unique(data.y[fold.train])) == count
            for fold in data.folds
        )

    @classmethod
    def _knows(cls, model: BaseEstimator) -> bool:
        penalty = getattr(model, "penalty", "deprecated")
        return (
            is_number(model.C, finite=False)
            and model.C > 0
            and (penalty is None or penalty in ("l2", "deprecated"))
            and model.l1_ratio in (None, 0)
            and model.dual is False
            and isinstance(model.fit_intercept, bool)
            and model.solver in _SOLVERS
            and getattr(model, "multi_class", "deprecated") in ("deprecated", "auto", "multinomial")
            and not model.warm_start
        )

    def _n_scores(self) -> int:
        most = super()._n_scores()
        return 1 if most == 2 else most

    def _evaluate(self, masks: Masks, out: FloatArray, bounds: FloatArray) -> None:
        rows, tests = self._rows()
        columns, starts = column_lists(masks)
        F, K, N = self._data.n_folds, len(rows.targets), rows.columns.shape[1]
        scores = Scores.room(len(masks), len(columns), F, K)
        fit_logistic, evaluate_rows = _logistic_kernels().fit_logistic, kernels().evaluate

        def fit(first: int, last: int) -> None:
            fit_logistic(first, last, columns, starts, rows, scores)

        def evaluate(first: int, last: int) -> None:
            evaluate_rows(first, last, columns, starts, tests, scores, out, bounds)

        self._spread(fit, len(masks), 20 * len(columns) * K * N, blas=True)
        if not rows.penalty.any():
            largest = np.maximum.reduceat(np.abs(scores.weights).max(axis=1), starts[:-1], axis=1)
            scores.rate[largest.T > _SEPARATED] = np.inf
        self._spread(evaluate, len(masks), len(columns) * len(tests.lengths) * K // F)

    def _rows(self) -> tuple[LogisticRows, TestRows]:
        if self._made is None:
            self._made = self._make_rows()
        return self._made

    def _make_rows(self) -> tuple[LogisticRows, TestRows]:
        data, model = self._data, self._recipe.model
        X, coded = data.X, class_codes(data)
        assert coded is not None
        n_classes, codes = len(coded[0]), coded[1]
        centre, scale = np.zeros(data.n_features), np.ones(data.n_features)
        if model.fit_intercept:
            centre = X.mean(axis=0)
        scale = np.sqrt(((X - centre) ** 2).mean(axis=0))
        scale[~(scale > 1e-150) | (X.min(axis=0) == X.max(axis=0))] = 1.0
        columns = np.ascontiguousarray(((X - centre) / scale).T)
        targets = (codes == np.arange(n_classes)[:, None]).astype(np.float64)
        targets = targets[1:] if n_classes == 2 else targets
        F, N = data.n_folds, len(X)
        weights, penalty = np.zeros((F + 1, N)), np.zeros((F + 1, data.n_features))
        strength = 0.0 if getattr(model, "penalty", "l2") is None or np.isinf(model.C) else 1.0 / model.C
        for f, fold in enumerate(data.folds):
            weights[f, fold.train] = 1.0 if self._weights is None else self._weights[f]
            penalty[f] = strength * (self._stretch(fold.train) / scale) ** 2
        weights[F] = self._all_weights()
        penalty[F] = penalty[:F].mean(axis=0)
        left = [np.flatnonzero(~np.isin(np.arange(N), fold.train)) for fold in data.folds]
        tests = [columns[:, fold.test] for fold in data.folds]
        is_partition = bool((np.bincount(np.concatenate(left), minlength=N) == 1).all())
        if is_partition:  # fold after fold
            order = np.concatenate(left)
            columns, targets, weights = columns[:, order], targets[:, order], weights[:, order]
            bounds = np.cumsum([len(part) for part in left])[:-1]
            left = np.split(np.arange(N), bounds)
        ones = np.vstack([columns, np.ones(N)])
        rows = LogisticRows(
            np.ascontiguousarray(columns),
            np.ascontiguousarray(targets),
            np.ascontiguousarray(weights),
            penalty,
            (ones * weights[F]) @ ones.T,
            np.concatenate(left).astype(np.int64),
            np.concatenate([[0], np.cumsum([len(part) for part in left])]).astype(np.int64),
            is_partition,
            bool(((weights[:F] == 0) | (weights[:F] == weights[F])).all()),
            model.fit_intercept,
        )
        sizes = np.array([part.shape[1] for part in tests], dtype=np.int64)
        return rows, TestRows(
            np.concatenate([part.ravel() for part in tests]),
            np.concatenate([[0], np.cumsum([part.size for part in tests])[:-1]]).astype(np.int64),
            np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64),
            sizes,
            np.zeros(int(sizes.sum())),
            np.full(F, len(targets), dtype=np.int64),
        )

    def _stretch(self, train: IntArray) -> FloatArray:
        """Return by how much a fold's scaler divides each column."""
        if self._recipe.scaler is None:
            return np.ones(self._data.n_features)
        fitted = clone(self._recipe.scaler).fit(self._data.X[train])
        if type(fitted) is MinMaxScaler:
            return np.asarray(1.0 / fitted.scale_)
        return np.ones(self._data.n_features) if fitted.scale_ is None else np.asarray(fitted.scale_)

    def _all_weights(self) -> FloatArray:
        """Return the weights of all rows together, for which each class counts as in the folds."""
        if self._weights is None:
            return np.ones(len(self._data.X))
        if self._data.params:
            return np.asarray(next(iter(self._data.params.values())), dtype=np.float64)
        return np.asarray(compute_sample_weight(self._recipe.model.class_weight, self._data.y))


def _has_weight_in_all_classes(weights: list[FloatArray] | None, data: FoldedData) -> bool:
    """Return whether each class of a fold's training rows has a row that counts."""
    if weights is None:
        return True
    return all(
        len(np.unique(data.y[fold.train][of_fold > 0])) == len(np.unique(data.y[fold.train]))
        for fold, of_fold in zip(data.folds, weights, strict=True)
    )


def _logistic_kernels() -> ModuleType:
    return kernels_of("subswarm.engines.linear.logistic_")
