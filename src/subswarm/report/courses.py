"""The charts of one search, from its result and its recording."""

from __future__ import annotations

import numpy as np

from subswarm.core.types import FloatArray, History, SearchResult
from subswarm.report.page import Chart, Layer
from subswarm.report.selection import Selection

__all__ = ["course_charts", "thinned"]

_MOST_CELLS = 120


def course_charts(selection: Selection) -> dict[str, Chart]:
    """Charts by name: score against size, and how score, size and likelihoods went on."""
    result, scoring = selection.selector.result_, selection.scoring
    history = result.history
    rivals = selection.rivals.items()
    best = [
        Layer(name, run.history.evaluations.tolist(), selection.scores(run.history.best_fitness), colour=place)
        for place, (name, run) in enumerate(
            [(result.algorithm, result), *((name, other.result_) for name, other in rivals)]
        )
    ]
    charts = {
        "trade_off": _trade_off(selection),
        "best": Chart(
            "The best score so far",
            f"{scoring.name} of the best subset against the subsets asked."
            + (
                " Each clan of the swarm searches on a partition of the rows of its own, and the best is what one "
                "found there, until they agree: that is scored on all partitions, and lower because less of it is luck."
                if _has_agreed(history)
                else ""
            ),
            "evaluations",
            scoring.name,
            tuple(best),
        ),
    }
    heat = _likelihood(result)
    size = Layer("size of the best so far", history.evaluations.tolist(), history.best_cardinality.tolist(), colour=1)
    charts["size"] = Chart(
        "How many features",
        "Bright: numbers of features that the swarm held likely. The line: features of the best subset so far."
        if heat
        else "Features of the best subset so far.",
        "evaluations",
        "features",
        (size,),
        heat,
    )
    return charts


def _has_agreed(history: History) -> bool:
    """Whether the best has become worse, as it does only when clans agree: then it is scored on all partitions."""
    return bool(len(history.best_fitness)) and bool(history.best_fitness[-1] > history.best_fitness.min())


def _trade_off(selection: Selection) -> Chart:
    result, scoring, selector = selection.selector.result_, selection.scoring, selection.selector
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
            notes=[_cut(selection.listed(mask)) for mask in front.masks],
        ),
        Layer("selected", [selector.n_features_], [selector.best_score_], "mark", 1),
    ]
    return Chart(
        "Score against number of features",
        "Each dot is a subset visited, scored on its clan's partition of the rows; the line joins what the clans agree "
        "on, scored on all of them. Selected is the largest of these that is hardly worse than the best: a feature "
        "that many clans chose is left out only where that pays."
        if _has_agreed(result.history)
        else "Each dot is a subset visited, the line joins the best of each size.",
        "features",
        scoring.name,
        tuple(layers),
    )


def _likelihood(result: SearchResult) -> dict[str, object] | None:
    if result.recording is None or result.recording.likelihood is None:
        return None
    likelihood = thinned(thinned(result.recording.likelihood, _MOST_CELLS).T, _MOST_CELLS)
    n = result.recording.likelihood.shape[1]
    return {
        "box": [0, int(result.recording.evaluations[-1]), 0.5, n + 0.5],
        "rows": np.round(likelihood, 5).tolist(),
        "top": round(float(np.quantile(likelihood, 0.995)), 6) or 1.0,
    }


def thinned(rows: FloatArray, most: int) -> FloatArray:
    """At most ``most`` rows: means over stretches of nearly equal length."""
    if len(rows) <= most:
        return rows
    return np.array([part.mean(axis=0) for part in np.array_split(rows, most)])


def _cut(words: str, most: int = 160) -> str:
    return words if len(words) <= most else f"{words[: most - 1]}…"
