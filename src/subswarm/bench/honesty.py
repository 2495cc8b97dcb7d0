"""Measures how honest the scores of a search are: reported, corrected and nested, against the score on new rows.

A table with too few rows to hold back half of them is compared with its nested score instead.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from subswarm._checks import suggest
from subswarm._models import MODELS, make_model
from subswarm._seeding import seed_of_repeat, set_random_states
from subswarm._types import AnyArray, FloatArray, Mask
from subswarm.bench.problems import INFORMATIVE, KINDS, draw_rows, load_table, made_size, table_files
from subswarm.bench.store import append_rows, read_rows
from subswarm.datasets import is_present, names
from subswarm.errors import SettingError
from subswarm.nested import held_out
from subswarm.objective.scoring import resolve_scoring
from subswarm.selector import SwarmSelector
from subswarm.study.analysis.text_table import Grid, render

__all__ = ["ALGORITHMS", "MADE", "Case", "format_tables", "measure", "problem_names"]

MADE = (
    "falling-200x50",
    "falling-1000x50",
    "falling-200x200",
    "falling-200x500",
    "correlated-200x50",
    "noise-200x50",
    "noise-100x200",
    "rare-1000x50",
    "linear-200x50",
    "linear-200x200",
    "unrelated-100x50",
)
"""The made-up tables of the group ``made``."""
_OF_NUMBERS = ("linear", "unrelated")
"""Kinds of tables whose target is a number: the sum of falling shares of the first columns, or noise."""
FEWEST_ROWS = 400
"""With fewer rows, a data set is not halved into training rows and new rows; its nested score is the reference."""
OUTER_FOLDS = 5
"""Outer folds of that nested score."""
CLOSE = 0.1
"""Relative difference from the true error up to which a corrected one counts as close."""
ALGORITHMS = ("default", "2d-upso", "sffs")
"""The searches by name; "default" is the selector's own."""
_CHUNK = 10_000


@dataclass(frozen=True, eq=False)
class _Task:
    """Training rows, and a function that yields new rows with the columns of a mask only; None without new rows."""

    X: FloatArray
    y: AnyArray
    new_rows: Callable[[Mask], Iterator[tuple[FloatArray, AnyArray]]] | None
    scoring: str | None


