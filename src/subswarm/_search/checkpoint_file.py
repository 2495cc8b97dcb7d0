"""The checkpoint file of a search: plain arrays and JSON in a zip archive, written atomically, checked on reading."""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from subswarm._checks import shown
from subswarm._files import write_whole
from subswarm._types import AnyArray
from subswarm.errors import CheckpointError, DamagedCheckpointError, SettingError

__all__ = ["Saved", "as_path", "read", "write"]

FORMAT = 2
_VALUES = "values.json"
_MAX_BYTES = 2**32
"""Largest file that is read. Members are not compressed, so they need no more memory than the file has bytes."""
_MAX_MEMBERS = 1000
_KINDS = "biufcmMSU"
"""Kinds of arrays whose bytes are their values."""


@dataclass(frozen=True, eq=False)
class Saved:
    """The content of a checkpoint."""

    arrays: dict[str, AnyArray]
    values: dict[str, object]


def as_path(path: object) -> Path:
    """Return the path of a checkpoint file; raise SettingError if it cannot be one."""
    try:
        text = os.fspath(path) if isinstance(path, str | PathLike) else None
    except Exception:  # from the object's own __fspath__
        text = None
    if not isinstance(text, str) or not text or "\0" in text:
        raise SettingError(f"checkpoint must be the path of a file, or None; got {shown(path)}.")
    return Path(text)


def write(path: str | PathLike[str], arrays: Mapping[str, AnyArray], values: Mapping[str, object]) -> None:
    """Write the checkpoint atomically."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(_VALUES, json.dumps({"format": FORMAT, **values}))
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", _npy(array))
    try:
        write_whole(path, content.getvalue())
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CheckpointError(
            f"cannot write the checkpoint {_shown_path(path)}: {reason}. Choose a writable folder with free space."
        ) from error


def read(path: str | PathLike[str]) -> Saved | None:
    """Return the checkpoint at ``path``, or None if there is no file; raise CheckpointError if it cannot be read."""
    target = as_path(path)
    try:
        if not target.exists():
            return None
        size = target.stat().st_size
        content = target.read_bytes() if size <= _MAX_BYTES else b""
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CheckpointError(f"cannot read the checkpoint {_shown_path(target)}: {reason}.") from error
    try:
        if size > _MAX_BYTES:
            raise DamagedCheckpointError(f"it has {size} bytes, and a checkpoint has at most {_MAX_BYTES}")
        saved = _unpacked(content)
    except DamagedCheckpointError as error:
        raise error.named(target) from None
    except Exception as error:  # a damaged archive, header or JSON text fails in many ways
        raise DamagedCheckpointError(f"it is not a checkpoint of a search: {error}").named(target) from error
    if saved.values.get("format") != FORMAT:
        raise CheckpointError(
            f"{target} has checkpoint format {saved.values.get('format')}; this version reads format {FORMAT}. "
            "Use the version that wrote it, or delete it to start again."
        )
    return saved


def _unpacked(content: bytes) -> Saved:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        names = [member.filename for member in members]
        if len(names) > _MAX_MEMBERS or len(set(names)) < len(names):
            raise DamagedCheckpointError(f"it has {len(names)} entries, or two of the same name")
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise DamagedCheckpointError("its entries are compressed, and those of a checkpoint are not")
        declared = sum(member.file_size for member in members)
        if declared > len(content):
            raise DamagedCheckpointError(f"its entries claim {declared} bytes in a file of {len(content)}")
        values = json.loads(archive.read(_VALUES))
        if not isinstance(values, dict):
            raise DamagedCheckpointError(f"{_VALUES} holds a {type(values).__name__} instead of named values")
        if values.get("format") != FORMAT:
            return Saved({}, values)  # the members of another format are not checked
        arrays = {
            name.removesuffix(".npy"): _array(archive.read(name), name) for name in names if name.endswith(".npy")
        }
    return Saved(arrays, values)


def _shown_path(path: str | PathLike[str]) -> str:
    """Return the path as text, shortened if it is very long."""
    text = str(path).encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= 300 else f"{text[:300]}..."


def _npy(array: AnyArray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _array(content: bytes, name: str) -> AnyArray:
    """Return the array of a .npy file, after comparing its header with the bytes that follow."""
    file = io.BytesIO(content)
    read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[npy.read_magic(file)]
    shape, by_columns, dtype = read_header(file)
    data = content[file.tell() :]
    if dtype.kind not in _KINDS:
        raise DamagedCheckpointError(f"{name} has dtype {dtype}, which no checkpoint has")
    if any(length < 0 for length in shape) or math.prod(shape) * dtype.itemsize != len(data):
        raise DamagedCheckpointError(f"{name} declares shape {shape} and has {len(data)} bytes")
    flat = np.frombuffer(data, dtype=dtype)
    if dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise DamagedCheckpointError(f"{name} has entries that are neither True nor False")
    array = flat.astype(dtype.newbyteorder("="))  # a writable copy
    return array.reshape(shape, order="F" if by_columns else "C")
