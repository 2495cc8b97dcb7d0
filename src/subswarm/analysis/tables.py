"""Every table of a study by name."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike

from subswarm.analysis.claims import claim_tables
from subswarm.analysis.comparisons import friedman_tables, t_test_tables, wilcoxon_tables
from subswarm.analysis.generalisation import held_out_tables, stability_tables
from subswarm.analysis.grid import Grid, render
from subswarm.analysis.measures import baseline_tables, cardinality_tables, error_tables, rank_tables, time_tables
from subswarm.analysis.results import Results, read_results
from subswarm.core.checks import check_choice

__all__ = ["TABLES", "make_tables", "render", "study_tables"]

TABLES: dict[str, Callable[[Results], list[Grid]]] = {
    "error": error_tables,
    "cardinality": cardinality_tables,
    "time": time_tables,
    "tests": t_test_tables,
    "ranks": rank_tables,
    "claims": claim_tables,
    "friedman": friedman_tables,
    "wilcoxon": wilcoxon_tables,
    "heldout": held_out_tables,
    "stability": stability_tables,
    "baseline": baseline_tables,
}


def make_tables(results: Results, what: str) -> list[Grid]:
    """The tables of this name, one for each model."""
    check_choice("what", what, TABLES)
    return TABLES[what](results)


def study_tables(path: str | PathLike[str], what: str, form: str = "text") -> str:
    """The tables of this name of a store, as "text", "markdown", "latex" or "csv"."""
    check_choice("what", what, TABLES)
    return render(make_tables(read_results(path), what), form)
