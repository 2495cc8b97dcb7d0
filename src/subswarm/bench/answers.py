"""Measures what selectors find: error on new rows, size, noise columns, stability and time."""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_selection import (
    RFECV,
    SelectFromModel,
    SelectKBest,
    SequentialFeatureSelector,
    f_classif,
    f_regression,
)
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from subswarm._checks import check_choice
from subswarm._compilation import wait_for_compiler
from subswarm._models import MODELS, make_model
from subswarm._search.result import stability
from subswarm._seeding import set_random_states
from subswarm._types import AnyArray, FloatArray, IntArray, Mask
from subswarm.bench.problems import Task, tasks_of
from subswarm.bench.store import append_rows, read_rows
from subswarm.objective.filters import ranking_scores
from subswarm.selector import SwarmSelector
from subswarm.study.analysis.text_table import Grid, render

__all__ = ["SELECTORS", "Row", "format_tables", "measure"]

MOST_SIZES = 15
"""The most numbers of columns among which a filter's inner cross-validation selects."""
WARM_UP = 2000
"""Evaluations of an untimed search that compiles: two repeats, so that the cross-fitted parts are compiled too."""
ABSENT = "–"


@dataclass(frozen=True)
class Row:
    """One selector with one model on one problem: means over the tasks, or NaN where it does not apply.

    ``errors`` has the error of each task.
    """

    problem: str
    model: str
    selector: str
    error: float = float("nan")
    size: float = float("nan")
    noise: float = float("nan")
    stability: float = float("nan")
    seconds: float = float("nan")
    errors: tuple[float, ...] = ()


def measure(
    problems: Sequence[str],
    *,
    models: Sequence[str],
    selectors: Sequence[str],
    folds: int = 5,
    seeds: int = 3,
    seed: int = 0,
    evaluations: int = 6000,
    more: str | None = None,
    n_jobs: int = 1,
    store: Path | None = None,
    report: Callable[[Row], object] = lambda row: None,
) -> list[Row]:
    """Return a row for each problem, model and selector; ``report`` is called with each row when it is done.

    With ``n_jobs``, that many selections run at a time, each with one thread. Selections that are in the store are not
    made again.
    """
    for selector in selectors:
        check_choice("selectors", selector, SELECTORS)
    for name in models:
        if not any(name in _models_of(has_classes) for has_classes in (True, False)):
            make_model(name)  # an unknown name, or an import path
    settings = (folds, seeds, seed, evaluations)
    stored = {
        (*each.key, each.number): each.outcome
        for each in read_rows(store, _StoredSelection, "subswarm bench answers")
        if tuple(each.settings) == settings
    }
    outcomes: dict[tuple[str, str, str], list[_Outcome | None]] = {}
    todo: list[_Selection] = []
    for problem in problems:
        drawn = list(tasks_of(problem, folds=folds, seeds=seeds, seed=seed, more=more))
        for name in models:
            if name in MODELS and name not in _models_of(drawn[0].has_classes):
                continue
            model = make_model(name, "classification" if drawn[0].has_classes else "regression")
            tasks = [
                replace(task, model=set_random_states(clone(model), task.seed), evaluations=evaluations)
                for task in drawn
            ]
            for selector in selectors:
                key = (problem, name, selector)
                outcomes[key] = [stored.get((*key, number)) for number in range(len(tasks))]
                todo += [
                    _Selection(key, number, task) for number, task in enumerate(tasks) if not outcomes[key][number]
                ]
    _compile(todo)
    rows: dict[tuple[str, str, str], Row] = {}

    def finish(key: tuple[str, str, str]) -> None:
        done = [each for each in outcomes[key] if each is not None]
        if len(done) == len(outcomes[key]):
            rows[key] = _summarised(key, done)
            report(rows[key])

    for key in outcomes:
        finish(key)
    work = (delayed(_perform)(each) for each in todo)
    for each, outcome in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(work):
        outcomes[each.key][each.number] = outcome
        append_rows(
            store, [asdict(_StoredSelection(key=each.key, number=each.number, settings=settings, **asdict(outcome)))]
        )
        finish(each.key)
    return [rows[key] for key in outcomes]


@dataclass(frozen=True, eq=False)
class _Selection:
    """A selection to make: problem, model and selector, the number of the task, and the task."""

    key: tuple[str, str, str]
    number: int
    task: Task | None


