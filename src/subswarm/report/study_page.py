"""The report of a study, finished or still running, as one HTML page."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from os import PathLike, fspath

import numpy as np

from subswarm._display import format_duration
from subswarm._types import FloatArray, IntArray
from subswarm.report.page import (
    Cell,
    Chart,
    Charts,
    Code,
    Column,
    Layer,
    Number,
    Numbers,
    Page,
    Part,
    Row,
    Section,
    Table,
    Words,
    columns,
    number,
    render,
    rows,
    text,
)
from subswarm.study.analysis.ranks import friedman
from subswarm.study.analysis.results import (
    ABSENT,
    Results,
    cardinality_reduction,
    mean_loss,
    performance_improvement,
    read_results,
)
from subswarm.study.analysis.results import Cell as RunsCell
from subswarm.study.analysis.significance import reference_algorithm
from subswarm.study.analysis.text_table import Grid
from subswarm.study.paper.settings import BUILT_IN
from subswarm.study.status import Status, read_status
from subswarm.study.store import Store, StudyInfo
from subswarm.study.tables import make_tables

__all__ = ["grid_parts", "problem_charts", "study_page"]


def study_page(path: str | PathLike[str], *, live: bool = False) -> str:
    """Return the report of the study in a store as HTML; a live page asks its server for updates."""
    status = read_status(path)
    results = read_results(path) if status.done else None
    sections = [Section("found", "What was found", _found(status, results))]
    if results is not None:
        sections += [
            Section("trust", "How reliable is it?", _trust(path, status, results)),
            Section("compared", "How it compares", _tables(results, _compared(status))),
            Section("course", "How long the searches took", _tables(results, ("time",))),
        ]
    sections.append(Section("again", "How to reproduce it", _again(path)))
    return render(
        Page(
            title=f"Study {status.name}",
            lead=_lead(status, results),
            sections=tuple(sections),
            footer="Made by subswarm. This page is self-contained and loads nothing."
            if not live
            else "Made by subswarm, which serves this page on this machine only and does not change the store.",
        ),
        live=live,
    )


def grid_parts(grid: Grid) -> tuple[Table | Words, ...]:
    """Return a printed table as a table of the page, with its notes; cells that start with a number sort by it."""
    numbers = [[_leading_number(cell) for cell in column] for column in zip(*grid.rows, strict=True)]
    kinds = ["number" if any(value is not None for value in column) else "text" for column in numbers]
    body = tuple(Row(tuple(_cell(word, kind) for word, kind in zip(row, kinds, strict=True))) for row in grid.rows)
    headings = tuple(Column(name, kind) for name, kind in zip(grid.headers, kinds, strict=True))
    return (Table(grid.title, headings, body), *(Words(note, "soft") for note in grid.notes))


def _leading_number(word: str) -> float | None:
    """Return the number that a cell starts with, or None.

    Examples
    --------
    >>> [_leading_number(word) for word in ("0.48 [0.2, 0.7]", "−3", "3 / 0 / 1", "wine", "–")]
    [0.48, -3.0, 3.0, None, None]
    """
    first = word.split(maxsplit=1)[0] if word.split() else ""
    try:
        return float(first.replace("−", "-").rstrip("%"))
    except ValueError:
        return None


def _cell(word: str, kind: str) -> Cell:
    return Cell(word, _leading_number(word), kind) if kind == "number" else Cell(word)


def _lead(status: Status, results: Results | None) -> str:
    protocol = f" ({status.protocol} protocol)" if status.name in BUILT_IN else ""
    progress = f"{status.done} of {status.planned} runs are done{protocol}."
    if results is None:
        return f"{progress} There is nothing to compare yet."
    return " ".join([progress, *(_describe_leader(results, model) for model in results.models)])


def _describe_leader(results: Results, model: str) -> str:
    """Name the algorithm with the best mean rank of the error with a model."""
    names = results.complete_datasets(model)
    if len(names) < 2 or len(results.algorithms) < 2:
        return f"With {model}, fewer than two data sets are complete for all algorithms."
    found = friedman(results.values(model, names, mean_loss))
    best = found.mean_ranks.min()
    behind = dict(zip(results.algorithms, found.mean_ranks - best, strict=True))
    first = [name for name, gap in behind.items() if gap == 0]
    near = [name for name, gap in behind.items() if 0 < gap < found.critical_difference]
    verdict = f"not significantly better than {', '.join(near)}" if near else "significantly better than all others"
    return (
        f"With {model}, {' and '.join(first)} {'has' if len(first) == 1 else 'have'} the best mean rank of error, "
        f"{best:.2f} over {len(names)} data sets, {verdict}."
    )


def _found(status: Status, results: Results | None) -> tuple[Part, ...]:
    failed = len(status.failures)
    figures = [
        Number("runs done", f"{status.done} of {status.planned}"),
        Number("failed", str(failed), "each with its error below" if failed else ""),
    ]
    if status.done < status.planned:
        left = "not known yet" if status.seconds_left is None else format_duration(status.seconds_left)
        figures.append(Number("time left, about", left))
    progress = Table(
        "Progress",
        columns("data set", "model", ("done", "number"), ("planned", "number"), ("failed", "number"),
                ("seconds per run", "number")),
        rows(
            [
                text(group.dataset), text(group.model), number(group.done, "d"), number(group.planned, "d"),
                number(group.failed, "d"), number(group.seconds, ".2f"),
            ]
            for group in status.groups
        ),
    )  # fmt: skip
    shown = (*problem_charts(results), *_tables(results, ("friedman", "ranks"))) if results else ()
    return (Numbers(tuple(figures)), *shown, progress)


def _compared(status: Status) -> tuple[str, ...]:
    """Return the names of the tables that compare; only a study of the paper has its claims."""
    return ("error", "cardinality", "tests", *(("claims",) if status.name in BUILT_IN else ()))


def _trust(path: str | PathLike[str], status: Status, results: Results) -> tuple[Part, ...]:
    parts: list[Part] = []
    if status.done < status.planned:
        missing = status.planned - status.done
        parts.append(Words(f"{missing} of {status.planned} runs are missing; every number may still change.", "note"))
    if results.info.outer:
        parts += _tables(results, ("heldout",))
    else:
        parts.append(
            Words(
                "Not measured: errors in nested cross-validation. The cross-validated errors below are those that the "
                "searches minimised, so they are optimistic.",
                "note",
            )
        )
        parts.append(Code("To measure them", f"{_command(path)} --outer 5"))
    parts += _tables(results, ("wilcoxon", "stability", "baseline"))
    if status.failures:
        failures = rows([text(run), text(error)] for run, error in status.failures.items())
        parts.append(Table("Failed runs", columns("run", "error"), failures))
    return tuple(parts)


def _tables(results: Results, names: Sequence[str]) -> tuple[Part, ...]:
    grids = [grid for name in names for grid in make_tables(results, name)]
    if results.info.name not in BUILT_IN:
        grids = [_without_paper(grid) for grid in grids]
    return tuple(part for grid in grids if grid.rows for part in grid_parts(grid))


_PLAIN = {"sound protocol, ": "", "PI %": "improvement %", "Ξ %": "left out %", "Ξ": "share left out", "ξ": "features"}
"""Words of the paper, and those for a study of other questions."""


def _without_paper(grid: Grid) -> Grid:
    """Return a table without the columns, rows and words of the paper, for studies of other questions."""
    kept = [place for place, heading in enumerate(grid.headers) if "paper" not in heading]
    lines = [row for row in grid.rows if not any(cell.startswith("paper") for cell in row[:3])]
    return Grid(
        _plain(grid.title),
        tuple(_plain(grid.headers[place]) for place in kept),
        tuple(tuple(_plain(row[place]) for place in kept) for row in lines),
        tuple(_plain(note) for note in grid.notes if "paper" not in note),
    )


def _plain(words: str) -> str:
    for theirs, ours in _PLAIN.items():
        words = words.replace(theirs, ours)
    return words


def _command(path: str | PathLike[str]) -> str:
    """Return the command that ran the study, without its outer folds."""
    with Store.reading(path) as store:
        name, runs = store.info().name, 1 + max((planned.run for planned in store.planned()), default=0)
    study = name if name in BUILT_IN else f"{name}.toml"
    return f"subswarm study run {shlex.quote(study)} --store {shlex.quote(fspath(path))} --runs {runs}"


def _outer_options(info: StudyInfo) -> str:
    if not info.outer:
        return ""
    repeated = f" --outer-repeats {info.outer_repeats}" if info.outer_repeats > 1 else ""
    return f" --outer {info.folds_per_outer_repeat}{repeated}"


def _again(path: str | PathLike[str]) -> tuple[Part, ...]:
    with Store.reading(path) as store:
        info, digest, found = store.info(), store.content_digest(), store.rows()
    facts: dict[str, object] = {
        **({"protocol": info.protocol} if info.name in BUILT_IN or info.protocol != "sound" else {}),
        "evaluations per run": info.evaluations,
        "folds": info.folds,
        **({"repeats of cross-validation": info.repeats} if info.repeats > 1 else {}),
        "seed": info.seed,
        "outer folds": info.folds_per_outer_repeat or "none",
        **({"outer repeats": info.outer_repeats} if info.outer_repeats > 1 else {}),
        "machines": "; ".join(sorted({row.timing.machine for row in found})) or ABSENT,
        "digest of all results": f"sha256 {digest}",
    }
    for name in sorted({name for row in found for name in row.timing.versions}):
        facts[f"version of {name}"] = ", ".join(
            sorted({row.timing.versions[name] for row in found if name in row.timing.versions})
        )
    settings = {row.planned.algorithm: row.content.settings for row in found}
    listed = [(name, key, value) for name, of in settings.items() for key, value in of.items()]
    return (
        Code("The command", _command(path) + _outer_options(info)),
        Words("The seed of a run depends only on its entry in the plan, so any part of the study can be reproduced."),
        Table("Settings and environment", columns("what", "value"), rows([text(k), text(v)] for k, v in facts.items())),
        Table(
            "Settings of the algorithms",
            columns("algorithm", "setting", "value"),
            rows([text(name), text(key), text(value)] for name, key, value in listed),
        ),
    )


_POINTS = 60
_UNFOLDED = 4
"""Up to this many problems, all charts are unfolded at first; with more, only those of the first problem."""
_BANDS = 3
"""Most lines that show their bands at the same time; with more, the page's script shows the band of one line."""


