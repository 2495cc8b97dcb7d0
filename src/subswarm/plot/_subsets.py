"""Plots of subsets: loss against size, selection frequency, and likelihood of sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from subswarm._checks import as_tuple, check_int, shown
from subswarm._search.front import FrontTable
from subswarm._search.result import Recording, SearchResult, one_standard_error, standard_error
from subswarm._types import FloatArray
from subswarm.errors import DataError
from subswarm.plot._style import PALETTE, Results, check_result, colormap, group_results, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["cardinality_likelihood", "front", "selection_frequency", "trade_off"]


def trade_off(result: SearchResult, *, ax: Axes | None = None) -> Axes:
    """Plot the loss against the number of features: each subset visited, the best of each size, and the best of all.

    If the losses of the folds are known, a dashed line is one standard error above the best loss, and a diamond marks
    the smallest subset below it, which ``choose="one-se"`` selects.

    Parameters
    ----------
    result : SearchResult
        With ``record=True``, each subset visited is a dot.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from subswarm import Budget, search
    >>> result = search("2d-upso", lambda m: m.mean(axis=1), Budget(evaluations=90), rng=0, n_features=9, record=True)
    >>> trade_off(result).get_xlabel()
    'features'
    """
    check_result(result)
    ax = new_axes(ax)
    if result.recording is not None:
        visited = result.recording
        ax.scatter(
            visited.cardinality, visited.fitness, s=9, color=PALETTE[7], alpha=0.35, linewidths=0, rasterized=True,
            label=f"{len(visited.fitness)} subsets visited",
        )  # fmt: skip
    front, best = result.front, result.best
    ax.plot(
        front.cardinality, front.fitness, color=PALETTE[0], marker="o", markersize=3.5, linewidth=1.3,
        label="best of each size",
    )  # fmt: skip
    ax.scatter(
        [best.cardinality], [best.fitness], s=110, marker="*", color=PALETTE[1], zorder=3,
        label=f"best: {best.fitness:.4g} with {best.cardinality}",
    )  # fmt: skip
    error, few = standard_error(result), one_standard_error(result)
    if error is not None:
        ax.axhline(best.fitness + error, color=PALETTE[2], linestyle=(0, (4, 3)), linewidth=1.0)
        ax.scatter(
            [few.cardinality], [few.fitness], s=70, marker="D", facecolors="none", edgecolors=PALETTE[2],
            linewidths=1.6, zorder=4, label=f"within one standard error: {few.fitness:.4g} with {few.cardinality}",
        )  # fmt: skip
    _use_whole_numbers(ax.xaxis)
    ax.set_xlabel("features")
    ax.set_ylabel("loss")
    ax.legend(frameon=False)
    tidy(ax)
    return ax


def front(table: FrontTable, *, ax: Axes | None = None) -> Axes:
    """Plot a front: the loss of its subsets against their cost, with standard errors, and a diamond at the knee.

    If the front has nested losses, they are a second line: the loss on rows that the searches did not use.

    Parameters
    ----------
    table : FrontTable
        Such as ``front_`` of a fitted selector.
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    if not isinstance(table, FrontTable):
        raise DataError(f"expected a FrontTable, such as front_ of a fitted selector; got {shown(table)}.")
    ax = new_axes(ax)
    ax.errorbar(
        table.cost, table.loss, yerr=np.nan_to_num(table.standard_error), color=PALETTE[0], marker="o", markersize=3.5,
        linewidth=1.3, elinewidth=0.9, capsize=2.5, drawstyle="steps-post", label="front, with standard errors",
    )  # fmt: skip
    if table.nested_loss is not None and table.nested_standard_error is not None:
        ax.errorbar(
            table.cost, table.nested_loss, yerr=np.nan_to_num(table.nested_standard_error), color=PALETTE[2],
            marker="o", markersize=3.5, linewidth=1.3, elinewidth=0.9, capsize=2.5, drawstyle="steps-post",
            label="on rows not used (nested)",
        )  # fmt: skip
    knee = table.knee()
    row = int(np.flatnonzero(table.loss == knee.fitness)[0])
    ax.scatter(
        [table.cost[row]], [knee.fitness], s=80, marker="D", facecolors="none", edgecolors=PALETTE[1], linewidths=1.6,
        zorder=4, label=f"knee: {knee.fitness:.4g} with {knee.cardinality}",
    )  # fmt: skip
    if table.cost_name == "features":
        _use_whole_numbers(ax.xaxis)
    ax.set_xlabel(table.cost_name)
    ax.set_ylabel("loss")
    ax.legend(frameon=False)
    tidy(ax)
    return ax


