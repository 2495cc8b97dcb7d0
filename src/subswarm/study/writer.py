"""Makes sure that one process at a time writes to a store, and that its file stays in place.

A lock file beside the store keeps other writers out. It can be deleted while it is held, and a second process could
then lock a new one. The store itself therefore also names its writer, in a transaction.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from subswarm.errors import StoreError
from subswarm.study.schema import open_for_reading, translate_errors

__all__ = [
    "SECONDS_BETWEEN_TRIES",
    "Owner",
    "StoreFiles",
    "describe_writer",
    "hold_lock_file",
    "identify_file",
    "in_use_error",
    "now",
]

SECONDS_BETWEEN_TRIES = 0.2

_tokens_held_here: set[str] = set()


class Owner:
    """This process as the writer of one store.

    Attributes
    ----------
    pid : number of the process
    token : unique for each store that is opened, also within one process
    process : distinguishes the process from a later one with the same number; "" if the system does not tell
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.token = uuid4().hex
        self.process = _identify_process(self.pid)

    def claim(self, connection: sqlite3.Connection, jobs: int) -> bool:
        """Become the writer of a store, inside a transaction; return False if another writer is alive."""
        row = connection.execute("SELECT pid, token, process FROM writer").fetchone()
        if row is not None and _is_alive(*row):
            return False
        _tokens_held_here.add(self.token)
        connection.execute("DELETE FROM writer")
        values = (self.pid, jobs, now(), self.token, self.process)
        connection.execute("INSERT INTO writer VALUES (?, ?, ?, ?, ?)", values)
        return True

    def is_writer(self, connection: sqlite3.Connection) -> bool:
        """Return whether the store still names this process as its writer."""
        row = connection.execute("SELECT token FROM writer").fetchone()
        return row is not None and row[0] == self.token

    def release(self, connection: sqlite3.Connection) -> None:
        """Stop being the writer. If this cannot be written, the end of the process has the same effect."""
        _tokens_held_here.discard(self.token)
        try:
            connection.execute("UPDATE writer SET process = '' WHERE token = ?", (self.token,))
        except sqlite3.Error:
            return


class StoreFiles:
    """The files of a store that is open for writing.

    The system lets a process write to a deleted file, and what it writes is lost when the process ends. `check`
    notices that.
    """

    def __init__(self, path: Path, before: tuple[int, int] | None) -> None:
        """Remember the files; ``before`` is the identity of the store's file before it was opened, if it existed."""
        self._known = {path: identify_file(path) if before is None else before}
        write_ahead_log = Path(f"{path}-wal")
        if write_ahead_log.exists():
            self._known[write_ahead_log] = identify_file(write_ahead_log)
        self.check()

    def check(self) -> None:
        """Raise StoreError if a file was deleted or replaced."""
        for file, known in self._known.items():
            if identify_file(file) != known:
                raise StoreError(
                    f"{file} was deleted, moved or replaced while the study was running, so no more runs can be saved; "
                    "restore it if you can, and run again. Runs that it does not contain are computed again."
                )


@contextmanager
def hold_lock_file(path: Path, *, wait: bool) -> Iterator[None]:
    """Hold SQLite's exclusive lock on a file beside the store; the system frees it whenever the process ends."""
    with translate_errors(path):
        connection = sqlite3.connect(Path(f"{path}-lock"), isolation_level=None, timeout=0)
    with closing(connection):
        while not _try_lock(connection, path):
            if not wait:
                raise in_use_error(path)
            time.sleep(SECONDS_BETWEEN_TRIES)
        yield


def in_use_error(path: Path) -> StoreError:
    """Return the error for a second writer."""
    return StoreError(
        f"the store {path} is being written by another process{describe_writer(path)}; wait until it ends (option "
        "--wait), or name another store."
    )


def describe_writer(path: Path) -> str:
    """Return which process a store names as its writer, in brackets, or "" if it names none."""
    try:
        with closing(open_for_reading(path)) as connection:
            row = connection.execute("SELECT pid, since FROM writer").fetchone()
    except (StoreError, sqlite3.Error):
        return ""
    return f" (number {row[0]}, since {row[1]})" if row else ""


def identify_file(file: Path) -> tuple[int, int] | None:
    """Return what distinguishes a file from another one with the same name, or None if it does not exist."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def now() -> str:
    """Return the current time as text."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _try_lock(connection: sqlite3.Connection, path: Path) -> bool:
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            return False
        with translate_errors(path):
            raise
    return True


def _is_alive(pid: int, token: str, process: str) -> bool:
    """Return whether the process that a store names as its writer is alive and still has the store open.

    A process of another machine or container counts as ended, because it cannot be seen from here.
    """
    if not process or process != _identify_process(pid):
        return False
    return pid != os.getpid() or token in _tokens_held_here


def _identify_process(pid: int) -> str:
    """Return the boot, the number and the start time of a process, which identify it; "" if they are not known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    state, started = fields[0], fields[19]
    return "" if state in "ZX" else f"{boot} {pid} {started}"  # a killed process that is a zombie does not write
