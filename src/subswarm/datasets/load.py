"""One data set of the paper, read, checked and put into the form a protocol asks for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from subswarm.core.errors import DatasetError
from subswarm.core.types import FloatArray, IntArray
from subswarm.datasets import parse
from subswarm.datasets.catalogue import Entry, Reading, describe
from subswarm.datasets.fetch import cache_folder, fetch_files
from subswarm.datasets.files import DATA_VARIABLE, find_file, read_verified, search_folders
from subswarm.datasets.impute import impute_nearest

__all__ = ["Dataset", "is_present", "load_dataset"]

Label = int | str


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table, its classes, and where they come from.

    Attributes
    ----------
    name, title : the catalogue's name, and UCI's
    X : float array of shape (N, n), without missing values unless they were asked for
    y : class codes 0 to c - 1 of shape (N,), in the order of ``classes``
    classes : the original labels, sorted
    feature_names : n names
    protocol : "sound" or "published"
    imputed : how many cells were imputed
    note : what a reader should know of this protocol's reading
    citation, licence, url : whose data they are
    origin : the folder the files were read from, or "scikit-learn"
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

    The files are looked for in ``data_dir`` and then in the user's cache folder; where they are in neither
    they are downloaded into the cache folder. Every file is checked against the catalogue's checksum. Wine
    and WDBC need no file: scikit-learn ships them.

    Parameters
    ----------
    name : str
        One of `names`.
    protocol : "sound" or "published"
        "sound" is the true task; "published" is the form that the paper's numbers appear to be made of.
    data_dir : path, optional
        A folder with the UCI files (``NAME/FILE`` or ``FILE``); by default the one that the environment
        variable ``SUBSWARM_DATA`` names.
    download : bool, default=True
        Whether files that are not at hand may be fetched from UCI (this needs the extra ``data``).
    impute : bool, default=True
        Whether missing cells are filled from the nearest row; else they stay NaN, for those who must impute inside a
        split (see `impute_nearest`).

    Raises
    ------
    DatasetError
        Where a file is damaged, absent or cannot be fetched.

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
    """Whether the data set can be loaded without a download."""
    entry = describe(name)
    return entry.scikit_learn is not None or _located(entry, [*search_folders(data_dir), *_cache()]) is not None


def _read(
    entry: Entry, reading: Reading, folders: list[Path], download: bool
) -> tuple[FloatArray, Any, tuple[str, ...], str]:
    paths = _located(entry, folders)
    if paths is None:
        if entry.scikit_learn is not None:
            return (*_from_scikit_learn(entry), "scikit-learn")
        paths = fetch_files(entry) if download else _cached(entry)
    contents = [read_verified(path, file) for path, file in zip(paths, entry.files, strict=True)]
    return (*_chosen(entry, reading, _rows(entry, contents)), str(paths[0].parent))


def _located(entry: Entry, folders: list[Path]) -> list[Path] | None:
    """The paths of all files, or None where one is missing."""
    found = [find_file(entry, file, folders) for file in entry.files]
    return [path for path in found if path is not None] if all(found) else None


def _cached(entry: Entry) -> list[Path]:
    """The paths in the cache folder."""
    paths = _located(entry, _cache())
    if paths is None:
        wanted = ", ".join(file.name for file in entry.files)
        raise DatasetError(
            f"the files of {entry.name!r} ({wanted}) are not at hand, and download=False. Fetch them from "
            f"{entry.page} and name their folder with data_dir or {DATA_VARIABLE}, or allow the download."
        )
    return paths


def _cache() -> list[Path]:
    folder = cache_folder()
    return [] if folder is None else [folder]


def _rows(entry: Entry, contents: list[bytes]) -> parse.Rows:
    if entry.format == "workbook":
        return parse.workbook_rows(contents[0], entry.sheets)
    read = parse.comma_rows if entry.format == "comma" else parse.blank_rows
    tables = [read(content) for content in contents]
    return parse.beside(tables) if entry.beside else list(chain.from_iterable(tables))


def _chosen(entry: Entry, reading: Reading, rows: parse.Rows) -> tuple[FloatArray, Any, tuple[str, ...]]:
    """The columns a protocol reads: features, labels and the features' names."""
    true = entry.reading("sound")
    header = rows[0] if entry.header else []
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


def _labels(column: tuple[str, ...]) -> Any:
    """The labels as whole numbers where they are such, else as text."""
    try:
        return np.array([int(float(cell)) for cell in column])
    except ValueError:
        return np.array(column)


def _as_feature(labels: Any) -> FloatArray:
    """A class among the features: its numbers, or its codes where it is text."""
    values = labels if labels.dtype.kind == "i" else np.unique(labels, return_inverse=True)[1]
    return np.asarray(values, dtype=np.float64)


def _from_scikit_learn(entry: Entry) -> tuple[FloatArray, Any, tuple[str, ...]]:
    """scikit-learn's own copy of Wine or WDBC, with UCI's labels."""
    from sklearn import datasets

    if entry.scikit_learn == "wine":
        X, y = datasets.load_wine(return_X_y=True)
        return X, y + 1, entry.feature_names
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return X, np.array(["M", "B"])[y], entry.feature_names
