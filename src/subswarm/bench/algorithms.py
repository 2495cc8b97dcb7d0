"""Measures error, features and time of every algorithm on a few data sets, for the tables of docs/algorithms.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from subswarm._models import MODELS, make_model
from subswarm._search.loop import search
from subswarm._search.result import SearchResult
from subswarm._search.run import Budget
from subswarm.algorithms import BranchAndBound, GeneticAlgorithm, RankingSearch, get_algorithm, names
from subswarm.algorithms.sequential import Stepwise
from subswarm.datasets import Dataset, load_dataset
from subswarm.errors import SettingError
from subswarm.objective.objective import Objective, make_objective
from subswarm.study.analysis.text_table import markdown_cell

if TYPE_CHECKING:
    from subswarm.algorithms.base import Algorithm

__all__ = ["BEGIN", "DATASETS", "END", "Row", "format_tables", "measure", "named_algorithms", "replace_tables"]

DATASETS = ("wine", "wdbc", "sonar", "ionosphere")
CLASSIFIERS = ("nb", "knn")
BOUND = 5
"""The number of features for branch and bound, which needs one."""
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"


@dataclass(frozen=True)
class Row:
    """One algorithm with one model on one data set: means over the runs, or why it failed."""

    dataset: str
    model: str
    algorithm: str
    runs: int
    error: float = float("nan")
    cardinality: float = float("nan")
    evaluations: float = float("nan")
    algorithm_seconds: float = float("nan")
    evaluation_seconds: float = float("nan")
    failure: str = ""


def named_algorithms(only: Sequence[str] = ()) -> dict[str, Algorithm[Any]]:
    """Return all algorithms by their names in the tables; the genetic algorithm also with stronger settings."""
    chosen = {name: get_algorithm(name) for name in only or names()}
    if "branch-and-bound" in chosen:
        chosen["branch-and-bound"] = BranchAndBound(max_features=BOUND)
    if "ga" in chosen:
        chosen["ga, window"] = GeneticAlgorithm(scaling="window", generation_gap=0.9)
    return chosen


def measure(
    algorithms: Mapping[str, Algorithm[Any]],
    *,
    datasets: Iterable[str] = DATASETS,
    models: Iterable[str] = CLASSIFIERS,
    seeds: int = 10,
    evaluations: int = 6000,
    report: Callable[[Row], object] = lambda row: None,
) -> list[Row]:
    """Return a row for each data set, model and algorithm; ``report`` is called with each row when it is done."""
    rows = []
    for data in map(load_dataset, datasets):
        for model in models:
            _objective(data, model)(np.ones((2, data.X.shape[1]), dtype=bool))  # compiles before the timing starts
            for name, algorithm in algorithms.items():
                row = _row(data, model, name, algorithm, seeds, evaluations)
                report(row)
                rows.append(row)
    return rows


def format_tables(rows: Sequence[Row], *, seeds: int, evaluations: int) -> str:
    """Return the rows as Markdown, one table for each data set."""
    text = [
        f"Means over {seeds} seeds (one run for deterministic algorithms), at most {evaluations} evaluations, 10 fixed "
        f"stratified folds, unscaled features for naive Bayes and standardised ones for 5-NN. *T₁* is the time in the "
        f"algorithm, *T₂* in the evaluations, in seconds. Branch and bound selects {BOUND} features."
    ]
    for dataset in dict.fromkeys(row.dataset for row in rows):
        mine = [row for row in rows if row.dataset == dataset]
        models = list(dict.fromkeys(row.model for row in mine))
        headings = [MODELS[model][0] for model in models]
        text += [f"### {markdown_cell(dataset)}", _table(mine, models, headings)]
    return "\n\n".join(text) + "\n"


def replace_tables(page: str, content: str) -> str:
    """Replace what is between the marks of a page; without marks, add the marked content at the end."""
    marked = f"{BEGIN}\n{content}{END}"
    if BEGIN not in page or END not in page:
        return page + marked + "\n"
    before, rest = page.split(BEGIN, 1)
    return before + marked + rest.split(END, 1)[1]


def _objective(data: Dataset, model: str) -> Objective:
    return make_objective(make_model(model), data.X, data.y, cv=10, random_state=0)


def _row(data: Dataset, model: str, name: str, algorithm: Algorithm[Any], seeds: int, evaluations: int) -> Row:
    is_deterministic = isinstance(algorithm, Stepwise | BranchAndBound | RankingSearch)
    runs = 1 if is_deterministic else seeds
    results = []
    for seed in range(runs):
        try:
            results.append(_run(data, model, algorithm, seed, evaluations))
        except SettingError as error:
            if not isinstance(algorithm, BranchAndBound):
                raise
            return Row(data.name, model, name, runs, failure=str(error))

    def mean(of: Callable[[SearchResult], float]) -> float:
        return float(np.mean([of(result) for result in results]))

    return Row(
        dataset=data.name,
        model=model,
        algorithm=name,
        runs=runs,
        error=mean(lambda result: result.best.fitness),
        cardinality=mean(lambda result: result.best.cardinality),
        evaluations=mean(lambda result: result.evaluations),
        algorithm_seconds=mean(lambda result: result.algorithm_seconds),
        evaluation_seconds=mean(lambda result: result.evaluation_seconds),
    )


def _run(data: Dataset, model: str, algorithm: Algorithm[Any], seed: int, evaluations: int) -> SearchResult:
    objective = _objective(data, model)  # a new one for each run, so that no run uses the memo of another
    return search(algorithm, objective, Budget(evaluations=evaluations), rng=seed)


def _table(rows: Sequence[Row], models: Sequence[str], headings: Sequence[str]) -> str:
    lines = [
        "| algorithm | " + " | ".join(f"{heading}: error | features | T₁ | T₂" for heading in headings) + " |",
        "|---|" + "---:|" * (4 * len(models)),
    ]
    for algorithm in dict.fromkeys(row.algorithm for row in rows):
        mine = {row.model: row for row in rows if row.algorithm == algorithm}
        lines.append(f"| {markdown_cell(algorithm)} | " + " | ".join(_cells(mine[model]) for model in models) + " |")
    return "\n".join(lines)


def _cells(row: Row) -> str:
    if row.failure:
        return "not monotone | – | – | –"
    return (
        f"{row.error:.4f} | {row.cardinality:.1f} | {_seconds(row.algorithm_seconds)} | "
        f"{_seconds(row.evaluation_seconds)}"
    )


def _seconds(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.2f}"
