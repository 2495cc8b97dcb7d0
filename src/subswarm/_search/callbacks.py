"""Callbacks of a search: `Recorder`, `ProgressBar`, and `Checkpoint`, which saves and restores it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from subswarm._checks import as_tuple, check_real, shown
from subswarm._compilation import compile_seconds, is_compiling_aside
from subswarm._display import format_duration
from subswarm._search import checkpoint_file as files
from subswarm._search.ask_tell import AnySearch, differences
from subswarm._search.result import Recording, Snapshot
from subswarm._search.run import SearchRun
from subswarm._types import FloatArray, IntArray
from subswarm.algorithms import state as plain
from subswarm.errors import CheckpointError, DamagedCheckpointError, SettingError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["LONG_SECONDS", "Callback", "Checkpoint", "ProgressBar", "Recorder", "TimeNotice", "check_callbacks"]

LONG_SECONDS = 60.0
"""Expected time from which it is announced."""

Callback = Callable[[Snapshot], object]
"""Called after each step; a return value of True stops the search."""


def check_callbacks(callbacks: object) -> tuple[Callback, ...]:
    """Return the callbacks as a tuple; raise SettingError if they are not a list of functions."""
    if callable(callbacks):
        raise SettingError(f"callbacks must be a list of functions; got the function {shown(callbacks)} alone.")
    listed = as_tuple("callbacks", callbacks, of="functions")
    for callback in listed:
        if not callable(callback) or isinstance(callback, type):
            raise SettingError(f"each of callbacks must be a function that takes a Snapshot; got {shown(callback)}.")
    return listed


@dataclass(frozen=True)
class _Step:
    evaluations: int
    cardinality: IntArray
    fitness: FloatArray
    chosen: IntArray
    likelihood: FloatArray | None


class Recorder:
    """Record every evaluated subset, how often each feature was in, and the likelihoods of cardinalities.

    Parameters
    ----------
    feature_sizes : number of columns behind each feature, if groups of columns are features of the search

    Examples
    --------
    >>> from subswarm import Budget, search
    >>> result = search("2d-upso", lambda masks: masks.mean(axis=1), Budget(evaluations=60), rng=0, n_features=6,
    ...                 record=True)
    >>> result.recording.fitness.shape, result.recording.likelihood.shape
    ((60,), (2, 6))
    """

    def __init__(self, feature_sizes: Sequence[int] | None = None) -> None:
        self._sizes = None if feature_sizes is None else np.asarray(feature_sizes, dtype=np.intp)
        self._steps: list[_Step] = []

    def __call__(self, snapshot: Snapshot) -> None:
        masks = snapshot.masks
        likelihood = snapshot.state.cardinality_likelihood
        self._steps.append(
            _Step(
                evaluations=snapshot.evaluations,
                cardinality=masks.sum(axis=1, dtype=np.intp) if self._sizes is None else masks @ self._sizes,
                fitness=snapshot.fitness,
                chosen=masks.sum(axis=0, dtype=np.intp),
                likelihood=None if likelihood is None else np.asarray(likelihood, dtype=np.float64),
            )
        )

    def recording(self) -> Recording | None:
        """Return the recording; None if no step was made."""
        if not self._steps:
            return None
        rows = [step.likelihood for step in self._steps if step.likelihood is not None]
        return Recording(
            evaluations=np.array([step.evaluations for step in self._steps], dtype=np.intp),
            cardinality=np.concatenate([step.cardinality for step in self._steps]),
            fitness=np.concatenate([step.fitness for step in self._steps]),
            chosen=np.sum([step.chosen for step in self._steps], axis=0, dtype=np.intp),
            likelihood=np.array(rows) if len(rows) == len(self._steps) else None,
        )


class ProgressBar:
    """Show evaluations, best score, features and remaining time in a terminal or notebook; silent elsewhere.

    Parameters
    ----------
    total : planned number of evaluations, or None if they are not limited
    score : converts the best loss to the score shown
    label : name of that score
    """

    def __init__(self, total: int | None, score: Callable[[float], float], label: str = "score") -> None:
        self._total = total
        self._score = score
        self._label = label
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> ProgressBar:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        console = Console(stderr=True)
        if console.is_terminal or console.is_jupyter:
            self._progress = Progress(
                TextColumn("searching"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[found]}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=console,
                transient=False,
                refresh_per_second=8,
            )
            self._task = self._progress.add_task("", total=self._total, found="")
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def __call__(self, snapshot: Snapshot) -> None:
        if self._progress is not None and self._task is not None:
            found = f"{self._label} {self._score(snapshot.best.fitness):.4f} with {snapshot.best.cardinality} features"
            self._progress.update(self._task, completed=snapshot.evaluations, found=found)


class TimeNotice:
    """Print the expected time of a search on standard error, once, if it is longer than a minute.

    The first step, which may include the start of workers, and the compilation of kernels are not counted.

    Parameters
    ----------
    total : planned number of evaluations, or None if they are not limited
    seconds : time limit, or None
    """

    def __init__(self, total: int | None, seconds: float | None) -> None:
        self._total, self._limit = total, seconds
        self._first: Snapshot | None = None
        self._began = compile_seconds()
        self._compiled = 0.0
        self._said = total is None

    def __call__(self, snapshot: Snapshot) -> None:
        if self._first is None or is_compiling_aside():  # the pace will change
            self._first, self._compiled = snapshot, compile_seconds()
        elif not self._said and self._total is not None:
            self._said = True
            taken = snapshot.seconds - self._first.seconds - (compile_seconds() - self._compiled)
            rate = max(0.0, taken) / (snapshot.evaluations - self._first.evaluations)
            searched = snapshot.seconds - (compile_seconds() - self._began)
            self.say(max(0.0, searched) + rate * (self._total - snapshot.evaluations))

    def say(self, expected: float) -> None:
        """Print the expected time, if it is longer than a minute."""
        self._said = True
        if self._limit is not None:
            expected = min(expected, self._limit)
        if expected > LONG_SECONDS:
            print(f"the search takes about {format_duration(expected)}", file=sys.stderr, flush=True)


class Checkpoint:
    """Write a run to a file, after the first step and then at most every few seconds, and restore it from there.

    Parameters
    ----------
    path : path of the file, or None to write nothing
    parts : digests of everything the objective depends on, by name; they tell whether a file belongs to this search
    every_seconds : minimum time between two writes
    """

    def __init__(self, path: str | PathLike[str] | None, parts: Mapping[str, str], every_seconds: float) -> None:
        check_real("checkpoint_seconds", every_seconds, low=0)
        self.path = None if path is None else files.as_path(path)
        self._parts = dict(parts)
        self._every_seconds = every_seconds
        self._written_at = -np.inf

    def write_if_due(self, run: SearchRun) -> None:
        """Write the run if the last write was long enough ago."""
        if self.path is not None and time.monotonic() - self._written_at >= self._every_seconds:
            self.write(run)

    def write(self, run: SearchRun) -> None:
        """Write the run, unless its last batch was evaluated in part: the file then keeps the state before it."""
        if self.path is None or run.search.cut_short:
            return
        arrays, values = run.saved()
        files.write(self.path, arrays, values | {"parts": self._parts})
        self._written_at = time.monotonic()

    def restore(self, run: SearchRun, evaluations: int | None) -> SearchRun:
        """Return the run saved in the file, or ``run``, which has just begun, if there is no file."""
        saved = None if self.path is None else files.read(self.path)
        if saved is None:
            return run
        try:
            self._check_owner(run.search, saved.values)
            return run.restored(saved.arrays, saved.values, evaluations)
        except DamagedCheckpointError as error:
            raise error.named(self.path) from None

    def _check_owner(self, search: AnySearch, values: Mapping[str, object]) -> None:
        """Raise CheckpointError if the file belongs to another search, and name the differences."""
        theirs = plain.value_of(values, "parts", dict)
        names = dict.fromkeys((*self._parts, *theirs))
        differing = [name for name in names if theirs.get(name) != self._parts.get(name)]
        counts = {
            "features": ("n_features", 1, search.n_features),
            "partitions": ("n_partitions", 1, search.n_partitions),
            "blocks of left-out rows": ("n_left_out", 0, search.n_left_out),
        }
        for name, (key, low, here) in counts.items():
            there = plain.whole_number(values, key, low=low)
            if there != here:
                differing.append(f"number of {name} ({there} there, {here} here)")
        differing += differences(search.algorithm, values)
        if differing:
            raise CheckpointError(
                f"{self.path} belongs to another search; what differs: {', '.join(differing)}. Delete the file to "
                "start again, or use another file for this search."
            )
