"""Tables from CSV and Parquet files, which pyarrow reads."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from subswarm._types import FloatArray
from subswarm.datasets._table import Column, Table, make_table
from subswarm.datasets._text import check_encoding, read_utf8
from subswarm.errors import DataError, DatasetError, MissingExtraError, SettingError, SubswarmError

if TYPE_CHECKING:
    from pyarrow import ChunkedArray
    from pyarrow import Table as ArrowTable

__all__ = ["load_table"]

_TEXT_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_PARQUET_ENDINGS = (".parquet", ".pq")
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_MISSING = ["", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None"]
_PARQUET_MARKS = (b"PAR1", b"PARE")
_BLOCK = 1 << 20
_LARGEST_BLOCK = 2**31 - 1


def load_table(
    path: str | os.PathLike[str],
    target: str | None,
    *,
    drop: Collection[str] = (),
    impute: bool = False,
    one_hot: bool = False,
    max_categories: int = 100,
    encoding: str | None = None,
) -> Table:
    """Read a CSV or Parquet file with column names.

    Parameters
    ----------
    path : path
        A file that ends in .csv, .tsv, .csv.gz, .tsv.gz, .parquet or .pq. Cells may be separated by commas, semicolons
        or tabs. Empty cells and ``?``, ``NA``, ``NaN``, ``NULL``, ``None`` and the like are missing values.
    target : str
        Name of the target column. (None raises an error that lists the columns.)
    drop : names of columns to leave out
    impute : bool, default=False
        Fill missing cells from the nearest row that has a value there.
    one_hot : bool, default=False
        Encode each text column as 0/1 columns, which ``feature_groups`` keeps together.
    max_categories : int, default=100
        Most values that a text column may have.
    encoding : str, optional
        The encoding of a CSV file, such as "cp1252" or "latin-1". The default is the encoding
        of the file's byte order mark, or UTF-8. Other encodings are not guessed: a file that is not UTF-8 raises an
        error that suggests encodings to try.

    Returns
    -------
    Table
        Its ``notes`` say how the file was read, if that is not obvious.

    Raises
    ------
    DatasetError
        If the file does not exist or cannot be read.
    SettingError
        If there is no such encoding.
    DataError
        If a column cannot be used; the message names it and says what to do.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "flowers.csv"
    >>> _ = path.write_text("size,colour,kind\\n1.5,red,a\\n2,blue,b\\n2.5,white,a\\n1,red,b\\n")
    >>> table = load_table(path, "kind", one_hot=True)
    >>> table.feature_names, table.feature_groups
    (('size', 'colour=blue', 'colour=red', 'colour=white'), [[1, 2, 3]])
    """
    file = _locate(path)
    columns, notes = _read(file, encoding)
    if target is None:
        raise DataError(
            f"{file.name!r} needs a target: name the column to predict (target=..., --target), one of "
            f"{', '.join(repr(column.name) for column in columns[:20])}{', ...' if len(columns) > 20 else ''}."
        )
    table = make_table(
        file.name, columns, target, drop=drop, impute=impute, one_hot=one_hot, max_categories=max_categories
    )
    return replace(table, notes=notes)


def _locate(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file that exists and has a known extension."""
    file = Path(path)
    try:
        file = file.expanduser()
        if file.is_dir():
            raise DatasetError(f"{str(file)!r} is a directory; name a CSV or Parquet file in it.")
        exists = file.is_file()
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, SubswarmError):
            raise
        raise DatasetError(f"{str(file)!r} cannot be opened: {_reason(error)}; check the path.") from error
    if not file.name.lower().endswith(_TEXT_ENDINGS + _PARQUET_ENDINGS):
        endings = ", ".join(_TEXT_ENDINGS + _PARQUET_ENDINGS)
        raise DataError(f"{file.name!r} does not end in one of {endings}; save the table as CSV or Parquet.")
    if not exists:
        raise DatasetError(f"there is no file {str(file)!r}; check the path.")
    return file


def _read(file: Path, encoding: str | None) -> tuple[list[Column], tuple[str, ...]]:
    """Return the columns of a file, and notes on how it was read."""
    is_text = file.name.lower().endswith(_TEXT_ENDINGS)
    if encoding is not None:
        check_encoding(encoding)
        if not is_text:
            raise SettingError(
                f"encoding={encoding!r} is for CSV files; {file.name!r} is Parquet, whose text is UTF-8. Leave it out."
            )
    pyarrow = _pyarrow()
    try:
        content, notes = _read_csv(file, encoding) if is_text else (_read_parquet(file), ())
        columns = [
            _column(name, values)
            for name, values in zip(content.column_names, content.columns, strict=True)
            if not _PANDAS_INDEX.fullmatch(name)
        ]
    except SubswarmError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, MemoryError) as error:  # ValueError: text that is not UTF-8
        raise DatasetError(f"{file.name!r} cannot be read as a table: {_reason(error)}.") from error
    return columns, notes


def _reason(error: BaseException) -> str:
    """Return the message of an error of another library, as part of a sentence."""
    message = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    message = re.sub(r"\s+", " ", message.replace("\0", "")).strip().rstrip(".")
    return message if len(message) <= 200 else f"{message[:200]}..."


def _pyarrow() -> ModuleType:
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtraError(
            "reading CSV and Parquet files needs pyarrow; install it with `pip install 'subswarm[cli]'`."
        ) from error
    module: ModuleType = pyarrow
    return module


