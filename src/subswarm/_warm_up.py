"""Compiles the kernels that a search needs into numba's cache, in a process started by `_compilation.compile_aside`."""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
from sklearn.base import clone

from subswarm._compilation import compile_aside, is_cached
from subswarm._search.budget import Budget
from subswarm._search.loop import search
from subswarm._types import Estimator
from subswarm.algorithms.base import AnyAlgorithm
from subswarm.engines.compiled import compiled_or_none
from subswarm.objective.objective import Objective, make_objective

__all__ = ["main", "prepare_kernels", "warm_up"]

_NEEDED: dict[str, dict[str, tuple[str, ...]]] = {
    "gaussian_nb": {
        "counting_numba": ("column_lists", "count_correct"),
        "naive_bayes.numba": ("widest_columns", "classify"),
        "naive_bayes.products_numba": ("look_up", "classify_by_products"),
    },
    "knn": {"counting_numba": ("column_lists", "count_correct"), "neighbors.numba": ("votes",)},
}
"""For the engines whose NumPy kernels give the same losses, the kernels that every search on classes calls."""
_ROWS, _COLUMNS, _EVALUATIONS = 150, 12, 200
_WORTH_IT = 500
"""Evaluations from which a process of its own is started."""


def prepare_kernels(objective: Objective, algorithm: AnyAlgorithm, evaluations: int | None, *, announce: bool) -> None:
    """Have the kernels for a search compiled by another process, if they are not in numba's cache."""
    needed = _NEEDED.get(objective.engine)
    if needed is None or objective.scoring.name != "accuracy" or (evaluations is not None and evaluations < _WORTH_IT):
        return
    for module, names in needed.items():
        kernels = compiled_or_none(f"subswarm.engines.{module}")
        if kernels is None:
            return
        if not all(is_cached(getattr(kernels, name)) for name in names):
            break
    else:
        return
    n_classes = len(np.unique(objective.data.y))
    with suppress(pickle.PicklingError, AttributeError, TypeError):
        compile_aside(pickle.dumps((clone(objective.estimator), n_classes, algorithm)), announce=announce)


def warm_up(estimator: Estimator, n_classes: int, algorithm: AnyAlgorithm) -> None:
    """Score a few subsets of a small random table, and search on it, so that numba compiles what these need."""
    rng = np.random.default_rng(0)
    y = np.arange(_ROWS) % n_classes
    X = rng.normal(size=(_ROWS, _COLUMNS)) + y[:, None]
    objective = make_objective(estimator, X, y, cv=3, repeats=1, random_state=0)
    few, many = rng.random((4, _COLUMNS)) < 0.3, rng.random((100, _COLUMNS)) < 0.6
    for masks in (few, many, ~many):
        objective(masks | (np.arange(_COLUMNS) == 0))
    search(algorithm, make_objective(estimator, X, y, cv=3, random_state=0), Budget(evaluations=_EVALUATIONS), rng=0)


def main() -> None:
    """Read what to compile from standard input; the file that is the last argument is deleted at the end."""
    try:
        with suppress(AttributeError, OSError):
            os.nice(5)
        warm_up(*pickle.load(sys.stdin.buffer))
    finally:
        Path(sys.argv[-1]).unlink(missing_ok=True)
