"""Short summaries of a selection: in the terminal and in notebooks."""

from __future__ import annotations

import math

from rich.console import Console
from rich.table import Table
from rich.text import Text

from subswarm._search.result import result_html, rows_html
from subswarm.report.record import Selection
from subswarm.selector import SwarmSelector

__all__ = ["OPTIMISTIC", "print_summary", "summary_html"]

OPTIMISTIC = "optimistic: what the search maximised"
"""The name of ``best_score_``."""


def print_summary(selection: Selection, console: Console | None = None) -> None:
    """Print the scores, the selected features and the search of a selection."""
    console = Console(highlight=False) if console is None else console
    selector, result = selection.selector, selection.result
    seconds = result.algorithm_seconds + result.evaluation_seconds
    console.print()
    console.print(_scores(selection))
    console.print()
    details = Table.grid(padding=(0, 2, 0, 0))
    details.add_column(style="bold", no_wrap=True)
    details.add_column(overflow="fold")
    details.add_row("features", Text(", ".join(selection.selected)))
    if selector.permutation_test_ is not None:
        details.add_row("chance", selector.permutation_test_.sentence())
    if selection.agreement:
        details.add_row("islands", selection.agreement)
    details.add_row(
        "search",
        f"{result.algorithm}, {result.evaluations} evaluations, {result.computed} distinct, {seconds:.1f} s, "
        f"engine {result.engine}, stopped by {result.stop_reason}",
    )
    console.print(details)
    console.print()
    for sentence in selection.warnings:
        console.print(Text.assemble(("warning  ", "bold yellow"), sentence))
    if selection.warnings:
        console.print()
    corrected = selection.corrected
    source = (
        "is from models whose search did not use the rows they are scored on"
        if corrected is not None and corrected.is_from_left_out
        else "is the optimistic one less what a search gains by chance"
    )
    explained = "" if corrected is None else f" The corrected score estimates the score on new rows: it {source}."
    nested = (
        " The nested scores are on rows that the searches did not use."
        if selection.held_out is not None
        else " Add --held-out 5 for a nested cross-validation."
    )
    console.print(
        Text(
            f"Scores are means over {len(selector.fold_scores_)} folds. The search used these folds, so the score that "
            f"it maximised is optimistic for new rows.{explained}{nested}",
            style="dim",
        )
    )


def summary_html(selector: SwarmSelector) -> str:
    """Return a fitted selector's summary for notebooks, as HTML."""
    selection = Selection.of(selector)
    nested = {} if selection.held_out is None else {"nested score": selection.held_out.sentence()}
    names = getattr(selector, "feature_names_in_", None)
    return rows_html(
        {
            **(
                {}
                if selector.honest_score_ is None
                else {"corrected score": f"{_score(selector.honest_score_)} ({selection.interval})"}
            ),
            **nested,
            "score": f"{selector.best_score_:.4f} with {selector.n_features_} of {selector.n_features_in_} features "
            f"({OPTIMISTIC}); {_score(selector.baseline_score_)} with all features",
            **{
                name: f"{_score(score)}; {_score(selector.baseline_scores_[name])} with all features"
                for name, score in list(selector.scores_.items())[1:]
            },
            "selected": ", ".join(selection.selected),
            **({} if selector.permutation_test_ is None else {"chance": selector.permutation_test_.sentence()}),
            **({"islands": selection.agreement} if selection.agreement else {}),
            **{f"warning {number}": sentence for number, sentence in enumerate(selection.warnings, 1)},
        }
    ) + result_html(selector.result_, names)


def _scores(selection: Selection) -> Table:
    """Return the table of scores: all features, selected, and the comparisons that were made."""
    selector, nested = selection.selector, selection.held_out
    table = Table(show_header=True, header_style="bold", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("")
    table.add_column("features", justify="right")
    table.add_column(selection.scoring.name, justify="right")
    others = list(selector.scores_)[1:]
    for name in others:
        table.add_column(name, justify="right")
    baselines, found = ([scores[name] for name in others] for scores in (selector.baseline_scores_, selector.scores_))
    table.add_column("")
    blank = [""] * len(others)
    size = str(selector.n_features_)
    if selector.honest_score_ is not None:
        corrected = _score(selector.honest_score_)
        table.add_row("selected, corrected", size, corrected, *blank, selection.interval, style="bold")
    table.add_row("selected", size, *map(_score, [selector.best_score_, *found]), OPTIMISTIC)
    table.add_row("all features", str(selector.n_features_in_), *map(_score, [selector.baseline_score_, *baselines]))
    for name, other in selection.other_algorithms.items():
        table.add_row(name, str(other.n_features_), _score(other.best_score_))
    for seed, other in selection.other_seeds.items():
        table.add_row(f"seed {seed}", str(other.n_features_), _score(other.best_score_))
    if nested is not None:
        mean_size = f"{nested.supports.sum(axis=1).mean():.1f}"
        table.add_row("nested, all features", str(selector.n_features_in_), _score(nested.baseline_score))
        table.add_row("nested, selected", mean_size, _score(nested.score), style="bold")
    return table


def _score(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "–"
