"""A page in parts: words, numbers, tables, charts and code, as one HTML file that needs nothing else."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, ClassVar

from subswarm.core.errors import MissingExtraError

__all__ = ["Cell", "Chart", "Charts", "Code", "Column", "Layer", "Number", "Numbers", "Page", "Row", "Section", "Table",
           "Words", "columns", "number", "render", "rows", "share", "text"]  # fmt: skip


@dataclass(frozen=True)
class Words:
    """A paragraph; ``manner`` is "" (plain), "soft" or "note"."""

    text: str
    manner: str = ""
    kind: ClassVar[str] = "words"


@dataclass(frozen=True)
class Number:
    """A figure to be seen first."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Numbers:
    """Figures side by side."""

    items: tuple[Number, ...]
    kind: ClassVar[str] = "numbers"


@dataclass(frozen=True)
class Code:
    """Something to copy."""

    title: str
    text: str
    kind: ClassVar[str] = "code"


@dataclass(frozen=True)
class Column:
    """A heading; ``kind`` is "text", "number" or "share" (0 to 1, drawn as a bar)."""

    name: str
    kind: str = "text"


@dataclass(frozen=True)
class Cell:
    """What a cell shows, and what it sorts by."""

    text: str
    value: float | None = None
    kind: str = "text"


@dataclass(frozen=True)
class Row:
    """A row of a table; a chosen one stands out."""

    cells: tuple[Cell, ...]
    chosen: bool = False


@dataclass(frozen=True)
class Table:
    """A table that sorts, and filters where it is long."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""
    kind: ClassVar[str] = "table"


@dataclass(frozen=True)
class Layer:
    """Points of a chart: a "line" (with a band from ``low`` to ``high``), "dots" or a "mark"."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    kind: str = "line"
    colour: int = 0
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    notes: Sequence[str] | None = None

    def as_json(self) -> dict[str, Any]:
        """As the page's script reads it."""
        values = {"x": self.x, "y": self.y, "low": self.low, "high": self.high}
        numbers = {key: [_rounded(each) for each in column] for key, column in values.items() if column is not None}
        notes = {} if self.notes is None else {"notes": list(self.notes)}
        return {"name": self.name, "kind": self.kind, "colour": self.colour, **numbers, **notes}


@dataclass(frozen=True)
class Chart:
    """Layers over two axes; ``heat`` is a matrix below them as rows from bottom to top, with its box on the axes."""

    title: str
    note: str
    xlabel: str
    ylabel: str
    layers: tuple[Layer, ...]
    heat: dict[str, Any] | None = None
    kind: ClassVar[str] = "chart"

    @property
    def json(self) -> Any:
        """The chart's data, safe inside a script element whatever names are in it."""
        from markupsafe import Markup

        data = {
            "label": f"{self.title}. {self.note}",
            "xlabel": self.xlabel,
            "ylabel": self.ylabel,
            "layers": [layer.as_json() for layer in self.layers],
            **({} if self.heat is None else {"heat": self.heat}),
        }
        written = json.dumps(data, allow_nan=False, separators=(",", ":"))
        for letter in "<>&":
            written = written.replace(letter, f"\\u{ord(letter):04x}")
        return Markup(written)


@dataclass(frozen=True)
class Charts:
    """Charts side by side below a heading that folds them away; ``shown`` at first or not."""

    title: str
    charts: tuple[Chart, ...]
    shown: bool = True
    kind: ClassVar[str] = "charts"


@dataclass(frozen=True)
class Section:
    """A question of the reader's and its answer."""

    id: str
    title: str
    parts: tuple[Words | Numbers | Code | Table | Chart | Charts, ...]


@dataclass(frozen=True)
class Page:
    """A whole page."""

    title: str
    lead: str
    sections: tuple[Section, ...]
    footer: str


def render(page: Page, *, live: bool = False) -> str:
    """The page as HTML: every word escaped, styles and scripts inside, nothing fetched from anywhere.

    A ``live`` page asks the server it came from whether there is something new.
    """
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise MissingExtraError(
            "a report needs jinja2, which is not installed; pip install 'subswarm[report]'"
        ) from error
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(_asset("page.html.j2"))
    return template.render(
        page=page,
        live=live,
        style=Markup(_asset("style.css")),
        tables_script=Markup(_asset("tables.js")),
        charts_script=Markup(_asset("charts.js")),
        live_script=Markup(_asset("live.js")) if live else "",
    )


def text(value: object) -> Cell:
    """A cell of words."""
    return Cell(str(value))


def number(value: float | None, form: str = ".4f") -> Cell:
    """A cell that holds a number, or a dash where there is none."""
    if value is None or not math.isfinite(value):
        return Cell("–", None, "number")
    return Cell(format(value, form), float(value), "number")


def share(value: float | None, words: str | None = None) -> Cell:
    """A cell that shows a share between 0 and 1 as a bar."""
    if value is None or not math.isfinite(value):
        return Cell("–", None, "share")
    return Cell(f"{value:.0%}" if words is None else words, float(value), "share")


def columns(*named: tuple[str, str] | str) -> tuple[Column, ...]:
    """Headings from names, or from (name, kind)."""
    return tuple(Column(each) if isinstance(each, str) else Column(*each) for each in named)


def rows(cells: Iterable[Iterable[Cell]], chosen: Iterable[bool] | None = None) -> tuple[Row, ...]:
    """Rows from cells."""
    listed = [tuple(row) for row in cells]
    marks = [False] * len(listed) if chosen is None else list(chosen)
    return tuple(Row(row, mark) for row, mark in zip(listed, marks, strict=True))


def _asset(name: str) -> str:
    return files("subswarm.report").joinpath("assets", name).read_text(encoding="utf-8")


def _rounded(value: float) -> float:
    near = float(f"{value:.6g}")
    return int(near) if near.is_integer() else near