@dataclass(frozen=True, eq=False)
class _Outcome:
    """What was selected; ``columns`` is None where the selector does not apply."""

    columns: Sequence[int] | None = None
    n_columns: int = 0
    error: float = float("nan")
    noise: float = float("nan")
    seconds: float = float("nan")

    @property
    def mask(self) -> Mask | None:
        return None if self.columns is None else np.isin(np.arange(self.n_columns), self.columns)


@dataclass(frozen=True, eq=False, kw_only=True)
class _StoredSelection(_Outcome):
    """A row of the store; ``settings`` has the folds, the seeds, the seed and the evaluations of the benchmark."""

    key: Sequence[str]
    number: int
    settings: Sequence[int]

    @property
    def outcome(self) -> _Outcome:
        return _Outcome(self.columns, self.n_columns, self.error, self.noise, self.seconds)


def _compile(selections: Sequence[_Selection]) -> None:
    """Run a short search for each model, scorer and kind of target, so that compiling is not timed."""
    compiled = set()
    for each in selections:
        task = each.task
        assert task is not None
        kernels = (each.key[1], task.scoring, task.has_classes and len(np.unique(task.y)) > 2)
        if kernels not in compiled:
            compiled.add(kernels)
            _select(replace(task, evaluations=min(task.evaluations, WARM_UP)), "default")
            wait_for_compiler()


def _perform(selection: _Selection) -> tuple[_Selection, _Outcome]:
    """Return the selection, without its task, and its outcome."""
    task = selection.task
    assert task is not None
    begin = time.perf_counter()
    mask = _select(task, selection.key[2])
    seconds = time.perf_counter() - begin
    done = replace(selection, task=None)
    if mask is None:
        return done, _Outcome()
    noise = float("nan") if task.noise is None else float((mask & task.noise).sum())
    columns = np.flatnonzero(mask).tolist()
    return done, _Outcome(columns, len(mask), _error(task, mask), noise, seconds)


def _summarised(key: tuple[str, str, str], outcomes: Sequence[_Outcome]) -> Row:
    masks = [each.mask for each in outcomes if each.mask is not None]
    if len(masks) < len(outcomes):
        return Row(*key)
    return Row(
        *key,
        error=float(np.mean([each.error for each in outcomes])),
        size=float(np.mean([mask.sum() for mask in masks])),
        noise=float(np.mean([each.noise for each in outcomes])),
        stability=stability(masks).value if len(masks) > 1 else float("nan"),
        seconds=float(np.mean([each.seconds for each in outcomes])),
        errors=tuple(each.error for each in outcomes),
    )


def _models_of(has_classes: bool) -> list[str]:
    """Return the models that predict classes, or amounts."""
    return [name for name, (_, kinds) in MODELS.items() if ("classification" if has_classes else "regression") in kinds]


def format_tables(rows: Sequence[Row], baseline: str = "select-k-best") -> str:
    """Return the rows as Markdown, one table for each model, and its means compared with those of a selector."""
    headers = ("problem", "selector", "error on new rows", "size", "noise columns", "stability", "seconds")
    grids = []
    for model in dict.fromkeys(row.model for row in rows):
        cells = tuple(
            (
                row.problem,
                row.selector,
                _number(row.error, 4),
                _number(row.size, 1),
                _number(row.noise, 1),
                _number(row.stability, 2),
                _number(row.seconds, 2),
            )
            for row in rows
            if row.model == model
        )
        grids.append(Grid(MODELS[model][0], headers, cells))
        grids += [grid for grid in (_summary(rows, model, baseline),) if grid]
    return render(grids, "markdown")


def _summary(rows: Sequence[Row], model: str, baseline: str) -> Grid | None:
    """Return the means of each selector over the problems that all of these selectors were measured on."""
    of_model = [row for row in rows if row.model == model and np.isfinite(row.error) and row.selector != "truth"]
    selectors = list(dict.fromkeys(row.selector for row in of_model))
    by_problem: dict[str, dict[str, Row]] = {}
    for row in of_model:
        by_problem.setdefault(row.problem, {})[row.selector] = row
    common = [found for found in by_problem.values() if len(found) == len(selectors)]
    if len(common) < 2 or len(selectors) < 2:
        return None
    errors = np.array([[found[name].error for name in selectors] for found in common])
    ranks = rankdata(errors, axis=1).mean(axis=0)
    cells = []
    for column, name in enumerate(selectors):
        own = [found[name] for found in common]
        against = [_difference(found[name], found[baseline]) for found in common] if baseline in selectors else []
        cells.append(
            (
                name,
                _number(float(errors[:, column].mean()), 4),
                _number(float(errors[:, column].sum() / errors[:, selectors.index(baseline)].sum()), 3)
                if against
                else ABSENT,
                _number(max(against), 1) if against and name != baseline else ABSENT,
                _number(float(np.mean([row.size for row in own])), 1),
                _number(float(ranks[column]), 2),
            )
        )
    headers = (
        "selector",
        "mean error",
        f"error / {baseline}",
        "worst difference (standard errors)",
        "mean size",
        "mean rank of error",
    )
    return Grid(f"{MODELS[model][0]}: means over {len(common)} problems", headers, tuple(cells))


