"""Where a data set's files are, and whether they are what they should be."""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from subswarm.core.errors import DatasetError
from subswarm.datasets.catalogue import Entry, SourceFile
from subswarm.datasets.parse import plain_text

__all__ = ["DATA_VARIABLE", "find_file", "is_genuine", "read_verified", "search_folders"]

DATA_VARIABLE = "SUBSWARM_DATA"


def search_folders(data_dir: str | os.PathLike[str] | None) -> list[Path]:
    """The folders to look in: ``data_dir``, or where it is None the one that SUBSWARM_DATA names."""
    named = data_dir if data_dir is not None else os.environ.get(DATA_VARIABLE) or None
    if named is None:
        return []
    folder = Path(named).expanduser()
    if not folder.is_dir():
        origin = "data_dir" if data_dir is not None else DATA_VARIABLE
        raise DatasetError(
            f"{origin} names {str(folder)!r}, which is not a folder; give the folder with the UCI files."
        )
    return [folder]


def find_file(entry: Entry, file: SourceFile, folders: list[Path]) -> Path | None:
    """The file in one of the folders: ``NAME/FILE``, ``FILE``, or either packed as ``.gz``."""
    return next((path for path in _places(entry, file, folders) if path.is_file()), None)


def read_verified(path: Path, file: SourceFile) -> bytes:
    """The file's content (unpacked); DatasetError where it is not what the catalogue's checksum says."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
    except (OSError, EOFError) as error:
        raise DatasetError(f"{str(path)!r} cannot be read: {error}") from error
    if not is_genuine(content, file):
        raise DatasetError(
            f"{str(path)!r} is not the file the catalogue knows: its {len(content)} bytes have sha256 "
            f"{_sha256(content)}; wanted are {file.size} bytes with {file.sha256}. Fetch a fresh copy, or "
            "load your own version with load_table."
        )
    return content


def is_genuine(content: bytes, file: SourceFile) -> bool:
    """Whether the content is the catalogue's, line ends aside where it is text."""
    if _sha256(content) == file.sha256:
        return True
    return file.is_text and _sha256(plain_text(content)) == file.text_sha256


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _places(entry: Entry, file: SourceFile, folders: list[Path]) -> Iterator[Path]:
    for folder in folders:
        for place in (folder / entry.name, folder):
            yield place / file.name
            yield place / f"{file.name}.gz"
