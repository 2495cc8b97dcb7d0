"""A batch spread over threads: kernels release the GIL, BLAS stays on one thread each, nothing depends on how many."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

__all__ = ["n_threads", "spread"]


def n_threads(n_jobs: int | None) -> int:
    """The number of threads that ``n_jobs`` means to joblib (None: 1, -1: every core)."""
    return int(effective_n_jobs(n_jobs))


def spread(work: Callable[[int, int], None], n_items: int, threads: int, *, blas: bool = False) -> None:
    """Call ``work(start, stop)`` on slices that cover ``range(n_items)``, at most ``threads`` at a time.

    With ``blas`` the work calls BLAS, which is held to one thread for each of ours.
    """
    if blas:
        with _blas().limit(limits=1, user_api="blas"):
            spread(work, n_items, threads)
        return
    if threads <= 1 or n_items <= 1:
        work(0, n_items)
        return
    pieces = min(n_items, 4 * threads)
    edges = [n_items * piece // pieces for piece in range(pieces + 1)]
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work, start, stop) for start, stop in pairwise(edges)]:
            done.result()


@cache
def _blas() -> Any:
    return ThreadpoolController()
