"""Files that are whole or not there."""

from __future__ import annotations

import os
import secrets
from os import PathLike
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: str | PathLike[str], content: bytes) -> None:
    """Write a temporary file beside ``path``, flush it and rename it into place; an error leaves nothing behind."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
