"""The paper's tables of errors, cardinalities, times and ranks: ours, with the printed figures beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from subswarm.analysis.grid import Grid
from subswarm.analysis.metrics import average_ranks, cardinality_reduction, performance_improvement, ranks
from subswarm.analysis.results import Cell, Results
from subswarm.core.types import FloatArray
from subswarm.study.published import paper_tables

__all__ = ["baseline_tables", "cardinality_tables", "error_tables", "mean_note", "rank_tables", "time_tables"]

ABSENT = "–"
Describe = Callable[[str, str, str, Cell], list[str]]


@dataclass(frozen=True)
class _Measure:
    """A block of rows for each data set: lines of our own, our rank, and what the paper printed."""

    title: str
    lines: tuple[str, ...]
    value: Callable[[Cell], float]
    describe: Describe
    printed: tuple[str, ...]
    paper: Callable[[str, str, str], list[str]]
    paper_rank: Callable[[str, str, str], float | None]
    note: str


def error_tables(results: Results) -> list[Grid]:
    """Mean, SD, PI and rank of the error."""

    def describe(dataset: str, model: str, algorithm: str, cell: Cell) -> list[str]:
        gain = performance_improvement(float(cell.losses.mean()), results.facts(dataset, model).loss_all)
        return [_number(cell.losses.mean(), 4), _deviation(cell.losses), _number(gain, 1)]

    def paper(dataset: str, classifier: str, algorithm: str) -> list[str]:
        found = paper_tables().error.get((dataset, classifier, algorithm))
        return [ABSENT] * 3 if found is None else [_number(found[0], 4), f"{found[1]:.2e}", _number(found[2], 1)]

    return _tables(
        results,
        _Measure(
            "Classification error",
            ("mean", "SD", "PI %"),
            lambda cell: float(cell.losses.mean()),
            describe,
            ("paper mean", "paper SD", "paper PI %"),
            paper,
            lambda *place: paper_tables().error_rank.get(place),
            "Our PI is against the error of all features, J(U). The paper's appears to be against that of the first "
            "feature on most sets: compare errors and cardinalities, not PI.",
        ),
    )


def cardinality_tables(results: Results) -> list[Grid]:
    """Mean cardinality, Ξ and rank."""

    def describe(dataset: str, model: str, algorithm: str, cell: Cell) -> list[str]:
        size = float(cell.sizes.mean())
        return [_number(size, 2), _number(cardinality_reduction(size, cell.n_features), 1)]

    def paper(*place: str) -> list[str]:
        found = paper_tables().cardinality.get((place[0], place[1], place[2]))
        return [ABSENT] * 2 if found is None else [_number(found[0], 2), _number(found[1], 1)]

    return _tables(
        results,
        _Measure(
            "Subset cardinality",
            ("mean ξ", "Ξ %"),
            lambda cell: float(cell.sizes.mean()),
            describe,
            ("paper ξ", "paper Ξ %"),
            paper,
            lambda *place: paper_tables().cardinality_rank.get(place),
            "",
        ),
    )


def time_tables(results: Results) -> list[Grid]:
    """T1, T2, T and rank by T."""

    def describe(dataset: str, model: str, algorithm: str, cell: Cell) -> list[str]:
        first, second = cell.seconds.mean(axis=0)
        return [_number(first, 3), _number(second, 3), _number(first + second, 3)]

    def paper(*place: str) -> list[str]:
        found = paper_tables().seconds.get((place[0], place[1], place[2]))
        return [ABSENT] * 3 if found is None else [_number(value, 2) for value in found]

    return _tables(
        results,
        _Measure(
            "Time in seconds: algorithm (T1), evaluation (T2), total (T)",
            ("T1", "T2", "T"),
            lambda cell: float(cell.seconds.sum(axis=1).mean()),
            describe,
            ("paper T1", "paper T2", "paper T"),
            paper,
            lambda *place: paper_tables().time_rank.get(place),
            "T2 is that of our engines, which score a subset once however often it is asked; each run begins with an "
            "empty memory.",
        ),
    )


def rank_tables(results: Results) -> list[Grid]:
    """Average and overall ranks of error, cardinality and time."""
    values: dict[str, Callable[[Cell], float]] = {
        "error": lambda cell: float(cell.losses.mean()),
        "cardinality": lambda cell: float(cell.sizes.mean()),
        "time": lambda cell: float(cell.seconds.sum(axis=1).mean()),
    }
    printed = {
        "error": paper_tables().error_rank,
        "cardinality": paper_tables().cardinality_rank,
        "time": paper_tables().time_rank,
    }
    grids = []
    for model in results.models:
        names = results.whole_datasets(model)
        if not names:
            continue
        rows = []
        for what, value in values.items():
            table = _values(results, model, names, value)
            average, overall = average_ranks(table)
            rows.append((what, "average rank", *(_number(each, 2) for each in average)))
            rows.append((what, "overall rank", *(f"{each:.0f}" for each in overall)))
            theirs = _paper_ranks(results, model, names, printed[what])
            if theirs is not None:
                rows.append((what, "paper average", *(_number(each, 2) for each in theirs[0])))
                rows.append((what, "paper overall", *(_whole(each) for each in theirs[1])))
        title = f"Ranks over {len(names)} data sets, {model}"
        grids.append(Grid(title, ("of", "measure", *results.algorithms), tuple(rows), mean_note(results)))
    return grids


def baseline_tables(results: Results) -> list[Grid]:
    """The error before any selection: all features, and the first one alone, beside the paper's J(U)."""
    grids = []
    for model in results.models:
        rows = []
        for dataset in results.datasets:
            facts = results.problems.get((dataset, model, None))
            if facts is None:
                continue
            printed = paper_tables().error_all.get((dataset, results.classifier(model) or ""))
            shape = (str(facts.n_rows), str(facts.n_features), str(facts.n_classes))
            errors = (_number(facts.loss_all, 4), _number(facts.loss_first, 4))
            rows.append((dataset, *shape, *errors, ABSENT if printed is None else _number(printed, 4)))
        headers = ("data set", "rows", "features", "classes", "all features", "first feature", "paper J(U)")
        grids.append(Grid(f"Error before selection, {model}", headers, tuple(rows)))
    return grids


