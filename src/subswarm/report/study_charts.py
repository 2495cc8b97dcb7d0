"""Charts of a study: improvement and reduction against evaluations, as in Fig. 1 of the paper."""

from __future__ import annotations

import numpy as np

from subswarm._types import FloatArray, IntArray
from subswarm.report.page import Chart, Charts, Layer
from subswarm.study.analysis.results import Cell, Results, cardinality_reduction, performance_improvement
from subswarm.study.analysis.significance import reference_algorithm

__all__ = ["problem_charts"]

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


def _charts(results: Results, dataset: str, model: str, cells: dict[str, Cell]) -> list[Chart]:
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
