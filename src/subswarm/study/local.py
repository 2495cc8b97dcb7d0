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
from subswarm.study.worker import Task, perform

__all__ = ["local_outcomes"]


def local_outcomes(tasks: Sequence[Task], jobs: int) -> Iterator[Outcome]:
    """The outcomes as they land. One run a task: the costliest come first, so that all workers end together."""
    if jobs == 1 or len(tasks) < 2:
        yield from map(perform, tasks)
        return
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=jobs, batch_size=1, pre_dispatch="2*n_jobs", return_as="generator_unordered")
    outcomes = parallel(delayed(_perform_undisturbed)(task) for task in tasks)
    try:
        yield from outcomes
    except BrokenExecutor as error:
        raise SubswarmError(
            "a worker process was killed, perhaps for want of memory; every finished run is kept: run again, with "
            "fewer jobs if it happens again."
        ) from error
    finally:
        outcomes.close()


def _perform_undisturbed(task: Task) -> Outcome:
    """In a worker Ctrl-C is not for us: the first process hears it and ends us."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with(os.getppid())
    return perform(task)


@cache
def _end_with(parent: int) -> None:
    """Where the first process is killed, its workers end too, within a second, and not after joblib's five minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
