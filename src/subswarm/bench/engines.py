"""Fast engines against scikit-learn's ``cross_val_score``, side by side: same folds, same masks' kind, same cores."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from subswarm.core.types import FloatArray, Masks
from subswarm.datasets import load_dataset
from subswarm.evaluation import make_objective

__all__ = ["SCALINGS", "Comparison", "compare", "first_use_seconds", "gemm_rate", "geometric_mean"]

SCALINGS = ("once", "fold", "none")
_SWARM = 30
_LEAST_SECONDS = 0.05


@dataclass(frozen=True)
class Comparison:
    """One data set and model: evaluations per second of both sides, each evaluation ten folds.

    Attributes
    ----------
    way : how scikit-learn was quickest: "serial", "folds" (``cross_val_score(n_jobs=-1)``) or "masks" (joblib)
    theirs, ours : evaluations per second, medians
    gemm_share : our arithmetic, counted as the products that a plain computation needs, over the machine's own rate
    """

    dataset: str
    rows: int
    columns: int
    model: str
    way: str
    theirs: float
    ours: float
    gemm_share: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


def compare(
    names: Iterable[str],
    *,
    repeats: int = 5,
    scaling: str = "once",
    seed: int = 0,
    models: Iterable[str] = ("nb", "knn"),
) -> Iterator[Comparison]:
    """Measure each data set and model, alternating both sides ``repeats`` times.

    Masks are random and half full. ``scaling``: columns standardised "once" before both sides, in each "fold" by a
    pipeline, or "none".
    """
    rates = {"knn": gemm_rate(np.float32), "nb": gemm_rate(np.float64)}
    for name in names:
        table = load_dataset(name)
        X, y = np.asarray(table.X, dtype=np.float64), np.asarray(table.y)
        if scaling == "once":
            X = StandardScaler().fit_transform(X)
        for model in models:
            estimator: Any = GaussianNB() if model == "nb" else KNeighborsClassifier()
            if scaling == "fold":
                estimator = make_pipeline(StandardScaler(), estimator)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                way, theirs, ours = _measure(estimator, X, y, repeats, np.random.default_rng(seed))
            share = ours * _flops(model, X, y) / rates[model]
            yield Comparison(name, X.shape[0], X.shape[1], model, way, theirs, ours, share)


def _measure(estimator: Any, X: FloatArray, y: Any, repeats: int, rng: np.random.Generator) -> tuple[str, float, float]:
    cv = list(StratifiedKFold(10, shuffle=True, random_state=0).split(X, y))
    fast = make_objective(estimator, X, y, cv=cv, n_jobs=-1, engine="fast")
    fast(_half_full(rng, _SWARM, X.shape[1]))
    ways: dict[str, Callable[[Masks], Any]] = {
        "serial": lambda masks: [cross_val_score(estimator, X[:, mask], y, cv=cv) for mask in masks],
        "folds": lambda masks: [cross_val_score(estimator, X[:, mask], y, cv=cv, n_jobs=-1) for mask in masks],
        "masks": lambda masks: Parallel(n_jobs=-1)(
            delayed(cross_val_score)(estimator, X[:, mask], y, cv=cv) for mask in masks
        ),
    }
    few = 4 * effective_n_jobs(-1)
    probes = {}
    for way, run in ways.items():
        run(_half_full(rng, 2, X.shape[1]))
        probes[way] = _seconds(run, _half_full(rng, few, X.shape[1]))
    way = min(probes, key=lambda key: probes[key])
    theirs, ours = [], []
    for _ in range(repeats):
        theirs.append(few / _seconds(ways[way], _half_full(rng, few, X.shape[1])))
        spent, done = 0.0, 0
        while spent < _LEAST_SECONDS:
            anew = fast.fresh()  # small tables have few subsets: a memo would answer for the engine
            spent += _seconds(anew, _half_full(rng, _SWARM, X.shape[1]))
            done += anew.computed
        ours.append(done / spent)
    return way, float(np.median(theirs)), float(np.median(ours))


def _half_full(rng: np.random.Generator, count: int, n: int) -> Masks:
    masks = rng.random((count, n)) < 0.5
    masks[~masks.any(axis=1), 0] = True
    return masks


def _seconds(run: Callable[[Masks], Any], masks: Masks) -> float:
    start = time.perf_counter()
    run(masks)
    return time.perf_counter() - start


def _flops(model: str, X: FloatArray, y: Any) -> float:
    """Arithmetic of one evaluation with half the columns: a product per pair of rows, or a square per row and class."""
    N, n = X.shape
    if model == "knn":
        return float(2 * 0.9 * N * N * n / 2)
    return float(4 * N * len(np.unique(y)) * n / 2)


def gemm_rate(dtype: Any, size: int = 1024, repeats: int = 5) -> float:
    """The machine's own rate for a square matrix product on all cores, operations per second."""
    matrix = np.random.default_rng(0).random((size, size)).astype(dtype)
    matrix @ matrix
    return (
        2.0 * size**3 / min(_seconds(lambda _: matrix @ matrix, np.empty((0, 0), dtype=bool)) for _ in range(repeats))
    )


def geometric_mean(values: Iterable[float]) -> float:
    """The geometric mean.

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
from subswarm.evaluation import make_objective
X, y = load_wine(return_X_y=True)
start = time.perf_counter()
make_objective({model}(), X, y, engine="fast")(np.ones((1, 13), dtype=bool))
print(time.perf_counter() - start)
"""


def first_use_seconds() -> dict[str, tuple[float, float]]:
    """Seconds of the very first evaluation in a new process, compiling, and with the compiled code on disk."""
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
