"""Tables that compare a champion with other algorithms: data sets, mean ranks and criteria."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import NamedTuple

import numpy as np

from subswarm._checks import check_choice
from subswarm._types import FloatArray
from subswarm.study.analysis.combined import CombinedResults, read_combined
from subswarm.study.analysis.compare import (
    ALL_FEATURES,
    LEVEL,
    WHAT,
    Comparison,
    Score,
    Verdict,
    compare_algorithms,
    pair_errors,
    pool,
)
from subswarm.study.analysis.results import ABSENT, format_range
from subswarm.study.analysis.significance import REFERENCE
from subswarm.study.analysis.statistics import resampled_means
from subswarm.study.analysis.text_table import FORMATS, Grid, render

__all__ = ["study_versus", "versus_tables"]

BETTER_ON = 0.75
"""The share of the data sets on which a champion must be significantly better: 12 of 16."""

LESS_ERROR = 0.95
"""The largest ratio of a champion's nested error to its opponent's that meets the criterion."""


class _Ratio(NamedTuple):
    """A ratio of errors, and the same ratio on bootstrap samples (None if a data set has a single pair)."""

    label: str
    value: float
    resampled: FloatArray | None


class _Criterion(NamedTuple):
    """A row of the table of criteria."""

    criterion: str
    result: str
    required: str
    met: str


def study_versus(
    champion: str,
    paths: Sequence[str | PathLike[str]],
    *,
    against: str = REFERENCE,
    what: str = "error",
    form: str = "text",
) -> str:
    """Return the tables of a champion, from one or several stores, as "text", "markdown", "latex" or "csv"."""
    check_choice("what", what, WHAT)
    check_choice("format", form, FORMATS)
    return render(versus_tables(read_combined(paths), champion, against, what), form)


def versus_tables(combined: CombinedResults, champion: str, against: str, what: str) -> list[Grid]:
    """Return data sets, mean ranks and criteria for each model; then ranks and criteria for all models together."""
    found = compare_algorithms(combined, champion, against, what)
    grids = []
    for comparison in found:
        rows = _dataset_rows(comparison, what == "held-out")
        grids.append(Grid(_title(comparison, what), *rows, (*_notes(comparison, what), *combined.notes)))
        grids += _summary_tables(comparison, what)
    return grids + (_summary_tables(pool(found), what) if len(found) > 1 else [])


def _summary_tables(comparison: Comparison, what: str) -> list[Grid]:
    return [_rank_table(comparison, what), _criteria_table(comparison, what)]


def _title(comparison: Comparison, what: str) -> str:
    return f"{comparison.champion} against {comparison.against}, {WHAT[what]}, {comparison.model}"


def _dataset_rows(comparison: Comparison, held_out: bool) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return the headers and the rows of the table of data sets."""
    champion, against, rivals = comparison.champion, comparison.against, comparison.best_rivals()
    ours, theirs, best = (comparison.of(labels) for labels in (champion, against, rivals))
    columns: dict[str, list[str]] = {"data set": comparison.names, champion: [_error_and_size(score) for score in ours]}
    if held_out:
        columns["inner"] = [f"{score.inner:.4f}" for score in ours]
    columns[against] = [_error_and_size(score) for score in theirs]
    columns[f"p ({against})"] = [str(verdict) for verdict in comparison.versus(against)]
    if held_out:
        columns[ALL_FEATURES] = [_error_and_size(score) for score in comparison.of(ALL_FEATURES)]
        columns[f"p ({ALL_FEATURES})"] = [str(verdict) for verdict in comparison.versus(ALL_FEATURES)]
    columns["best rival"] = rivals
    columns["its error / size"] = [_error_and_size(score) for score in best]
    columns["p (best rival)"] = [str(verdict) for verdict in comparison.versus(rivals)]
    columns["runs"] = [
        " / ".join(str(score.runs) for score in scores) for scores in zip(ours, theirs, best, strict=True)
    ]
    return tuple(columns), tuple(zip(*columns.values(), strict=True))


