"""Rows of a benchmark in a file of JSON lines, which are kept as they are measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from subswarm.errors import DatasetError

__all__ = ["append_rows", "read_rows"]

Row = TypeVar("Row")


def append_rows(store: Path | None, rows: Iterable[Mapping[str, object]]) -> None:
    """Add rows at the end of the file; without one, do nothing."""
    if store is not None:
        with store.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)


def read_rows(store: Path | None, make: Callable[..., Row], command: str) -> list[Row]:
    """Return the rows of the file, each made of the values of a line by name; none if there is no file.

    A last line that was cut off, because the program ended while writing it, is removed from the file.

    Parameters
    ----------
    store : the file
    make : makes a row of its values
    command : the command that writes such a file, for the error message
    """
    if store is None or not store.exists():
        return []
    lines = store.read_text(encoding="utf-8").splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
        store.write_text("".join(lines), encoding="utf-8")
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(make(**json.loads(line)))
        except (TypeError, ValueError, KeyError) as error:
            raise DatasetError(f"{store}, line {number}, is not a row of '{command}': {error}") from error
    return rows
