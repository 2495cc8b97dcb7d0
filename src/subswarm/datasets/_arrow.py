"""Tables from CSV and Parquet files, which pyarrow reads, and Excel workbooks."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from subswarm._checks import as_tuple, check_bool
from subswarm._types import FloatArray
from subswarm.datasets._column import MISSING, Column, NumberFormat, is_number, parse_text
from subswarm.datasets._table import Problems, Table, TableOptions, listed, make_table
from subswarm.datasets._text import UndecodableError, check_encoding, read_utf8
from subswarm.datasets._workbook import read_workbook
from subswarm.errors import DataError, DatasetError, MissingExtraError, SettingError, SubswarmError

if TYPE_CHECKING:
    from pyarrow import ChunkedArray
    from pyarrow import Table as ArrowTable

__all__ = ["load_table"]

_TEXT_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_PARQUET_ENDINGS = (".parquet", ".pq")
_WORKBOOK_ENDINGS = (".xlsx", ".xlsm")
_ENDINGS = _TEXT_ENDINGS + _PARQUET_ENDINGS + _WORKBOOK_ENDINGS
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_PARQUET_MARKS = (b"PAR1", b"PARE")
_BLOCK = 1 << 20
_LARGEST_BLOCK = 2**31 - 1
_SAMPLE = 1 << 20
_COMMA_CELL = re.compile(r"[-+−]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+")
_POINT_CELL = re.compile(r"[-+−]?(?:\d+|\d{1,3}(?:,\d{3})+)\.\d+")
_AROUND_DIGITS = re.compile(r"[\s\"'’%$€£¥]+")
_LIKELY_ENCODING = "cp1252"


def load_table(
    path: str | os.PathLike[str],
    target: str | None,
    *,
    drop: Collection[str] = (),
    impute: bool = False,
    one_hot: bool = False,
    max_categories: int = 100,
    dates: bool = False,
    missing: Collection[str] = (),
    skip_unlabelled: bool = False,
    positive: object = None,
    id: Collection[str] = (),
    groups: str | None = None,
    time: str | None = None,
    weights: str | None = None,
    categories: bool = False,
    keep_missing: bool = False,
    header: bool = True,
    encoding: str | None = None,
) -> Table:
    """Read a CSV, Parquet or Excel file with column names.

    Cells may be separated by commas, semicolons or tabs. Empty cells and ``?``, ``NA``, ``NaN``, ``NULL``, ``None`` and
    the like are missing values. Numbers may have decimal commas, separators of thousands, currency signs and percent
    signs. Columns of yes and no become 1 and 0. Columns of the same name are numbered. The table's ``notes`` say what
    was converted.

    Parameters
    ----------
    path : path
        A file that ends in .csv, .tsv, .csv.gz, .tsv.gz, .parquet, .pq, .xlsx or .xlsm. Workbooks need the extra
        ``data``.
    target : str
        Name of the target column. (None raises an error that lists the columns.)
    drop : names of columns to leave out
    impute : bool, default=False
        Fill missing cells from the nearest row that has a value there.
    one_hot : bool, default=False
        Encode each text column as one 0/1 column for each value, grouped in ``feature_groups``. A text column with two
        values becomes one 0/1 column.
    max_categories : int, default=100
        Most values that a text column may have.
    dates : bool, default=False
        Use the year, month, day, weekday (Monday: 0) and age of each date as features. The age is the number of days
        before the latest date of the column. Parts that are the same in every row are left out.
    missing : texts that mean a missing value, besides the usual ones
    skip_unlabelled : bool, default=False
        Leave out the rows whose target is missing.
    positive : optional
        The class of the target that is the positive one. The target becomes 1 for this class and 0 for all others.
    id : names of columns that identify rows
        They are no features, but `write_table` writes them.
    groups : str, optional
        A column whose equal values mark rows that belong together. It is no feature; pass ``table.groups`` to ``fit``.
    time : str, optional
        A column of dates or numbers. The rows are sorted by it, and it is no feature.
    weights : str, optional
        A column with the weight of each row. It is no feature; pass ``table.weights`` as ``sample_weight``.
    categories : bool, default=False
        Keep each text column as one column of categories. ``table.features`` is then a pandas frame.
    keep_missing : bool, default=False
        Keep missing cells as NaN, for models that accept them.
    header : bool, default=True
        Whether the first line has the column names. Otherwise the columns are called "column 1", "column 2" and so on.
    encoding : str, optional
        The encoding of a CSV file, such as "cp1252" or "latin-1". The default is the encoding
        of the file's byte order mark, or UTF-8. Other encodings are not guessed: a file that is not UTF-8 raises an
        error that suggests encodings to try.

    Returns
    -------
    Table
        Its ``notes`` say how the file was read, if that is not obvious.

    See Also
    --------
    write_table : Write the selected columns of a table.

    Raises
    ------
    DatasetError
        If the file does not exist or cannot be read.
    SettingError
        If there is no such encoding.
    TableError
        If columns cannot be used; the message lists all problems and says what to do.

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
    check_bool("header", header)
    absent = as_tuple("missing", missing, of="texts")
    options = TableOptions(
        drop=drop,
        impute=impute,
        one_hot=one_hot,
        max_categories=max_categories,
        dates=dates,
        skip_unlabelled=skip_unlabelled,
        positive=positive,
        id=id,
        groups=groups,
        time=time,
        weights=weights,
        categories=categories,
        keep_missing=keep_missing,
    )
    problems = Problems(file.name)
    columns, notes = _read(file, encoding, header, frozenset(map(str, absent)), problems)
    columns, converted = _interpret(columns, problems.form, target)
    if header and (target is None or target not in {column.name for column in columns}):
        columns, target = _check_header(columns, target, problems)
    table = make_table(file.name, columns, target, options, problems)
    return replace(table, notes=(*notes, *converted, *table.notes))


