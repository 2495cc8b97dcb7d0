"""`NormalCDFBayes` for a whole swarm: log Φ of every value is taken once, a subset is a sum of table rows."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from subswarm.core.types import FloatArray, Masks
from subswarm.evaluation.answers import LABEL_SCORERS, Answers
from subswarm.evaluation.fast_engine import FastEngine, FoldClasses, column_lists
from subswarm.evaluation.folds import FoldedData
from subswarm.evaluation.normal_cdf_bayes import NormalCDFBayes, class_moments, log_cumulative
from subswarm.evaluation.recipe import class_codes, recipe_for, standard_scorer
from subswarm.evaluation.scaling import scaled_rows
from subswarm.evaluation.threads import n_threads, spread

__all__ = ["NormalCDFBayesEngine"]

_WORTH_THREADS = 1_000_000
"""Additions in a fold and batch (about 0.3 ms of work) from which starting threads pays."""


class NormalCDFBayesEngine(FastEngine):
    """`NormalCDFBayes`, bare or behind one of scikit-learn's scalers."""

    name: ClassVar[str] = "normal_cdf_bayes"

    def __init__(self, estimator: Any, data: FoldedData, *, n_jobs: int | None = None, max_bytes: int) -> None:
        super().__init__(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)
        recipe = recipe_for(estimator, (NormalCDFBayes,))
        assert recipe is not None
        self._scaler = recipe.scaler
        self._classes = FoldClasses.of(data)
        self._tables: dict[int, tuple[FloatArray, FloatArray]] = {}
        self._room = max_bytes
        self._threads = n_threads(n_jobs)

    @classmethod
    def is_usable_for(cls, estimator: Any, data: FoldedData, device: str) -> bool:
        return (
            recipe_for(estimator, (NormalCDFBayes,)) is not None
            and device == "cpu"
            and not data.params
            and class_codes(data) is not None
            and standard_scorer(estimator, data, LABEL_SCORERS)
            and not np.isnan(data.X).any()
        )

    def _scores(self, masks: Masks) -> FloatArray:
        if self._data.scoring.name == "accuracy":
            scores, unsure = self._accuracy(masks)
        else:
            codes, unsure = self._codes(masks)
            scores = np.array([self._score_folds(partial(self._answer, row)) for row in codes])
        if type(self._scaler) is StandardScaler:
            unsure = unsure | (masks.sum(axis=1) == 1)  # a lone column's mean is summed in another order
        scores[unsure] = np.nan
        return scores

    def _accuracy(self, masks: Masks) -> tuple[FloatArray, NDArray[np.bool_]]:
        codes, unsure = self._codes(masks)
        return self._classes.accuracy(codes), unsure

    def _codes(self, masks: Masks) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
        """The predicted class of each test row, (P, all test rows), and the masks left to scikit-learn."""
        codes = np.empty((len(masks), len(self._classes.codes)), dtype=np.int16)
        unsure = np.zeros(len(masks), dtype=bool)
        columns, starts = column_lists(masks)
        for f in range(self._data.n_folds):
            table, log_prior = self._table(f)
            unsure |= (masks & np.isnan(table[:, 0]).any(axis=1)).any(axis=1)
            answers = codes[:, self._classes.rows_of(f)]
            threads = self._threads if len(columns) * table[0].size > _WORTH_THREADS else 1
            spread(partial(_classify, columns, starts, table, log_prior, answers), len(masks), threads)
        return codes, unsure

    def _answer(self, codes: Any, fold: int) -> tuple[Any, Any]:
        classes, rows = self._classes.classes[fold], codes[self._classes.rows_of(fold)]
        return Answers(classes, classes[rows]), rows

    def _table(self, fold: int) -> tuple[FloatArray, FloatArray]:
        """log Φ of the fold's test rows, (n, C, rows), and the classes' log priors; kept while there is room."""
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


def _classify(
    columns: Any, starts: Any, table: FloatArray, log_prior: FloatArray, codes: Any, first: int, last: int
) -> None:
    _kernels().classify(first, last, columns, starts, table, log_prior, codes)


def _kernels() -> Any:
    try:
        from subswarm.evaluation import additive_kernel as kernels
    except ImportError:
        from subswarm.evaluation import additive_numpy as kernels  # type: ignore[no-redef]
    return kernels
