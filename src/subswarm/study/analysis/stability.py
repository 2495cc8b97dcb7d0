"""How much the subsets that several runs select agree, as tables of a study."""

from __future__ import annotations

import numpy as np

from subswarm._search.result import Stability, stability
from subswarm.study.analysis.results import ABSENT, Cell, Results
from subswarm.study.analysis.text_table import Grid

__all__ = ["Stability", "stability", "stability_tables"]


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
