"""A store's finished runs, arranged as the tables need them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike

import numpy as np

from subswarm.core.errors import StoreError
from subswarm.core.types import FloatArray, Masks
from subswarm.study.published import paper_classifier
from subswarm.study.records import ProblemFacts, Row
from subswarm.study.store import Store, StudyInfo

__all__ = ["Cell", "Results", "read_results"]


@dataclass(frozen=True, eq=False)
class Cell:
    """The runs of one algorithm on one data set with one model, by run number."""

    rows: tuple[Row, ...]
    n_features: int

    @cached_property
    def losses(self) -> FloatArray:
        return np.array([row.content.loss for row in self.rows])

    @cached_property
    def sizes(self) -> FloatArray:
        return np.array([float(row.content.cardinality) for row in self.rows])

    @cached_property
    def seconds(self) -> FloatArray:
        """T1 and T2 of each run, shape (runs, 2)."""
        return np.array([[row.timing.algorithm_seconds, row.timing.evaluation_seconds] for row in self.rows])

    @cached_property
    def held_out(self) -> FloatArray:
        return np.array([np.nan if row.content.held_out is None else row.content.held_out for row in self.rows])

    @cached_property
    def masks(self) -> Masks:
        masks = np.zeros((len(self.rows), self.n_features), dtype=bool)
        for row, mask in zip(self.rows, masks, strict=True):
            mask[list(row.content.features)] = True
        return masks

    def curve(self, grid: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Mean best loss and mean cardinality after each number of evaluations in ``grid``."""
        losses, sizes = [], []
        for row in self.rows:
            evaluations, loss, size = (np.array(column) for column in zip(*row.content.curve, strict=True))
            step = np.maximum(np.searchsorted(evaluations, grid, side="right") - 1, 0)
            losses.append(loss[step])
            sizes.append(size[step])
        return np.mean(losses, axis=0), np.mean(sizes, axis=0)


@dataclass(frozen=True, eq=False)
class Results:
    """Everything finished in a store.

    Attributes
    ----------
    info : the study
    datasets, models, algorithms : names, in the order of the plan
    problems : facts by (data set, model, outer fold or None)
    planned, failed : how many runs are planned, and have failed
    """

    info: StudyInfo
    datasets: tuple[str, ...]
    models: tuple[str, ...]
    algorithms: tuple[str, ...]
    problems: dict[tuple[str, str, int | None], ProblemFacts]
    rows: tuple[Row, ...]
    planned: int
    failed: int

    def cell(self, dataset: str, model: str, algorithm: str) -> Cell | None:
        """The searches that saw all rows, or None where none is finished."""
        return self._cells.get((dataset, model, algorithm, False))

    def outer_cell(self, dataset: str, model: str, algorithm: str) -> Cell | None:
        """The searches with a fold held out."""
        return self._cells.get((dataset, model, algorithm, True))

    def facts(self, dataset: str, model: str) -> ProblemFacts:
        return self.problems[dataset, model, None]

    def whole_datasets(self, model: str, algorithms: Sequence[str] | None = None) -> list[str]:
        """The data sets on which every one of the algorithms has a finished run."""
        wanted = self.algorithms if algorithms is None else algorithms
        return [name for name in self.datasets if all(self.cell(name, model, each) for each in wanted)]

    def losses(self, model: str, datasets: Sequence[str], algorithms: Sequence[str]) -> FloatArray:
        """Mean errors, shape (data sets, algorithms)."""
        return np.array([[self._mean(name, model, each) for each in algorithms] for name in datasets])

    def classifier(self, model: str) -> str | None:
        """The paper's classifier that a model stands for, where the data sets are the paper's."""
        return paper_classifier(model)

    def run_counts(self) -> list[int]:
        """How many finished runs that saw all rows there are, for each data set, model and algorithm that has any."""
        return [len(cell.rows) for place, cell in self._cells.items() if not place[3]] or [0]

    def _mean(self, dataset: str, model: str, algorithm: str) -> float:
        cell = self.cell(dataset, model, algorithm)
        return float("nan") if cell is None else float(cell.losses.mean())

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
    """All finished runs of a store; it may be in use."""
    with Store.reading(path) as store:
        planned, rows = store.planned(), store.rows()
        if not rows:
            raise StoreError(f"the store {path} has no finished run yet; `subswarm study status` shows how far it is.")
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
