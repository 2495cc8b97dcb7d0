"""The finished runs of a store, arranged for tables and charts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike

import numpy as np

from subswarm._types import FloatArray, IntArray, Masks
from subswarm.errors import StoreError
from subswarm.study.plan import Group
from subswarm.study.records import ProblemFacts, Row
from subswarm.study.store import Store, StudyInfo

__all__ = [
    "ABSENT",
    "Cell",
    "Results",
    "cardinality_reduction",
    "format_range",
    "mean_loss",
    "mean_seconds",
    "mean_size",
    "performance_improvement",
    "read_results",
]

ABSENT = "–"
"""What a table shows if there is no value."""


@dataclass(frozen=True, eq=False)
class Cell:
    """The runs of one algorithm on one data set with one model, by outer fold and run number."""

    rows: tuple[Row, ...]
    n_features: int

    @cached_property
    def losses(self) -> FloatArray:
        """The loss of each run."""
        return np.array([row.content.loss for row in self.rows])

    @cached_property
    def sizes(self) -> FloatArray:
        """The cardinality of each run."""
        return np.array([float(row.content.cardinality) for row in self.rows])

    @cached_property
    def seconds(self) -> FloatArray:
        """T1 and T2 of each run, shape (runs, 2)."""
        return np.array([[row.timing.algorithm_seconds, row.timing.evaluation_seconds] for row in self.rows])

    @cached_property
    def held_out(self) -> FloatArray:
        """The error of each run on its outer fold."""
        return np.array([np.nan if row.content.held_out is None else row.content.held_out for row in self.rows])

    @cached_property
    def masks(self) -> Masks:
        """The selected subsets, shape (runs, n)."""
        masks = np.zeros((len(self.rows), self.n_features), dtype=bool)
        for row, mask in zip(self.rows, masks, strict=True):
            mask[list(row.content.features)] = True
        return masks

    def curves(self, grid: Sequence[int] | IntArray) -> tuple[FloatArray, FloatArray]:
        """Return best loss and its cardinality after each number of evaluations, shapes (runs, len(grid))."""
        losses, sizes = [], []
        for row in self.rows:
            evaluations, loss, size = (np.array(column) for column in zip(*row.content.curve, strict=True))
            step = np.maximum(np.searchsorted(evaluations, grid, side="right") - 1, 0)
            losses.append(loss[step])
            sizes.append(size[step])
        return np.array(losses, dtype=np.float64), np.array(sizes, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Results:
    """All finished runs of a store.

    Attributes
    ----------
    info : the study
    datasets, models, algorithms : names, in the order of the plan
    problems : facts of each group
    rows : the finished runs
    planned, failed : number of planned and of failed runs
    """

    info: StudyInfo
    datasets: tuple[str, ...]
    models: tuple[str, ...]
    algorithms: tuple[str, ...]
    problems: dict[Group, ProblemFacts]
    rows: tuple[Row, ...]
    planned: int
    failed: int

    def cell(self, dataset: str, model: str, algorithm: str) -> Cell | None:
        """Return the runs that see all rows, or None if none is finished."""
        return self._cells.get((dataset, model, algorithm, False))

    def outer_cell(self, dataset: str, model: str, algorithm: str) -> Cell | None:
        """Return the runs of nested cross-validation, or None if none is finished."""
        return self._cells.get((dataset, model, algorithm, True))

    def facts(self, dataset: str, model: str) -> ProblemFacts:
        """Return the facts of all rows of a data set."""
        return self.problems[dataset, model, None]

    def complete_datasets(self, model: str, algorithms: Sequence[str] | None = None) -> list[str]:
        """Return the data sets on which each of the algorithms (by default all) has a finished run."""
        needed = self.algorithms if algorithms is None else algorithms
        return [name for name in self.datasets if all(self.cell(name, model, each) for each in needed)]

    def values(
        self,
        model: str,
        datasets: Sequence[str],
        value: Callable[[Cell], float],
        algorithms: Sequence[str] | None = None,
    ) -> FloatArray:
        """Return a value of each cell, shape (data sets, algorithms); NaN if there is no finished run."""
        columns = self.algorithms if algorithms is None else algorithms
        cells = [[self.cell(name, model, each) for each in columns] for name in datasets]
        return np.array([[np.nan if cell is None else value(cell) for cell in row] for row in cells])

    def note(self) -> str:
        """Describe how many runs the means are over, and how many are missing."""
        counts = [len(cell.rows) for place, cell in self._cells.items() if not place[3]] or [0]
        done = len(self.rows)
        missing = "" if done == self.planned else f"; {self.planned - done} of {self.planned} runs are missing"
        return (
            f"{self.info.protocol} protocol, {self.info.evaluations} evaluations, {format_range(counts)} runs{missing}."
        )

    @cached_property
    def _cells(self) -> dict[tuple[str, str, str, bool], Cell]:
        grouped: dict[tuple[str, str, str, bool], list[Row]] = defaultdict(list)
        for row in self.rows:
            run = row.planned
            grouped[run.dataset, run.model, run.algorithm, run.outer_fold is not None].append(row)
        return {
            place: Cell(
                tuple(sorted(rows, key=lambda row: (row.planned.outer_fold or 0, row.planned.run))),
                self.problems[rows[0].planned.group].n_features,
            )
            for place, rows in grouped.items()
        }


def read_results(path: str | PathLike[str]) -> Results:
    """Read all finished runs of a store; another process may be writing to it."""
    with Store.reading(path) as store, store.snapshot():
        planned, rows = store.planned(), store.rows()
        if not rows:
            raise StoreError(f"the store {path} has no finished run yet; `subswarm study status` shows its progress.")
        return Results(
            info=store.info(),
            datasets=tuple(dict.fromkeys(run.dataset for run in planned)),
            models=tuple(dict.fromkeys(run.model for run in planned)),
            algorithms=tuple(dict.fromkeys(run.algorithm for run in planned)),
            problems=store.problems(),
            rows=tuple(rows),
            planned=len(planned),
            failed=len(store.failures()),
        )


def mean_loss(cell: Cell) -> float:
    """Return the mean loss of the runs."""
    return float(cell.losses.mean())


def mean_size(cell: Cell) -> float:
    """Return the mean cardinality of the runs."""
    return float(cell.sizes.mean())


def mean_seconds(cell: Cell) -> float:
    """Return the mean total time of the runs."""
    return float(cell.seconds.sum(axis=1).mean())


def performance_improvement(error: float, error_all: float) -> float:
    """Return the paper's PI: by how many percent the error is below that of all features, J(U).

    Examples
    --------
    >>> round(performance_improvement(0.2122, 0.6007), 1)  # the paper's Wine with naive Bayes
    64.7
    """
    return float("nan") if error_all == 0 else 100.0 * (error_all - error) / error_all


def cardinality_reduction(cardinality: float, n_features: int) -> float:
    """Return the paper's Ξ: how many percent of the features are not selected.

    Examples
    --------
    >>> round(cardinality_reduction(4.15, 13), 1)  # the paper's Wine with naive Bayes
    68.1
    """
    return 100.0 * (n_features - cardinality) / n_features


def format_range(counts: Sequence[int]) -> str:
    """Return the smallest and the largest count as text.

    Examples
    --------
    >>> format_range([3, 3]), format_range([5, 3])
    ('3', '3 to 5')
    """
    return f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
