"""Does a champion win? Its data sets, its mean ranks, and a list of answers, from one store or several."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

import numpy as np

from subswarm.analysis.contest import ALL_FEATURES, LEVEL, WHAT, Contest, Score, Verdict, contests, paired, pooled
from subswarm.analysis.grid import FORMATS, Grid, render
from subswarm.analysis.statistics import resampled_means
from subswarm.analysis.together import Together, read_together
from subswarm.core.checks import check_choice
from subswarm.core.types import FloatArray

__all__ = ["study_versus", "versus_tables"]

ABSENT = "–"

BETTER_ON = 0.75
"""The share of the data sets on which a champion must be significantly better: 12 of 16."""

LESS_ERROR = 0.95
"""What a champion's held-out error may be of its opponent's."""

_Ratio = tuple[str, float, FloatArray | None]
"""Of what, the ratio, and what it would have been on pairs drawn anew."""


def study_versus(
    champion: str,
    paths: Sequence[str | PathLike[str]],
    *,
    against: str = "2d-upso",
    what: str = "error",
    form: str = "text",
) -> str:
    """The tables of a champion, from one store or several, as "text", "markdown", "latex" or "csv"."""
    check_choice("what", what, WHAT)
    check_choice("format", form, FORMATS)
    return render(versus_tables(read_together(paths), champion, against, what), form)


def versus_tables(together: Together, champion: str, against: str, what: str) -> list[Grid]:
    """For each model the data sets, the mean ranks, and whether the champion wins; then the last two for all models."""
    found = contests(together, champion, against, what)
    grids = []
    for contest in found:
        rows = _dataset_rows(contest, what == "held-out")
        grids.append(Grid(_title(contest, what), *rows, (*_notes(contest, what), *together.notes)))
        grids += _summaries(contest, what)
    return grids + (_summaries(pooled(found), what) if len(found) > 1 else [])


def _summaries(contest: Contest, what: str) -> list[Grid]:
    title = _title(contest, what)
    return [
        Grid(f"Mean ranks, {title}", *_rank_rows(contest)),
        Grid(f"Does it win? {title}", *_answer_rows(contest, what)),
    ]


def _title(contest: Contest, what: str) -> str:
    return f"{contest.champion} against {contest.against}, {WHAT[what]}, {contest.model}"


def _dataset_rows(contest: Contest, held_out: bool) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    rivals = contest.best_rivals()
    ours, theirs, best = (contest.of(labels) for labels in (contest.champion, contest.against, rivals))
    columns: dict[str, list[str]] = {"data set": contest.names, contest.champion: [_both(score) for score in ours]}
    if held_out:
        columns["inner"] = [f"{score.inner:.4f}" for score in ours]
    columns[contest.against] = [_both(score) for score in theirs]
    columns[f"p ({contest.against})"] = [str(verdict) for verdict in contest.versus(contest.against)]
    if held_out:
        columns[ALL_FEATURES] = [_both(score) for score in contest.of(ALL_FEATURES)]
        columns[f"p ({ALL_FEATURES})"] = [str(verdict) for verdict in contest.versus(ALL_FEATURES)]
    columns["best rival"] = rivals
    columns["its error / size"] = [_both(score) for score in best]
    columns["p (best rival)"] = [str(verdict) for verdict in contest.versus(rivals)]
    columns["runs"] = [
        " / ".join(str(score.runs) for score in scores) for scores in zip(ours, theirs, best, strict=True)
    ]
    return tuple(columns), tuple(zip(*columns.values(), strict=True))


def _notes(contest: Contest, what: str) -> list[str]:
    pairs = "run number" if what == "error" else "run and outer cross-validation"
    notes = [
        f"Mean error / mean size; runs: how many the means of {contest.champion}, {contest.against} and the best rival "
        "(lowest mean error of all others) are over. p: Wilcoxon's signed ranks, two-sided, paired by "
        f"{pairs}, Holm-corrected over {_sets(contest)}; a label with a single run is compared with "
        f"each run of the other. +: {contest.champion} is significantly better (p < {LEVEL}); −: worse; =: neither."
    ]
    if what != "error":
        notes.append(
            "A run is a whole outer cross-validation, and its error the mean over the outer folds; only those count "
            "for which every label has a result on every fold."
        )
    if what == "held-out":
        notes[-1] += (
            f" inner: the error the search minimised, which is optimistic. {ALL_FEATURES}: the model without selection."
        )
    return notes + _too_few(contest)


def _too_few(contest: Contest) -> list[str]:
    """Said where the exact p of pairs that all point one way, 2 ** (1 - pairs), is not significant once corrected."""
    ours, theirs = contest.of(contest.champion), contest.of(contest.against)
    most = max(len(paired(one.errors, other.errors)[0]) for one, other in zip(ours, theirs, strict=True))
    needed = int(np.floor(np.log2(2 * len(contest.names) / LEVEL))) + 1
    if most >= needed:
        return []
    return [
        f"At most {most} pairs a data set are few: the exact test needs {needed} before anything is significant over "
        f"{_sets(contest)}."
    ]


def _rank_rows(contest: Contest) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], tuple[str, ...]]:
    ranks = contest.ranks()
    rows = []
    for label in [*ranks, *(label for label in contest.labels if label not in ranks)]:
        found = [scores[label] for scores in contest.scores.values() if label in scores]
        rank = f"{ranks[label]:.2f}" if label in ranks else ABSENT
        error, size = (f"{np.mean([getattr(score, name) for score in found]):.4f}" for name in ("mean", "size"))
        rows.append((label, rank, error, f"{float(size):.1f}", str(len(found)), _span([score.runs for score in found])))
    note = f"Over {_sets(contest)}; equal mean errors have their average rank."
    unranked = " A label without results on all of them has no rank." if len(ranks) < len(rows) else ""
    return (
        ("label", "mean rank", "mean error", "mean size", f"{contest.unit}s", "runs"),
        tuple(rows),
        (note + unranked,),
    )


def _answer_rows(contest: Contest, what: str) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], tuple[str, ...]]:
    chance = "the searches" if what == "error" else "outer folds and searches"
    note = (
        f"In brackets: where 95 % of the ratios are when each {contest.unit}'s pairs are drawn anew, with replacement; "
        f"that is the chance of {chance}, not of other rows."
    )
    ratios = _relative(contest, contest.of(contest.champion), contest.of(contest.against))
    has_interval = any(others is not None for _, _, others in ratios)
    rows = tuple(_answers(contest, what == "held-out", ratios))
    return ("of", "found", "wanted", "holds"), rows, (note,) if has_interval else ()


def _answers(contest: Contest, held_out: bool, ratios: Sequence[_Ratio]) -> list[tuple[str, str, str, str]]:
    count = len(contest.names)
    ours, theirs = contest.of(contest.champion), contest.of(contest.against)
    rivals = contest.best_rivals()
    rows = [_rank_answer(contest)]
    over = contest.versus(contest.against)
    better = sum(verdict.sign == "+" for verdict in over)
    enough = "" if held_out else f"better on at least {int(np.ceil(BETTER_ON * count))}"
    rows.append(
        _answer(
            f"{contest.unit}s significantly better / worse than {contest.against}",
            f"{better} / {len(_worse(contest, over))} of {count}",
            enough,
            better >= BETTER_ON * count,
        )
    )
    rows.append(_none_worse(contest, "the best rival", contest.versus(rivals), wanted=not held_out))
    if held_out:
        rows.append(_none_worse(contest, ALL_FEATURES, contest.versus(ALL_FEATURES), wanted=True))
    sizes = [float(np.mean([score.size for score in scores])) for scores in (ours, theirs)]
    rows.append(
        _answer(
            f"mean size of {contest.champion} and {contest.against}",
            f"{sizes[0]:.2f} and {sizes[1]:.2f}",
            "" if held_out else "no larger",
            sizes[0] <= sizes[1],
        )
    )
    rows.append(_answer(f"seconds of a search, {contest.champion} and {contest.against}", _seconds(ours, theirs), ""))
    limit = f"at most {LESS_ERROR}" if held_out else ""
    for label, value, others in ratios:
        found = ABSENT if np.isnan(value) else f"{value:.4f}{_interval(others)}"
        rows.append(_answer(label, found, limit, value <= LESS_ERROR))
    if held_out:
        inner, outer = (float(np.mean([getattr(score, name) for score in ours])) for name in ("inner", "mean"))
        rows.append(_answer(f"mean inner error of {contest.champion} → held out", f"{inner:.4f} → {outer:.4f}", ""))
    return rows


def _seconds(ours: Sequence[Score], theirs: Sequence[Score]) -> str:
    machines = {score.machines for score in (*ours, *theirs)}
    if len(machines) > 1 or any(len(found) > 1 for found in machines):
        return "not from one machine"
    return " and ".join(f"{np.mean([score.seconds for score in scores]):.3f}" for scores in (ours, theirs))


def _rank_answer(contest: Contest) -> tuple[str, str, str, str]:
    ranks = contest.ranks()
    ours = ranks[contest.champion]
    second = min((label for label in ranks if label != contest.champion), key=lambda label: ranks[label])
    return _answer(
        f"mean rank of {contest.champion}",
        f"{ours:.2f}; best of the other {len(ranks) - 1}: {second}, {ranks[second]:.2f}",
        "the best",
        ours <= ranks[second],
    )


def _none_worse(contest: Contest, whom: str, found: Sequence[Verdict], *, wanted: bool) -> tuple[str, str, str, str]:
    worse = _worse(contest, found)
    named = f" ({', '.join(worse)})" if worse else ""
    return _answer(
        f"{contest.unit}s significantly worse than {whom}",
        f"{len(worse)} of {len(contest.names)}{named}",
        "none" if wanted else "",
        not worse,
    )


def _worse(contest: Contest, found: Sequence[Verdict]) -> list[str]:
    return [name for name, verdict in zip(contest.names, found, strict=True) if verdict.sign == "−"]


def _relative(contest: Contest, ours: Sequence[Score], theirs: Sequence[Score]) -> list[_Ratio]:
    """The mean of the ratios of mean errors, where the opponent errs at all, and the ratio of their sums.

    Each comes with what it would have been on pairs drawn anew, or None where a data set has a single pair.
    """
    first, second = (np.array([score.mean for score in scores]) for scores in (ours, theirs))
    errs = second > 0
    where = "" if errs.all() else f" (on the {errs.sum()} {contest.unit}s where it errs)"
    name = f"error of {contest.champion} / {contest.against}"
    if not errs.any():
        unknown = float("nan")
        return [(f"{name}, mean of the ratios", unknown, None), (f"{name}, ratio of the sums", unknown, None)]
    pairs = [paired(one.errors, other.errors) for one, other in zip(ours, theirs, strict=True)]
    drawn = None
    if all(len(one) > 1 for one, _ in pairs):
        drawn = np.array([resampled_means(*pair, seed=place) for place, pair in enumerate(pairs)]).transpose(1, 0, 2)
    ratios = (
        [None, None] if drawn is None else [_mean_ratio(*drawn[:, errs]), drawn[0].sum(axis=0) / drawn[1].sum(axis=0)]
    )
    return [
        (f"{name}, mean of the ratios{where}", float(_mean_ratio(first[errs], second[errs])), ratios[0]),
        (f"{name}, ratio of the sums", float(first.sum() / second.sum()), ratios[1]),
    ]


def _mean_ratio(ours: FloatArray, theirs: FloatArray) -> FloatArray:
    """The mean over data sets, the first axis; one on which a draw leaves the opponent without error does not count."""
    ratios = np.divide(ours, theirs, out=np.full_like(ours, np.nan), where=theirs > 0)
    return np.asarray(np.nanmean(ratios, axis=0))


def _interval(others: FloatArray | None) -> str:
    """From where to where 95 % of these are."""
    if others is None:
        return ""
    low, high = np.percentile(others, [2.5, 97.5])
    return f" ({low:.3f} to {high:.3f})"


def _answer(of: str, found: str, wanted: str, holds: bool = False) -> tuple[str, str, str, str]:
    return of, found, wanted or ABSENT, ("yes" if holds else "no") if wanted else ABSENT


def _sets(contest: Contest) -> str:
    count = len(contest.names)
    return f"{count} {contest.unit}{'' if count == 1 else 's'}"


def _both(score: Score) -> str:
    return f"{score.mean:.4f} / {score.size:.1f}"


def _span(counts: Sequence[int]) -> str:
    return f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
