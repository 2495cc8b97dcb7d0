"""Distributes work: a batch for kernels over threads, and fits among the workers of joblib or Dask.

Kernels release the GIL, and BLAS uses one thread each; results do not depend on the number of threads. Of fits, the
table goes to each worker once.

Local processes map the table from one file into their memory. On a Dask cluster it is sent to each worker, and a worker
that ends only delays the search: its fits are repeated by others.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any, Protocol, TypeVar, cast

import joblib
import numpy as np
from joblib import cpu_count, effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController

from subswarm._types import AnyArray, Estimator, FloatArray
from subswarm.engines.data import Fold, FoldedData, cloneable, library_of
from subswarm.errors import SubswarmError

__all__ = ["Workers", "n_threads", "spread", "with_threads"]


class _Library(Protocol):
    """A BLAS library, as threadpoolctl controls it."""

    def get_num_threads(self) -> int: ...

    def set_num_threads(self, num_threads: int) -> None: ...


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` means to joblib (None: 1, -1: every core)."""
    return int(effective_n_jobs(n_jobs))


def spread(work: Callable[[int, int], None], n_items: int, threads: int, *, blas: bool = False) -> None:
    """Call ``work(start, stop)`` on slices that cover ``range(n_items)``, at most ``threads`` at a time.

    With ``blas`` the work calls BLAS, which is limited to one thread for each of ours.
    """
    if blas:
        before = [(library, library.get_num_threads()) for library in _blas()]
        try:
            _set_threads((library, 1) for library, _ in before)
            spread(work, n_items, threads)
        finally:
            _set_threads(before)
        return
    if threads <= 1 or n_items <= 1:
        work(0, n_items)
        return
    pieces = min(n_items, 4 * threads)
    waiting = deque(pairwise([n_items * piece // pieces for piece in range(pieces + 1)]))

    def take_turns() -> None:
        while True:
            try:
                start, stop = waiting.popleft()
            except IndexError:
                return
            work(start, stop)

    helpers = [_helpers(threads - 1, os.getpid()).submit(take_turns) for _ in range(threads - 1)]
    try:
        take_turns()
    finally:
        started = [helper for helper in helpers if not helper.cancel()]  # the others would find nothing left to do
        wait(started)
    for helper in started:
        helper.result()


@cache
def _helpers(count: int, process: int) -> ThreadPoolExecutor:
    """Return threads that each process keeps between calls: new ones start with cold memory, which took 1-2 ms."""
    return ThreadPoolExecutor(count, thread_name_prefix="subswarm")


def _set_threads(counts: Iterable[tuple[_Library, int]]) -> None:
    for library, count in counts:
        library.set_num_threads(count)


@cache
def _blas() -> list[_Library]:
    """Return the loaded BLAS libraries. Setting each takes 3 µs; threadpoolctl's own context manager took 18."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


R = TypeVar("R")
E = TypeVar("E", bound=Estimator)

_ATTEMPTS = 5
"""How often the fits that a cluster lost are sent again."""
_THREADS = ("n_jobs", "nthread", "thread_count", "num_threads")
"""Settings of estimators for their number of threads."""


class Workers:
    """Runs functions of an estimator and its data for many arguments.

    Parameters
    ----------
    estimator, data : the first two arguments of each call
    n_jobs : number of workers, as in joblib; 1 computes in this process
    """

    def __init__(self, estimator: Estimator, data: FoldedData, n_jobs: int | None) -> None:
        self._estimator = estimator
        self._data = data
        self._n_jobs = n_jobs
        self._file: str | None = None
        self._sent: tuple[object, object] | None = None

    def run(self, work: Callable[..., R], jobs: Sequence[tuple[Any, ...]]) -> list[R]:
        """Return ``work(estimator, data, *job)`` of each job, in their order."""
        backend, _ = get_active_backend()
        if not jobs or self._n_jobs == 1:
            return [work(self._estimator, self._data, *job) for job in jobs]
        if type(backend).__name__ == "DaskDistributedBackend":
            return self._run_on_dask(backend.client, work, jobs)
        workers = min(int(effective_n_jobs(self._n_jobs)), len(jobs))
        if workers == 1:
            return [work(self._estimator, self._data, *job) for job in jobs]
        estimator = with_threads(self._estimator, max(1, cpu_count() // workers))
        calls = [delayed(work)(estimator, self._data, *job) for job in jobs]
        if not getattr(backend, "supports_sharedmem", False):
            parts = self._shared_file(), _without_table(self._data)
            calls = [delayed(_run_with_file)(work, estimator, *parts, job) for job in jobs]
        return cast("list[R]", Parallel(n_jobs=self._n_jobs)(calls))

    def _shared_file(self) -> str:
        """Return the file that has the table, written once; it is deleted with this object."""
        if self._file is None:
            folder = tempfile.mkdtemp(prefix="subswarm-", dir=os.environ.get("JOBLIB_TEMP_FOLDER"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            path = os.path.join(folder, "table")
            joblib.dump(_SharedTable.of(self._data), path)
            self._file = path
        return self._file

    def _run_on_dask(self, client: Any, work: Callable[..., R], jobs: Sequence[tuple[Any, ...]]) -> list[R]:
        """Run the jobs on a cluster. What is lost with a worker is sent again."""
        found: dict[int, R] = {}
        for _ in range(_ATTEMPTS):
            if self._sent is None or self._sent[0] is not client:
                self._sent = client, client.scatter([self._payload()], broadcast=True, hash=False)[0]
            futures = {
                place: client.submit(_run_with_payload, self._sent[1], work, job, pure=False)
                for place, job in enumerate(jobs)
                if place not in found
            }
            for place, future in futures.items():
                try:
                    found[place] = future.result()
                except (Exception, asyncio.CancelledError) as error:
                    if not _is_lost(error):
                        raise
            if len(found) == len(jobs):
                return [found[place] for place in range(len(jobs))]
            self._sent = None  # the table may have been lost with a worker
        raise SubswarmError(
            f"the Dask cluster lost {len(jobs) - len(found)} of {len(jobs)} fits {_ATTEMPTS} times. Look at the memory "
            "of its workers and at their logs."
        )

    def _payload(self) -> tuple[Estimator, FoldedData]:
        return with_threads(self._estimator, 1), self._data


@dataclass(frozen=True, eq=False)
class _SharedTable:
    """The large parts of the data."""

    X: FloatArray | None
    frame: object | None
    y: AnyArray
    folds: tuple[Fold, ...]

    @classmethod
    def of(cls, data: FoldedData) -> _SharedTable:
        return cls(data.X if data.frame is None else None, data.frame, data.y, data.folds)


_read: dict[str, _SharedTable] = {}
"""The table that this worker has read last, by its file."""


def _without_table(data: FoldedData) -> FoldedData:
    """Return what else belongs to the data: the scorer, metadata and the number of repeats."""
    return replace(data, X=np.empty((0, data.n_features)), y=np.empty(0), frame=None, folds=())


def _run_with_file(
    work: Callable[..., R], estimator: Estimator, path: str, data: FoldedData, job: tuple[Any, ...]
) -> R:
    """Run one job in a worker process, on the table in a file."""
    if path not in _read:
        _read.clear()
        _read[path] = joblib.load(path, mmap_mode="r")
    table = _read[path]
    X = data.X if table.X is None else table.X
    whole = replace(data, X=X, y=table.y, frame=table.frame, folds=table.folds)
    return work(estimator, whole, *job)


def _run_with_payload(payload: tuple[Estimator, FoldedData], work: Callable[..., R], job: tuple[Any, ...]) -> R:
    """Run one job on a worker of a cluster."""
    return work(*payload, *job)


def _is_lost(error: BaseException) -> bool:
    """Return whether a cluster could not compute a job because a worker or the table on it was lost."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"KilledWorker", "CancelledError", "FutureCancelledError", "CommClosedError"})


def with_threads(estimator: E, threads: int) -> E:
    """Return an estimator whose models use at most this many threads, if their own number is all cores.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> with_threads(RandomForestClassifier(n_jobs=-1), 2).n_jobs
    2
    >>> with_threads(RandomForestClassifier(n_jobs=4), 2).n_jobs
    4
    """
    settings = estimator.get_params(deep=True)
    changed: dict[str, object] = {}
    for name, value in settings.items():
        owner, _, last = name.rpartition("__")
        if last in _THREADS and (value == -1 or (value is None and _uses_all_cores(settings.get(owner, estimator)))):
            changed[name] = threads
    for name, value in {"": estimator, **settings}.items():
        if hasattr(value, "fit") and library_of(value) == "catboost":
            given = value.get_params()
            if not any(setting in given for setting in _THREADS):
                changed[f"{name}__thread_count" if name else "thread_count"] = threads
    return clone(cloneable(estimator)).set_params(**changed) if changed else estimator


def _uses_all_cores(estimator: object) -> bool:
    """Return whether no number of threads means all cores; for scikit-learn it means one."""
    return library_of(estimator) in ("lightgbm", "xgboost")
