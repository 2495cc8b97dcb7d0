"""Choose between the compiled and the NumPy version of an algorithm's computations."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from itertools import count
from types import ModuleType

from subswarm._compilation import use_numpy, watch_compiler

__all__ = ["kernel_or"]

_CALLS = count()
_WORTH_IMPORTING_NUMBA = 10_000
"""Calls (six a step) after which NumPy has cost as much extra time as importing numba takes (0.5 s)."""


def kernel_or(plain: ModuleType, kernel: str) -> ModuleType:
    """Return the compiled module ``kernel`` if numba is loaded, as it is once a fast engine has scored a subset.

    Importing numba only for these computations takes longer than a single search saves, so this happens after many
    calls. Before that, and if numba is not installed, the ``plain`` NumPy module is returned. The results are the same.
    """
    if use_numpy():
        return plain
    if "numba" in sys.modules or next(_CALLS) >= _WORTH_IMPORTING_NUMBA:
        return _imported(kernel) or plain
    return plain


@cache
def _imported(kernel: str) -> ModuleType | None:
    try:
        found = import_module(f"subswarm.algorithms.{kernel}")
    except ImportError:
        return None
    watch_compiler()
    return found
