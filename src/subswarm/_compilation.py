"""How long numba has compiled, so that this time enters no estimate, and a note when it starts."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["announced", "compile_seconds", "watch_compiler"]

NOTE = "compiling the kernels for this machine; later searches start at once"


class _Stopwatch:
    """Sums up the time of compilations. Those of one thread may be nested; numba never compiles in two threads."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.announce = False
        self._nesting = threading.local()

    def start(self) -> None:
        depth = getattr(self._nesting, "depth", 0)
        self._nesting.depth = depth + 1
        if depth == 0:
            self._nesting.since = time.perf_counter()
            if self.announce:
                self.announce = False
                print(NOTE, file=sys.stderr, flush=True)

    def stop(self) -> None:
        self._nesting.depth -= 1
        if self._nesting.depth == 0:
            self.seconds += time.perf_counter() - self._nesting.since


_STOPWATCH = _Stopwatch()
_WATCHING = False


def watch_compiler() -> None:
    """Start to measure how long numba compiles. numba must be imported; kernels loaded from its cache do not count."""
    global _WATCHING
    if _WATCHING:
        return
    _WATCHING = True
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, started: object) -> None:
            _STOPWATCH.start()

        def on_end(self, ended: object) -> None:
            _STOPWATCH.stop()

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]


def compile_seconds() -> float:
    """Return how long numba has compiled in this process since `watch_compiler`."""
    return _STOPWATCH.seconds


@contextmanager
def announced(wanted: bool) -> Iterator[None]:
    """Print a note on standard error if a compilation starts in this block, if that is ``wanted``."""
    before, _STOPWATCH.announce = _STOPWATCH.announce, wanted
    try:
        yield
    finally:
        _STOPWATCH.announce = before
