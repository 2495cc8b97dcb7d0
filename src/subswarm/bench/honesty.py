"""Measures how honest the scores of a search are: reported, corrected and nested, against the score on new rows."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from subswarm._checks import suggest
from subswarm._models import MODELS, make_model
from subswarm._search.honest import corrected_score
from subswarm._seeding import seed_of_repeat, set_random_states
from subswarm._types import AnyArray, Estimator, FloatArray, Mask
from subswarm.bench.answers import INFORMATIVE, KINDS, draw_rows, made_size
from subswarm.datasets import is_present, load_dataset, names
from subswarm.errors import SettingError
from subswarm.nested import held_out
from subswarm.objective.objective import make_objective
from subswarm.objective.scoring import resolve_scoring
from subswarm.selector import SwarmSelector
from subswarm.study.analysis.text_table import Grid, render

__all__ = ["ALGORITHMS", "MADE", "Case", "format_tables", "measure", "problem_names"]

MADE = (
    "falling-200x50",
    "falling-1000x50",
    "falling-200x200",
    "noise-200x50",
    "rare-500x50",
    "linear-200x50",
    "unrelated-100x50",
)
"""The made-up tables of the group ``made``."""
_OF_NUMBERS = ("linear", "unrelated")
"""Kinds of tables whose target is a number: the sum of falling shares of the first columns, or noise."""
FEWEST_ROWS = 800
"""Rows of the data sets in the group ``uci``; half of them are used as new rows."""
ALGORITHMS = ("default", "2d-upso", "sffs")
"""The searches by name; "default" is the selector's own."""
_CHUNK = 10_000


@dataclass(frozen=True, eq=False)
class _Task:
    """Training rows, and a function that yields new rows with the columns of a mask only."""

    X: FloatArray
    y: AnyArray
    new_rows: Callable[[Mask], Iterator[tuple[FloatArray, AnyArray]]]
    scoring: str | None


@dataclass(frozen=True)
class Case:
    """One search: losses (one minus the score, or minus a negated score), and what the correction costs.

    Attributes
    ----------
    reported, corrected, nested, true : losses; ``nested`` is NaN if it was not measured
    is_inside : whether the true score is inside the interval
    search_seconds, correction_seconds : time of the search and of the correction
    """

    problem: str
    model: str
    algorithm: str
    reported: float
    corrected: float
    nested: float
    true: float
    is_inside: bool
    search_seconds: float
    correction_seconds: float


def problem_names(wanted: str) -> list[str]:
    """Return the problems for names and the groups ``made`` and ``uci``, separated by commas."""
    found: list[str] = []
    for name in wanted.split(","):
        if name == "made":
            found += MADE
        elif name == "uci":
            found += [each for each in names() if is_present(each) and len(load_dataset(each).X) >= FEWEST_ROWS]
        elif name in names() or _size_of(name):
            found.append(name)
        else:
            raise SettingError(
                f"there is no problem {name!r}.{suggest(name, ['made', 'uci', *MADE, *names()])} Give made, uci, a "
                f"data set, or KIND-ROWSxCOLUMNS with a kind of {', '.join((*KINDS, *_OF_NUMBERS))}."
            )
    return list(dict.fromkeys(found))


def measure(
    problems: Sequence[str],
    *,
    models: Sequence[str],
    algorithms: Sequence[str] = ALGORITHMS,
    seeds: int = 5,
    seed: int = 0,
    evaluations: int = 6000,
    nested: int = 0,
    new_rows: int = 100_000,
    report: Callable[[Case], object] = lambda case: None,
) -> list[Case]:
    """Search each problem with each model and algorithm on ``seeds`` tables or halves of a table.

    ``nested`` is the number of outer folds, or 0 for none; ``report`` is called with each case when it is done.
    """
    cases = []
    for problem in problems:
        for name in models:
            model = _model_for(name, problem)
            for number in range(seeds if model is not None else 0):
                own_seed = seed_of_repeat(seed, number)
                task = _draw(problem, seed, number, new_rows)
                for algorithm in algorithms:
                    fitted = set_random_states(clone(model), own_seed)
                    case = _measure(problem, name, algorithm, fitted, task, own_seed, evaluations, nested)
                    report(case)
                    cases.append(case)
    return cases


def _model_for(name: str, problem: str) -> Estimator | None:
    """Return the model for a problem, None if it does not predict this kind of target."""
    size = _size_of(problem)
    task = "regression" if size is not None and size[0] in _OF_NUMBERS else "classification"
    return None if name in MODELS and task not in MODELS[name][1] else make_model(name, task)


def _size_of(problem: str) -> tuple[str, int, int] | None:
    """Return kind, rows and columns of a made-up table, or None for another name."""
    found = re.fullmatch(rf"({'|'.join(_OF_NUMBERS)})-(\d+)x(\d+)", problem)
    return (found[1], int(found[2]), int(found[3])) if found else made_size(problem)


