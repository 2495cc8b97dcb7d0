"""`NormalCDFBayes` for many subsets at once: log Φ of every value is computed once, a subset is a sum of table rows."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np
from sklearn.preprocessing import StandardScaler

from subswarm._types import BoolArray, Estimator, FloatArray, Masks
from subswarm.engines.data import Codes, FoldedData
from subswarm.engines.fast import FastEngine, FoldClasses, column_lists, kernels_of
from subswarm.engines.metrics import LABEL_SCORERS
from subswarm.engines.normal_cdf.model import NormalCDFBayes, class_moments, log_cumulative
from subswarm.engines.recipe import class_codes, is_standard_scorer, recipe_for, scaled_rows
from subswarm.engines.workers import n_threads, spread

__all__ = ["NormalCDFBayesEngine"]

_WORTH_THREADS = 1_000_000
"""Additions in a fold and batch (about 0.3 ms of work) from which threads pay off."""


class NormalCDFBayesEngine(FastEngine):
    """Scores `NormalCDFBayes`, alone or behind one of scikit-learn's scalers."""

    name: ClassVar[str] = "normal_cdf_bayes"

    def __init__(self, estimator: Estimator, data: FoldedData, *, n_jobs: int | None = None, max_bytes: int) -> None:
        super().__init__(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)
        recipe = recipe_for(estimator, (NormalCDFBayes,))
        assert recipe is not None
        self._scaler = recipe.scaler
        self._classes = FoldClasses.of(data)
        self._tables: dict[int, tuple[FloatArray, FloatArray]] = {}
        self._room = max_bytes
        self._threads = n_threads(n_jobs)

    @classmethod
    def is_usable_for(cls, estimator: Estimator, data: FoldedData) -> bool:
        """Return whether the engine scores this estimator, data and scorer exactly as scikit-learn does."""
        return (
            recipe_for(estimator, (NormalCDFBayes,)) is not None
            and not data.params
            and class_codes(data) is not None
            and is_standard_scorer(estimator, data, LABEL_SCORERS)
            and not np.isnan(data.X).any()
        )

    def _scores(self, masks: Masks) -> FloatArray:
        if self._data.scoring.name == "accuracy":
            scores, unsure = self._accuracy(masks)
        else:
            codes, unsure = self._codes(masks)
            scores = np.array([self._score_folds(partial(self._classes.fixed, row)) for row in codes])
        if type(self._scaler) is StandardScaler:
            unsure = unsure | (masks.sum(axis=1) == 1)  # NumPy sums the mean of a single column in another order
        scores[unsure] = np.nan
        return scores

    def _accuracy(self, masks: Masks) -> tuple[FloatArray, BoolArray]:
        codes, unsure = self._codes(masks)
        return self._classes.accuracy(codes), unsure

    def _codes(self, masks: Masks) -> tuple[Codes, BoolArray]:
        """Return the predicted class of each test row, (P, all test rows), and the masks left to scikit-learn, (P,)."""
        kernels = kernels_of("subswarm.engines.normal_cdf.")
        codes = np.empty((len(masks), self._classes.n_tests), dtype=np.int16)
        unsure = np.zeros(len(masks), dtype=bool)
        columns, starts = column_lists(masks)
        for f in range(self._data.n_folds):
            table, log_prior = self._table(f)
            unsure |= (masks & np.isnan(table[:, 0]).any(axis=1)).any(axis=1)
            fold_codes = codes[:, self._classes.rows_of(f)]

            def classify(
                first: int, last: int, table: FloatArray = table, prior: FloatArray = log_prior, out: Codes = fold_codes
            ) -> None:
                kernels.classify(first, last, columns, starts, table, prior, out)

            spread(classify, len(masks), self._threads if len(columns) * table[0].size > _WORTH_THREADS else 1)
        return codes, unsure

    def _table(self, fold: int) -> tuple[FloatArray, FloatArray]:
        """Return log Φ of the fold's test rows, (n, C, rows), and the classes' log priors; kept while there is room."""
        if fold in self._tables:
            return self._tables[fold]
        train, test = scaled_rows(self._data.X, self._data.folds[fold], self._scaler)
        target = self._data.y[self._data.folds[fold].train]
        classes = self._classes.classes[fold]
        table = np.empty((train.shape[1], len(classes), len(test)))
        for c, label in enumerate(classes):
            means, deviations = class_moments(train[target == label])
            for j, column in enumerate(np.ascontiguousarray(test.T)):
                table[j, c] = log_cumulative(column, means[j], deviations[j])
        table[np.isnan(train).any(axis=0)] = np.nan
        log_prior = np.log(np.array([np.mean(target == label) for label in classes]))
        if table.nbytes <= self._room:
            self._room -= table.nbytes
            self._tables[fold] = table, log_prior
        return table, log_prior
