"""A study's printed tables as tables of a page: what reads as a number sorts as one."""

from __future__ import annotations

from subswarm.analysis.grid import Grid
from subswarm.report.page import Cell, Column, Row, Table, Words

__all__ = ["grid_parts", "numeric"]


def grid_parts(grid: Grid) -> tuple[Table | Words, ...]:
    """The table, with its notes below."""
    numbers = [[numeric(cell) for cell in column] for column in zip(*grid.rows, strict=True)]
    kinds = ["number" if any(value is not None for value in column) else "text" for column in numbers]
    body = tuple(Row(tuple(_cell(word, kind) for word, kind in zip(row, kinds, strict=True))) for row in grid.rows)
    headings = tuple(Column(name, kind) for name, kind in zip(grid.headers, kinds, strict=True))
    return (Table(grid.title, headings, body), *(Words(note, "soft") for note in grid.notes))


def numeric(word: str) -> float | None:
    """The number a cell begins with, or None.

    Examples
    --------
    >>> numeric("0.48 [0.2, 0.7]"), numeric("−3"), numeric("3 / 0 / 1"), numeric("wine"), numeric("–")
    (0.48, -3.0, 3.0, None, None)
    """
    first = word.split(maxsplit=1)[0] if word.split() else ""
    try:
        return float(first.replace("−", "-").rstrip("%"))
    except ValueError:
        return None


def _cell(word: str, kind: str) -> Cell:
    return Cell(word, numeric(word), kind) if kind == "number" else Cell(word)
