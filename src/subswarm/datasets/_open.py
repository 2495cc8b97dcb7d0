"""Opening any table by a name or a path."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

import numpy as np

from subswarm._checks import shown, suggest
from subswarm.datasets._arrow import load_table
from subswarm.datasets._catalogue import names
from subswarm.datasets._demo import DEMO_NAMES, load_demo
from subswarm.datasets._load import Dataset, load_dataset
from subswarm.datasets._openml import load_openml
from subswarm.datasets._table import Table
from subswarm.errors import DataError, DatasetError, SettingError

__all__ = ["open_table"]

_OPENML = "openml:"


def open_table(
    source: str | os.PathLike[str],
    *,
    target: str | None = None,
    drop: Collection[str] = (),
    impute: bool = False,
    one_hot: bool = False,
    encoding: str | None = None,
) -> Table:
    """Open a table by its name or path.

    Parameters
    ----------
    source : str or path
        A demo table ("wine", "breast-cancer", "digits", "diabetes"), a data set of the paper ("sonar", ..., with the
        "sound" protocol), an OpenML data set ("openml:61", "openml:iris"), or a CSV or Parquet file.
    target : str, optional
        The column to predict. Required for a file; the others have a default.
    drop, impute, one_hot, encoding
        As in `load_table`. An encoding is only for CSV files.

    Examples
    --------
    >>> from subswarm.datasets import open_table
    >>> open_table("wine")
    Table(wine: 178 rows, 13 features, classification of 'class')
    """
    word = os.fspath(source)
    if encoding is not None and (word.startswith(_OPENML) or word in DEMO_NAMES or word in names()):
        raise SettingError(f"encoding={encoding!r} is for CSV files, and {word!r} is not one; leave it out.")
    if word.startswith(_OPENML):
        return load_openml(word.removeprefix(_OPENML), target=target, drop=drop, impute=impute, one_hot=one_hot)
    if word in DEMO_NAMES or word in names():
        table = load_demo(word) if word in DEMO_NAMES else _as_table(load_dataset(word))
        if target not in (None, table.target_name) or drop:
            raise DataError(
                f"{word!r} is a built-in table with the target {table.target_name!r}; remove the other target and the "
                "columns to drop."
            )
        return table
    _check_is_a_file(word)
    return load_table(word, target, drop=drop, impute=impute, one_hot=one_hot, encoding=encoding)


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