def selection_frequency(
    results: Results, *, names: Sequence[str] | None = None, top: int = 20, ax: Axes | None = None
) -> Axes:
    """Plot how often each feature is selected, most frequent first.

    For several runs this is the share of runs whose best subset has the feature. For a single run it is the share of
    the subsets visited (with ``record=True``), or of the best subsets of each size.

    Parameters
    ----------
    results : one result, a list of them, or a dict from a name to either (all are combined)
    names : names of the features
    top : number of features to show
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    check_int("top", top, low=1)
    runs = [run for group in group_results(results).values() for run in group]
    share, label = _shares(runs)
    labels = [f"feature {index}" for index in range(len(share))] if names is None else _labels(names, len(share))
    most_frequent = np.argsort(-share, kind="stable")[: min(top, int((share > 0).sum()))]
    best = np.mean([run.best.mask for run in runs], axis=0) > 0.5
    ax = new_axes(ax, (6.4, 1.0 + 0.24 * len(most_frequent)))
    places = np.arange(len(most_frequent))
    for inside, colour, hatch, word in ((True, PALETTE[0], None, "selected"), (False, PALETTE[7], "//", "left out")):
        rows = best[most_frequent] == inside
        if rows.any():
            ax.barh(
                places[rows], 100 * share[most_frequent][rows], color=colour, hatch=hatch, edgecolor=ax.get_facecolor(),
                linewidth=0, height=0.7, label=word if len(runs) == 1 else f"{word} by most runs",
            )  # fmt: skip
    ax.set_yticks(places, [labels[index] for index in most_frequent])
    ax.invert_yaxis()
    ax.set_xlim(0, 100)
    ax.set_xlabel(label)
    ax.legend(frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    tidy(ax, grid="x")
    return ax


def _labels(names: Sequence[str], n_features: int) -> list[str]:
    labels = [_short(str(name)) for name in as_tuple("names", names, of="feature names")]
    if len(labels) != n_features:
        raise DataError(f"names must have one name for each of the {n_features} features; got {len(labels)} names.")
    return labels


def _shares(runs: list[SearchResult]) -> tuple[FloatArray, str]:
    if len({len(run.best.mask) for run in runs}) > 1:
        raise DataError("the results have different numbers of features; plot them one by one.")
    if len(runs) > 1:
        return np.mean([run.best.mask for run in runs], axis=0), f"share of {len(runs)} runs that select it (%)"
    run = runs[0]
    if run.recording is not None:
        return run.recording.chosen / len(run.recording.fitness), "share of the subsets visited that have it (%)"
    return run.front.masks.mean(axis=0), "share of the best subsets of each size that have it (%)"


def cardinality_likelihood(result: SearchResult, *, ax: Axes | None = None) -> Axes:
    """Plot how likely a 2-D swarm considers each number of features during the search.

    Each column is the mean of the swarm's roulette wheels before a step, and each row is a cardinality. The line is the
    size of the best subset so far.

    Parameters
    ----------
    result : SearchResult of a 2-D swarm, run with ``record=True``
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from subswarm import Budget, search
    >>> result = search("2d-upso", lambda m: m.mean(axis=1), Budget(evaluations=90), rng=0, n_features=9, record=True)
    >>> cardinality_likelihood(result).get_ylabel()
    'number of features'
    """
    recording = _with_likelihood(result)
    likelihood = np.asarray(recording.likelihood)
    ax = new_axes(ax)
    last = recording.evaluations
    first = np.concatenate([[2 * last[0] - last[1] if len(last) > 1 else 0], last[:-1]])
    edges = np.append(first, last[-1])
    image = ax.pcolormesh(
        edges, np.arange(likelihood.shape[1] + 1) + 0.5, 100 * likelihood.T, cmap=colormap(), rasterized=True,
        vmin=0, vmax=100 * float(np.quantile(likelihood, 0.995)),
    )  # fmt: skip
    history = result.history
    ax.step(history.evaluations, history.best_cardinality, where="pre", color="white", linewidth=3.2)
    ax.step(
        history.evaluations, history.best_cardinality, where="pre", color=PALETTE[1], linewidth=1.6,
        label="size of the best so far",
    )  # fmt: skip
    ax.figure.colorbar(image, ax=ax, label="likelihood on the wheels (%)", pad=0.015, extend="max")
    _use_whole_numbers(ax.yaxis)
    ax.set_xlim(edges[0], edges[-1])
    ax.set_xlabel("evaluations")
    ax.set_ylabel("number of features")
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    tidy(ax, grid=None)
    return ax


def _with_likelihood(result: SearchResult) -> Recording:
    check_result(result)
    if result.recording is None:
        raise DataError("the search did not record its likelihoods; run it with record=True.")
    if result.recording.likelihood is None:
        raise DataError(f"{result.algorithm} does not learn likelihoods of cardinalities; the 2-D swarms (2d-...) do.")
    return result.recording


def _use_whole_numbers(axis: Axis) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def _short(name: str, most: int = 32) -> str:
    """Return a name of limited length, with dollar signs escaped: matplotlib reads a pair of them as mathematics."""
    cut = name if len(name) <= most else f"{name[: most - 1]}…"
    return cut.replace("$", r"\$")
