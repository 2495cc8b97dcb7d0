"""A search on disk: one file of plain arrays and JSON, never half-written."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subswarm.core.errors import CheckpointError
from subswarm.core.files import write_whole

__all__ = ["Saved", "read", "write"]

FORMAT = 1
_VALUES = "values.json"


@dataclass(frozen=True, eq=False)
class Saved:
    """What a checkpoint holds."""

    arrays: dict[str, NDArray[Any]]
    values: dict[str, Any]


def write(
    path: str | PathLike[str], arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any], fingerprint: str
) -> None:
    """Write the checkpoint, whole or not at all."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(_VALUES, json.dumps({"format": FORMAT, "fingerprint": fingerprint, **values}))
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", _npy(array))
    try:
        write_whole(path, content.getvalue())
    except OSError as error:
        raise CheckpointError(
            f"cannot write the checkpoint {path}: {error.strerror}. Choose a writable folder with room."
        ) from error


def read(path: str | PathLike[str], fingerprint: str) -> Saved | None:
    """The checkpoint at ``path``, or None where there is none; CheckpointError where it belongs to another problem."""
    target = Path(path)
    if not target.exists():
        return None
    try:
        with zipfile.ZipFile(target) as archive:
            values = json.loads(archive.read(_VALUES))
            arrays = {
                name.removesuffix(".npy"): np.load(io.BytesIO(archive.read(name)), allow_pickle=False)
                for name in archive.namelist()
                if name.endswith(".npy")
            }
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
        raise CheckpointError(
            f"{target} is not a checkpoint of a search, or is damaged ({error}); delete it to begin anew."
        ) from error
    if values.get("format") != FORMAT:
        raise CheckpointError(
            f"{target} has checkpoint format {values.get('format')}; this version reads format {FORMAT}. "
            "Use the version that wrote it, or delete it to begin anew."
        )
    if values["fingerprint"] != fingerprint:
        raise CheckpointError(
            f"{target} belongs to a search on other data, folds, scoring or estimator; delete it to begin anew, or "
            "give this search a file of its own."
        )
    return Saved(arrays, values)


def _npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