def _difference(row: Row, other: Row) -> float:
    """Return by how many standard errors of the paired differences an error is greater than another one."""
    differences = np.subtract(row.errors, other.errors)
    spread = float(differences.std(ddof=1)) if len(differences) > 1 else 0.0
    return float(differences.mean() / (spread / np.sqrt(len(differences)))) if spread else 0.0


def _select(task: Task, selector: str) -> Mask | None:
    """Return the selected columns, or None where the selector does not apply."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no convergence, a fit without columns, classes with fewer rows than folds
        mask = SELECTORS[selector](task)
    return None if mask is None else np.asarray(mask, dtype=bool)


def _error(task: Task, mask: Mask) -> float:
    """Return one minus the score on the test rows of the model fitted on the training rows."""
    constant = DummyClassifier() if task.has_classes else DummyRegressor()
    model = clone(task.model) if mask.any() else constant
    columns = mask if mask.any() else np.arange(len(mask)) == 0  # what predicts without columns ignores them
    model.fit(task.X[:, columns], task.y)
    return 1.0 - float(get_scorer(task.scoring)(model, task.X_test[:, columns], task.y_test))


def _swarm(task: Task, **settings: object) -> Mask:
    selector = SwarmSelector(
        task.model,
        scoring=task.scoring,
        max_evaluations=task.evaluations,
        random_state=task.seed,
        verbose=0,
    )
    return np.asarray(selector.set_params(**settings).fit(task.X, task.y).support_)


def _all(task: Task) -> Mask:
    return np.ones(task.X.shape[1], dtype=bool)


def _truth(task: Task) -> Mask | None:
    return None if task.noise is None or task.noise.all() else ~task.noise


def _sizes(columns: int) -> list[int]:
    """Return at most 15 numbers of columns: evenly spaced on a logarithmic scale from 1 to all."""
    return sorted({int(size) for size in np.geomspace(1, columns, MOST_SIZES).round()})


def _search_grid(task: Task, select: object, grid: dict[str, object]) -> Mask | None:
    """Return the columns of a scikit-learn selector whose setting is chosen by inner cross-validation."""
    pipeline = Pipeline([("select", select), ("model", task.model)])
    search = GridSearchCV(pipeline, grid, scoring=task.scoring, cv=task.folds).fit(task.X, task.y)
    return np.asarray(search.best_estimator_["select"].get_support())


def _select_k_best(task: Task) -> Mask | None:
    function = f_classif if task.has_classes else f_regression
    return _search_grid(task, SelectKBest(function), {"select__k": _sizes(task.X.shape[1])})


def _select_ranked(task: Task, ranking: str) -> Mask:
    """Return the best columns of a ranking; their number is chosen with rankings of the inner training rows."""
    sizes, score = _sizes(task.X.shape[1]), get_scorer(task.scoring)
    scores = np.zeros(len(sizes))
    for train, test in task.folds.split(task.X, task.y):
        order = _order(ranking, task.X[train], task.y[train], task.has_classes)
        for place, size in enumerate(sizes):
            model = clone(task.model).fit(task.X[train][:, order[:size]], task.y[train])
            scores[place] += score(model, task.X[test][:, order[:size]], task.y[test])
    mask = np.zeros(task.X.shape[1], dtype=bool)
    mask[_order(ranking, task.X, task.y, task.has_classes)[: sizes[int(scores.argmax())]]] = True
    return mask


def _order(ranking: str, X: FloatArray, y: AnyArray, has_classes: bool) -> IntArray:
    return np.argsort(-ranking_scores(ranking, X, y, classification=has_classes), kind="stable")


def _l1(task: Task) -> Mask | None:
    """Return the columns with a coefficient in L1 logistic regression, or the lasso, tuned by an inner search."""
    if not task.has_classes:
        lasso = SelectFromModel(
            make_pipeline(StandardScaler(), Lasso()), threshold=1e-5, importance_getter="named_steps.lasso.coef_"
        )
        return _search_grid(task, lasso, {"select__estimator__lasso__alpha": np.geomspace(0.003, 3, 10)})
    logistic = LogisticRegression(l1_ratio=1.0, solver="saga", tol=1e-3, max_iter=500)
    if len(np.unique(task.y)) == 2:
        logistic.set_params(solver="liblinear", random_state=task.seed)
    if logistic.get_params().get("penalty") == "l2":  # before scikit-learn 1.8
        logistic.set_params(penalty="l1", l1_ratio=None)
    select = SelectFromModel(
        make_pipeline(StandardScaler(), logistic), importance_getter="named_steps.logisticregression.coef_"
    )
    return _search_grid(task, select, {"select__estimator__logisticregression__C": np.geomspace(0.01, 10, 10)})


def _rfecv(task: Task) -> Mask | None:
    """Return the columns of recursive elimination, by 5 % a step above 200 columns; None without importances."""
    if _importances(clone(task.model).fit(task.X, task.y)) is None:
        return None
    step = 1 if task.X.shape[1] <= 200 else 0.05
    search = RFECV(task.model, step=step, cv=task.folds, scoring=task.scoring, importance_getter=_importances)
    return np.asarray(search.fit(task.X, task.y).support_)


def _importances(model: object) -> FloatArray | None:
    last = model[-1] if isinstance(model, Pipeline) else model
    return getattr(last, "coef_", getattr(last, "feature_importances_", None))


def _forest(task: Task) -> Mask | None:
    """Return the most important columns of a random forest; an inner search chooses how many."""
    forest = RandomForestClassifier if task.has_classes else RandomForestRegressor
    select = SelectFromModel(forest(random_state=task.seed), threshold=-np.inf)
    return _search_grid(task, select, {"select__max_features": _sizes(task.X.shape[1])})


def _sequential(task: Task) -> Mask | None:
    """Return the columns of scikit-learn's forward selection, which ends when the score rises by less than 0.001."""
    search = SequentialFeatureSelector(
        task.model, n_features_to_select="auto", tol=0.001, scoring=task.scoring, cv=task.folds
    )
    return np.asarray(search.fit(task.X, task.y).support_)


