"""Opening any table by a name or a path."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Unpack

import numpy as np

from subswarm._checks import shown, suggest
from subswarm.datasets._arrow import load_table
from subswarm.datasets._catalogue import names
from subswarm.datasets._demo import DEMO_NAMES, load_demo
from subswarm.datasets._load import Dataset, load_dataset
from subswarm.datasets._openml import load_openml
from subswarm.datasets._table import Table, TableKeywords, with_positive_class
from subswarm.errors import DataError, DatasetError, SettingError

__all__ = ["open_table"]

_OPENML = "openml:"
_OF_FILES = ("encoding", "header", "missing")


class FileKeywords(TableKeywords, total=False):
    """The keyword arguments of `load_table`."""

    missing: Collection[str]
    header: bool
    encoding: str | None


def open_table(
    source: str | os.PathLike[str],
    *,
    target: str | None = None,
    **options: Unpack[FileKeywords],
) -> Table:
    """Open a table by its name or path.

    Parameters
    ----------
    source : str or path
        A demo table ("wine", "breast-cancer", "digits", "diabetes"), a data set of the paper ("sonar", ..., with the
        "sound" protocol), an OpenML data set ("openml:61", "openml:iris"), or a CSV, Parquet or Excel file.
    target : str, optional
        The column to predict. Required for a file; the others have a default.
    **options
        The other arguments of `load_table`. ``encoding``, ``header`` and ``missing`` are only for files.

    Examples
    --------
    >>> from subswarm.datasets import open_table
    >>> open_table("wine")
    Table(wine: 178 rows, 13 features, classification of 'class')
    """
    word = os.fspath(source)
    is_built_in = word in DEMO_NAMES or word in names()
    of_files = {name: value for name in _OF_FILES if (value := options.get(name)) not in (None, (), [], True)}
    if of_files and (is_built_in or word.startswith(_OPENML)):
        name, value = next(iter(of_files.items()))
        raise SettingError(f"{name}={value!r} is for CSV files, and {word!r} is not one; leave it out.")
    if word.startswith(_OPENML):
        others = {name: value for name, value in options.items() if name not in _OF_FILES}
        return load_openml(word.removeprefix(_OPENML), target=target, **others)  # type: ignore[arg-type]
    if is_built_in:
        return _open_built_in(word, target, options)
    _check_is_a_file(word)
    return load_table(word, target, **options)


def _open_built_in(word: str, target: str | None, options: FileKeywords) -> Table:
    table = load_demo(word) if word in DEMO_NAMES else _as_table(load_dataset(word))
    if target not in (None, table.target_name) or options.get("drop"):
        raise DataError(
            f"{word!r} is a built-in table with the target {table.target_name!r}; remove the other target and the "
            "columns to drop."
        )
    for role in ("id", "groups", "time", "weights"):
        if options.get(role):
            raise DataError(f"{word!r} is a built-in table of features only; remove the column of {role}.")
    positive = options.get("positive")
    return table if positive is None else with_positive_class(table, positive)


def _as_table(dataset: Dataset) -> Table:
    return Table(
        name=dataset.name,
        X=dataset.X,
        y=np.asarray(dataset.classes)[dataset.y],
        feature_names=dataset.feature_names,
        feature_groups=[],
        target_name="class",
        task="classification",
        imputed=dataset.imputed,
    )


def _check_is_a_file(word: str) -> None:
    """Raise DatasetError for a word that is neither a file nor a known name."""
    try:
        if Path(word).suffix or Path(word).exists():
            return
    except (OSError, ValueError):  # too long for a path, or with a NUL character
        pass
    known = [*DEMO_NAMES, *names()]
    hint = suggest(word, known) or f" The known names are {', '.join(dict.fromkeys(known))}."
    raise DatasetError(f"{shown(word)} is neither a file nor a known table.{hint}")
