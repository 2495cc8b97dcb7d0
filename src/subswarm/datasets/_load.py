"""Loading one of the paper's data sets in the form of a protocol."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from subswarm._types import AnyArray, FloatArray, IntArray
from subswarm.datasets._catalogue import Entry, Reading, describe
from subswarm.datasets._fetch import cache_folder, fetch_files
from subswarm.datasets._files import DATA_VARIABLE, find_file, read_verified, search_folders
from subswarm.datasets._impute import impute_nearest
from subswarm.datasets._parse import (
    Rows,
    join_columns,
    parse_blank_separated,
    parse_comma_separated,
    parse_workbook,
)
from subswarm.errors import DatasetError

__all__ = ["Dataset", "is_present", "load_dataset"]

Label = int | str


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with classes, and its source.

    Attributes
    ----------
    name, title : name in the catalogue and title at UCI
    X : float array of shape (N, n), without missing values unless loaded with ``impute=False``
    y : class codes 0 to c - 1 of shape (N,), in the order of ``classes``
    classes : the original labels, sorted
    feature_names : n names
    protocol : "sound" or "published"
    imputed : number of imputed cells
    note : remark on the columns and rows of this protocol
    citation, licence, url : source of the data
    origin : folder of the files, or "scikit-learn"
    """

    name: str
    title: str
    X: FloatArray
    y: IntArray
    classes: tuple[Label, ...]
    feature_names: tuple[str, ...]
    protocol: str
    imputed: int
    note: str
    citation: str
    licence: str
    url: str
    origin: str

    def __repr__(self) -> str:
        rows, features = self.X.shape
        counts = f"{rows} rows, {features} features, {len(self.classes)} classes"
        return f"Dataset({self.name}, {self.protocol}: {counts})"


def load_dataset(
    name: str,
    *,
    protocol: str = "sound",
    data_dir: str | os.PathLike[str] | None = None,
    download: bool = True,
    impute: bool = True,
) -> Dataset:
    """Load one of the paper's sixteen UCI data sets.

    The files are searched for in ``data_dir`` and in the user's cache folder. If they are in neither, they are
    downloaded into the cache folder. Each file is verified by its checksum. Wine and WDBC need no file: they come with
    scikit-learn.

    Parameters
    ----------
    name : str
        One of ``subswarm.datasets.names()``.
    protocol : "sound" or "published"
        "sound" is the correct task. "published" is the form that the paper appears to have used.
    data_dir : path, optional
        A folder with the UCI files (``NAME/FILE`` or ``FILE``). Default: the environment variable ``SUBSWARM_DATA``.
    download : bool, default=True
        Whether missing files may be downloaded from UCI. This needs the extra ``data``.
    impute : bool, default=True
        Whether to fill missing cells from the nearest row. Otherwise they stay NaN, so that they can be imputed inside
        a split (see `impute_nearest`).

    Raises
    ------
    DatasetError
        If a file is damaged, missing or cannot be downloaded.

    Examples
    --------
    >>> from subswarm.datasets import load_dataset
    >>> load_dataset("wine")
    Dataset(wine, sound: 178 rows, 13 features, 3 classes)
    """
    entry = describe(name)
    reading = entry.reading(protocol)
    X, labels, feature_names, origin = _read(entry, reading, search_folders(data_dir), download)
    missing = np.isnan(X)
    if reading.rows == "complete":
        complete = ~missing.any(axis=1)
        X, labels, missing = X[complete], labels[complete], missing[complete]
    classes, codes = np.unique(labels, return_inverse=True)
    return Dataset(
        name=name,
        title=entry.title,
        X=impute_nearest(X) if impute else X,
        y=codes.astype(np.intp),
        classes=tuple(classes.tolist()),
        feature_names=feature_names,
        protocol=protocol,
        imputed=int(missing.sum()) if impute else 0,
        note=reading.note,
        citation=f"{entry.citation} https://doi.org/{entry.doi}",
        licence=entry.licence,
        url=entry.page,
        origin=origin,
    )


def is_present(name: str, *, data_dir: str | os.PathLike[str] | None = None) -> bool:
    """Return whether a data set can be loaded without a download."""
    entry = describe(name)
    return entry.scikit_learn is not None or _locate(entry, [*search_folders(data_dir), *_cache()]) is not None


