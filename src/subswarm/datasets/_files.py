"""Finding the files of a data set and verifying them."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

from subswarm._checks import shown
from subswarm.datasets._catalogue import Entry, SourceFile
from subswarm.datasets._parse import with_plain_line_ends
from subswarm.errors import DatasetError

__all__ = ["DATA_VARIABLE", "find_file", "is_genuine", "read_verified", "search_folders"]

DATA_VARIABLE = "SUBSWARM_DATA"


def search_folders(data_dir: str | os.PathLike[str] | None) -> list[Path]:
    """Return the folders to look in: ``data_dir``, or if it is None the folder in SUBSWARM_DATA."""
    named = data_dir if data_dir is not None else os.environ.get(DATA_VARIABLE) or None
    if named is None:
        return []
    folder = Path(named)
    try:
        folder = folder.expanduser()
        is_folder = folder.is_dir()
    except (OSError, RuntimeError, ValueError):  # a path that is too long, an unknown user, a NUL character
        is_folder = False
    if not is_folder:
        origin = "data_dir" if data_dir is not None else DATA_VARIABLE
        raise DatasetError(
            f"{origin} is {shown(str(folder))}, which is not a folder; set it to the folder with the UCI files."
        )
    return [folder]


def find_file(entry: Entry, file: SourceFile, folders: list[Path]) -> Path | None:
    """Return the path of a file in one of the folders: ``NAME/FILE``, ``FILE``, or either with ``.gz``."""
    return next((path for path in _places(entry, file, folders) if _is_file(path)), None)


def read_verified(path: Path, file: SourceFile) -> bytes:
    """Return the content of a file, decompressed; DatasetError if it does not match its checksum."""
    try:
        content = _unpacked(path, file.size) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{str(path)!r} cannot be read: {error}") from error
    if not is_genuine(content, file):
        raise DatasetError(
            f"{str(path)!r} does not match the catalogue: its {len(content)} bytes have sha256 "
            f"{_sha256(content)}; expected {file.size} bytes with {file.sha256}. Get a new copy, or load your own "
            "version with load_table."
        )
    return content


def is_genuine(content: bytes, file: SourceFile) -> bool:
    """Return whether the content matches the catalogue, apart from the line ends of text."""
    if _sha256(content) == file.sha256:
        return True
    return file.is_text and _sha256(with_plain_line_ends(content)) == file.text_sha256


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # such as in a folder without permission
        return False


def _unpacked(path: Path, size: int) -> bytes:
    """Return the decompressed content, up to a limit above the size that it can have with other line ends."""
    with gzip.open(path) as stream:
        return stream.read(2 * size + 1024)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _places(entry: Entry, file: SourceFile, folders: list[Path]) -> Iterator[Path]:
    for folder in folders:
        for place in (folder / entry.name, folder):
            yield place / file.name
            yield place / f"{file.name}.gz"
