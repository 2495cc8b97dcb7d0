"""Compilation by numba: which kernels to use, how long it takes, and in another process at first use.

Kernels are modules of functions that exist twice, compiled and in NumPy. The time that compilation takes enters no
estimate.

On a machine whose cache has no kernels yet, a process compiles them into the cache while the search already runs on the
NumPy kernels. Both give the same losses, so the result does not depend on when the compiled ones are ready.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from types import ModuleType

__all__ = [
    "announced",
    "compile_aside",
    "compile_seconds",
    "compiled_or_none",
    "is_cached",
    "is_compiling_aside",
    "kernel_or",
    "kernels_of",
    "may_compile_aside",
    "ready_kernels",
    "ready_or_none",
    "use_numpy",
    "wait_for_compiler",
    "watch_compiler",
]

NOTE = "compiling the kernels for this machine; later searches start at once"
ASIDE = "compiling the kernels for this machine while the search runs without them; later searches start faster"

_MARKER = "SUBSWARM_COMPILING"
"""The environment variable with the path of a file that exists while another process compiles, for worker processes."""
_MAY_COMPILE = _MARKER in os.environ
"""Whether another process may still compile. False is certain, and is read at every step without a system call."""
_ALLOWED = threading.local()
_PROCESS: subprocess.Popen[bytes] | None = None
_OWNER = 0


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


@contextmanager
def may_compile_aside() -> Iterator[None]:
    """Let the code of this block, in this thread, use the NumPy kernels while another process compiles."""
    _ALLOWED.depth = getattr(_ALLOWED, "depth", 0) + 1
    try:
        yield
    finally:
        _ALLOWED.depth -= 1


def use_numpy() -> bool:
    """Return whether to use NumPy kernels now, because another process still compiles the others."""
    return _MAY_COMPILE and getattr(_ALLOWED, "depth", 0) > 0 and is_compiling_aside()


def is_compiling_aside() -> bool:
    """Return whether another process compiles kernels for this one, or for the one that started this worker."""
    global _MAY_COMPILE
    marker = os.environ.get(_MARKER)
    if not marker:
        _MAY_COMPILE = False
        return False
    process = _PROCESS if os.getpid() == _OWNER else None  # a forked worker cannot wait for it
    if (process is None or process.poll() is None) and Path(marker).exists():
        return True
    del os.environ[_MARKER]
    _MAY_COMPILE = False
    if process is not None:
        Path(marker).unlink(missing_ok=True)  # the process was killed
    return False


def _detach(process: subprocess.Popen[bytes]) -> None:
    """Let a process run on without the warning that it still does."""
    if process.poll() is None:
        process.returncode = 0


def wait_for_compiler() -> None:
    """Wait until the other process has compiled, for measurements."""
    if _PROCESS is not None:
        _PROCESS.wait()


def is_cached(kernel: object) -> bool:
    """Return whether a kernel is compiled or in numba's cache; True if numba does not cache it anywhere."""
    if getattr(kernel, "signatures", None):
        return True
    file = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    load = getattr(file, "_load_index", None)  # {} also for an index of another version of the code or of numba
    return load is None or bool(load())


def compile_aside(work: bytes, *, announce: bool) -> None:
    """Start the process that compiles what a search needs (`subswarm._search.plan`), unless there was one already.

    The process ends by itself, at the latest when all is compiled, even if this one ends before.
    """
    global _MAY_COMPILE, _OWNER, _PROCESS
    if _PROCESS is not None or os.environ.get(_MARKER) or not sys.executable or getattr(sys, "frozen", False):
        return
    root = str(Path(__file__).resolve().parent.parent)
    code = f"import sys; sys.path.append({root!r}); from subswarm._search.plan import main; main()"
    with suppress(OSError):  # then this process compiles
        handle, marker = tempfile.mkstemp(prefix="subswarm-")
        os.close(handle)
        _PROCESS = subprocess.Popen(
            [sys.executable, "-P", "-c", code, marker],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _OWNER = os.getpid()
        os.environ[_MARKER] = marker
        _MAY_COMPILE = True
        atexit.register(_detach, _PROCESS)
        with suppress(OSError):  # the process has ended already
            assert _PROCESS.stdin is not None
            _PROCESS.stdin.write(work)
            _PROCESS.stdin.close()
        if announce:
            print(ASIDE, file=sys.stderr, flush=True)


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


_CALLS = count()
_WORTH_IMPORTING_NUMBA = 10_000
"""Calls (six a step) after which NumPy has cost as much extra time as importing numba takes (0.5 s)."""


def kernel_or(plain: ModuleType, kernel: str) -> ModuleType:
    """Return the compiled module ``kernel`` if numba is loaded, as it is once a fast engine has scored a subset.

    Importing numba only for these computations takes longer than a single search saves, so this happens after many
    calls. Before that, and if numba is not installed, the ``plain`` NumPy module is returned. The results are the same.
    """
    if _MAY_COMPILE and use_numpy():
        return plain
    if "numba" in sys.modules or next(_CALLS) >= _WORTH_IMPORTING_NUMBA:
        return _compiled_or(plain, kernel)
    return plain


@cache
def _compiled_or(plain: ModuleType, kernel: str) -> ModuleType:
    return compiled_or_none(f"subswarm.algorithms.{kernel}") or plain
