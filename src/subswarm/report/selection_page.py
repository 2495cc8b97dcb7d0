"""The page of one selection: what was selected, how reliable it is, how it compares, how the search went."""

from __future__ import annotations

import math
from os import PathLike
from pathlib import Path

import numpy as np

from subswarm._display import package_versions
from subswarm._files import write_whole
from subswarm._search.result import stability
from subswarm._types import FloatArray
from subswarm.errors import SettingError
from subswarm.nested import HeldOut
from subswarm.report.page import (
    Code,
    Number,
    Numbers,
    Page,
    Part,
    Section,
    Table,
    Words,
    columns,
    number,
    render,
    rows,
    shape,
    share,
    text,
)
from subswarm.report.record import Selection
from subswarm.report.selection_charts import permutation_chart, score_chart, size_chart, trade_off_chart
from subswarm.report.summary import OPTIMISTIC

__all__ = ["selection_page", "write_page"]

_STOPS = {"evaluations": "the limit of evaluations", "seconds": "the time limit", "patience": "no improvement"}


def write_page(selection: Selection, path: str | PathLike[str]) -> Path:
    """Write the page to a file and return its path; SettingError if the file cannot be written."""
    page = selection_page(selection)
    try:
        write_whole(path, page.encode())
    except OSError as error:
        raise SettingError(f"cannot write the report to {str(path)!r}: {error.strerror}.") from error
    return Path(path)


def selection_page(selection: Selection) -> str:
    """Return the page as HTML."""
    selector = selection.selector
    return render(
        Page(
            title=f"{selector.n_features_} of {selector.n_features_in_} features predict {selection.target}",
            lead=_lead(selection),
            sections=(
                Section("found", "What was selected", _selected(selection)),
                Section("trust", "How reliable is it?", _reliability(selection)),
                Section("compared", "How it compares", _comparison(selection)),
                Section("course", "How the search went", _search(selection)),
                Section("again", "How to reproduce it", _reproduction(selection)),
            ),
            footer="Made by subswarm. This page is self-contained and loads nothing from the network.",
        )
    )


def _lead(selection: Selection) -> str:
    selector, n = selection.selector, selection.selector.n_features_in_
    baseline = selector.baseline_score_
    with_all = f"{baseline:.4f} with all {n}" if math.isfinite(baseline) else f"with all {n} it could not be scored"
    nested = "" if selection.held_out is None else f" The nested score is {selection.held_out.score:.4f}."
    features = f"with the {_count(selector.n_features_, 'feature')} below"
    reported = f"{selector.best_score_:.4f} in cross-validation"
    if selector.honest_score_ is None:
        score = f"{reported} {features}"
    else:
        score = (
            f"{selector.honest_score_:.4f} expected on new rows {features} ({selection.interval}). The search "
            f"maximised an optimistic score, {reported}"
        )
    return f"Model {selection.model!r} on {selection.table}: {selection.scoring.name} {score}; {with_all}.{nested}"


def _selected(selection: Selection) -> tuple[Part, ...]:
    selector, name = selection.selector, selection.scoring.name
    numbers = [
        Number("features selected", f"{selector.n_features_} of {selector.n_features_in_}"),
        Number(f"{name}, selected", f"{selector.best_score_:.4f}", OPTIMISTIC),
        Number(f"{name}, all features", _score(selector.baseline_score_), "in cross-validation, same folds"),
    ]
    if selector.honest_score_ is not None:
        numbers.insert(1, Number(f"{name}, corrected", f"{selector.honest_score_:.4f}", selection.interval))
    if selection.held_out is not None:
        numbers.append(
            Number(f"{name}, nested", f"{selection.held_out.score:.4f}", "on rows that the search did not use")
        )
    return (
        *(Words(f"Warning: {sentence}", "note") for sentence in selection.warnings),
        Numbers(tuple(numbers)),
        *_selected_features(selection),
        _features(selection),
    )


