"""Every table of a study, by name."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike

from subswarm._checks import check_choice
from subswarm.study.analysis.nested_scores import nested_tables
from subswarm.study.analysis.results import Results, read_results
from subswarm.study.analysis.significance import friedman_tables, wilcoxon_tables
from subswarm.study.analysis.stability import stability_tables
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
