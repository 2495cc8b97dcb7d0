"""The paper's tables of errors, cardinalities, times, ranks and t-tests, with our values and the printed ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from subswarm._types import FloatArray
from subswarm.study.analysis.ranks import average_ranks, ranks
from subswarm.study.analysis.results import (
    ABSENT,
    Cell,
    Results,
    cardinality_reduction,
    mean_loss,
    mean_seconds,
    mean_size,
    performance_improvement,
)
from subswarm.study.analysis.significance import compare_on_dataset, reference_algorithm
from subswarm.study.analysis.statistics import RunComparison
from subswarm.study.analysis.text_table import Grid
from subswarm.study.paper.printed_tables import Place, paper_classifier, paper_tables

__all__ = [
    "baseline_tables",
    "cardinality_tables",
    "error_tables",
    "rank_tables",
    "t_test_tables",
    "time_tables",
]

Rows = list[tuple[str, ...]]

_TEST_NOTE = (
    "+: significantly better (two-sided paired t-test by run number, p < 0.05); −: worse; =: identical results; "
    "?: not significant. p: paired t-test, Welch's t-test, Wilcoxon's signed-rank test. δ: Cliff's delta, 1 if every "
    "run is better than every run of the rival."
)


@dataclass(frozen=True)
class _Measure:
    """What a table shows for each data set.

    Attributes
    ----------
    title, note : of the table
    lines, describe : names and cells of our lines, from data set, model and cell
    value : what our ranks are of
    paper_lines, paper_cells, paper_ranks : names and cells of the paper's lines, and its ranks
    """

    title: str
    lines: tuple[str, ...]
    describe: Callable[[str, str, Cell], list[str]]
    value: Callable[[Cell], float]
    paper_lines: tuple[str, ...]
    paper_cells: Callable[[Place], list[str]]
    paper_ranks: Mapping[Place, float]
    note: str = ""


def error_tables(results: Results) -> list[Grid]:
    """Return mean, SD, PI and rank of the error."""

    def describe(dataset: str, model: str, cell: Cell) -> list[str]:
        gain = performance_improvement(mean_loss(cell), results.facts(dataset, model).loss_all)
        return [_format(cell.losses.mean(), 4), _format_deviation(cell.losses), _format(gain, 1)]

    def paper_cells(place: Place) -> list[str]:
        found = paper_tables().error.get(place)
        return [ABSENT] * 3 if found is None else [_format(found[0], 4), f"{found[1]:.2e}", _format(found[2], 1)]

    return _tables(
        results,
        _Measure(
            "Classification error",
            ("mean", "SD", "PI %"),
            describe,
            mean_loss,
            ("paper mean", "paper SD", "paper PI %"),
            paper_cells,
            paper_tables().error_rank,
            "Our PI is relative to the error of all features, J(U). The paper's PI appears to be relative to the error "
            "of the first feature on most data sets, so compare errors and cardinalities, not PI.",
        ),
    )


def cardinality_tables(results: Results) -> list[Grid]:
    """Return mean cardinality, Ξ and rank."""

    def describe(dataset: str, model: str, cell: Cell) -> list[str]:
        return [_format(mean_size(cell), 2), _format(cardinality_reduction(mean_size(cell), cell.n_features), 1)]

    def paper_cells(place: Place) -> list[str]:
        found = paper_tables().cardinality.get(place)
        return [ABSENT] * 2 if found is None else [_format(found[0], 2), _format(found[1], 1)]

    return _tables(
        results,
        _Measure(
            "Subset cardinality",
            ("mean ξ", "Ξ %"),
            describe,
            mean_size,
            ("paper ξ", "paper Ξ %"),
            paper_cells,
            paper_tables().cardinality_rank,
        ),
    )


def time_tables(results: Results) -> list[Grid]:
    """Return T1, T2, T and rank by T."""

    def describe(dataset: str, model: str, cell: Cell) -> list[str]:
        first, second = cell.seconds.mean(axis=0)
        return [_format(first, 3), _format(second, 3), _format(first + second, 3)]

    def paper_cells(place: Place) -> list[str]:
        found = paper_tables().seconds.get(place)
        return [ABSENT] * 3 if found is None else [_format(value, 2) for value in found]

    return _tables(
        results,
        _Measure(
            "Time in seconds: algorithm (T1), evaluation (T2), total (T)",
            ("T1", "T2", "T"),
            describe,
            mean_seconds,
            ("paper T1", "paper T2", "paper T"),
            paper_cells,
            paper_tables().time_rank,
            "T2 is the time of our engines. Within a run they score each distinct subset once.",
        ),
    )


def rank_tables(results: Results) -> list[Grid]:
    """Return average and overall ranks of error, cardinality and time."""
    quantities: dict[str, tuple[Callable[[Cell], float], Mapping[Place, float]]] = {
        "error": (mean_loss, paper_tables().error_rank),
        "cardinality": (mean_size, paper_tables().cardinality_rank),
        "time": (mean_seconds, paper_tables().time_rank),
    }
    grids = []
    for model in results.models:
        names = results.complete_datasets(model)
        if not names:
            continue
        rows: Rows = []
        for quantity, (value, paper_ranks) in quantities.items():
            rows += _rank_rows(quantity, results, model, names, value, paper_ranks)
        title = f"Ranks over {len(names)} data sets, {model}"
        grids.append(Grid(title, ("ranked by", "measure", *results.algorithms), tuple(rows), (results.note(),)))
    return grids


def baseline_tables(results: Results) -> list[Grid]:
    """Return the error of all features and of the first feature alone, and the paper's J(U)."""
    grids = []
    for model in results.models:
        rows = []
        for dataset in results.datasets:
            facts = results.problems.get((dataset, model, None))
            if facts is None:
                continue
            printed = paper_tables().error_all.get((dataset, paper_classifier(model) or ""))
            shape = (str(facts.n_rows), str(facts.n_features), str(facts.n_classes))
            errors = (_format(facts.loss_all, 4), _format(facts.loss_first, 4))
            rows.append((dataset, *shape, *errors, _format(printed, 4)))
        headers = ("data set", "rows", "features", "classes", "all features", "first feature", "paper J(U)")
        grids.append(Grid(f"Error before selection, {model}", headers, tuple(rows)))
    return grids