def _selected_features(selection: Selection) -> tuple[Part, ...]:
    """Return the table of the selected features; without a recorded search there are only their names."""
    facts = selection.selector._column_facts
    if facts is None:
        return (Words(f"Selected: {', '.join(selection.selected)}."),)
    name = selection.scoring.name
    heading, shares = _choosers(selection)
    losses = np.where(np.isnan(facts.losses), np.inf, facts.losses)
    order = np.argsort(-losses if np.isfinite(losses).any() else np.zeros(len(losses)), kind="stable")
    by_class = selection.task == "classification"
    selector_has_islands = selection.selector.island_shares_ is not None
    cells = []
    for row in order.tolist():
        column, loss = int(facts.columns[row]), float(facts.losses[row])
        without = selection.scoring.score(loss) - selection.selector.best_score_ if math.isfinite(loss) else None
        medians = ", ".join(
            f"{label} {median:.4g}" for label, median in zip(facts.classes, facts.medians[row], strict=True)
        )
        cells.append(
            [
                text(selection.names[column]),
                *([] if shares is None else [share(float(shares[column]))]),
                number(without, "+.4f"),
                shape(facts.shares[row].tolist(), f"medians: {medians}"),
            ]
        )
    note = (
        "Chosen by islands: the share of the parts of the search, each with other rows, that select the feature. "
        if selector_has_islands
        else ""
    ) + (
        f"Without it: how {name} changes if only this feature is left out; near zero means that others can replace it. "
        f"Distribution: the values of the feature in each {'class' if by_class else 'third of the target'}."
    )
    more = selection.selector.n_features_ - len(facts.columns)
    return (
        Table(
            "Selected features",
            columns(
                "feature",
                *([] if shares is None else [(heading, "share")]),
                ("without it", "number"),
                ("distribution", "shape"),
            ),
            rows(cells),
            note=note + (f" {more} more selected features are marked in the next table." if more else ""),
            legend=facts.classes,
        ),
    )


def _choosers(selection: Selection) -> tuple[str, FloatArray | None]:
    """Return what else chose each feature, as a heading and shares: islands, other searches, or subsets tried."""
    repeated, recording = selection.repeated_supports, selection.result.recording
    if selection.selector.island_shares_ is not None:
        return "chosen by islands", selection.selector.island_shares_
    if len(repeated):
        return f"chosen by {len(repeated)} other searches", np.asarray(repeated.mean(axis=0))
    if recording is not None:
        return "in subsets tried", recording.chosen / len(recording.fitness)
    return "", None


def _features(selection: Selection) -> Table:
    selector, repeated = selection.selector, selection.repeated_supports
    result = selection.result
    shares: list[tuple[str, FloatArray, int]] = []
    if len(repeated):
        shares.append((f"selected by {len(repeated)} repeated searches", repeated.mean(axis=0), len(repeated)))
    if selector.island_shares_ is not None:
        shares.append(("selected by islands", selector.island_shares_, 0))
    if result.recording is not None:
        shares.append(("in subsets visited", result.recording.chosen / len(result.recording.fitness), 0))
    shares.append(("in the best subset of each size", result.front.masks.mean(axis=0), 0))
    order = np.lexsort((np.arange(len(selector.support_)), -shares[0][1], ~selector.support_))
    cells = [
        [
            text(selection.names[index]),
            text("yes" if selector.support_[index] else "no"),
            *(share(values[index], f"{round(values[index] * of)} of {of}" if of else None) for _, values, of in shares),
        ]
        for index in order
    ]
    return Table(
        "All features",
        columns("feature", "selected", *((heading, "share") for heading, _, _ in shares)),
        rows(cells, selector.support_[order].tolist()),
    )


def _reliability(selection: Selection) -> tuple[Part, ...]:
    """Return nested scores, and the agreement with other folds and seeds, or how to measure them."""
    selector, nested = selection.selector, selection.held_out
    if nested is None:
        parts: list[Part] = [
            Words(
                (
                    ""
                    if selector.honest_score_ is None
                    else f"Corrected score: {selector.honest_score_:.4f}, {selection.interval}. {_how(selection)} "
                )
                + "Not measured: the nested score. Set held_out=5 (--held-out 5) for a nested cross-validation, which "
                "repeats the whole search in each outer fold.",
                "note",
            )
        ]
    else:
        parts = [Words(verdict(nested)), _nested_numbers(nested), _nested_folds(nested)]
    if selector.permutation_test_ is not None:
        parts.append(Words(f"Permutation test: {selector.permutation_test_.sentence()}."))
        parts.append(permutation_chart(selector.permutation_test_, selection.scoring.name))
    if selection.agreement:
        parts.append(
            Words(
                f"The islands of the search, each with other rows: {selection.agreement}. 1 means that all select the "
                "same features, 0 that they agree no more than by chance."
            )
        )
    parts.append(_agreement(selection))
    if selection.other_seeds:
        parts.append(_seeds(selection))
    return tuple(parts)


def _how(selection: Selection) -> str:
    """Say where the corrected score comes from."""
    if selection.corrected is not None and selection.corrected.is_from_left_out:
        return "It is the mean score on rows that parts of the search left out."
    return (
        "All rows were used in the search, so it is computed from the score that was maximised, by subtracting what a "
        "search gains by chance, as new folds and random subsets show it."
    )


