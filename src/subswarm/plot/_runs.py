"""Plots of runs: convergence and timing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from subswarm._checks import check_choice, check_real, shown
from subswarm._search.result import SearchResult
from subswarm._types import FloatArray
from subswarm.errors import DataError, SettingError
from subswarm.plot._style import DASHES, PALETTE, Results, group_results, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["convergence", "timing"]

_LABELS = {
    "fitness": "best loss so far",
    "cardinality": "features of the best so far",
    "improvement": "improvement on all features, PI (%)",
    "reduction": "features left out, Ξ (%)",
}


def convergence(
    results: Results,
    *,
    show: str = "fitness",
    baseline: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the best subset so far against the evaluations: the mean over the runs of each name, with one SD as a band.

    Parameters
    ----------
    results : one result, a list of them, or a dict from a name to either
    show : "fitness", "cardinality", "improvement" or "reduction"
        The last two are the paper's PI = 100 (J(U) - J) / J(U) and Ξ = 100 (n - ξ) / n.
    baseline : float
        J(U), the loss with all features; needed for "improvement".
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from subswarm import Budget, search
    >>> runs = [search("2d-upso", lambda m: m.mean(axis=1), Budget(evaluations=90), rng=k, n_features=9)
    ...         for k in range(3)]
    >>> convergence({"2D-UPSO": runs}, show="reduction").get_xlabel()
    'evaluations'
    """
    check_choice("show", show, _LABELS)
    if show == "improvement":
        if baseline is None:
            raise SettingError("show='improvement' needs baseline=..., the loss with all features.")
        check_real("baseline", baseline, above=0)
        baseline = float(baseline)
    groups = group_results(results)
    ax = new_axes(ax)
    for place, (name, runs) in enumerate(groups.items()):
        grid, values = _on_one_grid(runs, show, baseline)
        mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1 if len(runs) > 1 else 0)
        colour = PALETTE[place % len(PALETTE)]
        ax.plot(grid, mean, color=colour, linestyle=DASHES[place % len(DASHES)], linewidth=1.8, label=name)
        if len(runs) > 1:
            ax.fill_between(grid, mean - spread, mean + spread, color=colour, alpha=0.14, linewidth=0)
    ax.set_xlabel("evaluations")
    ax.set_ylabel(_LABELS[show])
    if len(groups) > 1:
        ax.legend(frameon=False)
    tidy(ax)
    return ax


def _on_one_grid(runs: list[SearchResult], show: str, baseline: float | None) -> tuple[FloatArray, FloatArray]:
    """Return all numbers of evaluations at which a run has a value, and the values, shape (runs, steps)."""
    start = max(int(run.history.evaluations[0]) for run in runs)
    grid = np.unique(np.concatenate([run.history.evaluations for run in runs]))
    grid = grid[grid >= start]
    rows = [
        _values(run, show, baseline)[np.searchsorted(run.history.evaluations, grid, side="right") - 1] for run in runs
    ]
    return grid.astype(np.float64), np.array(rows)


def _values(run: SearchResult, show: str, baseline: float | None) -> FloatArray:
    history, n = run.history, len(run.best.mask)
    if show == "fitness":
        return history.best_fitness
    if show == "improvement" and baseline is not None:
        return 100 * (baseline - history.best_fitness) / baseline
    cardinality = history.best_cardinality.astype(np.float64)
    return cardinality if show == "cardinality" else 100 * (n - cardinality) / n


def timing(results: Results | Mapping[str, tuple[float, float]], *, ax: Axes | None = None) -> Axes:
    """Plot the mean seconds of a run as bars: T1 in the algorithm and T2 in evaluation.

    Parameters
    ----------
    results : one result, a list of them, a dict from a name to either, or a dict from a name to (T1, T2)
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes
    """
    times = _times(results)
    ax = new_axes(ax, (6.4, 1.2 + 0.34 * len(times)))
    places = np.arange(len(times))
    first, second = np.array(list(times.values()), dtype=np.float64).T
    ax.barh(places, first, color=PALETTE[0], label="T1, algorithm", height=0.66)
    ax.barh(places, second, left=first, color=PALETTE[4], hatch="//", edgecolor=ax.get_facecolor(), linewidth=0,
            label="T2, evaluation", height=0.66)  # fmt: skip
    for place, total, share in zip(places, first + second, first / np.maximum(first + second, 1e-300), strict=True):
        ax.annotate(
            f"{total:.3g} s, {share:.1%} in the algorithm",
            (total, place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
        )
    ax.set_yticks(places, list(times))
    ax.invert_yaxis()
    ax.set_xlim(0, 1.75 * float((first + second).max()) or 1.0)
    ax.set_xlabel("seconds of a run")
    ax.legend(frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    tidy(ax, grid="x")
    return ax


def _times(results: Results | Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    if isinstance(results, Mapping) and results and all(isinstance(value, tuple) for value in results.values()):
        return {str(name): _checked_pair(str(name), pair) for name, pair in results.items()}
    return {
        name: (
            float(np.mean([run.algorithm_seconds for run in runs])),
            float(np.mean([run.evaluation_seconds for run in runs])),
        )
        for name, runs in group_results(results).items()  # type: ignore[arg-type]
    }


def _checked_pair(name: str, pair: object) -> tuple[float, float]:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise DataError(f"the times of {shown(name)} must be a pair of seconds (T1, T2); got {shown(pair)}.")
    for what, seconds in zip(("T1", "T2"), pair, strict=True):
        check_real(f"{what} of {shown(name)}", seconds, low=0)
    return float(pair[0]), float(pair[1])
