"""Whether the heaviest rules of an algorithm run compiled."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from itertools import count
from types import ModuleType

__all__ = ["kernel_or"]

_CALLS = count()
_WORTH_IMPORTING_NUMBA = 10_000
"""Rules called (six a step) after which NumPy has taken as much longer as importing numba would have (0.5 s)."""


def kernel_or(plain: ModuleType, kernel: str) -> ModuleType:
    """The module ``kernel`` where numba is loaded already, as it is once a fast engine has scored a subset.

    Importing it for these rules alone takes longer than one search saves, so that waits until many have been under
    way. Before that, and where there is no numba, the rules in plain NumPy: their numbers are the same.
    """
    if "numba" in sys.modules or next(_CALLS) >= _WORTH_IMPORTING_NUMBA:
        return _imported(kernel) or plain
    return plain


@cache
def _imported(kernel: str) -> ModuleType | None:
    try:
        return import_module(f"subswarm.algorithms.{kernel}")
    except ImportError:
        return None
