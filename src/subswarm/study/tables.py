"""Every table of a study, by name. Those of nested scores and of the stability of the selection are made here."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike

import numpy as np

from subswarm._checks import check_choice
from subswarm._search.result import stability
from subswarm.errors import SettingError
from subswarm.study.analysis.results import ABSENT, Cell, Results, read_results
from subswarm.study.analysis.significance import friedman_tables, wilcoxon_tables
from subswarm.study.analysis.text_table import Grid, render
from subswarm.study.paper.claims import claim_tables
from subswarm.study.paper.tables import (
    baseline_tables,
    cardinality_tables,
    error_tables,
    rank_tables,
    t_test_tables,
    time_tables,
)

__all__ = ["TABLES", "make_tables", "study_tables"]


def stability_tables(results: Results) -> list[Grid]:
    """Return the stability of the selected subsets over runs, and over runs and outer folds if there are any."""
    grids = []
    for model in results.models:
        rows: list[tuple[str, ...]] = []
        for dataset in results.datasets:
            for label, cell_of in (("runs", results.cell), ("runs and folds", results.outer_cell)):
                cells = [cell_of(dataset, model, algorithm) for algorithm in results.algorithms]
                if any(cell is not None and len(cell.rows) > 1 for cell in cells):
                    rows.append((dataset, label, *map(_format_stability, cells)))
        if rows:
            grids.append(
                Grid(
                    f"Stability of the selection (Nogueira's Φ with its 95 % interval), {model}",
                    ("data set", "over", *results.algorithms),
                    tuple(rows),
                    ("1: all subsets are equal; 0: no more agreement than by chance.", results.note()),
                )
            )
    return grids


def _format_stability(cell: Cell | None) -> str:
    if cell is None or len(cell.rows) < 2:
        return ABSENT
    found = stability(cell.masks)
    if not np.isfinite(found.value):
        return ABSENT
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def nested_tables(results: Results) -> list[Grid]:
    """Return inner and nested error of each algorithm, and the errors of all features on the same folds."""
    if results.info.outer == 0:
        raise SettingError(
            "this study has no nested cross-validation; run it again with --outer 5 (its finished runs are kept)."
        )
    grids = []
    for model in results.models:
        rows: list[tuple[str, ...]] = []
        for dataset in results.datasets:
            cells = [results.outer_cell(dataset, model, algorithm) for algorithm in results.algorithms]
            if any(cells):
                rows += _rows(results, dataset, model, cells)
        if rows:
            headers = ("data set", "measure", *results.algorithms, "all features")
            grids.append(Grid(f"Error in nested cross-validation, {model}", headers, tuple(rows), (_note(results),)))
    return grids


def _note(results: Results) -> str:
    repeats = results.info.outer_repeats
    repeated = f", repeated {repeats} times" if repeats > 1 else ""
    return (
        f"{results.info.folds_per_outer_repeat} outer folds{repeated}. inner: the error that the search minimised, "
        "which is optimistic; nested: the error on the outer fold of the model refitted on the selected columns; gain: "
        "the nested error of all features minus that of the selection (positive: the selection helped)."
    )


def _rows(results: Results, dataset: str, model: str, cells: list[Cell | None]) -> list[tuple[str, ...]]:
    folds = [
        facts
        for (name, kind, fold), facts in results.problems.items()
        if (name, kind) == (dataset, model) and fold is not None
    ]
    inner_all = float(np.mean([facts.loss_all for facts in folds]))
    nested_all = float(np.mean([np.nan if facts.held_out_all is None else facts.held_out_all for facts in folds]))
    inner = [None if cell is None else float(cell.losses.mean()) for cell in cells]
    nested = [None if cell is None else float(cell.held_out.mean()) for cell in cells]
    gains = [None if value is None else nested_all - value for value in nested]
    return [
        (dataset, "inner", *map(_format, inner), _format(inner_all)),
        (dataset, "nested", *map(_format, nested), _format(nested_all)),
        (dataset, "gain", *map(_format, gains), ABSENT),
    ]


def _format(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.4f}"


TABLES: dict[str, Callable[[Results], list[Grid]]] = {
    "error": error_tables,
    "cardinality": cardinality_tables,
    "time": time_tables,
    "tests": t_test_tables,
    "ranks": rank_tables,
    "claims": claim_tables,
    "friedman": friedman_tables,
    "wilcoxon": wilcoxon_tables,
    "heldout": nested_tables,
    "stability": stability_tables,
    "baseline": baseline_tables,
}


def make_tables(results: Results, what: str) -> list[Grid]:
    """Return the tables with this name, one for each model."""
    check_choice("what", what, TABLES)
    return TABLES[what](results)


def study_tables(path: str | PathLike[str], what: str, form: str = "text") -> str:
    """Return the tables with this name of a store, as "text", "markdown", "latex" or "csv"."""
    check_choice("what", what, TABLES)
    return render(make_tables(read_results(path), what), form)
