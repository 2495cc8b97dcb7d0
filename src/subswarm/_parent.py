"""Worker processes that end with the process that started them.

This module imports next to nothing: a new worker runs it before anything large is imported.
"""

from __future__ import annotations

import os
import signal
import threading
import time

__all__ = ["start_worker"]

_SECONDS_BETWEEN_LOOKS = 0.5


def start_worker(parent: int) -> None:
    """Make this worker end when ``parent`` has ended, whether or not it was ever given a task.

    ``parent`` is the process number that the parent itself gave. A worker that asked for it could already have been
    inherited by another process, and would then watch the wrong one. A number that is in use again does no harm:
    the system never makes an unrelated process the parent of a running one.

    Ctrl-C reaches every process of the terminal; only the parent answers it, and ends its workers.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _exit_if_orphaned(parent)
    threading.Thread(target=_watch, args=(parent,), name="parent watcher", daemon=True).start()


def _watch(parent: int) -> None:
    while True:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
        _exit_if_orphaned(parent)


def _exit_if_orphaned(parent: int) -> None:
    if os.getppid() != parent:
        os._exit(1)  # nobody is left to hear of an error, and the main thread may be in compiled code