def _read_csv(file: Path, encoding: str | None) -> tuple[ArrowTable, tuple[str, ...]]:
    from pyarrow import ArrowInvalid

    content, note = read_utf8(file, encoding)
    if not content.strip():
        raise DataError(f"{file.name!r} is empty; the first line must have the column names.")
    header = _header(content)
    if not header.strip():
        raise DataError(f"{file.name!r} starts with an empty line; the first line must have the column names.")
    delimiter = _delimiter(header)
    try:
        table = _parse(content, delimiter)
    except ArrowInvalid as error:
        place = _ragged_row(content, delimiter)
        if place is None:
            raise
        raise DatasetError(f"{file.name!r} cannot be read as a table: {place}.") from error
    return table, () if note is None else (note,)


def _header(content: bytes) -> str:
    """Return the line of column names, or several lines if a quoted name has line breaks."""
    lines = io.BytesIO(content)
    first = header = lines.readline()
    while header.count(b'"') % 2 and len(header) < _BLOCK:
        more = lines.readline()
        if not more:
            header = first  # the quotation mark is never closed
            break
        header += more
    return header.decode("utf-8", errors="replace")


def _delimiter(header: str) -> str:
    """Return the separator that occurs most often in the header, outside quoted names."""
    bare = re.sub(r'"[^"]*"', "", header)
    return max(",;\t", key=bare.count)


def _parse(content: bytes, delimiter: str) -> ArrowTable:
    """Parse the table; if a line is longer than the parser's block, use a block as long as the file."""
    from pyarrow import ArrowInvalid, BufferReader
    from pyarrow import csv as arrow_csv

    if b"\n" not in content and b"\r" not in content:
        content += b"\n"  # a header alone, which pyarrow only accepts with a line end

    def read(block_size: int) -> ArrowTable:
        return arrow_csv.read_csv(
            BufferReader(content),
            read_options=arrow_csv.ReadOptions(block_size=block_size),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(null_values=_MISSING, strings_can_be_null=True),
        )

    try:
        return read(_BLOCK)
    except ArrowInvalid as error:
        if "block" not in str(error) or len(content) < _BLOCK:
            raise
        return read(min(len(content) + 1, _LARGEST_BLOCK))


def _ragged_row(content: bytes, delimiter: str) -> str | None:
    """Describe the first row that has more or fewer cells than the header; None if there is none."""
    rows = csv.reader(io.TextIOWrapper(io.BytesIO(content), "utf-8", newline=""), delimiter=delimiter)
    header: list[str] = []
    line = 1
    try:
        for row in rows:
            header = header or row
            if row and len(row) != len(header):
                quotes = " (is a quotation mark not closed?)" if rows.line_num > line else ""
                return f"line {line} has {_counted(row)} and the header {_counted(header)}{quotes}"
            line = rows.line_num + 1
    except csv.Error as error:
        return f"line {line} cannot be split into cells ({error})"
    return "a quotation mark is not closed" if content.count(b'"') % 2 else None


def _counted(row: list[str]) -> str:
    return "1 cell" if len(row) == 1 else f"{len(row)} cells"


def _read_parquet(file: Path) -> ArrowTable:
    from pyarrow import ArrowException, parquet

    with file.open("rb") as stream:
        start = stream.read(4)
        stream.seek(0, os.SEEK_END)
        size = stream.tell()
        stream.seek(max(0, size - 4))
        end = stream.read()
        if start not in _PARQUET_MARKS:
            raise DatasetError(f"{file.name!r} is not a Parquet file: it starts with {start!r} instead of b'PAR1'.")
        if size < 12 or end not in _PARQUET_MARKS:
            raise DatasetError(
                f"{file.name!r} is truncated: a Parquet file ends with b'PAR1', this one with {end!r}; get a new copy."
            )
        stream.seek(0)
        try:
            return parquet.read_table(stream, page_checksum_verification=True)
        except (ArrowException, OSError, ValueError, MemoryError) as error:
            reason = _reason(error).removeprefix("Could not open Parquet input source '<Buffer>': ")
            raise DatasetError(f"{file.name!r} is a damaged Parquet file ({reason}); get a new copy.") from error


def _column(name: str, values: ChunkedArray) -> Column:
    """Convert a pyarrow column to numbers or text, or describe what else it holds."""
    from pyarrow import compute, float64, string, types

    kind, nothing = values.type, np.zeros(len(values))
    if types.is_dictionary(kind):
        return _column(name, values.cast(kind.value_type))
    if types.is_boolean(kind) or types.is_null(kind):
        return Column(name, _numbers(values.cast("uint8").cast(float64())), is_flag=types.is_boolean(kind))
    if types.is_floating(kind):
        return Column(name, _numbers(values))
    if types.is_integer(kind) or types.is_decimal(kind):
        return Column(name, _numbers(compute.cast(values, float64(), safe=False)))
    if types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view":
        try:
            return Column(name, np.array(values.cast(string()).to_pylist(), dtype=object))
        except UnicodeDecodeError:
            return Column(name, nothing, unusable="text that is not UTF-8")
    if types.is_temporal(kind):
        return Column(name, nothing, unusable="dates or times")
    if types.is_nested(kind):
        return Column(name, nothing, unusable="lists or records")
    return Column(name, nothing, unusable=f"values of type {kind} (text must be UTF-8)")


def _numbers(values: ChunkedArray) -> FloatArray:
    return np.asarray(values.to_numpy(), dtype=np.float64)
