"""Cases that crash, hang, raise, differ and lack a package on purpose, to test the harness itself."""

from __future__ import annotations

import os
import time

import numpy as np

from .case import Case, announce

__all__ = ["WAYS", "run", "way_of"]

WAYS = ("well", "well", "well", "crash", "hang", "raise", "differ", "lack")


def run(rng: np.random.Generator) -> Case:
    """A case that ends in one of `WAYS`."""
    case = Case(compared=1)
    way = way_of(rng)
    announce(f"this one ends by {way}")
    if way == "crash":
        os.abort()
    if way == "hang":
        time.sleep(600)
    if way == "raise":
        raise ZeroDivisionError("on purpose")
    if way == "lack":
        raise ModuleNotFoundError("on purpose", name="polars")
    if way == "differ":
        case.differs("on purpose", "one is not two")
    return case


def way_of(rng: np.random.Generator) -> str:
    """How a case ends."""
    return WAYS[int(rng.integers(len(WAYS)))]
