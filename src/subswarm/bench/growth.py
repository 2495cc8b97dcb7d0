"""Measures how the time per evaluation grows with samples, features and subset size, and plots it.

Whole searches of wide and tall tables are measured, too, each in a process of its own for the sake of its memory.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from subswarm._compilation import wait_for_compiler
from subswarm._types import AnyArray, FloatArray
from subswarm.errors import MissingExtraError
from subswarm.objective.objective import make_objective
from subswarm.selector import SwarmSelector

__all__ = ["WIDE", "Point", "SearchCost", "format_costs", "growth", "plot_growth", "search_costs"]

AXES = ("samples", "features", "subset size")
_MODELS: dict[str, Callable[[], BaseEstimator]] = {"nb": GaussianNB, "knn": KNeighborsClassifier}


WIDE = (2000, 10_000)
"""Columns of the wide tables that are compared."""
_TALL = (100_000, 50)
_INFORMATIVE = 30


@dataclass(frozen=True)
class SearchCost:
    """What one default search costs: its CPU time, its duration, and the most memory that its process had.

    ``megabytes`` is 0 where the operating system does not tell.
    """

    model: str
    rows: int
    columns: int
    cpu_seconds: float
    seconds: float
    megabytes: int
    selected: int
    noise: int


def search_costs(
    *,
    repeats: int = 5,
    wide: Sequence[int] = WIDE,
    tall: tuple[int, int] | None = _TALL,
    evaluations: int = 6000,
    n_jobs: int | None = None,
) -> Iterator[SearchCost]:
    """Yield the costs of searches with naive Bayes on 100 rows, by turns for each width, and of 5-NN on a tall table.

    30 columns carry information, each less than the one before (10 if there are fewer than 60 columns).
    """
    tables = [("nb", 100, columns) for _ in range(repeats) for columns in wide]
    if tall is not None:
        tables.append(("knn", *tall))
    for table in tables:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            yield process.submit(_cost, *table, evaluations, n_jobs).result()


def _cost(model: str, rows: int, columns: int, evaluations: int, n_jobs: int | None) -> SearchCost:
    selector = SwarmSelector(_MODELS[model](), random_state=0, n_jobs=n_jobs)
    selector.set_params(max_evaluations=min(600, evaluations)).fit(*_make_table(300, 60)[:2])  # loads the kernels
    wait_for_compiler()
    X, y, informative = _make_table(rows, columns)
    started, processor = time.perf_counter(), time.process_time()
    selector.set_params(max_evaluations=evaluations).fit(X, y)
    processor, seconds = time.process_time() - processor, time.perf_counter() - started
    noise = int((selector.support_ & ~informative).sum())
    return SearchCost(model, rows, columns, processor, seconds, _most_memory(), selector.n_features_, noise)


def _make_table(rows: int, columns: int) -> tuple[FloatArray, AnyArray, AnyArray]:
    """Return a table with two classes, and which columns carry information."""
    rng = np.random.default_rng(0)
    y, count = np.arange(rows) % 2, _INFORMATIVE if columns >= 2 * _INFORMATIVE else 10
    X = rng.normal(size=(rows, columns))
    X[:, :count] += np.outer(y, np.linspace(1.0, 0.3, count))
    order = rng.permutation(columns)
    return X[:, order], y, order < count


def _most_memory() -> int:
    try:
        import resource
    except ImportError:  # on Windows
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(most // (2**20 if sys.platform == "darwin" else 2**10))


def format_costs(costs: Sequence[SearchCost]) -> str:
    """Return medians for each table, and the ratio of the widest to the narrowest."""
    by_table: dict[tuple[str, int, int], list[SearchCost]] = {}
    for cost in costs:
        by_table.setdefault((cost.model, cost.rows, cost.columns), []).append(cost)
    lines = ["| model | rows | columns | CPU seconds | seconds | peak memory, MB |", "|---|---:|---:|---:|---:|---:|"]
    processor = {}
    for (model, rows, columns), own in by_table.items():
        processor[model, columns] = cpu = float(np.median([cost.cpu_seconds for cost in own]))
        seconds, memory = np.median([[cost.seconds, cost.megabytes] for cost in own], axis=0)
        lines.append(f"| {model} | {rows} | {columns} | {cpu:.2f} | {seconds:.2f} | {memory:.0f} |")
    widths = sorted(columns for model, columns in processor if model == "nb")
    if len(widths) > 1:
        ratio = processor["nb", widths[-1]] / processor["nb", widths[0]]
        lines.append(f"\n{widths[-1]} columns take {ratio:.2f} times the CPU time of {widths[0]}.")
    return "\n".join(lines)


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
