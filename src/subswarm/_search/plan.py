"""What happens before a search: its plan, and the compilation of the kernels that it needs.

The plan says which algorithm is used, how often the cross-validation is repeated, how many fits that takes, and how
long. Fits are what an expensive model costs. The kernels are compiled into numba's cache in a process started by
`_compilation.compile_aside`.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.base import clone, is_classifier
from sklearn.metrics import get_scorer_names
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from subswarm._compilation import compile_aside, compiled_or_none, is_cached
from subswarm._display import format_duration
from subswarm._search import checkpoint_file
from subswarm._search.callbacks import LONG_SECONDS, TimeNotice
from subswarm._search.loop import search
from subswarm._search.run import Budget
from subswarm._types import AnyArray, Estimator, Scorer
from subswarm.algorithms import TwoDElite, TwoDGuided, as_algorithm
from subswarm.algorithms.base import AnyAlgorithm
from subswarm.engines.metrics import batch_metric, needed_predictions
from subswarm.engines.metrics.base import BatchMetric
from subswarm.engines.metrics.labels import LabelMetric
from subswarm.engines.metrics.ranking import BinaryRanking, MulticlassRanking
from subswarm.engines.neighbors.engine import is_euclidean
from subswarm.engines.recipe import is_standard_scorer, recipe_for
from subswarm.engines.reference import fold_scores
from subswarm.errors import SettingError
from subswarm.objective.foldwise import FoldwiseObjective, foldwise
from subswarm.objective.objective import Objective, make_objective

__all__ = [
    "AUTO",
    "AUTO_EVALUATIONS",
    "AUTO_SECONDS",
    "Plan",
    "PlanLimits",
    "Repeats",
    "ends_before_workers_pay",
    "is_auto",
    "main",
    "needed_kernels",
    "plan_search",
    "prepare_kernels",
    "time_notice",
    "warm_up",
]

AUTO = "auto"
AUTO_EVALUATIONS = 6000
"""Evaluations of ``max_evaluations="auto"`` if they do not take too long; always with a fast engine."""
AUTO_SECONDS = 180.0
"""Time for which ``max_evaluations="auto"`` chooses the number of fits for other models."""
FEWEST_STEPS = 6
"""Fits in each fold that every search may make, however long they take."""
EVALUATIONS_PER_REPEAT = 1000
"""With ``repeats="auto"``, evaluations of the budget for each repeat of the cross-validation."""
MOST_REPEATS = 6
"""With ``repeats="auto"``, the most repeats. docs/results/flagship.md has the measurements."""
FEWEST_CROSS_FITTED = 4
"""With fewer repeats, each would leave out too many rows, so that they all have all rows."""
WORTH_WORKERS = 20.0
"""Time limit in seconds from which worker processes are started; that takes 2 to 3 s, and longer on a busy machine."""


def is_auto(value: object) -> bool:
    """Return whether a setting is left to the package."""
    return isinstance(value, str) and value == AUTO


@dataclass(frozen=True)
class PlanLimits:
    """What the user allows: evaluations (a number, "auto" or None), fits, seconds, and patience in evaluations."""

    evaluations: int | str | None = AUTO
    fits: int | None = None
    seconds: float | None = None
    patience: int | None = None

    @property
    def is_measured(self) -> bool:
        """Whether the number of evaluations depends on the time of a fit."""
        return is_auto(self.evaluations) and self.fits is None

    def likely_evaluations(self) -> int | None:
        """Return the number of evaluations if no time is measured; None if they are not limited."""
        if is_auto(self.evaluations):
            return AUTO_EVALUATIONS if self.fits is None else None
        return None if self.evaluations is None else int(self.evaluations)


@dataclass(frozen=True)
class Repeats:
    """How often the cross-validation is repeated.

    Attributes
    ----------
    wanted : a number, or "auto"
    are_shared_out : whether the search distributes its evaluations among repeats; otherwise "auto" is 1
    """

    wanted: int | str
    are_shared_out: bool

    def count(self, evaluations: int | None) -> int:
        """Return the number of repeats for this many evaluations; None if they are not limited."""
        if not isinstance(self.wanted, str):
            return self.wanted
        if not self.are_shared_out:
            return 1
        if evaluations is None:
            return MOST_REPEATS
        return int(np.clip(evaluations // EVALUATIONS_PER_REPEAT, 1, MOST_REPEATS))

    def are_cross_fitted(self, evaluations: int | None) -> bool:
        """Return whether each repeat leaves out a block of rows."""
        return isinstance(self.wanted, str) and self.count(evaluations) >= FEWEST_CROSS_FITTED


@dataclass(frozen=True, eq=False)
class Plan:
    """An algorithm, its objective and its budget.

    Attributes
    ----------
    algorithm, objective, budget : what to search with
    evaluations : the planned evaluations of all folds of one repeat; None if they are not limited
    fits : the planned fits; None if they are not limited
    n_repeats : the number of repeats of the cross-validation
    notice : a sentence about the time that the search takes; "" if that was not measured or is short
    """

    algorithm: AnyAlgorithm
    objective: Objective
    budget: Budget
    evaluations: int | None
    fits: int | None
    n_repeats: int = 1
    notice: str = ""

    @property
    def is_foldwise(self) -> bool:
        """Whether each fold is a repeat of its own."""
        return isinstance(self.objective, FoldwiseObjective)

    @property
    def chosen_limits(self) -> dict[str, int | None]:
        """The limits of `SwarmSelector` with which another search gets the same budget, without another measurement."""
        return {"max_evaluations": self.evaluations, "max_fits": self.fits}


def plan_search(
    objective: Objective,
    algorithm: AnyAlgorithm | str,
    limits: PlanLimits,
    *,
    n_jobs: int | None = None,
    checkpoint: Path | None = None,
) -> Plan:
    """Return the plan of a search on this objective.

    With ``algorithm="auto"``, a model that scikit-learn itself fits and scores, and that has importances, is searched
    by `TwoDGuided` fold by fold, and everything else by `TwoDElite`. A measured number of fits is rounded, and a
    checkpoint keeps the one that its search began with.
    """
    named = None if is_auto(algorithm) else as_algorithm(algorithm)
    folds, repeats = objective.data.folds_each, objective.n_partitions
    fits = limits.fits
    evaluations = limits.likely_evaluations()
    if evaluations is not None and not limits.is_measured:
        fits = min(evaluations * folds, np.inf if fits is None else fits)  # type: ignore[assignment]
    is_slow = objective.engine == "estimator"
    by_folds = named is not None and named.scores_folds
    single = foldwise(objective, n_jobs) if is_slow or by_folds else None
    notice = ""
    if single is not None and is_slow and (named is None or limits.is_measured):
        seconds = single.measure_fit() / effective_n_jobs(n_jobs)
        if named is None and single.offers_importances:
            by_folds, named = True, TwoDGuided()
        if limits.is_measured:
            allowed = AUTO_SECONDS if limits.seconds is None else limits.seconds
            fits = int(min(AUTO_EVALUATIONS * folds, max(rounded_down(allowed / seconds), FEWEST_STEPS * folds)))
        notice = _notice(seconds, fits, folds, limits, effective_n_jobs(n_jobs))
    elif limits.is_measured:
        fits = AUTO_EVALUATIONS * folds
    chosen = TwoDElite() if named is None else named
    if fits is not None and fits < folds:
        raise SettingError(
            f"max_fits={limits.fits} is less than one evaluation, which takes {folds} fits, one for each fold; allow "
            "more fits, or use fewer folds."
        )
    if single is not None and by_folds:
        total, each = fits, folds
        patience = None if limits.patience is None else limits.patience * folds
        objective, repeats = single, single.n_partitions // folds
    else:
        total, each = None if fits is None else fits // folds, 1
        patience = limits.patience
    if limits.is_measured and checkpoint is not None and (planned := _planned(checkpoint)) is not None:
        total = planned
        fits = planned if each > 1 else planned * folds
    return Plan(
        chosen,
        objective,
        Budget(evaluations=total, seconds=limits.seconds, patience=patience),
        None if fits is None else fits // folds,
        fits,
        repeats,
        notice,
    )


def rounded_down(fits: float) -> int:
    """Return the number with one significant digit, so that a small difference in time seldom changes it.

    Examples
    --------
    >>> rounded_down(387.2), rounded_down(61999.0), rounded_down(0.4)
    (300, 60000, 0)
    """
    whole = int(fits)
    scale = int(10 ** max(0, len(str(whole)) - 1))
    return whole // scale * scale


def _notice(seconds: float, fits: int | None, folds: int, limits: PlanLimits, workers: int) -> str:
    """Return what the search takes, before it starts; "" if that is short."""
    expected = np.inf if fits is None else seconds * fits
    if limits.seconds is not None:
        expected = min(expected, limits.seconds)
    if fits is None or expected <= LONG_SECONDS:
        return ""
    reason = "" if not limits.is_measured else "; set max_fits, max_evaluations or max_seconds for another budget"
    workers_used = "" if workers == 1 else f" with {workers} workers"
    return (
        f"a fit of all columns takes {seconds * workers:.2g} s; the search makes at most {fits} fits on {folds} folds, "
        f"about {format_duration(expected)}{workers_used} or less{reason}"
    )


def time_notice(objective: Objective, budget: Budget, n_jobs: int | None) -> TimeNotice:
    """Return a callback that announces a long search; it announces one that scikit-learn scores at once."""
    notice = TimeNotice(budget.evaluations, budget.seconds)
    may_be_long = budget.seconds is None or budget.seconds > LONG_SECONDS
    if objective.engine == "estimator" and budget.evaluations is not None and may_be_long:
        started = time.perf_counter()
        with suppress(Exception), warnings.catch_warnings():  # the search itself reports what fails
            warnings.simplefilter("ignore")
            every = np.ones(objective.n_features, dtype=bool)
            fold_scores(objective.estimator, objective.data.partition(0), every)
            one = time.perf_counter() - started
            notice.say(one * budget.evaluations / effective_n_jobs(n_jobs))
    return notice


def ends_before_workers_pay(seconds: float | None, n_jobs: int | None) -> bool:
    """Return whether a time limit is so short that worker processes would take much of it to start."""
    backend, _ = get_active_backend()
    return (
        seconds is not None
        and seconds < WORTH_WORKERS
        and effective_n_jobs(n_jobs) > 1
        and not getattr(backend, "supports_sharedmem", False)
        and type(backend).__name__ == "LokyBackend"
    )


def _planned(path: Path) -> int | None:
    """Return the evaluations that the search of a checkpoint was planned with; None if there is no file."""
    saved = checkpoint_file.read(path)
    values: Mapping[str, object] = {} if saved is None else saved.values
    planned = values.get("planned")
    return planned if isinstance(planned, int) and not isinstance(planned, bool) and planned > 0 else None


_COUNTING = (("metrics.numba", "column_lists"),)
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
        return [*found, ("metrics.numba", "count_correct")]
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
