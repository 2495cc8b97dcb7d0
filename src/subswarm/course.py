"""A search on its way: what is noted of it step by step, kept in its checkpoint, and told as its result."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from subswarm import checkpoint as files
from subswarm.algorithms import Search, name_of
from subswarm.algorithms.plain import settings_of
from subswarm.core.budget import Budget
from subswarm.core.errors import CheckpointError, SettingError
from subswarm.core.masks import spread
from subswarm.core.types import History, IntArray, Masks, SearchResult

__all__ = ["Course", "Keeper", "resumed"]


@dataclass(eq=False)
class Course:
    """A search on its way: its history and how long each side took."""

    search: Search[Any]
    algorithm_seconds: float = 0.0
    evaluation_seconds: float = 0.0
    improved_at: int = 0
    rows: list[tuple[float, ...]] = field(default_factory=list)
    evaluated: set[bytes] = field(default_factory=set)

    @property
    def seconds(self) -> float:
        return self.algorithm_seconds + self.evaluation_seconds

    @property
    def seen_anything(self) -> bool:
        return self.search.evaluations > 0

    def note(self, masks: Masks, best_before: float) -> None:
        best = self.search.best
        if best.fitness < best_before:
            self.improved_at = self.search.evaluations
        self.rows.append((self.search.evaluations, best.fitness, best.cardinality, spread(masks), self.seconds))

    def remember(self, masks: Masks, partitions: IntArray | None) -> None:
        """Note which evaluations are asked, so that those asked before are known."""
        packed, R = np.packbits(masks, axis=1), self.search.n_partitions
        partitions = np.tile(np.arange(R), len(masks)) if partitions is None else partitions
        keys = np.repeat(packed, len(partitions) // len(masks), axis=0)
        self.evaluated.update(f"{p} ".encode() + key.tobytes() for p, key in zip(partitions, keys, strict=True))

    def _computed(self, objective: Any) -> int:
        """Distinct evaluations, had this search been alone with its objective."""
        if not hasattr(objective, "computed"):
            return self.search.evaluations
        return len(self.evaluated) if self.evaluated else int(objective.computed)

    def history(self) -> History:
        columns = np.array(self.rows, dtype=np.float64).reshape(-1, 5).T
        return History(
            evaluations=columns[0].astype(np.intp),
            best_fitness=columns[1],
            best_cardinality=columns[2].astype(np.intp),
            spread=columns[3],
            seconds=columns[4],
        )

    def result(self, objective: Any, stop_reason: str) -> SearchResult:
        if not self.search.answered:
            raise SettingError(
                f"{name_of(self.search.algorithm)} was stopped by {stop_reason} after {self.search.evaluations} "
                "evaluations, before it had come to a subset within min_features and max_features; allow more "
                "evaluations, or widen the limits."
            )
        best = self.search.best
        computed = self._computed(objective)  # before the best is scored in folds it may not have seen
        fold_losses = getattr(objective, "losses_of", None)
        return SearchResult(
            best=best,
            fold_losses=None if fold_losses is None else fold_losses(best.mask),
            front=self.search.front,
            history=self.history(),
            stop_reason=stop_reason,
            evaluations=self.search.evaluations,
            computed=computed,
            algorithm_seconds=self.algorithm_seconds,
            evaluation_seconds=self.evaluation_seconds,
            engine=getattr(objective, "engine", "function"),
            algorithm=name_of(self.search.algorithm),
            settings=settings_of(self.search.algorithm),
            n_partitions=self.search.n_partitions,
        )


@dataclass(eq=False)
class Keeper:
    """Writes the checkpoint: at once after the first step, then not more often than asked."""

    path: str | PathLike[str] | None
    fingerprint: str
    every_seconds: float
    written_at: float = -np.inf

    def sometimes(self, course: Course) -> None:
        if self.path is not None and time.monotonic() - self.written_at >= self.every_seconds:
            self.now(course)

    def now(self, course: Course) -> None:
        if self.path is None or course.search.cut_short:
            return  # a batch that was evaluated in part is not a state to go on from; the one before it is on file
        arrays, values = course.search.saved()
        arrays["history"] = np.array(course.rows, dtype=np.float64).reshape(-1, 5)
        values |= {
            "algorithm_seconds": course.algorithm_seconds,
            "evaluation_seconds": course.evaluation_seconds,
            "improved_at": course.improved_at,
        }
        files.write(self.path, arrays, values, self.fingerprint)
        self.written_at = time.monotonic()


def resumed(course: Course, saved: files.Saved | None, budget: Budget) -> Course:
    """The course that the checkpoint holds, or the one just begun where there is none."""
    if saved is None:
        return course
    values = saved.values | {"planned": budget.evaluations}
    if values["n_features"] != course.search.n_features:
        raise CheckpointError(
            f"the checkpoint is of a search among {values['n_features']} features, this one is among "
            f"{course.search.n_features}; use another checkpoint file."
        )
    return Course(
        Search.restored(course.search.algorithm, saved.arrays, values),
        algorithm_seconds=values["algorithm_seconds"],
        evaluation_seconds=values["evaluation_seconds"],
        improved_at=values["improved_at"],
        rows=[tuple(row) for row in saved.arrays["history"].tolist()],
    )
