"""2D-UPSO against its rivals: run against run on each data set, and over all data sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from subswarm.analysis.grid import Grid
from subswarm.analysis.measures import mean_note
from subswarm.analysis.results import Cell, Results
from subswarm.analysis.statistics import Comparison, compare_runs, friedman, holm, wilcoxon
from subswarm.core.types import FloatArray
from subswarm.study.paper import PROPOSED
from subswarm.study.published import paper_tables

__all__ = [
    "compare_cells",
    "friedman_tables",
    "proposed_of",
    "t_test_tables",
    "wilcoxon_over_datasets",
    "wilcoxon_tables",
]

ABSENT = "–"
_TEST_NOTE = (
    "+: significantly better (two-sided paired t-test by run number, p < 0.05); −: worse; =: identical results; "
    "?: undecided. p: paired t, Welch's t, Wilcoxon's signed ranks. δ: Cliff's delta, 1 where every run is better than "
    "every run of the rival."
)


def proposed_of(results: Results) -> str:
    """The algorithm the others are compared with: 2D-UPSO where it ran, else the first one."""
    return PROPOSED if PROPOSED in results.algorithms else results.algorithms[0]


def compare_cells(ours: Cell, theirs: Cell) -> Comparison | None:
    """The runs whose numbers both have, against each other; None where they have fewer than two."""
    numbers = [run for run in _by_run(ours) if run in _by_run(theirs)]
    if len(numbers) < 2:
        return None
    first, second = _by_run(ours), _by_run(theirs)
    return compare_runs([first[run] for run in numbers], [second[run] for run in numbers])


def t_test_tables(results: Results) -> list[Grid]:
    """Paired t-tests with the paper's verdicts, Welch's and Wilcoxon's tests and effect sizes beside them."""
    proposed = proposed_of(results)
    rivals = [name for name in results.algorithms if name != proposed]
    grids = []
    for model in results.models:
        rows: list[tuple[str, ...]] = []
        verdicts: dict[str, list[str]] = {rival: [] for rival in rivals}
        for dataset in results.datasets:
            compared = {rival: _compared(results, dataset, model, proposed, rival) for rival in rivals}
            if not any(compared.values()):
                continue
            for rival, found in compared.items():
                if found is not None:
                    verdicts[rival].append(found.verdict)
            rows += _test_rows(results, dataset, model, compared)
        if rows:
            rows.append(("all", "+ / − / = / ?", *(_counts(verdicts[rival]) for rival in rivals)))
            rows += _paper_counts(results, model, rivals)
            grids.append(
                Grid(
                    f"{proposed} against its rivals, {model}",
                    ("data set", "measure", *rivals),
                    tuple(rows),
                    (
                        *mean_note(results),
                        _TEST_NOTE,
                    ),
                )
            )
    return grids


def wilcoxon_over_datasets(results: Results, model: str, rivals: Iterable[str]) -> tuple[list[str], FloatArray]:
    """The data sets in common, and the Holm-adjusted p of Wilcoxon's test on mean errors, against each rival."""
    proposed = proposed_of(results)
    rivals = list(rivals)
    names = results.whole_datasets(model, [proposed, *rivals])
    if len(names) < 2:
        return names, np.full(len(rivals), np.nan)
    table = results.losses(model, names, [proposed, *rivals])
    return names, holm([wilcoxon(table[:, 0], table[:, place]) for place in range(1, table.shape[1])])


def wilcoxon_tables(results: Results) -> list[Grid]:
    """Wilcoxon's signed-rank test on the mean errors over the data sets, Holm-corrected over the rivals."""
    proposed = proposed_of(results)
    rivals = [name for name in results.algorithms if name != proposed]
    grids = []
    for model in results.models:
        names, adjusted = wilcoxon_over_datasets(results, model, rivals)
        if len(names) < 2:
            continue
        table = results.losses(model, names, [proposed, *rivals])
        rows = []
        for place, rival in enumerate(rivals):
            gap = table[:, place + 1] - table[:, 0]
            wins = f"{(gap > 1e-12).sum()} / {(gap < -1e-12).sum()} / {(np.abs(gap) <= 1e-12).sum()}"
            raw = wilcoxon(table[:, 0], table[:, place + 1])
            decided = "?" if not adjusted[place] < 0.05 else "+" if np.median(gap) > 0 else "−"
            rows.append((rival, wins, f"{np.median(gap):.4f}", f"{raw:.3g}", f"{adjusted[place]:.3g}", decided))
        grids.append(
            Grid(
                f"{proposed} against its rivals over {len(names)} data sets, {model}",
                ("rival", "better / worse / equal", "median gain", "p (Wilcoxon)", "p (Holm)", "verdict"),
                tuple(rows),
                mean_note(results),
            )
        )
    return grids


def friedman_tables(results: Results) -> list[Grid]:
    """Friedman's test over the data sets, and who lies within Nemenyi's critical difference of the best."""
    grids = []
    for model in results.models:
        names = results.whole_datasets(model)
        if len(names) < 2 or len(results.algorithms) < 2:
            continue
        found = friedman(results.losses(model, names, results.algorithms))
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
                ("algorithm", "mean rank", "behind the best", "told apart from it"),
                rows,
                (
                    f"χ² = {found.chi_square:.2f} (p = {found.p_chi_square:.3g}); Iman and Davenport's F = "
                    f"{found.f:.2f} (p = {found.p_f:.3g}); Nemenyi's critical difference at 0.05: "
                    f"{found.critical_difference:.2f}. Ties have their mean rank.",
                    *mean_note(results),
                ),
            )
        )
    return grids


def _compared(results: Results, dataset: str, model: str, proposed: str, rival: str) -> Comparison | None:
    ours, theirs = results.cell(dataset, model, proposed), results.cell(dataset, model, rival)
    return None if ours is None or theirs is None else compare_cells(ours, theirs)


def _test_rows(
    results: Results, dataset: str, model: str, compared: dict[str, Comparison | None]
) -> list[tuple[str, ...]]:
    def line(label: str, cells: list[str]) -> tuple[str, ...]:
        return (dataset, label, *cells)

    found = list(compared.values())
    rows = [line("verdict", [ABSENT if each is None else _sign(each.verdict) for each in found])]
    printed = [paper_tables().verdict.get((dataset, results.classifier(model) or "", rival)) for rival in compared]
    if any(printed):
        rows.append(line("paper", [ABSENT if each is None else _sign(each) for each in printed]))
    for label, name in (("p paired t", "p_paired"), ("p Welch", "p_welch"), ("p Wilcoxon", "p_wilcoxon")):
        rows.append(line(label, [ABSENT if each is None else f"{getattr(each, name):.2g}" for each in found]))
    rows.append(line("δ", [ABSENT if each is None else f"{each.delta:.2f}" for each in found]))
    return rows


def _paper_counts(results: Results, model: str, rivals: list[str]) -> list[tuple[str, ...]]:
    classifier = results.classifier(model)
    cells = []
    for rival in rivals:
        found = [paper_tables().verdict.get((name, classifier or "", rival)) for name in results.datasets]
        cells.append(_counts([each for each in found if each is not None]))
    return [("all", "paper", *cells)] if any(cell != "0 / 0 / 0 / 0" for cell in cells) else []


def _counts(verdicts: Iterable[str]) -> str:
    counted = Counter(verdicts)
    return " / ".join(str(counted[sign]) for sign in "+-=?")


def _sign(verdict: str) -> str:
    return verdict.replace("-", "−")


def _by_run(cell: Cell) -> dict[int, float]:
    return {row.planned.run: row.content.loss for row in cell.rows}
