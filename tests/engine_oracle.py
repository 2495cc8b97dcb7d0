"""What the tests of the fast engines share: masks of all sizes, and scikit-learn's losses and predictions."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from subswarm._types import FloatArray, Mask, Masks
from subswarm.engines.base import engine_for
from subswarm.engines.data import FoldedData
from subswarm.engines.reference import EstimatorEngine
from subswarm.objective.folds import fixed_folds
from subswarm.objective.scoring import resolve_scoring

UCI = [
    "wine",
    "australian",
    "zoo",
    "vehicle",
    "german",
    "wdbc",
    "ionosphere",
    "lung-cancer",
    "sonar",
    "ozone",
    "libras",
    "hill-valley",
    "musk-1",
    "arrhythmia",
    "lsvt",
    "secom",
]


def folded(estimator: Any, X: Any, y: Any, *, cv: Any = 10, scoring: Any = None) -> FoldedData:
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tiny classes: more folds than members
        folds = fixed_folds(cv, X, y, estimator=estimator)
    return FoldedData(X=X, y=y, folds=folds, scoring=resolve_scoring(estimator, scoring))


def fast(estimator: Any, data: FoldedData, **settings: Any) -> Any:
    return engine_for(estimator, data, engine="fast", **settings)


def masks_of_all_sizes(n: int, seed: int = 0) -> Masks:
    rng = np.random.default_rng(seed)
    sizes = [1, 1, 2, 3, n // 4, n // 2, n - 1, n]
    masks = np.zeros((len(sizes), n), dtype=bool)
    for mask, size in zip(masks, sizes, strict=True):
        mask[rng.permutation(n)[: max(1, size)]] = True
    return np.unique(masks, axis=0)


def true_losses(estimator: Any, data: FoldedData, masks: Masks) -> FloatArray:
    return EstimatorEngine(estimator, data).fold_losses(masks)


def true_predictions(estimator: Any, data: FoldedData, mask: Mask) -> np.ndarray[Any, Any]:
    X, answers = data.X[:, mask], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for fold in data.folds:
            fitted = clone(estimator).fit(X[fold.train], data.y[fold.train])
            answers.append(fitted.predict(X[fold.test]))
    return np.concatenate(answers)


def undecided_rows(estimator: Any, data: FoldedData, mask: Mask) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Test rows whose k-th and next distances agree to within the rounding of scikit-learn's own products."""
    model = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    X, close = data.X[:, mask], []
    for fold in data.folds:
        train, test = X[fold.train], X[fold.test]
        if isinstance(estimator, Pipeline):
            scaler = clone(estimator.steps[0][1]).fit(train)
            train, test = scaler.transform(train), scaler.transform(test)
        gaps = test[:, None, :] - train[None, :, :]
        city_block = model.metric == "manhattan" or model.p == 1
        distances = np.sort(np.abs(gaps).sum(axis=2) if city_block else (gaps**2).sum(axis=2), axis=1)
        if distances.shape[1] == model.n_neighbors:
            close.append(np.zeros(len(test), dtype=bool))
            continue
        power = 1 if city_block else 2
        size = (np.abs(test) ** power).sum(axis=1) + (np.abs(train) ** power).sum(axis=1).max()
        rounding = 8 * (mask.sum() + 4) * np.finfo(float).eps * size
        k = model.n_neighbors
        close.append(distances[:, k] - distances[:, k - 1] <= rounding)
    return np.concatenate(close)
