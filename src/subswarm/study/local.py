"""Worker processes on this machine, by joblib."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from functools import cache

from subswarm.core.errors import SubswarmError
from subswarm.study.records import Outcome
from subswarm.study.worker import Task, perform, perform_together

__all__ = ["local_outcomes"]

_LOCKSTEP = 40
"""Runs of one problem that a worker searches in lockstep where a GPU scores: batches of a thousand subsets and more."""


def local_outcomes(tasks: Sequence[Task], jobs: int, *, lockstep: bool = False) -> Iterator[Outcome]:
    """The outcomes as they land. One run a task: the costliest come first, so that all workers end together.

    With ``lockstep`` each worker takes many runs of one problem at a time, and scores their subsets together.
    """
    portions = _portions(tasks, _LOCKSTEP if lockstep else 1)
    if jobs == 1 or len(portions) < 2:
        for portion in portions:
            yield from _perform(portion)
        return
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=jobs, batch_size=1, pre_dispatch="2*n_jobs", return_as="generator_unordered")
    outcomes = parallel(delayed(_perform_undisturbed)(portion) for portion in portions)
    try:
        for landed in outcomes:
            yield from landed
    except BrokenExecutor as error:
        raise SubswarmError(
            "a worker process was killed, perhaps for want of memory; every finished run is kept: run again, with "
            "fewer jobs if it happens again."
        ) from error
    finally:
        outcomes.close()


def _portions(tasks: Sequence[Task], size: int) -> list[list[Task]]:
    """The tasks in order, cut where the problem changes and after ``size`` of them."""
    portions: list[list[Task]] = []
    for task in tasks:
        if portions and len(portions[-1]) < size and portions[-1][0].spec == task.spec:
            portions[-1].append(task)
        else:
            portions.append([task])
    return portions


def _perform(portion: list[Task]) -> list[Outcome]:
    return perform_together(portion) if len(portion) > 1 else [perform(portion[0])]


def _perform_undisturbed(portion: list[Task]) -> list[Outcome]:
    """In a worker Ctrl-C is not for us: the first process hears it and ends us."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with(os.getppid())
    return _perform(portion)


@cache
def _end_with(parent: int) -> None:
    """Where the first process is killed, its workers end too, within a second, and not after joblib's five minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