def verdict(nested: HeldOut) -> str:
    """Compare the nested score of the selection with that of all features, in words."""
    gain = nested.scores - nested.baseline_scores
    start = f"On rows that the search did not use, the selected features score {nested.score:.4f}"
    optimism = f" The searches reported {nested.inner_scores.mean():.4f}; expect the nested score on new data."
    if not np.isfinite(gain).all():
        return f"{start}.{optimism}"
    error = float(gain.std(ddof=1) / np.sqrt(len(gain)))
    if abs(gain.mean()) <= 2 * error or error == gain.mean() == 0:
        judgement = "no clear difference"
    else:
        judgement = "clearly better" if gain.mean() > 0 else "clearly worse: prefer all features"
    wins = int((gain > 0).sum())
    return (
        f"{start}, all features {nested.baseline_score:.4f}: {judgement} (mean difference {gain.mean():+.4f}, standard "
        f"error {error:.4f}, better in {wins} of {len(gain)} folds).{optimism}"
    )


def _nested_numbers(nested: HeldOut) -> Numbers:
    mean_size = f"{nested.supports.sum(axis=1).mean():.1f}"
    return Numbers(
        (
            Number("nested score, selected", f"{nested.score:.4f}", f"standard error {nested.standard_error:.4f}"),
            Number("nested score, all features", _score(nested.baseline_score), "same rows"),
            Number("reported by the searches", f"{nested.inner_scores.mean():.4f}", "optimistic"),
            Number("features, mean", mean_size, f"over {len(nested.scores)} searches"),
        )
    )


def _nested_folds(nested: HeldOut) -> Table:
    values = zip(
        nested.scores.tolist(),
        nested.baseline_scores.tolist(),
        nested.inner_scores.tolist(),
        nested.supports.sum(axis=1).tolist(),
        strict=True,
    )
    return Table(
        "Nested scores by fold",
        columns(
            ("fold", "number"),
            ("selected", "number"),
            ("all features", "number"),
            ("reported by the search", "number"),
            ("features", "number"),
        ),
        rows(
            [number(fold, "d"), number(score), number(baseline), number(inner), number(size, "d")]
            for fold, (score, baseline, inner, size) in enumerate(values, start=1)
        ),
    )


def _agreement(selection: Selection) -> Words:
    repeated = selection.repeated_supports
    if len(repeated) < 2:
        return Words(
            "Not measured: whether other folds and seeds lead to the same features. held_out=5 (--held-out 5) measures "
            "it, and so does --seeds 5 on the command line.",
            "soft",
        )
    value = stability(repeated).value
    shown = f"{value:.2f} ({_rate_stability(value)})" if np.isfinite(value) else "not defined"
    return Words(
        f"Stability of the selection over {len(repeated)} repeated searches: {shown}. 1 means that all select the same "
        "features, 0 that they agree no more than by chance (Nogueira, Sechidis and Brown, 2018). The table of all "
        "features shows how often each one is selected."
    )


def _rate_stability(value: float) -> str:
    """Rate a stability by the thresholds of its authors."""
    return "excellent" if value > 0.75 else "fair" if value >= 0.4 else "poor: other subsets score about as well"


def _seeds(selection: Selection) -> Table:
    support = selection.selector.support_
    return Table(
        "Other seeds, each with its own folds",
        columns(
            ("seed", "number"), (selection.scoring.name, "number"), ("features", "number"), ("shared", "share"), "which"
        ),
        rows(
            [
                number(seed, "d"),
                number(other.best_score_),
                number(other.n_features_, "d"),
                share(float((support & other.support_).sum() / (support | other.support_).sum())),
                text(", ".join(selection.names_in(other.support_))),
            ]
            for seed, other in selection.other_seeds.items()
        ),
        note="Shared: features in both selections, as a share of the features in at least one of them.",
    )


def _comparison(selection: Selection) -> tuple[Part, ...]:
    selector, scoring, result = selection.selector, selection.scoring, selection.result
    few, front = selector._one_standard_error, result.front
    other_scores = dict(list(selector.front_scores_.items())[1:])
    choices = [
        ("all features", selector.n_features_in_, selector.baseline_score_),
        (f"selected ({result.algorithm})", selector.n_features_, selector.best_score_),
        *([] if few is None else [("fewest within one standard error", few.size, few.score)]),
        *(
            (f"{name}, same folds and evaluations", other.n_features_, other.best_score_)
            for name, other in selection.other_algorithms.items()
        ),
    ]
    hint = Words("Add --against NAME on the command line to compare with another algorithm.", "soft")
    return (
        Table(
            "Choices compared",
            columns("choice", ("features", "number"), (scoring.name, "number"), ("against all features", "number")),
            rows(
                (
                    [text(choice), number(size, "d"), number(score), number(score - selector.baseline_score_, "+.4f")]
                    for choice, size, score in choices
                ),
                [False, True, *[False] * (len(choices) - 2)],
            ),
            note="All scores are from cross-validation on the same folds, which the searches used, so those of "
            "searched subsets are optimistic.",
        ),
        *([] if selection.other_algorithms else [hint]),
        trade_off_chart(selection),
        Table(
            "The best subset of each size",
            columns(
                ("features", "number"), (scoring.name, "number"), *((name, "number") for name in other_scores), "which"
            ),
            rows(
                (
                    [
                        number(int(size), "d"),
                        number(scoring.score(float(loss))),
                        *(number(float(scores[row])) for scores in other_scores.values()),
                        text(", ".join(selection.names_in(mask))),
                    ]
                    for row, (size, loss, mask) in enumerate(
                        zip(front.cardinality, front.fitness, front.masks, strict=True)
                    )
                ),
                [int(size) == selector.n_features_ for size in front.cardinality],
            ),
            note="Scores are means over all repeats of the cross-validation, as on the line of the chart."
            if result.n_partitions > 1
            else "",
        ),
        *_cost_front(selection),
        *_nested_front(selection),
    )


