"""Beyond the paper: error on rows the search never saw, and whether runs agree on what to select."""

from __future__ import annotations

import numpy as np

from subswarm.analysis.grid import Grid
from subswarm.analysis.measures import mean_note
from subswarm.analysis.results import Cell, Results
from subswarm.analysis.stability import stability
from subswarm.core.errors import SettingError

__all__ = ["held_out_tables", "stability_tables"]

ABSENT = "–"


def held_out_tables(results: Results) -> list[Grid]:
    """Inner and held-out error of each algorithm, beside all features on the same held-out rows."""
    if results.info.outer == 0:
        raise SettingError(
            "this study held no rows out; run it again with --outer 5 (the searches already done are kept)."
        )
    grids = []
    for model in results.models:
        rows: list[tuple[str, ...]] = []
        for dataset in results.datasets:
            cells = [results.outer_cell(dataset, model, algorithm) for algorithm in results.algorithms]
            if any(cells):
                rows += _held_out_rows(results, dataset, model, cells)
        if rows:
            grids.append(
                Grid(
                    f"Error on rows the search never saw, {model}",
                    ("data set", "measure", *results.algorithms, "all features"),
                    tuple(rows),
                    (
                        f"Outer cross-validation in {_outer(results)}, each search inside the others. inner: "
                        "the error the search minimised, which is optimistic; held out: of the model refitted on the "
                        "selected columns; gain: all features less held out (positive: the selection helped).",
                    ),
                )
            )
    return grids


def _outer(results: Results) -> str:
    times = results.info.outer_repeats
    return f"{results.info.folds_at_a_time} folds" + (f", {times} times" if times > 1 else "")


def stability_tables(results: Results) -> list[Grid]:
    """Nogueira's stability of the selected subsets over runs, and over runs and outer folds where there are any."""
    grids = []
    for model in results.models:
        rows: list[tuple[str, ...]] = []
        for dataset in results.datasets:
            for label, cell_of in (("runs", results.cell), ("runs and folds", results.outer_cell)):
                cells = [cell_of(dataset, model, algorithm) for algorithm in results.algorithms]
                if any(cell is not None and len(cell.rows) > 1 for cell in cells):
                    rows.append((dataset, label, *map(_stability, cells)))
        if rows:
            grids.append(
                Grid(
                    f"Stability of the selection (Nogueira's Φ with its 95 % interval), {model}",
                    ("data set", "over", *results.algorithms),
                    tuple(rows),
                    (
                        "1: always the same subset; 0: no more in common than by chance.",
                        *mean_note(results),
                    ),
                )
            )
    return grids


def _held_out_rows(results: Results, dataset: str, model: str, cells: list[Cell | None]) -> list[tuple[str, ...]]:
    folds = [
        facts
        for (name, kind, fold), facts in results.problems.items()
        if (name, kind) == (dataset, model) and fold is not None
    ]
    inner_all = float(np.mean([facts.loss_all for facts in folds]))
    held_all = float(np.mean([np.nan if facts.held_out_all is None else facts.held_out_all for facts in folds]))
    inner = [None if cell is None else float(cell.losses.mean()) for cell in cells]
    held_out = [None if cell is None else float(cell.held_out.mean()) for cell in cells]
    gains = [None if value is None else held_all - value for value in held_out]
    return [
        (dataset, "inner", *map(_number, inner), _number(inner_all)),
        (dataset, "held out", *map(_number, held_out), _number(held_all)),
        (dataset, "gain", *map(_number, gains), ABSENT),
    ]


def _stability(cell: Cell | None) -> str:
    if cell is None or len(cell.rows) < 2:
        return ABSENT
    found = stability(cell.masks)
    if not np.isfinite(found.value):
        return ABSENT
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _number(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.4f}"
