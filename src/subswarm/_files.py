"""Atomic writes: after an interruption a file has either its old content or its new content."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import platform
import re
import secrets
import time
from os import PathLike
from pathlib import Path

__all__ = ["write_whole"]

_OLD_SECONDS = 24 * 3600.0
"""Age after which any temporary file counts as a leftover: no write takes that long."""

_IN_PROGRESS: set[str] = set()
"""Names of the temporary files that this process is writing."""


def write_whole(path: str | PathLike[str], content: bytes) -> None:
    """Write a file atomically: write a temporary file in the same folder, flush it and rename it.

    OSError if that fails, also for a path that no file can have. After an error the temporary file is removed. If the
    process is killed, the next write to the same path removes it.
    """
    target = Path(path)
    if not target.name:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    temporary = target.with_name(f".{target.name}.{_machine()}-{os.getpid()}-{secrets.token_hex(4)}.part")
    _IN_PROGRESS.add(temporary.name)
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError, ValueError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, ValueError):  # a NUL character, or characters that the file system cannot encode
            raise OSError(errno.EINVAL, f"the path cannot be used ({error})", repr(str(path))) from error
        raise
    finally:
        _IN_PROGRESS.discard(temporary.name)
    _remove_leftovers(target)


def _remove_leftovers(target: Path) -> None:
    """Remove the temporary files of earlier writes to ``target`` that were killed."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.(?:([0-9a-f]{{8}})-(\d+)-)?[0-9a-f]{{8}}\.part")
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            found = pattern.fullmatch(entry.name)
            if found is not None and _is_leftover(entry, found[1], found[2]):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)


def _is_leftover(entry: os.DirEntry[str], machine: str | None, process: str | None) -> bool:
    """Return whether the process that created this temporary file has ended, as far as this machine can tell."""
    if entry.name in _IN_PROGRESS:
        return False
    if machine == _machine() and process is not None and not _is_running(int(process)):
        return True
    try:
        return time.time() - entry.stat().st_mtime > _OLD_SECONDS
    except OSError:  # it was renamed or removed in the meantime
        return False


def _is_running(process: int) -> bool:
    """Return whether another process with this id runs on this machine; True if that is unknown."""
    if process == os.getpid():
        return False  # our own writes are in _IN_PROGRESS: an earlier process had the same id
    if os.name != "posix":
        return True  # os.kill(process, 0) would end the process on Windows; only the file's age counts there
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it belongs to another user
        return True
    return True


def _machine() -> str:
    """Return eight characters that identify the machine: process ids are only valid on one machine."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]
