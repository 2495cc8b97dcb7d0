"""Compiled kernels, or the same functions in NumPy without numba."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

from subswarm._compilation import use_numpy, watch_compiler

__all__ = ["compiled_or_none", "kernels_of", "ready_kernels", "ready_or_none"]


def kernels_of(prefix: str) -> ModuleType:
    """Import the compiled kernels ``prefix + "numba"``, or without numba the same functions in ``prefix + "numpy"``."""
    return compiled_or_none(prefix + "numba") or import_module(prefix + "numpy")


def ready_or_none(module: str) -> ModuleType | None:
    """Import a module of compiled kernels; None if numba is not installed, or while another process compiles them."""
    return None if use_numpy() else compiled_or_none(module)


def ready_kernels(prefix: str) -> ModuleType:
    """Do as `kernels_of`, but return the NumPy functions while another process compiles: their losses are the same."""
    return ready_or_none(prefix + "numba") or import_module(prefix + "numpy")


@cache
def compiled_or_none(module: str) -> ModuleType | None:
    """Import a module of compiled kernels; None if numba is not installed."""
    try:
        found = import_module(module)
    except ImportError:
        return None
    watch_compiler()
    return found
