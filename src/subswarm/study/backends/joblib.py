"""Computes runs in worker processes on this machine, with joblib."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from typing import TYPE_CHECKING

from subswarm._parent import start_worker
from subswarm.errors import SubswarmError
from subswarm.study.records import Outcome
from subswarm.study.worker import Task, perform, perform_together

if TYPE_CHECKING:
    from joblib.parallel import LokyBackend

__all__ = ["local_outcomes"]

_LOCKSTEP = 40
"""Runs of one problem that a worker searches in lockstep if a GPU scores: batches of more than a thousand subsets."""


def local_outcomes(tasks: Sequence[Task], jobs: int, *, lockstep: bool = False) -> Iterator[Outcome]:
    """Yield the outcomes as they finish. Each worker computes one run at a time, in the order given.

    With ``lockstep``, each worker computes many runs of one problem at a time and scores their subsets together.
    """
    parts = _parts(tasks, _LOCKSTEP if lockstep else 1)
    if jobs == 1 or len(parts) < 2:
        for part in parts:
            yield from _perform(part)
        return
    from joblib import Parallel, delayed

    parallel = Parallel(
        n_jobs=jobs,
        backend=_watched_workers(),
        batch_size=1,
        pre_dispatch="2*n_jobs",
        return_as="generator_unordered",
    )
    outcomes = parallel(delayed(_perform)(part) for part in parts)
    try:
        for finished in outcomes:
            yield from finished
    except BrokenExecutor as error:
        raise SubswarmError(
            "a worker process was killed, possibly because memory ran out. Every finished run is kept; run again, with "
            "fewer jobs if it happens again."
        ) from error
    finally:
        outcomes.close()


def _parts(tasks: Sequence[Task], size: int) -> list[list[Task]]:
    """Split the tasks, in order, into parts of one problem and at most ``size`` tasks."""
    parts: list[list[Task]] = []
    for task in tasks:
        if parts and len(parts[-1]) < size and parts[-1][0].spec == task.spec:
            parts[-1].append(task)
        else:
            parts.append([task])
    return parts


def _perform(part: list[Task]) -> list[Outcome]:
    return perform_together(part) if len(part) > 1 else [perform(part[0])]


def _watched_workers() -> LokyBackend:
    """Return a joblib backend whose workers end when this process ends.

    Otherwise the idle workers of a killed study would wait for a task for five minutes.
    """
    from joblib.parallel import LokyBackend

    class WatchedWorkers(LokyBackend):  # type: ignore[misc]
        def configure(self, *args: object, **settings: object) -> int:
            workers: int = super().configure(*args, initializer=start_worker, initargs=(os.getpid(),), **settings)
            return workers

    return WatchedWorkers()
