"""Linear models for many subsets at once: Gram matrices once per fold, then a small system for each subset and fold.

What "exact" means for linear models
------------------------------------
scikit-learn solves least squares by a singular value decomposition or a Cholesky factor of the rows; the engine solves
the same equations with the products of all columns that each fold needs. Both are right up to rounding, and the
engine bounds the rounding of both from the diagonal of the inverse. A fold is left to scikit-learn itself

- if the bound is too large, or a direction is so short that scikit-learn may drop it,
- if a test row's best two classes are closer than the bound.

Metrics of the order of scores leave a fold to scikit-learn if two rows of different classes are closer than the bound.
Equal rows have equal scores here; in scikit-learn their last digit may depend on their place in the table.
So predicted classes equal scikit-learn's, and predicted numbers agree to about ten digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import RidgeClassifier

from subswarm._types import Estimator, FloatArray, Masks
from subswarm.engines.data import FoldedData
from subswarm.engines.fast import column_lists
from subswarm.engines.linear.predictions import PredictionEngine, kernels
from subswarm.engines.linear.systems import MODELS, fold_system, has_known_settings, rules_for
from subswarm.engines.linear.tables import FoldSystem, Scores, Systems, TestRows, stack_systems, stack_tests

__all__ = ["LinearEngine"]

_WITH_BLAS = 96
"""Subsets of more columns are solved with BLAS."""


_SMALL_ERRORS = {"labels": 1e-6, "values": 1e-7}
"""Relative errors of weights that leave hardly any row in doubt; the order of the rows needs smaller ones."""


class LinearEngine(PredictionEngine):
    """Scores linear and ridge regression, `RidgeClassifier` and `LinearDiscriminantAnalysis`, also behind a scaler."""

    name: ClassVar[str] = "linear"
    models: ClassVar[tuple[type, ...]] = MODELS

    def __init__(self, estimator: Estimator, data: FoldedData, *, n_jobs: int | None = None, max_bytes: int) -> None:
        super().__init__(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)
        rules = rules_for(self._recipe.model, min(len(fold.train) for fold in data.folds))
        self._rules = replace(rules, small_error=_SMALL_ERRORS.get(self._needs or "", rules.small_error))
        self._whole: tuple[Systems, TestRows] | None = None

    @classmethod
    def _knows(cls, model: BaseEstimator) -> bool:
        return has_known_settings(model)

    def _n_scores(self) -> int:
        most = super()._n_scores()
        return 1 if most == 2 and type(self._recipe.model) is RidgeClassifier else most

    def _evaluate(self, masks: Masks, out: FloatArray, bounds: FloatArray) -> None:
        if self._data.n_features**2 * 8 > self._max_bytes:
            out[:], bounds[:] = 0.0, np.inf
            return
        columns, starts = column_lists(masks)
        longest = int(np.diff(starts).max())
        solve_systems, evaluate_rows = kernels().solve, kernels().evaluate
        for first, last, systems, tests in self._blocks():
            F, _, T = systems.target.shape
            scores = Scores.room(len(masks), len(columns), F, T)
            rows = slice(self._starts[first], self._starts[last])
            found, errors = out[:, :, rows], bounds[:, rows]

            def solve(low: int, high: int, systems: Systems = systems, scores: Scores = scores) -> None:
                solve_systems(low, high, columns, starts, systems, scores)

            def evaluate(
                low: int,
                high: int,
                tests: TestRows = tests,
                scores: Scores = scores,
                found: FloatArray = found,
                errors: FloatArray = errors,
            ) -> None:
                evaluate_rows(low, high, columns, starts, tests, scores, found, errors)

            self._spread(solve, len(masks), F * len(columns) * longest**2 // 3, blas=longest > _WITH_BLAS)
            self._spread(evaluate, len(masks), len(columns) * len(tests.lengths) * T // F)

    def _blocks(self) -> Iterator[tuple[int, int, Systems, TestRows]]:
        """Yield the systems of as many folds at a time as there is room for; all of them are kept if they fit."""
        F = self._data.n_folds
        if self._whole is None:
            length = max(1, self._max_bytes // (8 * self._data.n_features**2))
            for start in range(0, F, length):
                folds = [self._fold_system(f) for f in range(start, min(start + length, F))]
                block = stack_systems(folds, self._rules), stack_tests(folds, self._rules.ridge)
                if length >= F:
                    self._whole = block
                else:
                    yield start, start + len(folds), *block
        if self._whole is not None:
            yield 0, F, *self._whole

    def _fold_system(self, f: int) -> FoldSystem:
        train, test, target = self._fold_rows(f)
        weights = None if self._weights is None else self._weights[f]
        return fold_system(self._recipe.model, train, test, target, weights, self._n_scores())