def t_test_tables(results: Results) -> list[Grid]:
    """Return paired t-tests with the paper's verdicts, Welch's and Wilcoxon's tests, and Cliff's delta."""
    reference = reference_algorithm(results)
    rivals = [name for name in results.algorithms if name != reference]
    grids = []
    for model in results.models:
        rows: Rows = []
        verdicts: dict[str, list[str]] = {rival: [] for rival in rivals}
        for dataset in results.datasets:
            compared = {rival: compare_on_dataset(results, dataset, model, reference, rival) for rival in rivals}
            if not any(compared.values()):
                continue
            for rival, found in compared.items():
                if found is not None:
                    verdicts[rival].append(found.verdict)
            rows += _test_rows(dataset, model, compared)
        if rows:
            rows.append(("all", "+ / − / = / ?", *(_count_verdicts(verdicts[rival]) for rival in rivals)))
            rows += _paper_counts(results, model, rivals)
            headers = ("data set", "measure", *rivals)
            notes = (results.note(), _TEST_NOTE)
            grids.append(Grid(f"{reference} against its rivals, {model}", headers, tuple(rows), notes))
    return grids


def _tables(results: Results, measure: _Measure) -> list[Grid]:
    grids = []
    for model in results.models:
        rows: Rows = []
        for dataset in results.datasets:
            rows += _dataset_rows(results, measure, dataset, model)
        if rows:
            names = results.complete_datasets(model)
            if names:
                rows += _rank_rows(f"all {len(names)}", results, model, names, measure.value, measure.paper_ranks)
            notes = (results.note(), *filter(None, [measure.note]))
            headers = ("data set", "measure", *results.algorithms)
            grids.append(Grid(f"{measure.title}, {model}", headers, tuple(rows), notes))
    return grids


