"""From the scores of all test rows to losses: classes, probabilities, what is in doubt, and who decides that."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import ClassVar, Protocol

import numpy as np
from scipy.special import expit
from sklearn import get_config
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import Pipeline
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import has_fit_parameter

from subswarm._compilation import kernels_of
from subswarm._types import AnyArray, BoolArray, Estimator, FloatArray, IntArray, Masks
from subswarm.engines.data import Codes, Fold, FoldedData, Int64Array
from subswarm.engines.fast import Classifier, FastEngine, FoldClasses, codes_of
from subswarm.engines.linear.doubts import doubtful_losses, doubtful_orders
from subswarm.engines.metrics import FixedPredictions, FixedValues, batch_metric, needed_predictions
from subswarm.engines.metrics.ranking import BinaryRanking
from subswarm.engines.recipe import Recipe, class_codes, recipe_for, scaled_rows
from subswarm.engines.workers import n_threads, spread

__all__ = ["PredictionEngine", "kernels", "training_weights"]

_WORTH_THREADS = 300_000
"""Multiplications in a batch (about 0.2 ms of work) from which threads pay off."""


class Model(Classifier, Protocol):
    """What the engines use of a fitted model."""

    def decision_function(self, X: FloatArray) -> AnyArray: ...

    def predict_proba(self, X: FloatArray) -> AnyArray: ...


class PredictionEngine(FastEngine):
    """An engine that computes scores for all classes (or one number) of all test rows, with a bound on their error.

    A subclass says which models it knows and how the scores are computed. Classes, orders and probabilities that the
    bound does not decide are left to the model itself, one fold of a subset at a time.
    """

    models: ClassVar[tuple[type, ...]]
    decides_exactly: ClassVar[bool] = True
    """Whether close scores are left to scikit-learn."""
    subtracts: ClassVar[bool] = True
    """Whether the model computes the probability of the first of two classes as one minus that of the second."""

    def __init__(self, estimator: Estimator, data: FoldedData, *, n_jobs: int | None = None, max_bytes: int) -> None:
        super().__init__(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)
        recipe = recipe_for(estimator, self.models)
        assert recipe is not None
        self._recipe = recipe
        self._classes = FoldClasses.of(data) if is_classifier(recipe.model) else None
        self._weights = training_weights(estimator, recipe, data)
        self._threads = n_threads(n_jobs)
        sizes = [len(fold.test) for fold in data.folds]
        self._starts: Int64Array = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._n_classes = np.ones(data.n_folds, dtype=np.int64)
        if self._classes is not None:
            self._n_classes = np.array([len(known) for known in self._classes.classes], dtype=np.int64)
        self._rechecked = 0

    @classmethod
    def is_usable_for(cls, estimator: Estimator, data: FoldedData) -> bool:
        """Return whether the engine scores this estimator, data and scorer as scikit-learn does."""
        recipe = recipe_for(estimator, cls.models)
        if recipe is None or data.y.ndim != 1 or not np.isfinite(data.X).all():
            return False
        try:
            if not cls._knows(recipe.model) or not _knows_scorer(estimator, data):
                return False
            training_weights(estimator, recipe, data)
            _check_columns_can_be_scaled(recipe, data)
        except Exception:  # settings or weights that scikit-learn refuses
            return False
        return _has_classes(recipe.model, data) if is_classifier(recipe.model) else data.y.dtype.kind in "fiu"

    @classmethod
    @abstractmethod
    def _knows(cls, model: BaseEstimator) -> bool:
        """Return whether the engine knows what scikit-learn does with the model's settings."""

    @abstractmethod
    def _evaluate(self, masks: Masks, out: FloatArray, bounds: FloatArray) -> None:
        """Compute scores, into ``out`` (P, T, rows), and how far each row's may be off, into ``bounds`` (P, rows).

        T is 1 for regression, and for a classifier of two classes that has one score. Bounds of the folds that are left
        to scikit-learn are infinite.
        """

    def _n_scores(self) -> int:
        """Return T."""
        return int(self._n_classes.max())

    @property
    def facts(self) -> dict[str, int]:
        """How many folds of a subset were left to scikit-learn's model so far."""
        return {"rechecked": self._rechecked}

    def _scores(self, masks: Masks) -> FloatArray:
        rows = 8 * (self._n_scores() + 2) * int(self._starts[-1])
        length = max(1, self._max_bytes // 4 // rows)
        parts = [self._batch_scores(masks[start : start + length]) for start in range(0, len(masks), length)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _batch_scores(self, masks: Masks) -> FloatArray:
        out = np.empty((len(masks), self._n_scores(), int(self._starts[-1])))
        bounds = np.empty((len(masks), out.shape[2]))
        self._evaluate(masks, out, bounds)
        if self._needs == "labels":
            return self._label_scores(masks, out, bounds)
        hard = np.isinf(bounds[:, self._starts[:-1]])
        if self._needs == "values":
            return self._rechecked_scores(masks, out[:, 0], hard, lambda model, rows: model.predict(rows))
        margins = out[:, 0] if out.shape[1] == 1 else out[:, 1] - out[:, 0]
        if self._needs == "scores":
            if self.decides_exactly:
                precision = isinstance(self._metric, BinaryRanking) and self._metric.is_precision
                hard |= doubtful_orders(
                    margins[:, None], bounds[:, None], self._truth(), self._starts, precision=precision
                )
            return self._rechecked_scores(masks, margins, hard, self._model_scores)
        probabilities = self._probabilities(out, margins)
        if self.decides_exactly:
            subtracts = self.subtracts and probabilities.shape[2] == 2
            assert self._metric is not None
            hard |= doubtful_losses(self._metric, probabilities, bounds, self._truth(), self._starts, subtracts)
        return self._rechecked_scores(masks, probabilities, hard, lambda model, rows: model.predict_proba(rows))

    def _label_scores(self, masks: Masks, out: FloatArray, bounds: FloatArray) -> FloatArray:
        codes = np.empty((len(masks), out.shape[2]), dtype=np.int16)
        doubts = np.empty((len(masks), self._data.n_folds), dtype=np.int64)
        judge = kernels().judge

        def judge_masks(first: int, last: int) -> None:
            judge(first, last, out, bounds, self._starts, self._n_classes, codes, doubts)

        self._spread(judge_masks, len(masks), out.size // 4)
        if not self.decides_exactly:
            doubts = np.isinf(bounds[:, self._starts[:-1]]).astype(np.int64)
        return self._rechecked_scores(masks, codes, doubts > 0, lambda model, rows: model.predict(rows))

    def _rechecked_scores(
        self,
        masks: Masks,
        predictions: AnyArray,
        doubts: BoolArray,
        predict: Callable[[Model, FloatArray], AnyArray],
    ) -> FloatArray:
        """Return the scores of predictions after the model itself has predicted the doubtful folds, (P, F)."""
        failed = np.zeros(len(masks), dtype=bool)
        for p, f in np.argwhere(doubts):
            if failed[p]:
                continue
            rows = slice(self._starts[f], self._starts[f + 1])
            try:
                model, X = self._fitted(np.flatnonzero(masks[p]), self._data.folds[f])
                found = predict(model, X)
                if predictions.ndim == 3:
                    predictions[p, rows, : found.shape[1]] = found
                elif self._needs == "labels":
                    predictions[p, rows] = self._codes(found, int(f))
                else:
                    predictions[p, rows] = found
            except Exception:  # the reference engine fits the mask again and records the error
                failed[p] = True
            self._rechecked += 1
        if self._metric is None:
            scores = np.array([self._score_folds(partial(self._fixed, own)) for own in predictions])
        elif predictions.ndim == 3 and len(np.unique(self._n_classes)) > 1:
            scores = np.stack([self._fold_score(predictions, f) for f in range(self._data.n_folds)], axis=1)
        else:
            scores = self._metric.score_all(predictions, self._threads)
        scores[failed] = np.nan
        return scores

    def _fixed(self, predictions: AnyArray, f: int) -> tuple[FixedPredictions | FixedValues, AnyArray]:
        """Return a model with these labels or values, and stand-ins for a fold's rows."""
        if self._classes is not None:
            return self._classes.fixed(predictions, f)
        values = predictions[self._starts[f] : self._starts[f + 1]]
        return FixedValues(values), values

    def _fold_score(self, probabilities: FloatArray, f: int) -> FloatArray:
        rows = slice(self._starts[f], self._starts[f + 1])
        assert self._metric is not None
        return self._metric.score(f, np.ascontiguousarray(probabilities[:, rows, : self._n_classes[f]]))

    def _codes(self, labels: AnyArray, f: int) -> Codes:
        assert self._classes is not None
        return codes_of(labels, self._classes.classes[f])

    def _model_scores(self, model: Model, rows: FloatArray) -> AnyArray:
        return np.asarray(model.decision_function(rows))

    def _probabilities(self, out: FloatArray, margins: FloatArray) -> FloatArray:
        """Return the probabilities of the classes, (P, rows, C), from scores that are log-likelihoods."""
        if out.shape[1] <= 2:
            second = expit(margins)
            return np.stack([1.0 - second if self.subtracts else expit(-margins), second], axis=2)
        values = out.transpose(0, 2, 1).copy()
        for f, count in enumerate(self._n_classes):
            values[:, self._starts[f] : self._starts[f + 1], count:] = -np.inf
        values -= values.max(axis=2, keepdims=True)
        np.exp(values, out=values)
        values /= values.sum(axis=2, keepdims=True)
        return np.asarray(values)

    def _truth(self) -> Int64Array:
        """Return each test row's position among all classes of the target."""
        found = class_codes(self._data)
        assert found is not None
        return np.concatenate([found[1][fold.test] for fold in self._data.folds])

    def _fitted(self, columns: IntArray, fold: Fold) -> tuple[Model, FloatArray]:
        """Fit the estimator on a fold's training rows as ``cross_val_score`` does; returns it and the test rows."""
        X = self._data.X[:, columns]
        params = {name: np.asarray(value)[fold.train] for name, value in self._data.params.items()}
        model: Model = clone(self._estimator).fit(X[fold.train], self._data.y[fold.train], **params)
        return model, X[fold.test]

    def _spread(self, work: Callable[[int, int], None], n_masks: int, size: int, *, blas: bool = False) -> None:
        """Do the work in threads if it has enough multiplications."""
        spread(work, n_masks, self._threads if size > _WORTH_THREADS else 1, blas=blas)

    def _fold_rows(self, f: int) -> tuple[FloatArray, FloatArray, AnyArray]:
        """Return a fold's scaled training and test rows, and the training rows' values or positions of classes."""
        fold = self._data.folds[f]
        train, test = scaled_rows(self._data.X, fold, self._recipe.scaler)
        target = self._data.y[fold.train]
        if self._classes is not None:
            target = np.searchsorted(self._classes.classes[f], target)
        return train, test, target


def kernels() -> ModuleType:
    """Return the compiled kernels, or the same functions in NumPy without numba."""
    return kernels_of("subswarm.engines.linear.")


def _knows_scorer(estimator: Estimator, data: FoldedData) -> bool:
    """Return whether the scorer has a metric for batches, or can be called on labels or values."""
    if batch_metric(data.scoring, estimator, data) is not None:
        return True
    return needed_predictions(data.scoring, estimator, data) in ("labels", "values")


def _check_columns_can_be_scaled(recipe: Recipe, data: FoldedData) -> None:
    if recipe.scaler is not None:
        for fold in data.folds:
            clone(recipe.scaler).fit(data.X[fold.train])


def _has_classes(model: BaseEstimator, data: FoldedData) -> bool:
    """Return whether every fold trains on two classes or more, and on as many as the model has priors for."""
    if class_codes(data) is None:
        return False
    counts = [len(np.unique(data.y[fold.train])) for fold in data.folds]
    if min(counts) < 2:
        return False
    priors = getattr(model, "priors", None)
    if isinstance(priors, str) and not isinstance(model, NearestCentroid):
        return False  # scikit-learn says what is wrong with it
    if priors is None or isinstance(priors, str):
        return all(len(fold.train) > count for fold, count in zip(data.folds, counts, strict=True))
    try:
        given = np.asarray(priors, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return False
    return given.ndim == 1 and {len(given)} == set(counts) and bool(np.isfinite(given).all() and (given > 0).all())


def training_weights(estimator: Estimator, recipe: Recipe, data: FoldedData) -> list[FloatArray] | None:
    """Return the weights of each fold's training rows, or None without weights; ValueError if they are not usable."""
    given = _sample_weight(estimator, recipe, data)
    class_weight = getattr(recipe.model, "class_weight", None)
    if given is None and class_weight is None:
        return None
    weights = []
    for fold in data.folds:
        of_fold = np.ones(len(fold.train)) if given is None else given[fold.train]
        if class_weight is not None:
            of_fold = of_fold * compute_sample_weight(class_weight, data.y[fold.train])
        if not (of_fold.min() >= 0 and of_fold.sum() > 0 and np.isfinite(of_fold).all()):
            raise ValueError("weights must be finite, at least zero, and not all zero in a fold")
        weights.append(of_fold)
    return weights


def _sample_weight(estimator: Estimator, recipe: Recipe, data: FoldedData) -> FloatArray | None:
    """Return the ``sample_weight`` that ``fit`` of the model gets; ValueError if there are other metadata."""
    if not data.params:
        return None
    name = "sample_weight"
    if isinstance(estimator, Pipeline):
        name = f"{estimator.steps[-1][0]}__{name}"
    known = set(data.params) == {name} and has_fit_parameter(recipe.model, "sample_weight")
    if not known or get_config()["enable_metadata_routing"]:
        raise ValueError("the engine knows no metadata but sample_weight")
    weights = np.asarray(data.params[name], dtype=np.float64)
    if weights.shape != (len(data.X),):
        raise ValueError("sample_weight must have one entry for each row")
    return weights