def _notes(comparison: Comparison, what: str) -> list[str]:
    champion, against = comparison.champion, comparison.against
    pairs = "run number" if what == "error" else "run and outer repeat"
    notes = [
        f"Mean error / mean size. runs: the number of runs of {champion}, {against} and the best rival (the lowest "
        f"mean error of all others). p: Wilcoxon's signed-rank test, two-sided, paired by {pairs}, Holm-corrected over "
        f"{_count_units(comparison)}; a label with a single run is paired with each run of the other. "
        f"+: {champion} is significantly better (p < {LEVEL}); −: worse; =: neither."
    ]
    if what != "error":
        notes.append(
            "A run is one outer cross-validation, and its error is the mean over the outer folds; only outer repeats "
            "in which every label has a result on every fold count."
        )
    if what == "held-out":
        notes[-1] += (
            " inner: the error that the search minimised, which is optimistic. "
            f"{ALL_FEATURES}: the model without selection."
        )
    return notes + _few_pairs_note(comparison)


def _few_pairs_note(comparison: Comparison) -> list[str]:
    """Note that no result can be significant: with n pairs of one sign, the exact p is 2 ** (1 - n)."""
    ours, theirs = comparison.of(comparison.champion), comparison.of(comparison.against)
    most = max(len(pair_errors(one.errors, other.errors)[0]) for one, other in zip(ours, theirs, strict=True))
    needed = int(np.floor(np.log2(2 * len(comparison.names) / LEVEL))) + 1
    if most >= needed:
        return []
    return [
        f"There are at most {most} pairs per data set; the exact test needs {needed} for any significant result over "
        f"{_count_units(comparison)}."
    ]


def _rank_table(comparison: Comparison, what: str) -> Grid:
    ranks = comparison.ranks()
    rows = []
    for label in [*ranks, *(label for label in comparison.labels if label not in ranks)]:
        found = [scores[label] for scores in comparison.scores.values() if label in scores]
        rank = f"{ranks[label]:.2f}" if label in ranks else ABSENT
        error, size = float(np.mean([score.mean for score in found])), float(np.mean([score.size for score in found]))
        size = round(size, 4)  # rounded twice, as in the published tables
        runs = format_range([score.runs for score in found])
        rows.append((label, rank, f"{error:.4f}", f"{size:.1f}", str(len(found)), runs))
    note = f"Over {_count_units(comparison)}; equal mean errors get their mean rank."
    unranked = " A label without results on all of them has no rank." if len(ranks) < len(rows) else ""
    headers = ("label", "mean rank", "mean error", "mean size", f"{comparison.unit}s", "runs")
    return Grid(f"Mean ranks, {_title(comparison, what)}", headers, tuple(rows), (note + unranked,))


def _criteria_table(comparison: Comparison, what: str) -> Grid:
    source = "the searches" if what == "error" else "outer folds and searches"
    note = (
        f"In brackets: 95 % bootstrap interval over the pairs of each {comparison.unit}. It covers the randomness of "
        f"{source}, not of the rows."
    )
    ratios = _error_ratios(comparison)
    has_interval = any(ratio.resampled is not None for ratio in ratios)
    rows = tuple(_criteria(comparison, what == "held-out", ratios))
    return Grid(f"Criteria, {_title(comparison, what)}", _Criterion._fields, rows, (note,) if has_interval else ())


def _criteria(comparison: Comparison, held_out: bool, ratios: Sequence[_Ratio]) -> list[_Criterion]:
    count, champion, against = len(comparison.names), comparison.champion, comparison.against
    ours, theirs = comparison.of(champion), comparison.of(against)
    verdicts = comparison.versus(against)
    better = sum(verdict.sign == "+" for verdict in verdicts)
    rows = [
        _rank_criterion(comparison),
        _criterion(
            f"{comparison.unit}s significantly better / worse than {against}",
            f"{better} / {len(_worse(comparison, verdicts))} of {count}",
            "" if held_out else f"better on at least {int(np.ceil(BETTER_ON * count))}",
            better >= BETTER_ON * count,
        ),
        _none_worse(comparison, "the best rival", comparison.versus(comparison.best_rivals()), required=not held_out),
    ]
    if held_out:
        rows.append(_none_worse(comparison, ALL_FEATURES, comparison.versus(ALL_FEATURES), required=True))
    sizes = [float(np.mean([score.size for score in scores])) for scores in (ours, theirs)]
    rows.append(
        _criterion(
            f"mean size of {champion} and {against}",
            f"{sizes[0]:.2f} and {sizes[1]:.2f}",
            "" if held_out else "no larger",
            sizes[0] <= sizes[1],
        )
    )
    rows.append(_criterion(f"seconds per search, {champion} and {against}", _format_seconds(ours, theirs), ""))
    limit = f"at most {LESS_ERROR}" if held_out else ""
    for label, value, resampled in ratios:
        result = ABSENT if np.isnan(value) else f"{value:.4f}{_format_interval(resampled)}"
        rows.append(_criterion(label, result, limit, value <= LESS_ERROR))
    if held_out:
        inner, outer = (float(np.mean([getattr(score, name) for score in ours])) for name in ("inner", "mean"))
        rows.append(_criterion(f"mean inner error of {champion} → nested", f"{inner:.4f} → {outer:.4f}", ""))
    return rows


