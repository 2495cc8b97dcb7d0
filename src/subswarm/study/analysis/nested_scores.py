"""The errors of nested cross-validation."""

from __future__ import annotations

import numpy as np

from subswarm.errors import SettingError
from subswarm.study.analysis.results import ABSENT, Cell, Results
from subswarm.study.analysis.text_table import Grid

__all__ = ["nested_tables"]


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