@dataclass(frozen=True)
class Case:
    """One search: losses (one minus the score, or minus a negated score), and what the correction costs.

    Attributes
    ----------
    problem, model, algorithm, seed, number, evaluations : the search, on table or half ``number``
    folds, new_rows : outer folds asked for, and new rows of a made-up table
    reported, corrected, nested, true : losses; ``nested`` is NaN if it was not measured, ``true`` without new rows
    is_inside : whether the true score, or without new rows the nested one, is inside the interval
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
    seed: int = 0
    number: int = 0
    evaluations: int = 6000
    folds: int = 0
    new_rows: int = 100_000

    @property
    def key(self) -> tuple[object, ...]:
        """What determines the losses."""
        setting = (self.seed, self.number, self.evaluations, self.folds, self.new_rows)
        return (self.problem, self.model, self.algorithm, *setting)

    @property
    def has_new_rows(self) -> bool:
        """Whether the true loss is known."""
        return bool(np.isfinite(self.true))

    @property
    def reference(self) -> float:
        """The loss that the others are compared with: the true one, or without new rows the nested one."""
        return self.true if self.has_new_rows else self.nested


def problem_names(wanted: str, more: str | None = None) -> list[str]:
    """Return the problems for names and the groups ``made``, ``uci`` and ``more``, separated by commas."""
    found: list[str] = []
    for name in wanted.split(","):
        files = [path.stem for path in table_files(more, required=name == "more")]
        if name == "made":
            found += MADE
        elif name == "uci":
            found += [each for each in names() if is_present(each)]
        elif name == "more":
            found += files
        elif name in (*names(), *files) or _size_of(name):
            found.append(name)
        else:
            raise SettingError(
                f"there is no problem {name!r}.{suggest(name, ['made', 'uci', 'more', *MADE, *names(), *files])} Give "
                f"made, uci, more, a data set, the name of a file in the folder --more, or KIND-ROWSxCOLUMNS with a "
                f"kind of {', '.join((*KINDS, *_OF_NUMBERS))}."
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
    more: str | None = None,
    jobs: int = 1,
    store: Path | None = None,
    only_stored: bool = False,
    report: Callable[[Case], object] = lambda case: None,
) -> list[Case]:
    """Search each problem with each model and algorithm on ``seeds`` tables or halves of a table.

    ``nested`` is the number of outer folds, or 0 for none where there are new rows; ``jobs`` searches run at the same
    time, each on one thread; ``report`` is called with each case when it is done. The file ``store`` keeps the cases,
    and those in it are not measured again. With ``only_stored`` none is: the result is what the store has of these
    problems, models, algorithms and this seed, with any other settings.
    """
    for name in models:
        if name not in MODELS:
            make_model(name)  # an unknown name, or an import path
    stored = read_rows(store, Case, "subswarm bench honesty")
    if only_stored:
        cases = [
            case
            for case in stored
            if case.problem in problems and case.model in models and case.algorithm in algorithms and case.seed == seed
        ]
        return _in_order(cases, problems, models, algorithms)
    planned = [
        (problem, model, algorithm, seed, number, evaluations, nested, new_rows)
        for problem in problems
        for model in models
        if _fits(model, problem, more)
        for number in range(seeds)
        for algorithm in algorithms
    ]
    cases = [case for case in stored if case.key in planned]
    known = {case.key for case in cases}
    searches = [delayed(_measure)(*key, more) for key in planned if key not in known]
    for case in Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")(searches):
        append_rows(store, [asdict(case)])
        report(case)
        cases.append(case)
    return _in_order(cases, problems, models, algorithms)


def _in_order(
    cases: list[Case], problems: Sequence[str], models: Sequence[str], algorithms: Sequence[str]
) -> list[Case]:
    """Return cases in the order of the problems, then of the models, the tables and the algorithms."""

    def place(case: Case) -> tuple[int, ...]:
        names = (problems.index(case.problem), models.index(case.model))
        return (*names, case.number, algorithms.index(case.algorithm))

    return sorted(cases, key=place)


def _fits(model: str, problem: str, more: str | None) -> bool:
    """Return whether a model predicts this kind of target."""
    return model not in MODELS or _kind_of_task(problem, more) in MODELS[model][1]


def _kind_of_task(problem: str, more: str | None) -> str:
    size = _size_of(problem)
    if size is not None:
        return "regression" if size[0] in _OF_NUMBERS else "classification"
    return "regression" if load_table(problem, more)[1].dtype.kind == "f" else "classification"


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
        on_new = [case for case in own if case.has_new_rows]
        parts = {"new rows": on_new, "nested score": [case for case in own if not case.has_new_rows], "both": own}
        for name, part in parts.items():
            if part and (name != "both" or 0 < len(on_new) < len(own)):
                summary.append((algorithm, name, *_overall(part)))
    heads = (
        "search",
        "true is",
        "reported / true",
        "corrected / true",
        "range over problems",
        "within 10 %",
        "inside",
        "extra time",
    )
    grids.append(Grid("Over all problems and models", heads, tuple(summary)))
    return render(grids, "markdown")


def _overall(cases: Sequence[Case]) -> tuple[str, ...]:
    """Return the mean and the range of the ratios of all problems with each model."""
    keys = dict.fromkeys((case.problem, case.model) for case in cases)
    groups = [[case for case in cases if (case.problem, case.model) == key] for key in keys]
    groups = [group for group in groups if np.mean([case.reference for case in group]) > 0]
    if not groups:
        return ("–", "–", "–", "–", _inside(cases), _extra(cases))
    ratios, optimism = [_ratio(group) for group in groups], [_ratio(group, "reported") for group in groups]
    close = sum(abs(ratio - 1) <= CLOSE for ratio in ratios)
    return (
        f"{np.mean(optimism):.2f}",
        f"{np.mean(ratios):.2f}",
        f"{min(ratios):.2f} to {max(ratios):.2f}",
        f"{close} of {len(ratios)}",
        _inside(cases),
        _extra(cases),
    )


def _cells(cases: Sequence[Case]) -> tuple[str, ...]:
    losses = [np.mean([getattr(case, name) for case in cases]) for name in ("reported", "corrected", "nested", "true")]
    shown = [f"{loss:.4f}" if np.isfinite(loss) else "–" for loss in losses]
    ratio = f"{_ratio(cases):.2f}" if np.mean([case.reference for case in cases]) > 0 else "–"
    return (*shown, ratio, _inside(cases), _extra(cases))


def _ratio(cases: Sequence[Case], name: str = "corrected") -> float:
    return float(np.mean([getattr(case, name) for case in cases]) / np.mean([case.reference for case in cases]))


def _inside(cases: Sequence[Case]) -> str:
    return f"{sum(case.is_inside for case in cases)} of {len(cases)}"


def _extra(cases: Sequence[Case]) -> str:
    extra = sum(case.correction_seconds for case in cases) / sum(case.search_seconds for case in cases)
    return f"{100 * extra:.1f} %"


def _measure(
    problem: str,
    model: str,
    algorithm: str,
    seed: int,
    number: int,
    evaluations: int,
    nested: int,
    new_rows: int,
    more: str | None,
) -> Case:
    task = _draw(problem, seed, number, new_rows, more)
    own_seed = seed_of_repeat(seed, number)
    estimator = set_random_states(clone(make_model(model, _kind_of_task(problem, more))), own_seed)
    selector = SwarmSelector(estimator, max_evaluations=evaluations, scoring=task.scoring, random_state=own_seed)
    if algorithm != "default":
        selector.set_params(algorithm=algorithm)
    folds = nested or (OUTER_FOLDS if task.new_rows is None else 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer rows than folds, and the like
        selector.fit(task.X, task.y)
        outer = held_out(selector, task.X, task.y, folds=folds, random_state=own_seed).score if folds else float("nan")
    scoring = resolve_scoring(selector.estimator_, task.scoring)
    true = float("nan")
    if task.new_rows is not None:
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
        is_inside=low <= (outer if task.new_rows is None else true) <= high,
        search_seconds=selector._facts.search_seconds,
        correction_seconds=selector._correction_seconds,
        seed=seed,
        number=number,
        evaluations=evaluations,
        folds=nested,
        new_rows=new_rows,
    )


def _draw(problem: str, seed: int, number: int, new_rows: int, more: str | None = None) -> _Task:
    """Draw a table with new rows, or halve a data set; one of few rows stays whole."""
    size = _size_of(problem)
    if size is None:
        return _halve(problem, seed, number, more)
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


def _halve(problem: str, seed: int, number: int, more: str | None) -> _Task:
    X, y = load_table(problem, more)
    if len(X) < FEWEST_ROWS:
        return _Task(X, y, None, None)
    X, X_new, y, y_new = train_test_split(
        X,
        y,
        test_size=0.5,
        stratify=None if y.dtype.kind == "f" else y,
        random_state=seed_of_repeat(seed, number),
    )
    return _Task(X, y, lambda mask: iter([(X_new[:, mask], y_new)]), None)
