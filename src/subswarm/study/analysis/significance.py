"""Significance tests over data sets: a reference algorithm against the others, and Friedman's test."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from subswarm._types import FloatArray
from subswarm.study.analysis.ranks import friedman
from subswarm.study.analysis.results import Cell, Results, mean_loss
from subswarm.study.analysis.statistics import RunComparison, compare_runs, holm, wilcoxon
from subswarm.study.analysis.text_table import Grid

__all__ = [
    "REFERENCE",
    "compare_cells",
    "compare_on_dataset",
    "friedman_tables",
    "reference_algorithm",
    "wilcoxon_over_datasets",
    "wilcoxon_tables",
]

REFERENCE = "2d-upso"
"""The algorithm that the others are compared with by default: the one that the paper proposes."""

_SAME = 1e-12


def reference_algorithm(results: Results) -> str:
    """Return the algorithm that the others are compared with: 2D-UPSO if it ran, else the first one."""
    return REFERENCE if REFERENCE in results.algorithms else results.algorithms[0]


def compare_on_dataset(results: Results, dataset: str, model: str, algorithm: str, rival: str) -> RunComparison | None:
    """Compare the runs of two algorithms on one data set; None if they share fewer than two run numbers."""
    ours, theirs = results.cell(dataset, model, algorithm), results.cell(dataset, model, rival)
    return None if ours is None or theirs is None else compare_cells(ours, theirs)


def compare_cells(ours: Cell, theirs: Cell) -> RunComparison | None:
    """Compare the runs whose numbers both have; None if these are fewer than two."""
    first, second = _losses_by_run(ours), _losses_by_run(theirs)
    numbers = [run for run in first if run in second]
    if len(numbers) < 2:
        return None
    return compare_runs([first[run] for run in numbers], [second[run] for run in numbers])


def wilcoxon_over_datasets(results: Results, model: str, rivals: Iterable[str]) -> tuple[list[str], FloatArray]:
    """Return the data sets in common, and the Holm-adjusted p of Wilcoxon's test on mean errors for each rival."""
    reference = reference_algorithm(results)
    rivals = list(rivals)
    names = results.complete_datasets(model, [reference, *rivals])
    if len(names) < 2:
        return names, np.full(len(rivals), np.nan)
    table = results.values(model, names, mean_loss, [reference, *rivals])
    return names, holm([wilcoxon(table[:, 0], table[:, place]) for place in range(1, table.shape[1])])


def wilcoxon_tables(results: Results) -> list[Grid]:
    """Return Wilcoxon's signed-rank test on the mean errors over the data sets, Holm-corrected over the rivals."""
    reference = reference_algorithm(results)
    rivals = [name for name in results.algorithms if name != reference]
    grids = []
    for model in results.models:
        names, adjusted = wilcoxon_over_datasets(results, model, rivals)
        if len(names) < 2:
            continue
        table = results.values(model, names, mean_loss, [reference, *rivals])
        rows = []
        for place, rival in enumerate(rivals):
            gap = table[:, place + 1] - table[:, 0]
            counts = f"{(gap > _SAME).sum()} / {(gap < -_SAME).sum()} / {(np.abs(gap) <= _SAME).sum()}"
            raw = wilcoxon(table[:, 0], table[:, place + 1])
            verdict = "?" if not adjusted[place] < 0.05 else "+" if np.median(gap) > 0 else "−"
            rows.append((rival, counts, f"{np.median(gap):.4f}", f"{raw:.3g}", f"{adjusted[place]:.3g}", verdict))
        grids.append(
            Grid(
                f"{reference} against its rivals over {len(names)} data sets, {model}",
                ("rival", "better / worse / equal", "median gain", "p (Wilcoxon)", "p (Holm)", "verdict"),
                tuple(rows),
                (results.note(),),
            )
        )
    return grids


def friedman_tables(results: Results) -> list[Grid]:
    """Return Friedman's test over the data sets, and which algorithms differ significantly from the best one."""
    grids = []
    for model in results.models:
        names = results.complete_datasets(model)
        if len(names) < 2 or len(results.algorithms) < 2:
            continue
        found = friedman(results.values(model, names, mean_loss))
        best = found.mean_ranks.min()
        rows = tuple(
            (
                results.algorithms[place],
                f"{found.mean_ranks[place]:.2f}",
                f"{found.mean_ranks[place] - best:.2f}",
                "no" if found.mean_ranks[place] - best < found.critical_difference else "yes",
            )
            for place in np.argsort(found.mean_ranks, kind="stable")
        )
        grids.append(
            Grid(
                f"Friedman's test over {len(names)} data sets, {model}",
                ("algorithm", "mean rank", "difference from the best", "significant"),
                rows,
                (
                    f"χ² = {found.chi_square:.2f} (p = {found.p_chi_square:.3g}); Iman and Davenport's F = "
                    f"{found.f:.2f} (p = {found.p_f:.3g}); Nemenyi's critical difference at 0.05: "
                    f"{found.critical_difference:.2f}. Ties get their mean rank.",
                    results.note(),
                ),
            )
        )
    return grids


def _losses_by_run(cell: Cell) -> dict[int, float]:
    return {row.planned.run: row.content.loss for row in cell.rows}
