"""Tables from Excel workbooks, which openpyxl reads."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING

from subswarm.datasets._archive import open_archive
from subswarm.errors import DataError, DatasetError, MissingExtraError

if TYPE_CHECKING:
    from pyarrow import Table as ArrowTable

__all__ = ["read_workbook"]

_MOST_ROWS, _MOST_COLUMNS = 1 << 20, 1 << 14
_NO_VALUE = ("#DIV/0!", "#NUM!", "#NAME?", "#NULL!", "#REF!", "#VALUE!")


def read_workbook(
    content: bytes, name: str, *, header: bool, missing: frozenset[str]
) -> tuple[ArrowTable, tuple[str, ...]]:
    """Return the first sheet of an .xlsx workbook that is not empty, and a note if there are others.

    ``missing`` are the texts that mean a missing value; errors of formulas count as missing too.
    """
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise MissingExtraError(
            "reading an Excel workbook needs openpyxl; install it with `pip install 'subswarm[data]'`."
        ) from error
    with open_archive(content, repr(name)):
        pass  # only checks the declared sizes, before anything is unpacked
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles, which do not matter here
            book = load_workbook(io.BytesIO(content), read_only=True, data_only=True)
            sheets = {title: rows for title in book.sheetnames if (rows := _rows(book[title]))}
    except DatasetError:
        raise
    except Exception as error:  # openpyxl raises whatever its parsers raise on a damaged file
        raise DatasetError(f"{name!r} is a damaged Excel workbook ({error}); get a new copy.") from error
    if not sheets:
        raise DataError(f"{name!r} is empty; the first line must have the column names.")
    title, rows = next(iter(sheets.items()))
    others = f"{name!r} has {len(book.sheetnames)} sheets; {title!r} is read."
    return _as_arrow(rows, header, missing | set(_NO_VALUE)), (others,) if len(book.sheetnames) > 1 else ()


def _rows(sheet: object) -> list[tuple[object, ...]]:
    """Return the rows of a sheet that are not empty."""
    if not hasattr(sheet, "iter_rows"):  # a sheet that is a chart
        return []
    sheet.reset_dimensions()  # type: ignore[attr-defined]  # the declared size may be wrong
    rows: list[tuple[object, ...]] = []
    for number, values in enumerate(sheet.iter_rows(values_only=True)):
        if number >= _MOST_ROWS or len(values) > _MOST_COLUMNS:
            raise DatasetError("the workbook is damaged: a sheet has too many rows or columns; get a new copy.")
        if any(value is not None for value in values):
            rows.append(tuple(values))
    return rows


def _as_arrow(rows: list[tuple[object, ...]], header: bool, missing: frozenset[str]) -> ArrowTable:
    import pyarrow

    width = max(map(len, rows))
    first = rows[0] if header else ()
    names = ["" if place >= len(first) or first[place] is None else str(first[place]) for place in range(width)]
    columns = [[row[place] if place < len(row) else None for row in rows[header:]] for place in range(width)]
    arrays = [_as_array([_value(cell, missing) for cell in cells]) for cells in columns]
    return pyarrow.Table.from_arrays([pyarrow.chunked_array([array]) for array in arrays], names=names)


def _value(cell: object, missing: frozenset[str]) -> object:
    return None if isinstance(cell, str) and cell.strip() in missing else cell


def _as_array(cells: list[object]) -> object:
    """Return cells as an array of one type; as text if they are of several."""
    import pyarrow

    try:
        return pyarrow.array(cells)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError):
        return pyarrow.array([None if cell is None else str(cell) for cell in cells])
