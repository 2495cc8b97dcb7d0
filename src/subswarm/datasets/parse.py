"""From bytes to rows of cells: separated text, and the one workbook."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from xml.etree import ElementTree

from subswarm.core.errors import DatasetError

__all__ = ["beside", "blank_rows", "comma_rows", "plain_text", "workbook_rows"]

Rows = list[list[str]]

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RELATION_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def plain_text(content: bytes) -> bytes:
    """The same text with plain line ends: LF, no empty lines at either end."""
    return content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").strip(b"\n") + b"\n"


def comma_rows(content: bytes) -> Rows:
    """Rows of comma-separated cells; empty lines are skipped."""
    return [[cell.strip() for cell in line.split(",")] for line in _lines(content)]


def blank_rows(content: bytes) -> Rows:
    """Rows of cells separated by blanks."""
    return [line.split() for line in _lines(content)]


def workbook_rows(content: bytes, sheets: Sequence[str]) -> Rows:
    """The named sheets of an .xlsx workbook, side by side, each cell as its text."""
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        strings = ["".join(node.itertext()) for node in ElementTree.fromstring(book.read("xl/sharedStrings.xml"))]
        parts = _sheet_parts(book)
        return beside([_sheet_rows(book.read(parts[sheet]), strings) for sheet in sheets])


def beside(tables: Sequence[Rows]) -> Rows:
    """Tables of equally many rows, side by side."""
    counts = [len(table) for table in tables]
    if len(set(counts)) > 1:
        raise DatasetError(f"files that belong side by side have {counts} rows; they must have equally many.")
    return [[cell for row in rows for cell in row] for rows in zip(*tables, strict=True)]


def _lines(content: bytes) -> list[str]:
    return [line for line in content.decode("utf-8").splitlines() if line.strip()]


def _sheet_parts(book: zipfile.ZipFile) -> dict[str, str]:
    """Where in the archive each sheet lies."""
    relations = ElementTree.fromstring(book.read("xl/_rels/workbook.xml.rels"))
    targets = {node.attrib["Id"]: node.attrib["Target"] for node in relations}
    workbook = ElementTree.fromstring(book.read("xl/workbook.xml"))
    return {
        sheet.attrib["name"]: f"xl/{targets[sheet.attrib[_RELATION_ID]]}" for sheet in workbook.iter(f"{_MAIN}sheet")
    }


def _sheet_rows(part: bytes, strings: Sequence[str]) -> Rows:
    rows = []
    for row in ElementTree.fromstring(part).iter(f"{_MAIN}row"):
        cells: list[str] = []
        for cell in row.iter(f"{_MAIN}c"):
            cells += [""] * (_column(cell.attrib["r"]) - 1 - len(cells))
            value = cell.findtext(f"{_MAIN}v", default="")
            cells.append(strings[int(value)] if cell.get("t") == "s" else value)
        rows.append(cells)
    return rows


def _column(reference: str) -> int:
    """The column number of a reference such as "AB12": 28."""
    number = 0
    for letter in reference.rstrip("0123456789"):
        number = number * 26 + ord(letter) - ord("A") + 1
    return number
