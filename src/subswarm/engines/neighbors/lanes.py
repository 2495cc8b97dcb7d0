"""The innermost steps of the neighbour kernels: from `simd`, or from `portable` where vector intrinsics fail.

The intrinsics are used unless they do not compile on this machine or SUBSWARM_SIMD=0 is set in the environment. Both
modules give the same neighbours. Imported only if numba is installed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import ParamSpec, TypeVar

from subswarm._njit import njit

__all__ = [
    "ROWS",
    "USES_SIMD",
    "WIDTH",
    "bound_row",
    "count_no_larger",
    "hits_from",
    "kernel",
    "least_of_rank",
    "lowest_bit",
    "multiply_rows",
    "transpose_block",
]

P = ParamSpec("P")
R = TypeVar("R")


def _choose() -> ModuleType:
    if os.environ.get("SUBSWARM_SIMD", "1") != "0":
        try:
            simd = import_module("subswarm.engines.neighbors.simd")
            simd.try_all()
        except Exception:  # another version of numba or llvmlite, or a processor whose compiler refuses the vectors
            pass
        else:
            return simd
    return import_module("subswarm.engines.neighbors.portable")


_steps = _choose()
USES_SIMD = _steps.__name__.endswith("simd")
ROWS: int = _steps.ROWS
WIDTH: int = _steps.WIDTH
bound_row, count_no_larger, hits_from = _steps.bound_row, _steps.count_no_larger, _steps.hits_from
least_of_rank, lowest_bit = _steps.least_of_rank, _steps.lowest_bit
multiply_rows, transpose_block = _steps.multiply_rows, _steps.transpose_block


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that uses these steps.

    numba's cache does not know which steps were compiled in, so only code with the intrinsics is cached.
    """
    return njit(nogil=True, cache=USES_SIMD)(function)
