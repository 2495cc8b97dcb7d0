"""Zip archives, opened only if their declared sizes and names are plausible."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath, PureWindowsPath

from subswarm.errors import DatasetError

__all__ = ["LARGEST_TOTAL", "open_archive", "read_member"]

LARGEST_TOTAL = 1 << 28
_LARGEST_RATIO = 200  # text and sheets shrink to a tenth or so, a bomb to a thousandth
_ALWAYS_SMALL = 1 << 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1


@contextmanager
def open_archive(content: bytes, name: str) -> Iterator[zipfile.ZipFile]:
    """Open an archive after checking its declared sizes and names; errors of the archive become DatasetErrors.

    Parameters
    ----------
    content : bytes
        The archive.
    name : str
        Its name in error messages.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_members(archive, len(content), name)
            yield archive
    except DatasetError:
        raise
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError) as error:
        raise DatasetError(f"{name} is not a zip archive, or a damaged one ({error}); get a new copy.") from error


def read_member(archive: zipfile.ZipFile, member: str, name: str) -> bytes:
    """Return the content of a member; DatasetError if it does not have its declared length."""
    try:
        declared = archive.getinfo(member)
    except KeyError as error:
        raise DatasetError(f"{name} has no member {member!r}; it has {_listed(archive)}.") from error
    with archive.open(declared) as stream:
        content = stream.read(declared.file_size + 1)
    if len(content) != declared.file_size:
        raise DatasetError(
            f"{name} declares {declared.file_size} bytes for {member!r} and holds {len(content)}; get a new copy."
        )
    return content


def _check_members(archive: zipfile.ZipFile, size: int, name: str) -> None:
    members = archive.infolist()
    total = sum(member.file_size for member in members)
    if total > LARGEST_TOTAL:
        raise DatasetError(f"{name} declares {total} bytes when unpacked; the limit is {LARGEST_TOTAL}.")
    if total > max(_ALWAYS_SMALL, _LARGEST_RATIO * size):
        raise DatasetError(
            f"{name} has {size} bytes and declares {total} when unpacked, more than {_LARGEST_RATIO} times as many; "
            "it is not unpacked, because no data set is compressed that much."
        )
    for member in members:
        if _points_outside(member.filename):
            raise DatasetError(
                f"{name} has a member {member.filename!r} that points outside the archive; it is not unpacked."
            )
        if member.compress_type not in _METHODS or member.flag_bits & _ENCRYPTED:
            raise DatasetError(
                f"{name} has a member {member.filename!r} that is encrypted, or not compressed by deflate."
            )


def _points_outside(member: str) -> bool:
    windows = PureWindowsPath(member)
    parts = {*PurePosixPath(member).parts, *windows.parts}
    return ".." in parts or member.startswith(("/", "\\")) or bool(windows.drive)


def _listed(archive: zipfile.ZipFile, most: int = 5) -> str:
    names = archive.namelist()
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "") if names else "none"
