"""Compiles the kernels that a search needs into numba's cache, in a process started by `_compilation.compile_aside`."""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import get_scorer_names
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from subswarm._compilation import compile_aside, is_cached
from subswarm._search.budget import Budget
from subswarm._search.loop import search
from subswarm._types import AnyArray, Estimator, Scorer
from subswarm.algorithms.base import AnyAlgorithm
from subswarm.engines.compiled import compiled_or_none
from subswarm.engines.metrics import batch_metric, needed_predictions
from subswarm.engines.metrics.base import BatchMetric
from subswarm.engines.metrics.labels import LabelMetric
from subswarm.engines.metrics.ranking import BinaryRanking, MulticlassRanking
from subswarm.engines.neighbors.engine import is_euclidean
from subswarm.engines.recipe import is_standard_scorer, recipe_for
from subswarm.objective.objective import Objective, make_objective

__all__ = ["main", "needed_kernels", "prepare_kernels", "warm_up"]

_COUNTING = (("counting_numba", "column_lists"),)
_EVALUATE = (*_COUNTING, ("linear.numba", "evaluate"))
_NEEDED: dict[str, tuple[tuple[str, str], ...]] = {
    "gaussian_nb": (*_COUNTING, ("naive_bayes.numba", "widest_columns")),
    "knn": _COUNTING,
    "normal_cdf_bayes": (*_COUNTING, ("normal_cdf.numba", "classify")),
    "linear": (*_EVALUATE, ("linear.numba", "solve")),
    "logistic": (*_EVALUATE, ("linear.logistic_numba", "fit_logistic")),
    "quadratic": (*_COUNTING, ("linear.quadratic_numba", "fit_quadratic")),
    "centroids": (*_COUNTING, ("linear.centroids_numba", "add_terms")),
}
"""For each engine with kernels, modules and names of those that every search calls."""
_BY_PREDICTIONS: dict[tuple[str, bool], tuple[tuple[str, str], ...]] = {
    ("gaussian_nb", True): (
        ("naive_bayes.numba", "classify"),
        ("naive_bayes.products_numba", "look_up"),
        ("naive_bayes.products_numba", "classify_by_products"),
    ),
    ("gaussian_nb", False): (("naive_bayes.numba", "log_likelihoods"),),
    **{(engine, True): (("linear.numba", "judge"),) for engine in ("linear", "logistic", "quadratic", "centroids")},
}
"""The same for predicted classes (True), and for probabilities or numbers."""
_METRICS: tuple[tuple[type, str], ...] = (
    (LabelMetric, "count_labels"),
    (BinaryRanking, "rank_scores"),
    (MulticlassRanking, "rank_scores"),
    (BatchMetric, "sum_folds"),
)
_ROWS, _COLUMNS, _EVALUATIONS = 150, 12, 200

Kernel = tuple[str, str]


def prepare_kernels(objective: Objective, algorithm: AnyAlgorithm, *, announce: bool) -> None:
    """Have the kernels for a search compiled by another process, if they are not in numba's cache."""
    needed = needed_kernels(objective)
    for module, name in needed:
        kernels = compiled_or_none(f"subswarm.engines.{module}")
        if kernels is None:
            return
        if not is_cached(getattr(kernels, name)):
            break
    else:
        return
    y, scoring = objective.data.y, objective.data.scoring
    classes = np.unique(y) if is_classifier(objective.estimator) else None
    scorer = scoring.name if scoring.name in get_scorer_names() else scoring.given
    with suppress(pickle.PicklingError, AttributeError, TypeError):
        work = pickle.dumps((clone(objective.estimator), classes, scorer, algorithm))
        compile_aside((type(algorithm), *needed), work, announce=announce)


def needed_kernels(objective: Objective) -> list[Kernel]:
    """Return modules and names of the kernels that a search with this objective calls; none without a fast engine."""
    engine, estimator, data = objective.engine, objective.estimator, objective.data
    if engine not in _NEEDED:
        return []
    is_labels = needed_predictions(data.scoring, estimator, data) == "labels"
    found = [*_NEEDED[engine], *_BY_PREDICTIONS.get((engine, is_labels), ())]
    is_accuracy = is_standard_scorer(estimator, data, frozenset({"accuracy"}))
    if engine == "knn":
        found.append(("neighbors.numba", _neighbors_kernel(estimator, is_labels=is_labels)))
    if is_accuracy and engine in ("gaussian_nb", "knn", "normal_cdf_bayes"):
        return [*found, ("counting_numba", "count_correct")]
    metric = batch_metric(data.scoring, estimator, data)
    kernel = next((name for kind, name in _METRICS if isinstance(metric, kind)), None)
    return found if kernel is None else [*found, ("metrics.numba", kernel)]


def _neighbors_kernel(estimator: Estimator, *, is_labels: bool) -> str:
    recipe = recipe_for(estimator, (KNeighborsClassifier, KNeighborsRegressor))
    assert recipe is not None
    if not is_euclidean(recipe.model):
        return "city_block_neighbors"
    return "votes" if is_labels and recipe.model.weights == "uniform" else "neighbors"


def warm_up(
    estimator: Estimator, classes: AnyArray | None, scoring: str | Scorer | None, algorithm: AnyAlgorithm
) -> None:
    """Score a few subsets of a small random table, and search on it, so that numba compiles what these need.

    The target has these ``classes``; without classes it has numbers.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(_ROWS, _COLUMNS))
    if classes is None:
        y: AnyArray = np.exp(X[:, 0] + rng.normal(size=_ROWS))  # above zero, which some metrics need
    else:
        codes = np.arange(_ROWS) % len(classes)
        y = classes[codes]
        X += codes[:, None]
    objective = make_objective(estimator, X, y, cv=3, scoring=scoring, random_state=0)
    few, many = rng.random((4, _COLUMNS)) < 0.3, rng.random((100, _COLUMNS)) < 0.6
    for masks in (few, many, ~many):
        objective(masks | (np.arange(_COLUMNS) == 0))
    again = make_objective(estimator, X, y, cv=3, scoring=scoring, random_state=0)
    search(algorithm, again, Budget(evaluations=_EVALUATIONS), rng=0)


def main() -> None:
    """Read what to compile from standard input; the file that is the last argument is deleted at the end."""
    try:
        with suppress(AttributeError, OSError):
            os.nice(5)
        warm_up(*pickle.load(sys.stdin.buffer))
    finally:
        Path(sys.argv[-1]).unlink(missing_ok=True)