def _dataset_rows(results: Results, measure: _Measure, dataset: str, model: str) -> Rows:
    cells = [results.cell(dataset, model, algorithm) for algorithm in results.algorithms]
    if not any(cells):
        return []
    described = [
        [ABSENT] * len(measure.lines) if cell is None else measure.describe(dataset, model, cell) for cell in cells
    ]
    rows: Rows = [(dataset, line, *(each[place] for each in described)) for place, line in enumerate(measure.lines)]
    values = np.array([np.inf if cell is None else measure.value(cell) for cell in cells])
    shown = [ABSENT if cell is None else f"{rank:.0f}" for cell, rank in zip(cells, ranks(values), strict=True)]
    rows.append((dataset, "rank", *shown))
    classifier = paper_classifier(model)
    if classifier is not None and dataset in paper_tables().n_features:
        places = [(dataset, classifier, algorithm) for algorithm in results.algorithms]
        printed = [measure.paper_cells(place) for place in places]
        rows += [(dataset, line, *(each[k] for each in printed)) for k, line in enumerate(measure.paper_lines)]
        rows.append((dataset, "paper rank", *(_format(measure.paper_ranks.get(place), 0) for place in places)))
    return rows


def _rank_rows(
    label: str,
    results: Results,
    model: str,
    names: Sequence[str],
    value: Callable[[Cell], float],
    paper_ranks: Mapping[Place, float],
) -> Rows:
    """Return average and overall ranks over these data sets, ours and the paper's."""
    average, overall = average_ranks(results.values(model, names, value))
    rows: Rows = [
        (label, "average rank", *(_format(each, 2) for each in average)),
        (label, "overall rank", *(f"{each:.0f}" for each in overall)),
    ]
    printed = _paper_average_ranks(results, model, names, paper_ranks)
    if printed is not None:
        rows.append((label, "paper average", *(_format(each, 2) for each in printed[0])))
        rows.append((label, "paper overall", *(_format(each, 0) for each in printed[1])))
    return rows


def _paper_average_ranks(
    results: Results, model: str, names: Sequence[str], printed: Mapping[Place, float]
) -> tuple[list[float | None], list[float | None]] | None:
    """Return the paper's average ranks over these data sets, and their order; None if it printed none of them."""
    classifier = paper_classifier(model) or ""
    averages = []
    for algorithm in results.algorithms:
        found = [printed.get((name, classifier, algorithm)) for name in names]
        known = [rank for rank in found if rank is not None]
        averages.append(float(np.mean(known)) if len(known) == len(names) else None)
    if all(average is None for average in averages):
        return None
    order = ranks([np.inf if average is None else average for average in averages])
    return averages, [None if average is None else float(rank) for average, rank in zip(averages, order, strict=True)]


def _test_rows(dataset: str, model: str, compared: Mapping[str, RunComparison | None]) -> Rows:
    def line(label: str, cell_of: Callable[[RunComparison], str]) -> tuple[str, ...]:
        return (dataset, label, *(ABSENT if each is None else cell_of(each) for each in compared.values()))

    rows = [line("verdict", lambda each: _show_sign(each.verdict))]
    printed = [paper_tables().verdict.get((dataset, paper_classifier(model) or "", rival)) for rival in compared]
    if any(printed):
        rows.append((dataset, "paper", *(ABSENT if each is None else _show_sign(each) for each in printed)))
    return [
        *rows,
        line("p paired t", lambda each: f"{each.p_paired:.2g}"),
        line("p Welch", lambda each: f"{each.p_welch:.2g}"),
        line("p Wilcoxon", lambda each: f"{each.p_wilcoxon:.2g}"),
        line("δ", lambda each: f"{each.delta:.2f}"),
    ]


def _paper_counts(results: Results, model: str, rivals: Sequence[str]) -> Rows:
    classifier = paper_classifier(model) or ""
    cells = []
    for rival in rivals:
        found = [paper_tables().verdict.get((name, classifier, rival)) for name in results.datasets]
        cells.append(_count_verdicts(each for each in found if each is not None))
    return [("all", "paper", *cells)] if any(cell != "0 / 0 / 0 / 0" for cell in cells) else []


def _count_verdicts(verdicts: Iterable[str]) -> str:
    counts = Counter(verdicts)
    return " / ".join(str(counts[sign]) for sign in "+-=?")


def _show_sign(verdict: str) -> str:
    return verdict.replace("-", "−")


def _format(value: float | None, digits: int) -> str:
    return ABSENT if value is None or not np.isfinite(value) else f"{value:.{digits}f}"


def _format_deviation(values: FloatArray) -> str:
    return ABSENT if len(values) < 2 else f"{values.std(ddof=1):.2e}"
