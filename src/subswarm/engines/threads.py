"""Distributes a batch over threads: kernels release the GIL, BLAS uses one thread each, results do not depend on it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from itertools import pairwise
from typing import Protocol

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

__all__ = ["n_threads", "spread"]


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
