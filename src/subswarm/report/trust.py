"""Can I trust it? What the search itself cannot know: rows it never saw, other folds, other seeds."""

from __future__ import annotations

from typing import Any

import numpy as np

from subswarm.analysis.stability import stability
from subswarm.held_out import HeldOut
from subswarm.report.page import Number, Numbers, Table, Words, columns, number, rows, share, text
from subswarm.report.selection import Selection

__all__ = ["agreement_in_words", "trust_parts", "verdict"]


def trust_parts(selection: Selection) -> tuple[Any, ...]:
    """The parts of the section, from whatever was measured."""
    parts: list[Any] = []
    if selection.honest is None:
        parts.append(
            Words(
                "Not measured: how the selection does on rows that the search never saw. The score above is the one "
                "the search maximised, so it is too high, often by a third of the error or more. Add --held-out 5 to "
                "the command: the whole search is repeated inside an outer cross-validation.",
                "note",
            )
        )
    else:
        parts += [Words(verdict(selection.honest)), _figures(selection.honest), _folds(selection.honest)]
    parts += _agreement(selection)
    if selection.others:
        parts.append(_seeds(selection))
    return tuple(parts)


def verdict(honest: HeldOut) -> str:
    """What the held-out figure says, in a sentence."""
    gain = honest.scores - honest.baseline_scores
    began = f"On rows the search never saw, the selection scores {honest.score:.4f}"
    optimism = (
        f" The searches themselves had reported {honest.inner_scores.mean():.4f}; expect the lower figure on new data."
    )
    if not np.isfinite(gain).all():
        return f"{began}.{optimism}"
    error = float(gain.std(ddof=1) / np.sqrt(len(gain)))
    if abs(gain.mean()) <= 2 * error or error == gain.mean() == 0:
        judged = "no clear difference between the two"
    else:
        judged = "clearly better" if gain.mean() > 0 else "clearly worse: prefer all features"
    wins = int((gain > 0).sum())
    return (
        f"{began}, all features {honest.baseline_score:.4f}: {judged} (mean difference {gain.mean():+.4f}, standard "
        f"error {error:.4f}, better in {wins} of {len(gain)} folds).{optimism}"
    )


def agreement_in_words(value: float) -> str:
    """A stability in the words of its authors' guide."""
    if not np.isfinite(value):
        return "cannot be said"
    return "excellent" if value > 0.75 else "fair" if value >= 0.4 else "poor: other subsets do about as well"


def _figures(honest: HeldOut) -> Numbers:
    return Numbers(
        (
            Number("held out, selected", f"{honest.score:.4f}", f"standard error {honest.standard_error:.4f}"),
            Number("held out, all features", f"{honest.baseline_score:.4f}", "same rows"),
            Number("reported by the searches", f"{honest.inner_scores.mean():.4f}", "optimistic"),
            Number(
                "features, mean", f"{honest.supports.sum(axis=1).mean():.1f}", f"over {len(honest.scores)} searches"
            ),
        )
    )


def _folds(honest: HeldOut) -> Table:
    return Table(
        "Fold by fold",
        columns(
            ("fold", "number"),
            ("held out, selected", "number"),
            ("held out, all features", "number"),
            ("reported by the search", "number"),
            ("features", "number"),
        ),
        rows(
            [number(fold + 1, "d"), number(score), number(baseline), number(inner), number(size, "d")]
            for fold, (score, baseline, inner, size) in enumerate(
                zip(
                    honest.scores.tolist(),
                    honest.baseline_scores.tolist(),
                    honest.inner_scores.tolist(),
                    honest.supports.sum(axis=1).tolist(),
                    strict=True,
                )
            )
        ),
    )


def _agreement(selection: Selection) -> list[Any]:
    again = selection.again
    if len(again) < 2:
        return [
            Words(
                "Not measured: whether other seeds and folds lead to the same features. --held-out 5 or --seeds 5 "
                "tells.",
                "soft",
            )
        ]
    value = stability(again).value
    shown = f"{value:.2f}" if np.isfinite(value) else "–"
    return [
        Words(
            f"Stability of the selection over {len(again)} repeated searches: {shown}, {agreement_in_words(value)}. "
            "(1: all select the same features; 0: no more alike than by chance; Nogueira, Sechidis and Brown, 2018. "
            "The table of all features shows which ones return.)"
        )
    ]


def _seeds(selection: Selection) -> Table:
    chosen = selection.selector.support_
    return Table(
        "Other seeds, with their own folds and search",
        columns(
            ("seed", "number"), (selection.scoring.name, "number"), ("features", "number"), ("shared", "share"), "which"
        ),
        rows(
            [
                number(seed, "d"),
                number(other.best_score_),
                number(other.n_features_, "d"),
                share(float((chosen & other.support_).sum() / (chosen | other.support_).sum())),
                text(selection.listed(other.support_)),
            ]
            for seed, other in selection.others.items()
        ),
        note="Shared: features selected both here and there, among those selected here or there.",
    )
