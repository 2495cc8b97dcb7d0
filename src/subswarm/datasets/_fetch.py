"""Downloads into the user's cache folder, verified by checksums."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from subswarm.datasets._archive import open_archive, read_member
from subswarm.datasets._catalogue import Entry, SourceFile
from subswarm.datasets._files import DATA_VARIABLE, is_genuine
from subswarm.datasets._parse import with_plain_line_ends
from subswarm.errors import DatasetError, MissingExtraError

__all__ = ["CACHE_VARIABLE", "MIRROR_VARIABLE", "cache_folder", "fetch_files"]

CACHE_VARIABLE = "SUBSWARM_CACHE"
MIRROR_VARIABLE = "SUBSWARM_MIRROR"
_TIMEOUT_SECONDS = 30


def cache_folder() -> Path | None:
    """Return the folder of downloads: SUBSWARM_CACHE, or the system's cache folder.

    The system's cache folder is only known if pooch is installed; otherwise this is None.
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
    """Return the paths of an entry's files in the cache folder; download missing and damaged files.

    Parameters
    ----------
    entry : Entry
        The data set.
    mirror : str, optional
        A server with the same folders to use instead of UCI. Default: SUBSWARM_MIRROR, if it is set.
    folder : Path, optional
        The cache folder to use.

    Raises
    ------
    DatasetError
        If a file cannot be downloaded or does not match its checksum. No partial file is left.
    MissingExtraError
        If pooch is not installed.
    """
    folder = folder or cache_folder()
    if folder is not None and _is_complete(entry, folder / entry.name):
        return [folder / entry.name / file.name for file in entry.files]
    if entry.by_hand is not None:
        raise DatasetError(
            f"the files of {entry.name!r} are missing and cannot be downloaded automatically. {entry.by_hand}, "
            f"and set data_dir or {DATA_VARIABLE} to its folder. The page of the data set is {entry.page}."
        )
    pooch = _pooch(entry)
    server = (mirror or os.environ.get(MIRROR_VARIABLE) or entry.repository).rstrip("/")
    place = (folder or Path(pooch.os_cache("subswarm"))) / entry.name
    return [_fetch(pooch, entry, file, f"{server}/{entry.folder}", place) for file in entry.files]


def _is_complete(entry: Entry, place: Path) -> bool:
    """Return whether all files exist and match their checksums."""
    paths = [place / file.name for file in entry.files]
    try:
        return all(path.is_file() for path in paths) and all(
            is_genuine(path.read_bytes(), file) for path, file in zip(paths, entry.files, strict=True)
        )
    except OSError:  # a file that cannot be read is downloaded again
        return False


def _pooch(entry: Entry) -> ModuleType:
    try:
        import pooch
    except ImportError as error:
        raise MissingExtraError(
            f"the files of {entry.name!r} are missing, and pooch, which downloads them, is not installed. "
            f"Install it with `pip install 'subswarm[data]'`, or download them from {entry.page} and set data_dir or "
            f"{DATA_VARIABLE} to their folder."
        ) from error
    module: ModuleType = pooch
    return module


def _fetch(pooch: ModuleType, entry: Entry, file: SourceFile, url: str, place: Path) -> Path:
    source = f"{url}/{file.archive or file.name}"
    try:
        path = pooch.retrieve(
            source,
            known_hash=f"sha256:{file.text_sha256}",
            fname=file.name,
            path=place,
            downloader=_Unpacked(pooch.HTTPDownloader(timeout=_TIMEOUT_SECONDS), file),
        )
    except (OSError, ValueError) as error:
        raise DatasetError(
            f"{source!r} could not be downloaded: {_reason(error)} No file was kept. Try again later, or "
            f"download the file by hand from {entry.page} and set data_dir or {DATA_VARIABLE} to its folder."
        ) from error
    return Path(path)


class _Unpacked:
    """Downloads a file and keeps what the checksum is for: a member of an archive, or text with LF line ends."""

    def __init__(self, download: Callable[[str, str, object], object], file: SourceFile) -> None:
        self.download = download
        self.file = file

    def __call__(self, url: str, output_file: str, pooch: object) -> None:
        self.download(url, output_file, pooch)
        path = Path(output_file)
        content = path.read_bytes()
        if self.file.archive is not None:
            with open_archive(content, self.file.archive) as archive:
                content = read_member(archive, self.file.name, self.file.archive)
        path.write_bytes(with_plain_line_ends(content) if self.file.is_text else content)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, DatasetError):
        return f"{type(error).__name__}: {error}."
    return f"the content does not match the catalogue ({str(error).rstrip('.')})."
