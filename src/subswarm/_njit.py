"""`numba.njit` with a cache on disk that several processes can fill at once. Imported only if numba is installed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from numba import njit as _njit_of_numba

__all__ = ["njit"]

P = ParamSpec("P")
R = TypeVar("R")


def njit(**options: object) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile a function as `numba.njit` does; with ``cache=True`` the machine code is kept on disk.

    numba numbers the files of one function's machine code from 1, names one in the index before it writes it, and does
    not lock. So a second process could load what another version of numba or of the function left in a file of that
    name, or the code for other types. Here each file has a new name: what the index names is absent or right.
    """

    def compile_function(function: Callable[P, R]) -> Callable[P, R]:
        compile_by_numba: Callable[..., Callable[[Callable[P, R]], Callable[P, R]]] = _njit_of_numba
        compiled = compile_by_numba(**options)(function)
        file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)  # None if nothing is cached
        pattern = getattr(file, "_data_name_pattern", None)
        if isinstance(pattern, str):
            setattr(file, "_data_name", partial(_new_name, pattern))  # noqa: B010  (numba's attribute, not ours)
        return compiled

    return compile_function


def _new_name(pattern: str, number: int) -> str:
    """Return numba's name of a file with the process and a random part in it."""
    return pattern.format(number=number).removesuffix(".nbc") + f".{os.getpid()}-{secrets.token_hex(4)}.nbc"
