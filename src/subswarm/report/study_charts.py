"""The paper's Fig. 1 for any study: improvement and reduction against evaluations, mean and band over the runs."""

from __future__ import annotations

import numpy as np

from subswarm.analysis.comparisons import proposed_of
from subswarm.analysis.metrics import cardinality_reduction, performance_improvement
from subswarm.analysis.results import Cell, Results
from subswarm.core.types import FloatArray
from subswarm.report.page import Chart, Charts, Layer

__all__ = ["problem_charts"]

_POINTS = 60
_SHOWN = 4
"""Problems whose charts are unfolded at first: of a large study the first, of a small one all."""
_BANDS = 3
"""Lines that have their bands at the same time (so in the page's script); of more, the line pointed at has one."""


def problem_charts(results: Results) -> list[Charts]:
    """Two charts for each data set and model: PI and Ξ of the best so far."""
    drawn = []
    for dataset in results.datasets:
        for model in results.models:
            cells = {name: results.cell(dataset, model, name) for name in results.algorithms}
            there = {name: cell for name, cell in cells.items() if cell is not None}
            if there:
                drawn.append((f"{dataset}, {model}", tuple(_charts(results, dataset, model, there))))
    return [Charts(where, charts, place == 0 or len(drawn) <= _SHOWN) for place, (where, charts) in enumerate(drawn)]


def _charts(results: Results, dataset: str, model: str, cells: dict[str, Cell]) -> list[Chart]:
    facts = results.facts(dataset, model)
    start = max(row.content.curve[0][0] for cell in cells.values() for row in cell.rows)
    grid = np.unique(np.linspace(start, results.info.evaluations, _POINTS).round().astype(np.intp))
    proposed = proposed_of(results)
    order = [proposed, *(name for name in results.algorithms if name != proposed)]
    colours = {name: place for place, name in enumerate(order)}
    gains, cuts = [], []
    for name, cell in sorted(cells.items(), key=lambda item: colours[item[0]]):
        losses, sizes = _courses(cell, grid)
        if facts.loss_all > 0:
            gain = np.vectorize(performance_improvement)(losses, facts.loss_all)
            gains.append(_layer(name, grid, gain, colours[name]))
        cuts.append(_layer(name, grid, np.vectorize(cardinality_reduction)(sizes, cell.n_features), colours[name]))
    band = "band of one standard deviation"
    runs = (
        f"mean over the runs, {band}" if len(cells) <= _BANDS else f"mean over the runs; point at a line for its {band}"
    )
    named = (
        ("Improvement on all features", f"PI of the best so far: {runs}.", "PI %", gains),
        ("Features left out", f"Ξ of the best so far: {runs}.", "Ξ %", cuts),
    )
    return [Chart(title, note, "evaluations", unit, tuple(layers)) for title, note, unit, layers in named if layers]


def _courses(cell: Cell, grid: np.ndarray) -> tuple[FloatArray, FloatArray]:
    """Best loss and its cardinality after each number of evaluations, shapes (runs, len(grid))."""
    losses, sizes = [], []
    for row in cell.rows:
        evaluations, loss, size = (np.array(column) for column in zip(*row.content.curve, strict=True))
        step = np.maximum(np.searchsorted(evaluations, grid, side="right") - 1, 0)
        losses.append(loss[step])
        sizes.append(size[step])
    return np.array(losses, dtype=np.float64), np.array(sizes, dtype=np.float64)


def _layer(name: str, grid: np.ndarray, values: FloatArray, colour: int) -> Layer:
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