def _format_seconds(ours: Sequence[Score], theirs: Sequence[Score]) -> str:
    machines = {score.machines for score in (*ours, *theirs)}
    if len(machines) > 1 or any(len(found) > 1 for found in machines):
        return "not from one machine"
    return " and ".join(f"{np.mean([score.seconds for score in scores]):.3f}" for scores in (ours, theirs))


def _rank_criterion(comparison: Comparison) -> _Criterion:
    ranks = comparison.ranks()
    ours = ranks[comparison.champion]
    second = min((label for label in ranks if label != comparison.champion), key=lambda label: ranks[label])
    return _criterion(
        f"mean rank of {comparison.champion}",
        f"{ours:.2f}; best of the other {len(ranks) - 1}: {second}, {ranks[second]:.2f}",
        "the best",
        ours <= ranks[second],
    )


def _none_worse(comparison: Comparison, whom: str, verdicts: Sequence[Verdict], *, required: bool) -> _Criterion:
    worse = _worse(comparison, verdicts)
    names = f" ({', '.join(worse)})" if worse else ""
    return _criterion(
        f"{comparison.unit}s significantly worse than {whom}",
        f"{len(worse)} of {len(comparison.names)}{names}",
        "none" if required else "",
        not worse,
    )


def _worse(comparison: Comparison, verdicts: Sequence[Verdict]) -> list[str]:
    return [name for name, verdict in zip(comparison.names, verdicts, strict=True) if verdict.sign == "−"]


def _error_ratios(comparison: Comparison) -> list[_Ratio]:
    """Return the mean of the ratios of mean errors, over data sets where the opponent has errors, and of the sums."""
    ours, theirs = comparison.of(comparison.champion), comparison.of(comparison.against)
    first, second = (np.array([score.mean for score in scores]) for scores in (ours, theirs))
    has_errors = second > 0
    where = "" if has_errors.all() else f" (on the {has_errors.sum()} {comparison.unit}s where it has errors)"
    name = f"error of {comparison.champion} / {comparison.against}"
    if not has_errors.any():
        unknown = float("nan")
        return [
            _Ratio(f"{name}, mean of the ratios", unknown, None),
            _Ratio(f"{name}, ratio of the sums", unknown, None),
        ]
    pairs = [pair_errors(one.errors, other.errors) for one, other in zip(ours, theirs, strict=True)]
    of_means, of_sums = None, None
    if all(len(one) > 1 for one, _ in pairs):
        drawn = np.array([resampled_means(*pair, seed=place) for place, pair in enumerate(pairs)]).transpose(1, 0, 2)
        of_means, of_sums = _mean_ratio(*drawn[:, has_errors]), drawn[0].sum(axis=0) / drawn[1].sum(axis=0)
    mean_ratio = float(_mean_ratio(first[has_errors], second[has_errors]))
    return [
        _Ratio(f"{name}, mean of the ratios{where}", mean_ratio, of_means),
        _Ratio(f"{name}, ratio of the sums", float(first.sum() / second.sum()), of_sums),
    ]


def _mean_ratio(ours: FloatArray, theirs: FloatArray) -> FloatArray:
    """Return the mean over data sets, the first axis, without those where the opponent of a sample has no errors."""
    ratios = np.divide(ours, theirs, out=np.full_like(ours, np.nan), where=theirs > 0)
    return np.asarray(np.nanmean(ratios, axis=0))


def _format_interval(resampled: FloatArray | None) -> str:
    """Return the interval that contains 95 % of the values."""
    if resampled is None:
        return ""
    low, high = np.percentile(resampled, [2.5, 97.5])
    return f" ({low:.3f} to {high:.3f})"


def _criterion(criterion: str, result: str, required: str, is_met: bool = False) -> _Criterion:
    return _Criterion(criterion, result, required or ABSENT, ("yes" if is_met else "no") if required else ABSENT)


def _count_units(comparison: Comparison) -> str:
    count = len(comparison.names)
    return f"{count} {comparison.unit}{'' if count == 1 else 's'}"


def _error_and_size(score: Score) -> str:
    return f"{score.mean:.4f} / {score.size:.1f}"
