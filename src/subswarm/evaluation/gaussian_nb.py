"""Gaussian naive Bayes for a whole swarm: moments once per fold, then sums of squares per subset.

scikit-learn adds ``var_smoothing`` times the largest variance *among the columns it was given* to every variance, so
the likelihood of a column depends on its company. What depends on it (a logarithm and a reciprocal for each column and
class) is kept for each widest column seen.

Three sums, each with a bound on its error, and each asked only about what the one before could not decide: tables of
squares in float32, added up by a matrix product; the squares of single rows in float64; and, for a fold in which any
row is too close to call even then (sums in another order round differently), `GaussianNB` itself, put together from the
same moments.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

from subswarm.core.types import FloatArray, IntArray, Mask, Masks
from subswarm.evaluation.answers import LABEL_SCORERS, Answers
from subswarm.evaluation.fast_engine import FastEngine, FoldClasses, codes_of, column_lists
from subswarm.evaluation.folds import FoldedData
from subswarm.evaluation.gaussian_products import GaussianProducts, product_kernels
from subswarm.evaluation.gaussian_tables import GaussianTables, gaussian_kernels
from subswarm.evaluation.recipe import class_codes, recipe_for, standard_scorer
from subswarm.evaluation.threads import n_threads, spread

__all__ = ["GaussianNBEngine"]

_PROBABILITY_SCORERS = frozenset(
    {"average_precision", "neg_brier_score", "neg_log_loss", "roc_auc", "roc_auc_ovo", "roc_auc_ovr"}
)
_WORTH_THREADS = 2_000_000
"""Squares to be summed in a batch (about 0.3 ms of work) from which starting threads pays."""
_WORTH_THREADS_WITH_TABLES = 20_000_000
"""The same where all sums come from tables: about 1.5 ms, since threads also share the cache."""
_WORTH_TABLES = 50_000
"""Squares to be summed in a batch from which tables pay (30 half-full subsets of Wine have twice as many)."""
_RESULTS = 1 << 18
"""Sums (float32) that one product makes at most."""


class GaussianNBEngine(FastEngine):
    """`GaussianNB`, bare or behind one of scikit-learn's scalers."""

    name: ClassVar[str] = "gaussian_nb"

    def __init__(self, estimator: Any, data: FoldedData, *, n_jobs: int | None = None, max_bytes: int) -> None:
        super().__init__(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)
        recipe = recipe_for(estimator, (GaussianNB,))
        assert recipe is not None
        self._model = recipe.model
        self._is_bare = recipe.scaler is None
        self._rows_of_classes: dict[int, list[NDArray[np.intp]]] = {}
        self._classes = FoldClasses.of(data)
        self._tables = GaussianTables.of(data, recipe.scaler, recipe.model, self._classes, max_bytes)
        self._products: GaussianProducts | None = None
        self._worth_tables = math.inf if product_kernels() is None else _WORTH_TABLES
        self._threads = n_threads(n_jobs)
        self.rechecked = 0

    @classmethod
    def is_usable_for(cls, estimator: Any, data: FoldedData, device: str) -> bool:
        recipe = recipe_for(estimator, (GaussianNB,))
        return (
            recipe is not None
            and device == "cpu"
            and not data.params
            and class_codes(data) is not None
            and standard_scorer(estimator, data, LABEL_SCORERS | _PROBABILITY_SCORERS)
            and not np.isnan(data.X).any()
            and _settings_are_sound(recipe.model, data)
        )

    def _scores(self, masks: Masks) -> FloatArray:
        if self._data.scoring.name in _PROBABILITY_SCORERS:
            return np.array([self._score_folds(_Assembled(self, np.flatnonzero(mask))) for mask in masks])
        codes = self._codes(masks)
        if self._data.scoring.name == "accuracy":
            return self._classes.accuracy(codes)
        return np.array([self._score_folds(_Predicted(self._classes, row)) for row in codes])

    def _codes(self, masks: Masks) -> NDArray[np.int16]:
        """The predicted class of each test row, exactly scikit-learn's, shape (P, all test rows)."""
        tables = self._tables
        codes = np.empty((len(masks), len(self._classes.codes)), dtype=np.int16)
        doubts = np.empty((len(masks), self._data.n_folds), dtype=np.int64)
        for start, stop in tables.batches(masks):
            self._classify(masks[start:stop], codes[start:stop], doubts[start:stop])
        if doubts.any():
            for p, f in zip(*np.nonzero(doubts), strict=True):
                codes[p, self._classes.rows_of(int(f))] = self._asked_model(masks[p], int(f))
        return codes

    def _classify(self, masks: Masks, codes: NDArray[np.int16], doubts: NDArray[np.int64]) -> None:
        """The predicted classes, and for each mask and fold how many of them are too close to call."""
        tables = self._tables
        columns, starts = column_lists(masks)
        widest, slots, known = tables.widest_and_slots(masks)
        work = len(columns) * len(self._classes.codes) * tables.most_classes
        if work >= self._worth_tables:
            if self._products is None:
                self._products = GaussianProducts(tables, self._max_bytes // 4)
            products = self._products
            table_starts, stretch = products.starts_of(widest, np.diff(starts))
            if (table_starts >= 0).any():
                slots, gaussians = tables.slots_of(widest), tables.gaussians()
                threads = self._threads if work > _WORTH_THREADS_WITH_TABLES else 1
                block = self._block(len(masks), threads)
                where = (masks.astype(np.float32), products.store, table_starts, stretch, products.paired)
                arguments = (block, columns, starts, slots, gaussians, *where, codes, doubts)
                classify = partial(_run, product_kernels().classify_by_products, arguments)
                spread(classify, self._data.n_folds * -(-len(masks) // block), threads, blas=True)
                return
        if not known:
            slots = tables.slots_worth_it(widest, np.diff(starts))
        threads = self._threads if work > _WORTH_THREADS else 1
        directly = (columns, starts, widest, slots, tables.gaussians(), codes, doubts)
        classify = partial(_run, gaussian_kernels().classify, directly)
        spread(classify, len(masks), threads)

    def _block(self, n_masks: int, threads: int) -> int:
        """Masks in one product: enough pieces for all threads, results that stay in the cache."""
        fits = _RESULTS // int(self._tables.sizes.max() * self._tables.most_classes)
        return max(1, min(64, fits, max(8, -(-n_masks * self._data.n_folds // (4 * threads)))))

    def _asked_model(self, mask: Mask, fold: int) -> NDArray[np.int16]:
        """The codes of a fold's test rows as by `GaussianNB` itself, for a fold that is too close to call."""
        self.rechecked += 1
        columns = np.flatnonzero(mask)
        if self._is_known(columns, fold):
            return np.asarray(self._tables.joint_log_likelihood(columns, fold).argmax(axis=0), dtype=np.int16)
        if self._is_bare and len(columns) == 1:
            return self._by_lone_column(int(columns[0]), fold)
        model, rows = self._fitted(columns, self._data.folds[fold])
        return codes_of(model.predict(rows), self._classes.classes[fold])

    def _by_lone_column(self, column: int, fold: int) -> NDArray[np.int16]:
        """The codes of a fold's test rows by one column as it is, whose moments NumPy sums in an order of their own."""
        tables, values = self._tables, self._data.X[:, column]
        trained = values[self._data.folds[fold].train]
        of_classes = [values[rows] for rows in self._training_rows(fold)]
        theta = np.array([[each.mean()] for each in of_classes])
        v = np.array([[each.var()] for each in of_classes]) + tables.var_smoothing * trained.var()
        squares = (values[self._data.folds[fold].test] - theta) ** 2 / v
        scores = tables.log_prior[fold, : len(v), None] + (-0.5 * np.log(2.0 * np.pi * v) - 0.5 * squares)
        return np.asarray(scores.argmax(axis=0), dtype=np.int16)

    def _training_rows(self, fold: int) -> list[NDArray[np.intp]]:
        """The rows of each class that a fold trains on."""
        if fold not in self._rows_of_classes:
            train = self._data.folds[fold].train
            target = self._data.y[train]
            self._rows_of_classes[fold] = [train[target == label] for label in self._classes.classes[fold]]
        return self._rows_of_classes[fold]

    def _is_known(self, columns: IntArray, fold: int) -> bool:
        """Whether the tables hold these columns' moments as fitting them would give, bit for bit."""
        return len(columns) > 1 and self._tables.is_reliable(columns, fold)

    def assembled(self, columns: IntArray, fold: int) -> tuple[Any, FloatArray]:
        """A fitted `GaussianNB` for these columns and the fold's test rows, bit for bit what fitting it would give."""
        tables = self._tables
        if not self._is_known(columns, fold):
            return self._fitted(columns, self._data.folds[fold])
        model = clone(self._model)
        n_classes = len(self._classes.classes[fold])
        model.classes_ = self._classes.classes[fold]
        model.n_features_in_ = len(columns)
        model.epsilon_ = model.var_smoothing * tables.variance[fold, columns].max()
        model.theta_ = np.ascontiguousarray(tables.theta[fold, columns, :n_classes].T)
        model.var_ = np.ascontiguousarray(tables.class_variance[fold, columns, :n_classes].T) + model.epsilon_
        model.class_count_ = tables.class_count[fold, :n_classes]
        model.class_prior_ = tables.prior[fold, :n_classes]
        return model, tables.test_rows(columns, fold)


def _run(kernel: Any, arguments: tuple[Any, ...], first: int, last: int) -> None:
    kernel(first, last, *arguments)


class _Assembled:
    """Answers a scorer with the fitted model itself."""

    def __init__(self, engine: GaussianNBEngine, columns: IntArray) -> None:
        self._engine = engine
        self._columns = columns

    def __call__(self, fold: int) -> tuple[Any, FloatArray]:
        return self._engine.assembled(self._columns, fold)


class _Predicted:
    """Answers a scorer with classes that are already known."""

    def __init__(self, classes: FoldClasses, codes: NDArray[np.int16]) -> None:
        self._classes = classes
        self._codes = codes

    def __call__(self, fold: int) -> tuple[Any, NDArray[np.int16]]:
        codes, classes = self._codes[self._classes.rows_of(fold)], self._classes.classes[fold]
        return Answers(classes, classes[codes]), codes


def _settings_are_sound(model: GaussianNB, data: FoldedData) -> bool:
    """Whether scikit-learn accepts the model's settings in every fold."""
    try:
        for fold in data.folds:
            clone(model).fit(np.zeros((len(fold.train), 1)), data.y[fold.train])
    except Exception:
        return False
    return True
