"""One word or path, any table."""

from __future__ import annotations

import os
from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from subswarm.core.errors import DataError, DatasetError
from subswarm.datasets.arrow import load_table
from subswarm.datasets.catalogue import names
from subswarm.datasets.demo import DEMO_NAMES, load_demo
from subswarm.datasets.load import Dataset, load_dataset
from subswarm.datasets.openml import load_openml
from subswarm.datasets.table import Table

__all__ = ["open_table"]

_OPENML = "openml:"


def open_table(
    source: str | os.PathLike[str],
    *,
    target: str | None = None,
    drop: Collection[str] = (),
    impute: bool = False,
    one_hot: bool = False,
) -> Table:
    """A table from wherever ``source`` says.

    Parameters
    ----------
    source : str or path
        A demo table ("wine", "breast-cancer", "digits"), a data set of the paper ("sonar", ...; true labels), an
        OpenML data set ("openml:61", "openml:iris"), or a CSV or Parquet file.
    target : str, optional
        The column to predict. A file needs it; the others know theirs.
    drop, impute, one_hot
        As in `load_table`.

    Examples
    --------
    >>> from subswarm.datasets import open_table
    >>> open_table("wine")
    Table(wine: 178 rows, 13 features, classification of 'class')
    """
    word = os.fspath(source)
    if word.startswith(_OPENML):
        return load_openml(word.removeprefix(_OPENML), target=target, drop=drop, impute=impute, one_hot=one_hot)
    if word in DEMO_NAMES or word in names():
        table = load_demo(word) if word in DEMO_NAMES else _as_table(load_dataset(word))
        if target not in (None, table.target_name) or drop:
            raise DataError(
                f"{word!r} is a complete table whose target is {table.target_name!r}; give neither a target nor "
                "columns to drop."
            )
        return table
    _check_is_a_file(word)
    return load_table(word, target, drop=drop, impute=impute, one_hot=one_hot)


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
    """A word that is no file was probably meant to be a name."""
    if Path(word).suffix or Path(word).exists():
        return
    known = [*DEMO_NAMES, *names()]
    close = get_close_matches(word, known, n=1)
    hint = f"Did you mean {close[0]!r}?" if close else f"The names are {', '.join(dict.fromkeys(known))}."
    raise DatasetError(f"{word!r} is neither a file nor a table we know. {hint}")
