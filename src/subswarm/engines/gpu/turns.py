"""Turns on a GPU that several processes share."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import IO

__all__ = ["on_turn"]

_TURNS = 2
"""Processes that may compute at a time."""


@contextmanager
def on_turn() -> Iterator[None]:
    """Wait for a turn on the GPU, for the duration of one batch.

    A GPU that several processes use at the same time switches between them in time slices, and each waits for all the
    others. Two at a time keep it busy: one computes while the other copies. Without file locks, no process waits.
    """
    locks, file = _locks(), _turn_file()
    if locks is None or file is None:
        yield
        return
    locks.flock(file, locks.LOCK_EX)
    try:
        yield
    finally:
        locks.flock(file, locks.LOCK_UN)


@cache
def _locks() -> ModuleType | None:
    try:
        import fcntl
    except ImportError:
        return None
    return fcntl


@cache
def _turn_file() -> IO[str] | None:
    """Open the lock file of this process's turn; the processes of one user share them."""
    user = getattr(os, "getuid", str)()
    path = Path(tempfile.gettempdir()) / f"subswarm-gpu-{user}-{os.getpid() % _TURNS}.lock"
    try:
        return path.open("a")
    except OSError:
        return None