def _check_header(columns: list[Column], target: str | None, problems: Problems) -> tuple[list[Column], str | None]:
    """Add to the problems that the first line has numbers instead of names.

    The columns and the target are returned as they are called without a header: a target that is a number means the
    column of this number, any other the last column.
    """
    count = len(columns)
    if not columns or sum(is_number(column.name) for column in columns) <= count / 2:
        return columns, target
    place = int(target) if target is not None and target.isdecimal() and 0 < int(target) <= count else count
    named = f"column {place}"
    problems.add(
        f"the first line of {problems.name!r} has numbers where the column names should be; if it is a row of the "
        f"table, say so (header=False, --no-header): the columns are then called 'column 1' to 'column {count}', which "
        f"target must name.",
        header=False,
        target=named,
    )
    return [replace(column, name=f"column {number}") for number, column in enumerate(columns, 1)], named


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
    if not file.name.lower().endswith(_ENDINGS):
        endings = ", ".join(_ENDINGS)
        raise DataError(f"{file.name!r} does not end in one of {endings}; save the table as CSV or Parquet.")
    if not exists:
        raise DatasetError(f"there is no file {str(file)!r}; check the path.")
    return file


def _read(
    file: Path, encoding: str | None, header: bool, missing: frozenset[str], problems: Problems
) -> tuple[list[Column], tuple[str, ...]]:
    """Return the columns of a file, and notes on how it was read."""
    is_text = file.name.lower().endswith(_TEXT_ENDINGS)
    if encoding is not None:
        check_encoding(encoding)
        if not is_text:
            kind = "an Excel workbook" if file.name.lower().endswith(_WORKBOOK_ENDINGS) else "Parquet"
            raise SettingError(
                f"encoding={encoding!r} is for CSV files; {file.name!r} is {kind}, whose text is UTF-8. Leave it out."
            )
    pyarrow = _pyarrow()
    absent, form = frozenset(MISSING) | missing, NumberFormat()
    try:
        if is_text:
            content, form, notes = _read_csv(file, encoding, header, absent, problems)
        elif file.name.lower().endswith(_WORKBOOK_ENDINGS):
            content, notes = read_workbook(file.read_bytes(), file.name, header=header, missing=absent)
        elif header:
            content, notes = _read_parquet(file), ()
        else:
            raise SettingError(f"header=False is for CSV and Excel files; {file.name!r} is Parquet. Leave it out.")
        named = [
            (name.strip() or f"column {place + 1}", values)
            for place, (name, values) in enumerate(zip(content.column_names, content.columns, strict=True))
            if not _PANDAS_INDEX.fullmatch(name)
        ]
        columns = [_column(name, values) for name, values in named]
    except SubswarmError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, MemoryError) as error:  # ValueError: text that is not UTF-8
        raise DatasetError(f"{file.name!r} cannot be read as a table: {_reason(error)}.") from error
    if header and any(not name.strip() for name in content.column_names):
        notes = (*notes, f"columns without a name in {file.name!r} are named by their place, such as 'column 1'.")
    problems.form = form
    return columns, notes


def _interpret(
    columns: Sequence[Column], form: NumberFormat, target: str | None
) -> tuple[list[Column], tuple[str, ...]]:
    """Return the columns with text that means numbers, flags or dates as such, and notes on what was converted.

    A target of yes and no keeps these names of its classes.
    """
    found, kinds = [], dict[str, list[str]]()
    for column in columns:
        read, how = parse_text(column, form)
        if read.is_flag and column.name == target:
            read, how = column, None
        if how is not None:
            kinds.setdefault(how, []).append(column.name)
        found.append(read)
    return found, tuple(
        f"{listed(names, most=10)} {'is' if len(names) == 1 else 'are'} read with {how}."
        for how, names in kinds.items()
    )


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


