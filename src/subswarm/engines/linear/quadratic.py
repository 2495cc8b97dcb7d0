"""Quadratic discriminant analysis of many subsets at once: covariances once per fold, a factor for each subset.

Classes, orders and probabilities are scikit-learn's own, as for the models of `subswarm.engines.linear.engine`: the
rounding of both sides is bounded, and what the bound does not decide is left to scikit-learn. So are subsets with a
direction in which a class hardly varies, which new releases refuse and old ones warn of.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

from subswarm._compilation import kernels_of
from subswarm._types import AnyArray, Estimator, FloatArray, Masks
from subswarm.engines.data import FoldedData
from subswarm.engines.fast import column_lists
from subswarm.engines.linear.predictions import PredictionEngine
from subswarm.engines.linear.quadratic_tables import (
    Covariances,
    FoldCovariances,
    QuadraticRules,
    TestColumns,
    stack_columns,
    stack_covariances,
)
from subswarm.engines.linear.systems import is_number
from subswarm.engines.linear.tables import EPS

__all__ = ["QuadraticEngine"]

_ANY = np.iinfo(np.int64).max


class QuadraticEngine(PredictionEngine):
    """Scores `QuadraticDiscriminantAnalysis`, alone or behind a scaler."""

    name: ClassVar[str] = "quadratic"
    models: ClassVar[tuple[type, ...]] = (QuadraticDiscriminantAnalysis,)
    subtracts: ClassVar[bool] = False

    def __init__(self, estimator: Estimator, data: FoldedData, *, n_jobs: int | None = None, max_bytes: int) -> None:
        super().__init__(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)
        self._rules = _rules_for(self._recipe.model, min(len(fold.train) for fold in data.folds))
        self._whole: tuple[Covariances, TestColumns] | None = None

    @classmethod
    def _knows(cls, model: BaseEstimator) -> bool:
        if not (is_number(model.tol) and model.tol >= 0 and is_number(model.reg_param) and 0 <= model.reg_param <= 1):
            return False
        solver, shrinkage = _solver_of(model)
        if getattr(model, "covariance_estimator", None) is not None or solver not in ("svd", "eigen"):
            return False
        if solver == "svd":
            return shrinkage is None
        return shrinkage is None or (is_number(shrinkage) and 0 <= shrinkage <= 1)

    def _evaluate(self, masks: Masks, out: FloatArray, bounds: FloatArray) -> None:
        if self._bytes_of_fold() > self._max_bytes:
            out[:], bounds[:] = 0.0, np.inf
            return
        columns, starts = column_lists(masks)
        fit_quadratic = _kernels().fit_quadratic
        longest = int(np.diff(starts).max())
        for first, last, covariances, tests in self._blocks():
            found = out[:, :, self._starts[first] : self._starts[last]]
            errors = bounds[:, self._starts[first] : self._starts[last]]

            def fit(
                low: int,
                high: int,
                covariances: Covariances = covariances,
                tests: TestColumns = tests,
                found: FloatArray = found,
                errors: FloatArray = errors,
            ) -> None:
                fit_quadratic(low, high, columns, starts, covariances, tests, found, errors)

            self._spread(fit, len(masks), covariances.log_prior.size * len(columns) * longest**2 // 3, blas=True)

    def _bytes_of_fold(self) -> int:
        return int(8 * self._data.n_features**2 * self._n_classes.max())

    def _blocks(self) -> Iterator[tuple[int, int, Covariances, TestColumns]]:
        """Yield as many folds at a time as there is room for; all of them are kept if they fit."""
        F = self._data.n_folds
        if self._whole is None:
            length = max(1, self._max_bytes // self._bytes_of_fold())
            for start in range(0, F, length):
                folds = [self._fold_covariances(f) for f in range(start, min(start + length, F))]
                block = stack_covariances(folds, self._rules), stack_columns([fold.test for fold in folds])
                if length >= F:
                    self._whole = block
                else:
                    yield start, start + len(folds), *block
        if self._whole is not None:
            yield 0, F, *self._whole

    def _fold_covariances(self, f: int) -> FoldCovariances:
        train, test, codes = self._fold_rows(f)
        return _fold_covariances(self._recipe.model, self._rules, train, test, codes)


def _fold_covariances(
    model: QuadraticDiscriminantAnalysis, rules: QuadraticRules, train: FloatArray, test: FloatArray, codes: AnyArray
) -> FoldCovariances:
    counts = np.bincount(codes)
    C, n = len(counts), train.shape[1]
    gram, spread, mean, noise = np.zeros((C, n, n)), np.zeros((C, n)), np.zeros((C, n)), np.zeros((C, n))
    for c, count in enumerate(counts):
        rows = train[codes == c]
        mean[c] = rows.mean(axis=0)
        centred = rows - mean[c]
        divisor = count if not rules.squares or _divides_by_rows() else max(1, count - 1)
        gram[c] = centred.T @ centred / divisor
        spread[c] = gram[c].diagonal()
        gram[c] *= 1.0 - (rules.ridge + rules.shrink)  # one of them is zero
        noise[c] = (4.0 + np.sqrt(count)) * EPS * np.abs(rows).max(axis=0)
    prior = counts / len(train) if model.priors is None else np.asarray(model.priors, dtype=np.float64)
    return FoldCovariances(
        gram=gram,
        spread=spread,
        mean=mean,
        log_prior=np.log(prior),
        noise=noise,
        most_columns=counts.astype(np.int64) if rules.squares else np.full(C, _ANY),
        is_refused=bool(counts.min() < 2),
        test=test,
    )


def _rules_for(model: QuadraticDiscriminantAnalysis, n_rows: int) -> QuadraticRules:
    solver, shrinkage = _solver_of(model)
    return QuadraticRules(
        ridge=float(model.reg_param) if solver == "svd" else 0.0,
        shrink=float(shrinkage or 0.0),
        least=float(model.tol) if _refuses_flat_classes() else 0.0,
        rounding=4.0 * float(np.sqrt(n_rows)),
        squares=solver == "svd",
    )


def _solver_of(model: QuadraticDiscriminantAnalysis) -> tuple[str, float | None]:
    """Return the settings ``solver`` and ``shrinkage``, which old releases do not have."""
    return getattr(model, "solver", "svd"), getattr(model, "shrinkage", None)


@cache
def _divides_by_rows() -> bool:
    """Return whether variances are divided by the number of rows; old releases subtract one."""
    fitted = QuadraticDiscriminantAnalysis().fit(np.array([[0.0], [2.0], [4.0], [6.0]]), [0, 0, 1, 1])
    return bool(abs(fitted.scalings_[0][0] - 1.0) < 1e-6)


@cache
def _refuses_flat_classes() -> bool:
    """Return whether a class without variance in a direction is an error; old releases warn."""
    X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [4.0, 4.0], [5.0, 5.0], [6.0, 6.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            QuadraticDiscriminantAnalysis().fit(X, [0, 0, 0, 1, 1, 1])
        except np.linalg.LinAlgError:
            return True
    return False


def _kernels() -> ModuleType:
    return kernels_of("subswarm.engines.linear.quadratic_")
