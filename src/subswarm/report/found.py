"""The report of one selection: what was found, can I trust it, how it compares, how it got there, how to repeat it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from subswarm.core.choice import one_standard_error
from subswarm.core.types import FloatArray
from subswarm.report.courses import course_charts
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
    share,
    text,
)
from subswarm.report.selection import Selection, versions
from subswarm.report.trust import trust_parts

__all__ = ["selection_page"]


def selection_page(selection: Selection) -> str:
    """The report as one HTML page."""
    selector = selection.selector
    return render(
        Page(
            title=f"{selector.n_features_} of {selector.n_features_in_} features predict {selection.target}",
            lead=_lead(selection),
            sections=(
                Section("found", "What was found", _found(selection)),
                Section("trust", "Can I trust it?", trust_parts(selection)),
                Section("compared", "How it compares", _compared(selection)),
                Section("course", "How it got there", _course(selection)),
                Section("again", "How to do it again", _again(selection)),
            ),
            footer="Made by subswarm. This page holds everything it shows and fetches nothing.",
        )
    )


def _lead(selection: Selection) -> str:
    selector, name = selection.selector, selection.scoring.name
    baseline = selector.baseline_score_
    all_of_them = (
        f"all {selector.n_features_in_} give {baseline:.4f}"
        if math.isfinite(baseline)
        else f"with all {selector.n_features_in_} it could not be scored"
    )
    honest = "" if selection.honest is None else f" On rows the search never saw: {selection.honest.score:.4f}."
    return (
        f"The model {selection.model!r} on {selection.table}: {name} {selector.best_score_:.4f} in cross-validation "
        f"with the features below; {all_of_them}.{honest}"
    )


def _found(selection: Selection) -> tuple[Any, ...]:
    selector, name = selection.selector, selection.scoring.name
    figures = [
        Number("features selected", f"{selector.n_features_} of {selector.n_features_in_}"),
        Number(
            f"{name}, selected", f"{selector.best_score_:.4f}", "in cross-validation; the search has seen these folds"
        ),
        Number(f"{name}, all features", _figure(selector.baseline_score_), "in cross-validation, same folds"),
    ]
    if selection.honest is not None:
        figures.append(Number(f"{name}, held out", f"{selection.honest.score:.4f}", "the honest figure; see below"))
    return (
        Numbers(tuple(figures)),
        Words(f"Selected: {selection.listed(selector.support_)}.") if selector.n_features_ <= 40 else _nothing(),
        _features(selection),
    )


def _nothing() -> Words:
    return Words("The selected features are marked in the table.")


def _features(selection: Selection) -> Table:
    selector, again = selection.selector, selection.again
    result = selector.result_
    front = result.front.masks.mean(axis=0)
    shares: list[tuple[str, FloatArray, int]] = []
    if len(again):
        shares.append((f"selected by {len(again)} repeated searches", again.mean(axis=0), len(again)))
    if result.recording is not None:
        shares.append(("in subsets visited", result.recording.chosen / len(result.recording.fitness), 0))
    shares.append(("in the best subset of each size", front, 0))
    order = np.lexsort((np.arange(len(front)), -shares[0][1], ~selector.support_))
    cells = [
        [
            text(selection.names[index]),
            text("yes" if selector.support_[index] else "no"),
            *(share(values[index], _count(values[index], of)) for _, values, of in shares),
        ]
        for index in order
    ]
    return Table(
        "All features",
        columns("feature", "selected", *((heading, "share") for heading, _, _ in shares)),
        rows(cells, selector.support_[order].tolist()),
    )


def _count(value: float, of: int) -> str | None:
    return f"{round(value * of)} of {of}" if of else None


def _compared(selection: Selection) -> tuple[Any, ...]:
    selector, scoring = selection.selector, selection.scoring
    name, result = scoring.name, selector.result_
    few = one_standard_error(result)
    options = [
        ("all features", selector.n_features_in_, selector.baseline_score_),
        (f"selected ({result.algorithm})", selector.n_features_, selector.best_score_),
        ("fewest within one standard error", few.cardinality, scoring.score(few.fitness)),
        *(
            (f"{rival}, same folds and evaluations", other.n_features_, other.best_score_)
            for rival, other in selection.rivals.items()
        ),
    ]
    sizes = result.front
    return (
        Table(
            "Choices side by side",
            columns("choice", ("features", "number"), (name, "number"), ("against all features", "number")),
            rows(
                (
                    [text(what), number(size, "d"), number(score), number(score - selector.baseline_score_, "+.4f")]
                    for what, size, score in options
                ),
                [False, True, *[False] * (len(options) - 2)],
            ),
            note="All in cross-validation on the folds that the searches have seen; every searched one is optimistic.",
        ),
        *([] if selection.rivals else [Words("Add --against NAME to run another algorithm beside it.", "soft")]),
        course_charts(selection)["trade_off"],
        Table(
            "The best subset of each size",
            columns(("features", "number"), (name, "number"), "which"),
            rows(
                (
                    [number(int(size), "d"), number(scoring.score(float(loss))), text(selection.listed(mask))]
                    for size, loss, mask in zip(sizes.cardinality, sizes.fitness, sizes.masks, strict=True)
                ),
                [int(size) == selector.n_features_ for size in sizes.cardinality],
            ),
        ),
    )


def _course(selection: Selection) -> tuple[Any, ...]:
    result = selection.selector.result_
    whole = result.algorithm_seconds + result.evaluation_seconds
    charts = course_charts(selection)
    del charts["trade_off"]
    return (
        Words(
            f"{result.algorithm} asked for {result.evaluations} subsets, {result.computed} of them distinct, and was "
            f"stopped by {result.stop_reason}. It took {whole:.1f} s: {result.algorithm_seconds:.2f} s in the "
            f"algorithm (T1) and {result.evaluation_seconds:.1f} s in evaluation (T2) by the engine {result.engine!r}."
        ),
        *charts.values(),
    )


def _again(selection: Selection) -> tuple[Any, ...]:
    selector, result = selection.selector, selection.selector.result_
    facts = {
        "seed": selection.seed,
        "table": f"{selection.table}: {selection.shape[0]} rows, {selection.shape[1]} features",
        "digest of the numbers": selection.digest,
        "target": selection.target,
        "model": repr(selector.estimator_),
        "scoring": selection.scoring.name,
        "folds": len(selector.folds_),
        **({"partitions of the rows": result.n_partitions} if result.n_partitions > 1 else {}),
        **{f"version of {name}": version for name, version in versions().items()},
    }
    command = (Code("The command", selection.command),) if selection.command else ()
    return (
        *command,
        Words("The same command on the same table gives the same features and scores, whatever the number of workers."),
        Table("What it rests on", columns("what", "value"), rows([text(k), text(v)] for k, v in facts.items())),
        Table(
            f"Settings of {result.algorithm}",
            columns("setting", "value"),
            rows([text(k), text(v)] for k, v in result.settings.items()),
        ),
    )


def _figure(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "–"
