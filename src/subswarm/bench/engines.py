"""Compares the fast engines with scikit-learn's ``cross_val_score``: same folds, same kind of masks, same cores."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator, is_regressor
from sklearn.datasets import load_diabetes, make_classification, make_regression
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from subswarm._types import AnyArray, FloatArray, Masks
from subswarm.bench.store import append_rows, read_rows
from subswarm.datasets import load_dataset
from subswarm.objective.objective import make_objective

__all__ = [
    "MODELS",
    "SCALINGS",
    "Comparison",
    "compare",
    "first_use_seconds",
    "gemm_rate",
    "geometric_mean",
    "half_full_masks",
]

SCALINGS = ("once", "fold", "none")
MODELS: dict[str, Callable[[], BaseEstimator]] = {
    "nb": GaussianNB,
    "knn": KNeighborsClassifier,
    "knn-distance": partial(KNeighborsClassifier, weights="distance"),
    "knn-manhattan": partial(KNeighborsClassifier, metric="manhattan"),
    "knn-regressor": KNeighborsRegressor,
    "knn-regressor-distance": partial(KNeighborsRegressor, weights="distance"),
    "knn-regressor-manhattan": partial(KNeighborsRegressor, metric="manhattan"),
    "ols": LinearRegression,
    "ridge": Ridge,
    "ridge-classifier": RidgeClassifier,
    "lda": LinearDiscriminantAnalysis,
    "qda": partial(QuadraticDiscriminantAnalysis, reg_param=0.1),
    "nearest-centroid": NearestCentroid,
    "logistic": LogisticRegression,
}
"""Models to compare, by name. Regressors are compared on `REGRESSION_TABLES`, classifiers on the data sets."""
REGRESSION_TABLES: dict[str, Callable[[], tuple[FloatArray, FloatArray]]] = {
    "diabetes": partial(load_diabetes, return_X_y=True),
    "made-up-300": partial(make_regression, 300, 30, n_informative=10, noise=20.0, random_state=0),
    "made-up-1000": partial(make_regression, 1000, 50, n_informative=10, noise=20.0, random_state=0),
    "made-up-5000": partial(make_regression, 5000, 100, n_informative=10, noise=20.0, random_state=0),
}
CLASSIFICATION_TABLES: dict[str, Callable[[], tuple[FloatArray, AnyArray]]] = {
    "made-up-5000x100": partial(make_classification, 5000, 100, n_informative=10, random_state=0),
}
"""Made-up tables that are measured if their names are given."""
_SWARM = 30
_LEAST_SECONDS = 0.05


@dataclass(frozen=True)
class Comparison:
    """One data set and model: evaluations per second of both sides; an evaluation scores ten folds.

    Attributes
    ----------
    way : the fastest way of scikit-learn: "serial", "folds" (``cross_val_score(n_jobs=-1)``) or "masks" (joblib)
    theirs, ours : evaluations per second, medians
    gemm_share : our rate of arithmetic operations, counted as a plain computation needs them, over the machine's rate
        for a matrix product; only for the models "nb" and "knn"
    scoring : name of the scorer
    scaling, repeats : how it was measured
    """

    dataset: str
    rows: int
    columns: int
    model: str
    way: str
    theirs: float
    ours: float
    gemm_share: float | None
    scoring: str
    scaling: str
    repeats: int

    @property
    def ratio(self) -> float:
        """How many times faster we are."""
        return self.ours / self.theirs


def compare(
    names: Iterable[str],
    *,
    repeats: int = 5,
    scaling: str = "once",
    seed: int = 0,
    models: Iterable[str] = ("nb", "knn"),
    scorings: Iterable[str] = ("",),
    more: str | None = None,
    store: Path | None = None,
) -> Iterator[Comparison]:
    """Measure each data set, model and scorer, alternating between both sides ``repeats`` times.

    Masks are random and select about half of the columns. ``scaling``: columns are standardised "once" before both
    sides, in each "fold" by a pipeline, or not at all ("none"). ``more`` is a folder of .npz files with X and y; those
    with numbers as targets are measured, too. A scorer that fails in a fold of a data set (such as
    "roc_auc" with three classes) is left out; "" is the estimator's own score.

    With ``store``, each comparison is added to that file as soon as it is measured, and comparisons that the file holds
    already are returned without being measured again. So a run that was cut off goes on where it was.
    """
    names, models, scorings = list(names), list(models), list(scorings)
    tables: list[tuple[str, Callable[[], tuple[FloatArray, AnyArray]], bool]]
    tables = [(name, CLASSIFICATION_TABLES.get(name, partial(_load, name)), False) for name in names]
    tables += [(name, load, True) for name, load in REGRESSION_TABLES.items()]
    tables += [(path.stem, partial(_load_file, path), True) for path in _regression_files(more)]
    kept = read_rows(store, Comparison, "subswarm bench engines")
    known = {_key(row): row for row in kept}
    rates = {"knn": gemm_rate(np.float32), "nb": gemm_rate(np.float64)}
    for name, load, is_regression in tables:
        own_models = [model for model in models if is_regressor(MODELS[model]()) == is_regression]
        if not own_models:
            continue
        X, y = load()
        if scaling == "once":
            X = StandardScaler().fit_transform(X)
        for model in own_models:
            estimator: BaseEstimator = MODELS[model]()
            if scaling == "fold":
                estimator = make_pipeline(StandardScaler(), estimator)
            for scoring in scorings:
                own = "r2" if is_regression else "accuracy"
                key = (name, model, scoring or own, scaling, repeats)
                if key in known:
                    yield known[key]
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = _measure(estimator, X, y, scoring or None, repeats, np.random.default_rng(seed))
                if found is None:
                    continue
                way, theirs, ours = found
                share = ours * _flops(model, X, y) / rates[model] if model in rates else None
                row = Comparison(
                    name, len(X), X.shape[1], model, way, theirs, ours, share, scoring or own, scaling, repeats
                )
                append_rows(store, [asdict(row)])
                yield row


def _key(row: Comparison) -> tuple[str, str, str, str, int]:
    return row.dataset, row.model, row.scoring, row.scaling, row.repeats


def _load(name: str) -> tuple[FloatArray, AnyArray]:
    table = load_dataset(name)
    return np.asarray(table.X, dtype=np.float64), np.asarray(table.y)


def _regression_files(folder: str | None) -> list[Path]:
    """Return the .npz files of a folder whose targets are numbers."""
    found = []
    for path in sorted(Path(folder).glob("*.npz")) if folder else []:
        with np.load(path) as content:
            if content["y"].dtype.kind == "f":
                found.append(path)
    return found


def _load_file(path: Path) -> tuple[FloatArray, AnyArray]:
    with np.load(path) as content:
        return np.asarray(content["X"], dtype=np.float64), np.asarray(content["y"])


def _measure(
    estimator: BaseEstimator, X: FloatArray, y: AnyArray, scoring: str | None, repeats: int, rng: np.random.Generator
) -> tuple[str, float, float] | None:
    """Return the fastest way of scikit-learn and both rates; None without a fast engine, or a score in every fold."""
    folds = KFold if is_regressor(estimator) else StratifiedKFold
    cv = list(folds(10, shuffle=True, random_state=0).split(X, y))
    score = partial(cross_val_score, scoring=scoring, cv=cv)
    try:
        fast = make_objective(estimator, X, y, cv=cv, scoring=scoring, n_jobs=-1, engine="fast")
        if not np.isfinite(score(estimator, X, y, error_score="raise")).all():
            return None
    except ValueError:
        return None
    for _ in range(2):  # all kernels are compiled, and tables are made
        fast.fresh()(half_full_masks(rng, _SWARM, X.shape[1]))
    ways: dict[str, Callable[[Masks], object]] = {
        "serial": lambda masks: [score(estimator, X[:, mask], y) for mask in masks],
        "folds": lambda masks: [score(estimator, X[:, mask], y, n_jobs=-1) for mask in masks],
        "masks": lambda masks: Parallel(n_jobs=-1)(delayed(score)(estimator, X[:, mask], y) for mask in masks),
    }
    few = 4 * effective_n_jobs(-1)
    probes = {}
    for way, run in ways.items():
        run(half_full_masks(rng, 2, X.shape[1]))
        probes[way] = _seconds(run, half_full_masks(rng, few, X.shape[1]))
    way = min(probes, key=lambda key: probes[key])
    theirs, ours = [], []
    for _ in range(repeats):
        theirs.append(few / _seconds(ways[way], half_full_masks(rng, few, X.shape[1])))
        spent, done = 0.0, 0
        while spent < _LEAST_SECONDS:
            fresh = fast.fresh()  # small tables have few subsets, and a memo would answer instead of the engine
            spent += _seconds(fresh, half_full_masks(rng, _SWARM, X.shape[1]))
            done += fresh.computed
        ours.append(done / spent)
    return way, float(np.median(theirs)), float(np.median(ours))


def half_full_masks(rng: np.random.Generator, count: int, n: int) -> Masks:
    """Return random masks with each column selected with probability 1/2; none is empty."""
    masks = rng.random((count, n)) < 0.5
    masks[~masks.any(axis=1), 0] = True
    return masks


def _seconds(run: Callable[[Masks], object], masks: Masks) -> float:
    start = time.perf_counter()
    run(masks)
    return time.perf_counter() - start


def _flops(model: str, X: FloatArray, y: AnyArray) -> float:
    """Count the operations of an evaluation of half the columns: products for pairs of rows, or squares per class."""
    N, n = X.shape
    if model == "knn":
        return float(2 * 0.9 * N * N * n / 2)
    return float(4 * N * len(np.unique(y)) * n / 2)


def gemm_rate(dtype: DTypeLike, size: int = 1024, repeats: int = 5) -> float:
    """Return the machine's rate for a square matrix product on all cores, in operations per second."""
    matrix = np.random.default_rng(0).random((size, size)).astype(dtype)
    matrix @ matrix
    return (
        2.0 * size**3 / min(_seconds(lambda _: matrix @ matrix, np.empty((0, 0), dtype=bool)) for _ in range(repeats))
    )


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean.

    Examples
    --------
    >>> round(geometric_mean([1, 100]), 6)
    10.0
    """
    return float(np.exp(np.mean(np.log(list(values)))))


_FIRST_USE = """
import time
import numpy as np
from sklearn.datasets import load_wine
from sklearn.{module} import {model}
from subswarm.objective.objective import make_objective
X, y = load_wine(return_X_y=True)
start = time.perf_counter()
make_objective({model}(), X, y, engine="fast")(np.ones((1, 13), dtype=bool))
print(time.perf_counter() - start)
"""


def first_use_seconds() -> dict[str, tuple[float, float]]:
    """Return the seconds of the first evaluation in a new process, with and without compilation."""
    found = {}
    for name, module, model in (("nb", "naive_bayes", "GaussianNB"), ("knn", "neighbors", "KNeighborsClassifier")):
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"NUMBA_CACHE_DIR": folder}
            script = _FIRST_USE.format(module=module, model=model)
            runs = [
                subprocess.run(
                    [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
                )
                for _ in range(2)
            ]
        found[name] = float(runs[0].stdout), float(runs[1].stdout)
    return found