def problem_charts(results: Results) -> list[Charts]:
    """Return two charts for each data set and model: PI and Ξ of the best subset so far."""
    drawn = []
    for dataset in results.datasets:
        for model in results.models:
            cells = {name: results.cell(dataset, model, name) for name in results.algorithms}
            finished = {name: cell for name, cell in cells.items() if cell is not None}
            if finished:
                drawn.append((f"{dataset}, {model}", tuple(_charts(results, dataset, model, finished))))
    return [Charts(title, charts, place == 0 or len(drawn) <= _UNFOLDED) for place, (title, charts) in enumerate(drawn)]


def _charts(results: Results, dataset: str, model: str, cells: dict[str, RunsCell]) -> list[Chart]:
    facts = results.facts(dataset, model)
    start = max(row.content.curve[0][0] for cell in cells.values() for row in cell.rows)
    grid = np.unique(np.linspace(start, results.info.evaluations, _POINTS).round().astype(np.intp))
    reference = reference_algorithm(results)
    order = [reference, *(name for name in results.algorithms if name != reference)]
    colours = {name: place for place, name in enumerate(order)}
    improvements, reductions = [], []
    for name, cell in sorted(cells.items(), key=lambda item: colours[item[0]]):
        losses, sizes = cell.curves(grid)
        if facts.loss_all > 0:
            improvement = np.vectorize(performance_improvement)(losses, facts.loss_all)
            improvements.append(_layer(name, grid, improvement, colours[name]))
        reduction = np.vectorize(cardinality_reduction)(sizes, cell.n_features)
        reductions.append(_layer(name, grid, reduction, colours[name]))
    band = "one standard deviation"
    runs = (
        f"mean over the runs, with a band of {band}"
        if len(cells) <= _BANDS
        else f"mean over the runs; point at a line to see its band of {band}"
    )
    charts = (
        (
            "Improvement on all features",
            f"Percent by which the error of the best subset so far is below that of all features: {runs}.",
            "improvement %",
            improvements,
        ),
        (
            "Features left out",
            f"Percent of the features that the best subset so far leaves out: {runs}.",
            "left out %",
            reductions,
        ),
    )
    return [Chart(title, note, "evaluations", unit, tuple(layers)) for title, note, unit, layers in charts if layers]


def _layer(name: str, grid: IntArray, values: FloatArray, colour: int) -> Layer:
    mean = values.mean(axis=0)
    spread = values.std(axis=0, ddof=1) if len(values) > 1 else None
    return Layer(
        name,
        grid.tolist(),
        mean.tolist(),
        colour=colour,
        low=None if spread is None else (mean - spread).tolist(),
        high=None if spread is None else (mean + spread).tolist(),
    )
