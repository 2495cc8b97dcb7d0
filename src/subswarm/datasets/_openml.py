"""OpenML data sets, by number or name, loaded by scikit-learn."""

from __future__ import annotations

import os
import re
import warnings
import zlib
from collections.abc import Sequence
from typing import Unpack
from urllib.error import URLError

import numpy as np
from sklearn.utils import Bunch

from subswarm._types import AnyArray
from subswarm.datasets._column import Column
from subswarm.datasets._table import Table, TableKeywords, TableOptions, make_table
from subswarm.errors import DataError, DatasetError

__all__ = ["load_openml"]


def load_openml(
    which: int | str,
    *,
    target: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    **options: Unpack[TableKeywords],
) -> Table:
    """Load a data set from openml.org.

    Parameters
    ----------
    which : int or str
        The number of the data set, or its name (then the oldest active version is loaded).
    target : str, optional
        Name of the target column, if it is not OpenML's default.
    cache_dir : path, optional
        Folder for downloads. Default: scikit-learn's data folder.
    **options
        ``drop``, ``impute``, ``one_hot``, ``max_categories``, ``dates``, ``skip_unlabelled``, ``positive``, ``id``,
        ``groups``, ``time`` and ``weights``, as in `load_table`.

    Returns
    -------
    Table

    Raises
    ------
    DatasetError
        If OpenML cannot be reached or has no such data set.
    """
    used = TableOptions(**options)
    bunch = _fetch(which, target, None if cache_dir is None else str(cache_dir))
    name = f"OpenML data set {which!r}"
    if len(bunch.target_names) != 1:
        raise DataError(
            f"{name} has {len(bunch.target_names)} target columns; choose one with target=..., such as "
            f"{', '.join(map(repr, [*bunch.target_names, *bunch.feature_names][:10]))}."
        )
    (target_name,) = bunch.target_names
    columns = [*_features(bunch), _target(bunch, target_name)]
    return make_table(name, columns, target_name, used)


def _fetch(which: int | str, target: str | None, cache_dir: str | None) -> Bunch:
    from sklearn.datasets import fetch_openml

    if not re.fullmatch(r"[!-~]+", str(which)):
        raise DatasetError(f"OpenML has no data set {which!r}: names consist of ASCII characters without blanks.")
    by_number = isinstance(which, int) or which.isdecimal()
    try:
        chosen: dict[str, int | str] = {"data_id": int(which)} if by_number else {"name": which}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="A network error occurred", category=UserWarning)
            return fetch_openml(
                **chosen,
                target_column="default-target" if target is None else target,
                data_home=cache_dir,
                as_frame=False,
                parser="liac-arff",
                n_retries=1,
                delay=0.2,
            )
    except (URLError, TimeoutError, ConnectionError) as error:
        raise DatasetError(
            f"OpenML could not be reached for {which!r}: {error}. Check the network, or save the table as CSV "
            "or Parquet and use load_table."
        ) from error
    except (ValueError, KeyError, OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"OpenML data set {which!r} cannot be used: {error}") from error


def _features(bunch: Bunch) -> list[Column]:
    """Return the features; nominal ones come as codes and are converted back to text."""
    data = bunch.data.toarray() if hasattr(bunch.data, "toarray") else np.asarray(bunch.data)
    categories = bunch.categories or {}
    return [
        Column(name, _texts(values, categories[name]) if name in categories else values.astype(np.float64))
        for name, values in zip(bunch.feature_names, data.T, strict=True)
    ]


def _texts(codes: AnyArray, categories: Sequence[object]) -> AnyArray:
    return np.array([None if code != code else str(categories[int(code)]) for code in codes], dtype=object)


def _target(bunch: Bunch, name: str) -> Column:
    values = np.asarray(bunch.target)
    if values.dtype.kind in "iufb":
        return Column(name, values.astype(np.float64))
    return Column(name, np.array([None if value is None else str(value) for value in values], dtype=object))