def _read(
    entry: Entry, reading: Reading, folders: list[Path], download: bool
) -> tuple[FloatArray, AnyArray, tuple[str, ...], str]:
    paths = _locate(entry, folders)
    if paths is None:
        if entry.scikit_learn is not None:
            return (*_from_scikit_learn(entry), "scikit-learn")
        paths = fetch_files(entry) if download else _locate_cached(entry)
    contents = [read_verified(path, file) for path, file in zip(paths, entry.files, strict=True)]
    return (*_parse_files(entry, reading, contents), str(paths[0].parent))


def _parse_files(entry: Entry, reading: Reading, contents: list[bytes]) -> tuple[FloatArray, AnyArray, tuple[str, ...]]:
    """Return features, labels and feature names; DatasetError if the files do not have the described form."""
    try:
        return _choose_columns(entry, reading, _rows(entry, contents))
    except (ValueError, IndexError, OverflowError) as error:
        files = ", ".join(file.name for file in entry.files)
        raise DatasetError(
            f"the files of {entry.name!r} ({files}) do not have the form that the catalogue describes: {error}. Get "
            f"a new copy from {entry.page}."
        ) from error


def _locate(entry: Entry, folders: list[Path]) -> list[Path] | None:
    """Return the paths of all files, or None if one is missing."""
    found = [find_file(entry, file, folders) for file in entry.files]
    return [path for path in found if path is not None] if all(found) else None


def _locate_cached(entry: Entry) -> list[Path]:
    """Return the paths of an entry's files in the cache folder; DatasetError if they are not there."""
    paths = _locate(entry, _cache())
    if paths is None:
        files = ", ".join(file.name for file in entry.files)
        raise DatasetError(
            f"the files of {entry.name!r} ({files}) are missing, and download=False. Download them from {entry.page} "
            f"and set data_dir or {DATA_VARIABLE} to their folder, or set download=True."
        )
    return paths


def _cache() -> list[Path]:
    folder = cache_folder()
    return [] if folder is None else [folder]


def _rows(entry: Entry, contents: list[bytes]) -> Rows:
    if entry.format == "workbook":
        return parse_workbook(contents[0], entry.sheets)
    read = parse_comma_separated if entry.format == "comma" else parse_blank_separated
    tables = [read(content) for content in contents]
    return join_columns(tables) if entry.beside else list(chain.from_iterable(tables))


def _choose_columns(entry: Entry, reading: Reading, rows: Rows) -> tuple[FloatArray, AnyArray, tuple[str, ...]]:
    """Return the columns that a protocol uses: features, labels and feature names."""
    true = entry.reading("sound")
    header = rows[0] if entry.header else []
    widths = [len(row) for row in rows]
    uneven = next((row for row, width in enumerate(widths) if width != widths[0]), None)
    if uneven is not None:
        raise ValueError(f"row {uneven + 1} has {widths[uneven]} cells and the first one {widths[0]}")
    columns = list(zip(*rows[1 if entry.header else 0 :], strict=True))
    own = entry.feature_names or tuple(header[column - 1] for column in true.columns)
    named = dict(zip(true.columns, own, strict=True)) | {true.label: "class"}
    features = [
        _as_feature(_labels(columns[column - 1])) if column == true.label else _numbers(columns[column - 1])
        for column in reading.columns
    ]
    return (
        np.column_stack(features),
        _labels(columns[reading.label - 1]),
        tuple(named[column] for column in reading.columns),
    )


def _numbers(column: tuple[str, ...]) -> FloatArray:
    return np.array([np.nan if cell == "?" else float(cell) for cell in column])


def _labels(column: tuple[str, ...]) -> AnyArray:
    """Return the labels as integers if all of them are, otherwise as text."""
    try:
        return np.array([int(float(cell)) for cell in column])
    except ValueError:
        return np.array(column)


def _as_feature(labels: AnyArray) -> FloatArray:
    """Return a class that is used as a feature: its numbers, or its codes if it is text."""
    values = labels if labels.dtype.kind == "i" else np.unique(labels, return_inverse=True)[1]
    return np.asarray(values, dtype=np.float64)


def _from_scikit_learn(entry: Entry) -> tuple[FloatArray, AnyArray, tuple[str, ...]]:
    """Return scikit-learn's copy of Wine or WDBC, with the labels of UCI."""
    from sklearn import datasets

    if entry.scikit_learn == "wine":
        X, y = datasets.load_wine(return_X_y=True)
        return X, y + 1, entry.feature_names
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return X, np.array(["M", "B"])[y], entry.feature_names