def mean_note(results: Results) -> tuple[str, ...]:
    """How many runs the figures are means of, and what is not there yet."""
    counts = results.run_counts()
    runs = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    done = len(results.rows)
    missing = "" if done == results.planned else f"; {results.planned - done} of {results.planned} runs are missing"
    return (f"{results.info.protocol} protocol, {results.info.evaluations} evaluations, {runs} runs{missing}.",)


def _tables(results: Results, measure: _Measure) -> list[Grid]:
    grids = []
    for model in results.models:
        rows: list[tuple[str, ...]] = []
        for dataset in results.datasets:
            rows += _block(results, measure, dataset, model)
        if rows:
            rows += _summary(results, measure, model)
            notes = (*mean_note(results), *filter(None, [measure.note]))
            grids.append(
                Grid(f"{measure.title}, {model}", ("data set", "measure", *results.algorithms), tuple(rows), notes)
            )
    return grids


def _block(results: Results, measure: _Measure, dataset: str, model: str) -> list[tuple[str, ...]]:
    cells = [results.cell(dataset, model, algorithm) for algorithm in results.algorithms]
    if not any(cells):
        return []
    described = [
        [ABSENT] * len(measure.lines) if cell is None else measure.describe(dataset, model, algorithm, cell)
        for algorithm, cell in zip(results.algorithms, cells, strict=True)
    ]
    rows = [(dataset, line, *(each[place] for each in described)) for place, line in enumerate(measure.lines)]
    values = np.array([np.inf if cell is None else measure.value(cell) for cell in cells])
    shown = [ABSENT if cell is None else f"{rank:.0f}" for cell, rank in zip(cells, ranks(values), strict=True)]
    rows.append((dataset, "rank", *shown))
    classifier = results.classifier(model)
    if classifier is not None and dataset in paper_tables().n_features:
        theirs = [measure.paper(dataset, classifier, algorithm) for algorithm in results.algorithms]
        rows += [(dataset, line, *(each[place] for each in theirs)) for place, line in enumerate(measure.printed)]
        printed = [measure.paper_rank(dataset, classifier, algorithm) for algorithm in results.algorithms]
        rows.append((dataset, "paper rank", *(_whole(rank) for rank in printed)))
    return rows


def _summary(results: Results, measure: _Measure, model: str) -> list[tuple[str, ...]]:
    names = results.whole_datasets(model)
    if not names:
        return []
    average, overall = average_ranks(_values(results, model, names, measure.value))
    label = f"all {len(names)}"
    rows = [
        (label, "average rank", *(_number(each, 2) for each in average)),
        (label, "overall rank", *(f"{each:.0f}" for each in overall)),
    ]
    classifier = results.classifier(model)
    if classifier is not None:
        printed = {
            (name, classifier, algorithm): rank
            for name in names
            for algorithm in results.algorithms
            if (rank := measure.paper_rank(name, classifier, algorithm)) is not None
        }
        theirs = _paper_ranks(results, model, names, printed)
        if theirs is not None:
            rows.append((label, "paper average", *(_number(each, 2) for each in theirs[0])))
            rows.append((label, "paper overall", *(_whole(each) for each in theirs[1])))
    return rows


def _values(results: Results, model: str, names: Sequence[str], value: Callable[[Cell], float]) -> FloatArray:
    cells = [[results.cell(name, model, algorithm) for algorithm in results.algorithms] for name in names]
    return np.array([[np.nan if cell is None else value(cell) for cell in row] for row in cells])


def _paper_ranks(
    results: Results, model: str, names: Sequence[str], printed: dict[tuple[str, str, str], float]
) -> tuple[list[float | None], list[float | None]] | None:
    """The paper's average ranks over these data sets, and their order; None where it printed nothing on them."""
    classifier = results.classifier(model) or ""
    averages = []
    for algorithm in results.algorithms:
        found = [printed.get((name, classifier, algorithm)) for name in names]
        known = [rank for rank in found if rank is not None]
        averages.append(float(np.mean(known)) if len(known) == len(names) else None)
    if all(average is None for average in averages):
        return None
    order = ranks([np.inf if average is None else average for average in averages])
    return averages, [None if average is None else float(rank) for average, rank in zip(averages, order, strict=True)]


def _number(value: float | None, digits: int) -> str:
    return ABSENT if value is None or not np.isfinite(value) else f"{value:.{digits}f}"


def _whole(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.0f}"


def _deviation(values: FloatArray) -> str:
    return ABSENT if len(values) < 2 else f"{values.std(ddof=1):.2e}"
