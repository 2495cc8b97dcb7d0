"""Compiled kernels, or the same functions in NumPy without numba."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

from subswarm._compilation import use_numpy, watch_compiler

__all__ = ["compiled_or_none", "kernels_of", "ready_or_none"]


def kernels_of(prefix: str) -> ModuleType:
    """Import the compiled kernels ``prefix + "numba"``, or the same functions in NumPy from ``prefix + "numpy"``.

    These are used without numba, and while another process compiles. Their results are the same, or, where an engine
    promises numbers only up to rounding, the same up to rounding. Call it in the thread that calls `fit`.
    """
    return ready_or_none(prefix + "numba") or import_module(prefix + "numpy")


def ready_or_none(module: str) -> ModuleType | None:
    """Import a module of compiled kernels; None if numba is not installed, or while another process compiles them."""
    return None if use_numpy() else compiled_or_none(module)


@cache
def compiled_or_none(module: str) -> ModuleType | None:
    """Import a module of compiled kernels; None if numba is not installed."""
    try:
        found = import_module(module)
    except ImportError:
        return None
    watch_compiler()
    return found
