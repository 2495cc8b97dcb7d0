"""The report of a study: the same five questions, asked of a grid of searches; also while it runs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

from subswarm.analysis.grid import Grid
from subswarm.analysis.results import Results, read_results
from subswarm.analysis.statistics import friedman
from subswarm.analysis.tables import make_tables
from subswarm.report.grids import grid_parts
from subswarm.report.page import (
    Code,
    Number,
    Numbers,
    Page,
    Section,
    Table,
    Words,
    columns,
    number,
    render,
    rows,
    text,
)
from subswarm.report.study_charts import problem_charts
from subswarm.study.paper import BUILT_IN
from subswarm.study.status import Status, in_words, read_status
from subswarm.study.store import Store, StudyInfo

__all__ = ["study_page"]


def study_page(path: str | PathLike[str], *, live: bool = False) -> str:
    """The report of the study in a store, as one HTML page; a live one asks its server for what is new."""
    status = read_status(path)
    results = read_results(path) if status.done else None
    sections = [Section("found", "What was found", _found(status, results))]
    if results is not None:
        sections += [
            Section("trust", "Can I trust it?", _trust(path, status, results)),
            Section("compared", "How it compares", _tables(results, ("error", "cardinality", "tests", "claims"))),
            Section("course", "How it got there", (*problem_charts(results), *_tables(results, ("time",)))),
        ]
    sections.append(Section("again", "How to do it again", _again(path, status)))
    return render(
        Page(
            title=f"Study {status.name}",
            lead=_lead(status, results),
            sections=tuple(sections),
            footer="Made by subswarm. This page holds everything it shows and fetches nothing."
            if not live
            else "Made by subswarm, which serves this page from this machine and reads the store only.",
        ),
        live=live,
    )


def _lead(status: Status, results: Results | None) -> str:
    how_far = f"{status.done} of {status.planned} runs are done ({status.protocol} protocol)."
    if results is None:
        return f"{how_far} There is nothing to compare yet."
    return " ".join([how_far, *(_leader(results, model) for model in results.models)])


def _leader(results: Results, model: str) -> str:
    """Who has the best mean rank of error with a model."""
    names = results.whole_datasets(model)
    if len(names) < 2 or len(results.algorithms) < 2:
        return f"With {model}, fewer than two data sets are complete for all algorithms."
    found = friedman(results.losses(model, names, results.algorithms))
    best = found.mean_ranks.min()
    behind = dict(zip(results.algorithms, found.mean_ranks - best, strict=True))
    first = [name for name, gap in behind.items() if gap == 0]
    near = [name for name, gap in behind.items() if 0 < gap < found.critical_difference]
    apart = f"not told apart from {', '.join(near)}" if near else "told apart from all others"
    return (
        f"With {model}, {' and '.join(first)} {'has' if len(first) == 1 else 'have'} the best mean rank of error, "
        f"{best:.2f} over {len(names)} data sets, {apart}."
    )


def _found(status: Status, results: Results | None) -> tuple[Any, ...]:
    failed = len(status.failures)
    left = "not known yet" if status.seconds_left is None else in_words(status.seconds_left)
    figures = [
        Number("runs done", f"{status.done} of {status.planned}"),
        Number("failed", str(failed), "each with its error below" if failed else ""),
    ]
    if status.done < status.planned:
        figures.append(Number("time left, about", left))
    progress = Table(
        "Progress",
        columns("data set", "model", ("done", "number"), ("planned", "number"), ("failed", "number"),
                ("seconds a run", "number")),
        rows(
            [
                text(group.dataset), text(group.model), number(group.done, "d"), number(group.planned, "d"),
                number(group.failed, "d"), number(group.seconds, ".2f"),
            ]
            for group in status.groups
        ),
    )  # fmt: skip
    return (Numbers(tuple(figures)), *(_tables(results, ("friedman", "ranks")) if results else ()), progress)


def _trust(path: str | PathLike[str], status: Status, results: Results) -> tuple[Any, ...]:
    parts: list[Any] = []
    if status.done < status.planned:
        missing = status.planned - status.done
        parts.append(Words(f"{missing} of {status.planned} runs are missing; every figure may still move.", "note"))
    if results.info.outer:
        parts += _tables(results, ("heldout",))
    else:
        parts.append(
            Words(
                "Not measured: errors on rows that the searches never saw. Errors in cross-validation are those the "
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


def _tables(results: Results, names: Sequence[str]) -> tuple[Any, ...]:
    grids: list[Grid] = [grid for name in names for grid in make_tables(results, name) if grid.rows]
    return tuple(part for grid in grids for part in grid_parts(grid))


def _command(path: str | PathLike[str]) -> str:
    """What ran the study, less its outer folds."""
    with Store.reading(path) as store:
        name, runs = store.info().name, 1 + max(planned.run for planned in store.planned())
    study = name if name in BUILT_IN else f"{name}.toml"
    return f"subswarm study run {shlex.quote(study)} --store {shlex.quote(fspath(path))} --runs {runs}"


def _outer(info: StudyInfo) -> str:
    if not info.outer:
        return ""
    repeated = f" --outer-repeats {info.outer_repeats}" if info.outer_repeats > 1 else ""
    return f" --outer {info.folds_at_a_time}{repeated}"


def _again(path: str | PathLike[str], status: Status) -> tuple[Any, ...]:
    with Store.reading(path) as store:
        info, digest, found = store.info(), store.content_digest(), store.rows()
    facts = {
        "protocol": info.protocol,
        "evaluations of a run": info.evaluations,
        "folds": info.folds,
        **({"partitions into folds": info.repeats} if info.repeats > 1 else {}),
        "seed": info.seed,
        "outer folds": info.folds_at_a_time or "none",
        **({"repetitions of the outer folds": info.outer_repeats} if info.outer_repeats > 1 else {}),
        "machines": "; ".join(sorted({row.timing.machine for row in found})) or "–",
        "digest of all results": f"sha256 {digest}",
    }
    for name in sorted({name for row in found for name in row.timing.versions}):
        facts[f"version of {name}"] = ", ".join(sorted({row.timing.versions[name] for row in found}))
    settings = {row.planned.algorithm: row.content.settings for row in found}
    listed = [(name, key, value) for name, of in settings.items() for key, value in of.items()]
    return (
        Code("The command", _command(path) + _outer(info)),
        Words("A run's seed follows from its place in the plan: any part of the study gives the same results again."),
        Table("What it rests on", columns("what", "value"), rows([text(k), text(v)] for k, v in facts.items())),
        Table(
            "Settings of the algorithms",
            columns("algorithm", "setting", "value"),
            rows([text(name), text(key), text(value)] for name, key, value in listed),
        ),
    )