def _cost_front(selection: Selection) -> tuple[Part, ...]:
    """Return the table of the front, if its second objective is not the number of features."""
    front, scoring = selection.selector.front_, selection.scoring
    if front.cost_name == "features":
        return ()
    values = zip(front.cost.tolist(), front.size.tolist(), selection.scores(front.loss), front.masks, strict=True)
    return (
        Table(
            f"Subsets that are best in {scoring.name} and {front.cost_name}",
            columns((front.cost_name, "number"), ("features", "number"), (scoring.name, "number"), "which"),
            rows(
                [number(cost, "g" if front.is_priced else ".4f"), number(size, "d"), number(score), text(names)]
                for cost, size, score, mask in values
                for names in [", ".join(selection.names_in(mask))]
            ),
        ),
    )


def _nested_front(selection: Selection) -> tuple[Part, ...]:
    """Return the table of the front on rows that the searches of the nested cross-validation did not use."""
    front, scoring = selection.selector.front_, selection.scoring
    if front.nested_loss is None or front.nested_standard_error is None:
        return ()
    limit = f"{front.cost_name} at most"
    values = zip(
        front.cost.tolist(),
        selection.scores(front.loss),
        selection.scores(front.nested_loss),
        front.nested_standard_error.tolist(),
        strict=True,
    )
    return (
        Table(
            "What a limit costs on rows that the searches did not use",
            columns(
                (limit, "number"),
                (f"{scoring.name}, in the search", "number"),
                (f"{scoring.name}, nested", "number"),
                ("standard error", "number"),
            ),
            rows(
                [number(cost, "g"), number(score), number(nested), number(error)]
                for cost, score, nested, error in values
            ),
            note="For each limit, each outer search selects its best subset within the limit. The nested score is the "
            "mean of their scores on the outer folds.",
        ),
    )


def _search(selection: Selection) -> tuple[Part, ...]:
    result = selection.result
    seconds = result.algorithm_seconds + result.evaluation_seconds
    return (
        Words(
            f"{result.algorithm} made {result.evaluations} evaluations, {result.computed} of them of new subsets, and "
            f"was stopped by {_STOPS.get(result.stop_reason, result.stop_reason)}. It took {seconds:.1f} s: "
            f"{result.algorithm_seconds:.2f} s to choose subsets and {result.evaluation_seconds:.1f} s to score them."
        ),
        score_chart(selection),
        size_chart(selection),
    )


def _reproduction(selection: Selection) -> tuple[Part, ...]:
    selector, result, facts = selection.selector, selection.result, selection.facts
    listed = {
        "seed": facts.seed,
        "table": f"{selection.table}: {facts.n_rows} rows, {selector.n_features_in_} features",
        "digest of the data": f"sha256 {facts.digest}",
        "target": selection.target,
        "model": repr(selector.estimator_),
        "scoring": selection.scoring.name,
        "folds": len(selector.folds_),
        **({"repeats of the cross-validation": result.n_partitions} if result.n_partitions > 1 else {}),
        **{f"version of {name}": version for name, version in package_versions().items()},
    }
    command = (Code("The command", selection.command),) if selection.command else ()
    return (
        *command,
        Words("The same settings and data give the same features and scores, with any number of workers."),
        Table(
            "Data, model and versions", columns("what", "value"), rows([text(k), text(v)] for k, v in listed.items())
        ),
        Table(
            f"Settings of {result.algorithm}",
            columns("setting", "value"),
            rows([text(k), text(v)] for k, v in result.settings.items()),
        ),
    )


def _score(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "–"


def _count(count: int, thing: str) -> str:
    return f"1 {thing}" if count == 1 else f"{count} {thing}s"