def _mlxtend(task: Task) -> Mask | None:
    """Return the best subset of at most 15 columns on the way of mlxtend's floating forward selection."""
    if find_spec("mlxtend") is None:
        return None
    from mlxtend.feature_selection import SequentialFeatureSelector as Floating

    columns = task.X.shape[1]
    search = Floating(
        task.model, (1, min(MOST_SIZES, columns)), forward=True, floating=True, scoring=task.scoring, cv=task.folds
    )
    return np.isin(np.arange(columns), search.fit(task.X, task.y).k_feature_idx_)


def _genetic(task: Task) -> Mask | None:
    """Return the columns of sklearn-genetic-opt's search with its default population and generations."""
    if find_spec("sklearn_genetic") is None:
        return None
    from sklearn_genetic import GAFeatureSelectionCV

    kept = random.getstate()
    random.seed(task.seed)  # its operators draw from the global state
    try:
        search = GAFeatureSelectionCV(task.model, cv=task.folds, scoring=task.scoring, verbose=False)
        return np.asarray(search.fit(task.X, task.y).support_)
    finally:
        random.setstate(kept)


def _boruta(task: Task) -> Mask | None:
    if find_spec("boruta") is None:
        return None
    from boruta import BorutaPy

    forest = (RandomForestClassifier if task.has_classes else RandomForestRegressor)(
        max_depth=5, random_state=task.seed
    )
    return np.asarray(BorutaPy(forest, n_estimators="auto", random_state=task.seed).fit(task.X, task.y).support_)


SELECTORS: dict[str, Callable[[Task], Mask | None]] = {
    "default": _swarm,
    "best": partial(_swarm, choose="best"),
    "repeats=6": partial(_swarm, repeats=6, choose="best"),
    "all": _all,
    "truth": _truth,
    "select-k-best": _select_k_best,
    "rfecv": _rfecv,
    "mrmr": partial(_select_ranked, ranking="mrmr"),
    "l1": _l1,
    "forest": _forest,
    "sfs": _sequential,
    "mlxtend": _mlxtend,
    "sffs": partial(_swarm, algorithm="sffs"),
    "2d-upso": partial(_swarm, algorithm="2d-upso"),
    "bpso": partial(_swarm, algorithm="bpso"),
    "boruta": _boruta,
    "genetic": _genetic,
}
"""The selectors by name."""


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else ABSENT
