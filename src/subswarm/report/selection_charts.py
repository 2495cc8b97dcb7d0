"""The charts of a selection's page."""

from __future__ import annotations

import numpy as np

from subswarm._permutation import PermutationTest
from subswarm._search.result import History, SearchResult
from subswarm._types import FloatArray
from subswarm.report.page import Chart, Heat, Layer
from subswarm.report.record import Selection

__all__ = ["permutation_chart", "score_chart", "size_chart", "trade_off_chart"]

_MOST_CELLS = 120


def trade_off_chart(selection: Selection) -> Chart:
    """Chart the score against the number of features: subsets visited, best of each size, and the selected one."""
    result, selector = selection.result, selection.selector
    layers = []
    if result.recording is not None:
        pairs, counts = np.unique(
            np.column_stack([result.recording.cardinality, np.round(result.recording.fitness, 6)]),
            axis=0,
            return_counts=True,
        )
        layers.append(
            Layer(
                "visited",
                pairs[:, 0].tolist(),
                selection.scores(pairs[:, 1]),
                "dots",
                7,
                notes=[f"{count} times" if count > 1 else "" for count in counts],
            )
        )
    front = result.front
    layers += [
        Layer(
            "best of each size",
            front.cardinality.tolist(),
            selection.scores(front.fitness),
            notes=[_cut(", ".join(selection.names_in(mask))) for mask in front.masks],
        ),
        Layer("selected", [selector.n_features_], [_score_of_selected(selection)], "mark", 1),
    ]
    return Chart(
        "Score against number of features",
        "Each dot is a subset visited, with its score in one division into folds. The line and the selected subset are "
        "scored in all divisions, so they are lower than the luckiest dots."
        if _islands_agreed(result.history)
        else "Each dot is a subset visited; the line connects the best subset of each size.",
        "features",
        selection.scoring.name,
        tuple(layers),
    )


def permutation_chart(test: PermutationTest, scoring: str) -> Chart:
    """Chart the scores of searches on shuffled targets, and that of the search on the given one."""
    ends = [0, len(test.scores) + 1]
    return Chart(
        "Scores on shuffled targets",
        "Each dot is the score that the same search reports on a shuffled target, in ascending order. The line is its "
        "score on the given target.",
        "shuffled targets",
        scoring,
        (
            Layer("given target", ends, [test.score, test.score], colour=1),
            Layer("shuffled targets", list(range(1, ends[1])), sorted(test.scores.tolist()), "dots", 7),
        ),
    )


def _score_of_selected(selection: Selection) -> float:
    """Return the score of the selected subset as the line has it, or on its own folds if it is not on the line."""
    front, selector = selection.result.front, selection.selector
    found = np.flatnonzero((front.masks == selector.support_).all(axis=1))
    return selection.scores(front.fitness[found[:1]])[0] if len(found) else selector.best_score_


def score_chart(selection: Selection) -> Chart:
    """Chart the best score so far against the evaluations, for each algorithm."""
    runs = {selection.result.algorithm: selection.result}
    runs |= {name: other.result_ for name, other in selection.other_algorithms.items()}
    note = f"{selection.scoring.name} of the best subset so far, in the cross-validation that the search maximised."
    if _islands_agreed(selection.result.history):
        note += (
            " Each part of the search has its own division into folds, and the line shows the best score on any of "
            "them. The selected subset is scored on all of them, so its score is lower than the end of the line."
        )
    return Chart(
        "The best score so far",
        note,
        "evaluations",
        selection.scoring.name,
        tuple(
            Layer(
                name,
                run.history.evaluations[: _steps_alike(run.history)].tolist(),
                selection.scores(run.history.best_fitness[: _steps_alike(run.history)]),
                colour=place,
            )
            for place, (name, run) in enumerate(runs.items())
        ),
    )


def size_chart(selection: Selection) -> Chart:
    """Chart the number of features of the best subset so far, over the likelihoods of the swarm if recorded."""
    history = selection.result.history
    heat = _likelihood(selection.result)
    size = Layer("size of the best so far", history.evaluations.tolist(), history.best_cardinality.tolist(), colour=1)
    return Chart(
        "How many features",
        "Bright: numbers of features that the swarm considers likely. Line: features of the best subset so far."
        if heat
        else "Features of the best subset so far.",
        "evaluations",
        "features",
        (size,),
        heat,
    )


def _steps_alike(history: History) -> int:
    """Return how many steps have the same kind of loss: the last ones may be scored on all repeats instead of one."""
    best = history.best_fitness
    worse = np.flatnonzero(best > np.minimum.accumulate(best))
    return int(worse[0]) if len(worse) else len(best)


def _islands_agreed(history: History) -> bool:
    """Return whether the best loss rose, which only happens when islands agree on a subset and score it on all rows."""
    return bool(len(history.best_fitness)) and bool(history.best_fitness[-1] > history.best_fitness.min())


def _likelihood(result: SearchResult) -> Heat | None:
    if result.recording is None or result.recording.likelihood is None:
        return None
    likelihood = _thin_out(_thin_out(result.recording.likelihood, _MOST_CELLS).T, _MOST_CELLS)
    n = result.recording.likelihood.shape[1]
    return Heat(
        box=(0, int(result.recording.evaluations[-1]), 0.5, n + 0.5),
        rows=np.round(likelihood, 5).tolist(),
        top=round(float(np.quantile(likelihood, 0.995)), 6) or 1.0,
    )


def _thin_out(rows: FloatArray, most: int) -> FloatArray:
    """Return at most ``most`` rows: means over stretches of nearly equal length."""
    if len(rows) <= most:
        return rows
    return np.array([part.mean(axis=0) for part in np.array_split(rows, most)])


def _cut(text: str, most: int = 160) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
