"""A verified download into the user's cache folder."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

from subswarm.core.errors import DatasetError, MissingExtraError
from subswarm.datasets.catalogue import Entry, SourceFile
from subswarm.datasets.files import DATA_VARIABLE, is_genuine
from subswarm.datasets.parse import plain_text

__all__ = ["CACHE_VARIABLE", "MIRROR_VARIABLE", "cache_folder", "fetch_files"]

CACHE_VARIABLE = "SUBSWARM_CACHE"
MIRROR_VARIABLE = "SUBSWARM_MIRROR"
_TIMEOUT_SECONDS = 30


def cache_folder() -> Path | None:
    """Where downloads are kept: SUBSWARM_CACHE, or the system's cache folder; None where that is unknown.

    The system's cache folder is only known where pooch is installed.
    """
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser()
    try:
        import pooch
    except ImportError:
        return None
    return Path(pooch.os_cache("subswarm"))


def fetch_files(entry: Entry, *, mirror: str | None = None, folder: Path | None = None) -> list[Path]:
    """The entry's files in the cache folder, downloaded where they are absent or damaged.

    Parameters
    ----------
    entry : Entry
        The data set.
    mirror : str, optional
        A server with UCI's folders to use in place of UCI's own; by default SUBSWARM_MIRROR, where it is set.
    folder : Path, optional
        The cache folder to use.

    Raises
    ------
    DatasetError
        Where a file cannot be fetched or is not what its checksum says. No half file stays behind.
    MissingExtraError
        Where pooch is not installed.
    """
    folder = folder or cache_folder()
    if folder is not None and _is_complete(entry, folder / entry.name):
        return [folder / entry.name / file.name for file in entry.files]
    if entry.by_hand is not None:
        raise DatasetError(
            f"the files of {entry.name!r} are not at hand, and cannot be fetched for you. {entry.by_hand}, "
            f"and name its folder with data_dir or {DATA_VARIABLE}. The data set's page is {entry.page}."
        )
    pooch = _pooch(entry)
    server = (mirror or os.environ.get(MIRROR_VARIABLE) or entry.repository).rstrip("/")
    place = (folder or Path(pooch.os_cache("subswarm"))) / entry.name
    return [_fetched(pooch, entry, file, f"{server}/{entry.folder}", place) for file in entry.files]


def _is_complete(entry: Entry, place: Path) -> bool:
    """Whether all files are there, undamaged."""
    paths = [place / file.name for file in entry.files]
    return all(path.is_file() for path in paths) and all(
        is_genuine(path.read_bytes(), file) for path, file in zip(paths, entry.files, strict=True)
    )


def _pooch(entry: Entry) -> ModuleType:
    try:
        import pooch
    except ImportError as error:
        raise MissingExtraError(
            f"the files of {entry.name!r} are not at hand, and pooch, which fetches them, is not installed. "
            f"Install it with `pip install 'subswarm[data]'`, or fetch them from {entry.page} and name their "
            f"folder with data_dir or {DATA_VARIABLE}."
        ) from error
    module: ModuleType = pooch
    return module


def _fetched(pooch: ModuleType, entry: Entry, file: SourceFile, url: str, place: Path) -> Path:
    source = f"{url}/{file.archive or file.name}"
    try:
        path = pooch.retrieve(
            source,
            known_hash=f"sha256:{file.text_sha256}",
            fname=file.name,
            path=place,
            downloader=_Unwrapped(pooch.HTTPDownloader(timeout=_TIMEOUT_SECONDS), file),
        )
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise DatasetError(
            f"{source!r} could not be fetched: {_reason(error)} Nothing was kept. Try again later, or "
            f"fetch the file by hand from {entry.page} and name its folder with data_dir or {DATA_VARIABLE}."
        ) from error
    return Path(path)


class _Unwrapped:
    """Downloads a file and leaves what the checksum is of: an archive's member, text with plain line ends."""

    def __init__(self, download: Any, file: SourceFile) -> None:
        self.download = download
        self.file = file

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        self.download(url, output_file, pooch)
        path = Path(output_file)
        content = path.read_bytes()
        if self.file.archive is not None:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                content = archive.read(self.file.name)
        path.write_bytes(plain_text(content) if self.file.is_text else content)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{type(error).__name__}: {error}."
    return f"what came is not the file the catalogue knows ({error})."
