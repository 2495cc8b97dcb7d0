"""Parsers of the catalogue's files: from bytes to rows of text cells."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Sequence

from subswarm.datasets._archive import open_archive
from subswarm.errors import DatasetError, MissingExtraError

__all__ = [
    "Rows",
    "join_columns",
    "parse_blank_separated",
    "parse_comma_separated",
    "parse_workbook",
    "with_plain_line_ends",
]

Rows = list[list[str]]

_MOST_ROWS, _MOST_COLUMNS = 1 << 20, 1 << 14
"""The largest sheet that the format allows."""


def with_plain_line_ends(content: bytes) -> bytes:
    """Return text with LF line ends and without empty lines at its start and end."""
    return content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").strip(b"\n") + b"\n"


def parse_comma_separated(content: bytes) -> Rows:
    """Return rows of comma-separated cells. Empty lines are skipped."""
    return [[cell.strip() for cell in line.split(",")] for line in _lines(content)]


def parse_blank_separated(content: bytes) -> Rows:
    """Return rows of cells separated by blanks. Empty lines are skipped."""
    return [line.split() for line in _lines(content)]


def parse_workbook(content: bytes, sheets: Sequence[str]) -> Rows:
    """Return the named sheets of an .xlsx workbook side by side, each cell as text."""
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise MissingExtraError(
            "reading an .xlsx workbook needs openpyxl, which is not installed; pip install 'subswarm[data]'"
        ) from error
    with open_archive(content, "the workbook"):
        pass  # only checks the declared sizes, before anything is unpacked
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles, which do not matter here
            book = load_workbook(io.BytesIO(content), read_only=True, data_only=True)
            missing = [name for name in sheets if name not in book.sheetnames]
            if missing:
                raise DatasetError(f"the workbook has no sheet {missing[0]!r}; it has {book.sheetnames}.")
            return join_columns([_sheet_rows(book[name]) for name in sheets])
    except DatasetError:
        raise
    except Exception as error:  # openpyxl raises whatever its parsers raise on a damaged file
        raise DatasetError(f"the workbook is damaged ({error}); get a new copy.") from error


def join_columns(tables: Sequence[Rows]) -> Rows:
    """Join tables with the same number of rows side by side."""
    counts = [len(table) for table in tables]
    if len(set(counts)) > 1:
        raise DatasetError(f"the parts of the data set must have equally many rows; got {counts}.")
    return [[cell for row in rows for cell in row] for rows in zip(*tables, strict=True)]


def _lines(content: bytes) -> list[str]:
    return [line for line in content.decode("utf-8").splitlines() if line.strip()]


def _sheet_rows(sheet: object) -> Rows:
    """Return the rows of a sheet that are not empty."""
    sheet.reset_dimensions()  # type: ignore[attr-defined]  # the declared size may be wrong, and rows are padded to it
    rows: Rows = []
    values: Iterable[object]
    for number, values in enumerate(sheet.iter_rows(values_only=True)):  # type: ignore[attr-defined]
        cells = [_cell_text(value) for value in values]
        if number >= _MOST_ROWS or len(cells) > _MOST_COLUMNS:
            raise DatasetError("the workbook is damaged: a sheet has too many rows or columns; get a new copy.")
        if any(cells):
            rows.append(cells)
    return rows


def _cell_text(value: object) -> str:
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, bool) else str(value)