def format_tables(cases: Sequence[Case]) -> str:
    """Return the cases as Markdown: means over the seeds, one table for each model, and one over all problems."""
    headers = (
        "problem",
        "search",
        "reported",
        "corrected",
        "nested",
        "true",
        "corrected / true",
        "inside",
        "extra time",
    )
    grids = []
    for model in dict.fromkeys(case.model for case in cases):
        own = [case for case in cases if case.model == model]
        keys = dict.fromkeys((case.problem, case.algorithm) for case in own)
        groups = [[case for case in own if (case.problem, case.algorithm) == key] for key in keys]
        rows = [(*key, *_cells(group)) for key, group in zip(keys, groups, strict=True)]
        grids.append(Grid(MODELS[model][0], headers, tuple(rows)))
    summary = []
    for algorithm in dict.fromkeys(case.algorithm for case in cases):
        own = [case for case in cases if case.algorithm == algorithm]
        keys = dict.fromkeys((case.problem, case.model) for case in own)
        groups = [[case for case in own if (case.problem, case.model) == key] for key in keys]
        ratios, optimism = [_ratio(group) for group in groups], [_ratio(group, "reported") for group in groups]
        summary.append(
            (
                algorithm,
                f"{np.mean(optimism):.2f}",
                f"{np.mean(ratios):.2f}",
                f"{min(ratios):.2f} to {max(ratios):.2f}",
                _inside(own),
                _extra(own),
            )
        )
    heads = ("search", "reported / true", "corrected / true", "range over problems", "inside", "extra time")
    grids.append(Grid("Over all problems and models", heads, tuple(summary)))
    return render(grids, "markdown")


def _cells(cases: Sequence[Case]) -> tuple[str, ...]:
    losses = [np.mean([getattr(case, name) for case in cases]) for name in ("reported", "corrected", "nested", "true")]
    shown = [f"{loss:.4f}" if np.isfinite(loss) else "–" for loss in losses]
    return (*shown, f"{_ratio(cases):.2f}", _inside(cases), _extra(cases))


def _ratio(cases: Sequence[Case], name: str = "corrected") -> float:
    return float(np.mean([getattr(case, name) for case in cases]) / np.mean([case.true for case in cases]))


def _inside(cases: Sequence[Case]) -> str:
    return f"{sum(case.is_inside for case in cases)} of {len(cases)}"


def _extra(cases: Sequence[Case]) -> str:
    extra = sum(case.correction_seconds for case in cases) / sum(case.search_seconds for case in cases)
    return f"{100 * extra:.1f} %"


def _measure(
    problem: str,
    model: str,
    algorithm: str,
    estimator: Estimator,
    task: _Task,
    seed: int,
    evaluations: int,
    nested: int,
) -> Case:
    selector = SwarmSelector(estimator, max_evaluations=evaluations, scoring=task.scoring, random_state=seed)
    if algorithm != "default":
        selector.set_params(algorithm=algorithm)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer rows than folds, and the like
        selector.fit(task.X, task.y)
        outer = held_out(selector, task.X, task.y, folds=nested, random_state=seed).score if nested else float("nan")
    scoring = resolve_scoring(selector.estimator_, task.scoring)
    chunks = list(task.new_rows(selector.support_))
    X, y = np.concatenate([rows for rows, _ in chunks]), np.concatenate([target for _, target in chunks])
    true = float(scoring.scorer(selector.estimator_, X, y))
    if selector.honest_score_ is None or selector.honest_interval_ is None:
        raise SettingError(f"the search of {problem} has no corrected score.")
    low, high = selector.honest_interval_
    scores = (selector.best_score_, selector.honest_score_, outer, true)
    reported, corrected, nested_loss, true_loss = scoring.loss(np.array(scores)).tolist()
    return Case(
        problem,
        model,
        algorithm,
        reported=reported,
        corrected=corrected,
        nested=nested_loss,
        true=true_loss,
        is_inside=low <= true <= high,
        search_seconds=selector.result_.algorithm_seconds + selector.result_.evaluation_seconds,
        correction_seconds=_time_correction(selector, task, seed),
    )


def _time_correction(selector: SwarmSelector, task: _Task, seed: int) -> float:
    """Return the seconds of the correction of a fitted selector's score."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        objective = make_objective(
            selector.estimator_, task.X, task.y, scoring=task.scoring, random_state=seed, engine="estimator"
        )
    losses = objective.scoring.loss(selector.fold_scores_)
    begin = time.perf_counter()
    corrected_score(objective, losses, selector.support_, None)
    return time.perf_counter() - begin


def _draw(problem: str, seed: int, number: int, new_rows: int) -> _Task:
    """Draw a table with new rows, or halve a data set."""
    size = _size_of(problem)
    if size is None:
        return _halve(problem, seed, number)
    kind, rows, columns = size
    draw = partial(_draw_numbers if kind in _OF_NUMBERS else draw_rows, kind)
    places = np.random.default_rng(seed).permutation(columns)
    X, y = draw(rows, columns, np.random.default_rng([seed, number]))

    def drawn(mask: Mask) -> Iterator[tuple[FloatArray, AnyArray]]:
        for chunk, start in enumerate(range(0, new_rows, _CHUNK)):
            more, target = draw(
                min(_CHUNK, new_rows - start), columns, np.random.default_rng([seed, number, 1 + chunk])
            )
            yield more[:, places][:, mask], target

    scoring = "roc_auc" if kind == "rare" else "neg_mean_squared_error" if kind in _OF_NUMBERS else None
    return _Task(X[:, places], y, drawn, scoring)


def _draw_numbers(kind: str, rows: int, columns: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw a regression table: the first columns have falling weights, or none has any."""
    X = rng.standard_normal((rows, columns))
    y = rng.standard_normal(rows)
    if kind == "linear":
        y += X[:, :INFORMATIVE] @ (0.6 * 0.8 ** np.arange(INFORMATIVE))
    return X, y


def _halve(problem: str, seed: int, number: int) -> _Task:
    dataset = load_dataset(problem)
    X, X_new, y, y_new = train_test_split(
        dataset.X, dataset.y, test_size=0.5, stratify=dataset.y, random_state=seed_of_repeat(seed, number)
    )
    return _Task(X, y, lambda mask: iter([(X_new[:, mask], y_new)]), None)
