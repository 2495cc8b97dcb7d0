"""CSV and Parquet files, read by pyarrow."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Collection
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from subswarm.core.errors import DataError, DatasetError, MissingExtraError
from subswarm.datasets.table import Column, Table, make_table

__all__ = ["load_table"]

_TEXT_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_PARQUET_ENDINGS = (".parquet", ".pq")
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_MISSING = ["", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None"]


def load_table(
    path: str | os.PathLike[str],
    target: str | None,
    *,
    drop: Collection[str] = (),
    impute: bool = False,
    one_hot: bool = False,
    max_categories: int = 100,
) -> Table:
    """Read a CSV or Parquet file with column names.

    Parameters
    ----------
    path : path
        A file that ends in .csv, .tsv (either also packed as .gz), .parquet or .pq. Cells may be separated by
        commas, semicolons or tabs. Empty cells and ``?``, ``NA``, ``NaN``, ``NULL``, ``None`` and the like are
        missing.
    target : str
        Name of the target column. (None gets an error that lists the columns.)
    drop : names of columns to leave out
    impute : bool, default=False
        Fill missing cells from the nearest row that has a value there.
    one_hot : bool, default=False
        Turn each text column into 0/1 columns, kept together in ``feature_groups``.
    max_categories : int, default=100
        A text column with more values than this is refused.

    Returns
    -------
    Table

    Raises
    ------
    DatasetError
        Where the file is absent or cannot be read.
    DataError
        Where a column stands in the way; the sentence says which, and what to do.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "flowers.csv"
    >>> _ = path.write_text("size,colour,kind\\n1.5,red,a\\n2,blue,b\\n2.5,white,a\\n1,red,b\\n")
    >>> table = load_table(path, "kind", one_hot=True)
    >>> table.feature_names, table.feature_groups
    (('size', 'colour=blue', 'colour=red', 'colour=white'), [[1, 2, 3]])
    """
    file = Path(path).expanduser()
    columns = [_column(name, values) for name, values in _read(file)]
    if target is None:
        raise DataError(
            f"{file.name!r} needs a target: name the column to predict (target=..., --target), one of "
            f"{', '.join(repr(column.name) for column in columns[:20])}{', ...' if len(columns) > 20 else ''}."
        )
    return make_table(
        file.name, columns, target, drop=drop, impute=impute, one_hot=one_hot, max_categories=max_categories
    )


def _read(file: Path) -> list[tuple[str, Any]]:
    """The file's columns by name, as arrow arrays."""
    ending = file.name.lower()
    if not ending.endswith(_TEXT_ENDINGS + _PARQUET_ENDINGS):
        wanted = ", ".join(_TEXT_ENDINGS + _PARQUET_ENDINGS)
        raise DataError(f"{file.name!r} does not end in one of {wanted}; save the table as CSV or Parquet.")
    if not file.is_file():
        raise DatasetError(f"there is no file {str(file)!r}; check the path.")
    pyarrow = _pyarrow()
    try:
        content = _csv(file) if ending.endswith(_TEXT_ENDINGS) else _parquet(file)
    except (pyarrow.ArrowException, OSError, EOFError) as error:
        raise DatasetError(f"{file.name!r} cannot be read as a table: {error}") from error
    return [
        (name, values)
        for name, values in zip(content.column_names, content.columns, strict=True)
        if not _PANDAS_INDEX.fullmatch(name)
    ]


def _pyarrow() -> ModuleType:
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtraError(
            "reading CSV and Parquet files needs pyarrow; install it with `pip install 'subswarm[cli]'`."
        ) from error
    module: ModuleType = pyarrow
    return module


def _csv(file: Path) -> Any:
    from pyarrow import csv

    opened = gzip.open if file.name.lower().endswith(".gz") else open
    with opened(file, "rb") as stream:
        first = stream.readline().decode("utf-8", errors="replace")
    if not first.strip():
        raise DataError(f"{file.name!r} is empty; a table with a line of column names is wanted.")
    return csv.read_csv(
        file,
        parse_options=csv.ParseOptions(delimiter=_delimiter(first), newlines_in_values=True),
        convert_options=csv.ConvertOptions(null_values=_MISSING, strings_can_be_null=True),
    )


def _delimiter(header: str) -> str:
    """The separator that the header has most of, quoted names aside."""
    bare = re.sub(r'"[^"]*"', "", header)
    return max(",;\t", key=bare.count)


def _parquet(file: Path) -> Any:
    from pyarrow import parquet

    return parquet.read_table(file)


def _column(name: str, values: Any) -> Column:
    """An arrow column as numbers, text, or a word for what else it holds."""
    from pyarrow import compute, float64, string, types

    kind = values.type
    if types.is_dictionary(kind):
        return _column(name, values.cast(kind.value_type))
    if types.is_boolean(kind) or types.is_null(kind):
        return Column(name, _numbers(values.cast("uint8").cast(float64())), is_flag=types.is_boolean(kind))
    if types.is_floating(kind):
        return Column(name, _numbers(values))
    if types.is_integer(kind) or types.is_decimal(kind):
        return Column(name, _numbers(compute.cast(values, float64(), safe=False)))
    if types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view":
        return Column(name, np.array(values.cast(string()).to_pylist(), dtype=object))
    nothing = np.zeros(len(values))
    if types.is_temporal(kind):
        return Column(name, nothing, unusable="dates or times")
    if types.is_nested(kind):
        return Column(name, nothing, unusable="lists or records")
    return Column(name, nothing, unusable=f"values of type {kind} (text must be UTF-8)")


def _numbers(values: Any) -> Any:
    return np.asarray(values.to_numpy(), dtype=np.float64)
