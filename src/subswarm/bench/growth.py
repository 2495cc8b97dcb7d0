"""Measures how the time per evaluation grows with samples, features and subset size, and plots it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from subswarm.errors import MissingExtraError
from subswarm.objective.objective import make_objective

__all__ = ["Point", "growth", "plot_growth"]

AXES = ("samples", "features", "subset size")
_MODELS: dict[str, Callable[[], BaseEstimator]] = {"nb": GaussianNB, "knn": KNeighborsClassifier}


@dataclass(frozen=True)
class Point:
    """Seconds per evaluation of a model at one value of one of the axes."""

    model: str
    axis: str
    value: int
    seconds: float


def growth(*, repeats: int = 5, quick: bool = False) -> Iterator[Point]:
    """Time both models on random tables: vary the rows (100 of 200 columns selected), the columns, then the subset."""
    rows = [100, 200, 400, 800] if quick else [100, 200, 400, 800, 1600, 3200]
    columns = [25, 50, 100, 200] if quick else [25, 50, 100, 200, 400, 800]
    for model in _MODELS:
        for value in rows:
            yield Point(model, "samples", value, _time(model, value, 200, 100, repeats))
        for value in columns:
            yield Point(model, "features", value, _time(model, 400, value, value // 2, repeats))
        for value in columns[:-1]:
            yield Point(model, "subset size", value, _time(model, 400, columns[-1], value, repeats))


def _time(model: str, rows: int, columns: int, selected: int, repeats: int) -> float:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(rows, columns)), np.arange(rows) % 2
    objective = make_objective(_MODELS[model](), X, y, n_jobs=-1, engine="fast")
    times = []
    for _ in range(repeats + 1):
        masks = np.zeros((30, columns), dtype=bool)
        for mask in masks:
            mask[rng.permutation(columns)[:selected]] = True
        before, start = objective.computed, time.perf_counter()
        objective(masks)
        if objective.computed > before:
            times.append((time.perf_counter() - start) / (objective.computed - before))
    return float(np.median(times[1:] or times))


def plot_growth(points: list[Point], path: Path) -> None:
    """Plot time per evaluation against each axis on logarithmic scales, and save the figure."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("plots need matplotlib; install it with: pip install 'subswarm[plot]'.") from error
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    for panel, axis in zip(figure.subplots(1, 3, sharey=True), AXES, strict=True):
        for model in _MODELS:
            line = [point for point in points if point.axis == axis and point.model == model]
            panel.plot([p.value for p in line], [p.seconds * 1e6 for p in line], marker="o", label=model)
        panel.set(xscale="log", yscale="log", xlabel=axis)
        values = sorted({point.value for point in points if point.axis == axis})
        panel.set_xticks(values, [str(value) for value in values])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    figure.axes[0].set_ylabel("µs per evaluation (10 folds)")
    figure.axes[0].legend()
    figure.savefig(path, dpi=120)