def _read_csv(
    file: Path, encoding: str | None, header: bool, missing: frozenset[str], problems: Problems
) -> tuple[ArrowTable, NumberFormat, tuple[str, ...]]:
    from pyarrow import ArrowInvalid

    content, note = _read_text(file, encoding, problems)
    if not content.strip():
        raise DataError(f"{file.name!r} is empty; the first line must have the column names.")
    first = _header(content)
    if not first.strip():
        raise DataError(f"{file.name!r} starts with an empty line; the first line must have the column names.")
    delimiter = _delimiter(first)
    form = _number_format(content, delimiter)
    try:
        table = _parse(content, delimiter, form, missing, None if header else _count_cells(file, first, delimiter))
    except ArrowInvalid as error:
        place = _ragged_row(content, delimiter)
        if place is None:
            raise
        raise DatasetError(f"{file.name!r} cannot be read as a table: {place}.") from error
    commas = f"{file.name!r} is read with decimal commas."
    return table, form, (*(() if note is None else (note,)), *((commas,) if form.decimal_comma else ()))


def _read_text(file: Path, encoding: str | None, problems: Problems) -> tuple[bytes, str | None]:
    """Return a text file as UTF-8. A wrong encoding is a problem if another one can read the file."""
    try:
        return read_utf8(file, encoding)
    except UndecodableError as error:
        if encoding is not None:
            raise
        try:
            content, _ = read_utf8(file, _LIKELY_ENCODING)
        except DatasetError:
            raise error from None
        problems.add(str(error), encoding=_LIKELY_ENCODING)
        return content, None


def _count_cells(file: Path, line: str, delimiter: str) -> int:
    try:
        return len(next(csv.reader([line], delimiter=delimiter), []))
    except csv.Error as error:
        raise DatasetError(
            f"{file.name!r} cannot be read as a table: line 1 is not a row of cells ({error})."
        ) from error


def _number_format(content: bytes, delimiter: str) -> NumberFormat:
    """Return whether numbers have decimal commas: never in files separated by commas, elsewhere if most have."""
    if delimiter == ",":
        return NumberFormat()
    text = content[:_SAMPLE].decode("utf-8", errors="ignore")
    cells = [_AROUND_DIGITS.sub("", cell) for line in text.splitlines()[1:] for cell in line.split(delimiter)]
    commas = sum(_COMMA_CELL.fullmatch(cell) is not None for cell in cells)
    points = sum(_POINT_CELL.fullmatch(cell) is not None for cell in cells)
    return NumberFormat(decimal_comma=commas > points)


def _header(content: bytes) -> str:
    """Return the line of column names, or several lines if a quoted name has line breaks."""
    lines = io.TextIOWrapper(io.BytesIO(content), "utf-8", errors="replace", newline="")  # finds all kinds of line ends
    first = header = lines.readline()
    while header.count('"') % 2 and len(header) < _BLOCK:
        more = lines.readline()
        if not more:
            header = first  # the quotation mark is never closed
            break
        header += more
    return header


def _delimiter(header: str) -> str:
    """Return the separator that occurs most often in the header, outside quoted names."""
    bare = re.sub(r'"[^"]*"', "", header)
    return max(",;\t", key=bare.count)


def _parse(
    content: bytes, delimiter: str, form: NumberFormat, missing: frozenset[str], width: int | None
) -> ArrowTable:
    """Parse the table; if a line is longer than the parser's block, use a block as long as the file.

    ``width`` is the number of columns if the first line does not name them.
    """
    from pyarrow import ArrowInvalid, BufferReader
    from pyarrow import csv as arrow_csv

    if b"\n" not in content and b"\r" not in content:
        content += b"\n"  # a header alone, which pyarrow only accepts with a line end
    names = None if width is None else [f"column {number + 1}" for number in range(width)]

    def read(block_size: int) -> ArrowTable:
        return arrow_csv.read_csv(
            BufferReader(content),
            read_options=arrow_csv.ReadOptions(block_size=block_size, column_names=names),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                null_values=sorted(missing), strings_can_be_null=True, decimal_point="," if form.decimal_comma else "."
            ),
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
    if types.is_timestamp(kind) or types.is_date(kind):
        return Column(name, _days(values), is_date=True)
    if types.is_temporal(kind):
        return Column(name, nothing, unusable="times of day or durations")
    if types.is_nested(kind):
        return Column(name, nothing, unusable="lists or records")
    return Column(name, nothing, unusable=f"values of type {kind} (text must be UTF-8)")


def _numbers(values: ChunkedArray) -> FloatArray:
    return np.asarray(values.to_numpy(), dtype=np.float64)


def _days(values: ChunkedArray) -> FloatArray:
    """Return dates or times as days since 1970."""
    from pyarrow import compute, int64, timestamp, types

    zone = values.type.tz if types.is_timestamp(values.type) else None
    times = compute.cast(values, timestamp("us", tz=zone), safe=False)
    return _numbers(compute.cast(times, int64())) / 86_400e6
