"""Building blocks of a page (text, numbers, tables, charts, code) and their rendering as one HTML file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar

from subswarm.errors import MissingExtraError

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["Cell", "Chart", "Charts", "Code", "Column", "Heat", "Layer", "Number", "Numbers", "Page", "Part", "Row",
           "Section", "Table", "Words", "check_renderer", "columns", "number", "render", "rows", "shape", "share",
           "text"]  # fmt: skip


@dataclass(frozen=True)
class Words:
    """A paragraph. ``manner`` is "" (plain), "soft" or "note"."""

    text: str
    manner: str = ""
    kind: ClassVar[str] = "words"


@dataclass(frozen=True)
class Number:
    """A number with a label, shown large."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Numbers:
    """Numbers side by side."""

    items: tuple[Number, ...]
    kind: ClassVar[str] = "numbers"


@dataclass(frozen=True)
class Code:
    """Code to copy."""

    title: str
    text: str
    kind: ClassVar[str] = "code"


@dataclass(frozen=True)
class Column:
    """A column heading. ``kind`` is "text", "number" or "share" (0 to 1, drawn as a bar)."""

    name: str
    kind: str = "text"


@dataclass(frozen=True)
class Cell:
    """The text of a cell, and the value it is sorted by. A "shape" is drawn: points of lines, one for each class."""

    text: str
    value: float | None = None
    kind: str = "text"
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """A row of a table. A chosen row is highlighted."""

    cells: tuple[Cell, ...]
    chosen: bool = False


@dataclass(frozen=True)
class Table:
    """A table that can be sorted, and filtered if it is long. The legend names the lines of its shapes."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""
    legend: tuple[str, ...] = ()
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

    def as_json(self) -> dict[str, object]:
        """Return the layer as the page's script reads it."""
        values = {"x": self.x, "y": self.y, "low": self.low, "high": self.high}
        numbers = {key: [_rounded(each) for each in column] for key, column in values.items() if column is not None}
        notes = {} if self.notes is None else {"notes": list(self.notes)}
        return {"name": self.name, "kind": self.kind, "colour": self.colour, **numbers, **notes}


@dataclass(frozen=True)
class Heat:
    """A heat map below the layers of a chart: rows from bottom to top, in the box (left, right, bottom, top)."""

    box: tuple[float, float, float, float]
    rows: list[list[float]]
    top: float


@dataclass(frozen=True)
class Chart:
    """Layers on two axes, above an optional heat map."""

    title: str
    note: str
    xlabel: str
    ylabel: str
    layers: tuple[Layer, ...]
    heat: Heat | None = None
    kind: ClassVar[str] = "chart"

    @property
    def json(self) -> Markup:
        """The data of the chart as JSON that is safe inside a script element."""
        from markupsafe import Markup

        data = {
            "label": f"{self.title}. {self.note}",
            "xlabel": self.xlabel,
            "ylabel": self.ylabel,
            "layers": [layer.as_json() for layer in self.layers],
            **({} if self.heat is None else {"heat": asdict(self.heat)}),
        }
        written = json.dumps(data, allow_nan=False, separators=(",", ":"))
        for letter in "<>&":
            written = written.replace(letter, f"\\u{ord(letter):04x}")
        return Markup(written)


@dataclass(frozen=True)
class Charts:
    """Charts side by side below a heading that shows or hides them. ``shown``: whether they are shown at first."""

    title: str
    charts: tuple[Chart, ...]
    shown: bool = True
    kind: ClassVar[str] = "charts"


Part = Words | Numbers | Code | Table | Chart | Charts


@dataclass(frozen=True)
class Section:
    """A section of the page with a heading."""

    id: str
    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Page:
    """A page: title, introduction, sections and footer."""

    title: str
    lead: str
    sections: tuple[Section, ...]
    footer: str


def render(page: Page, *, live: bool = False) -> str:
    """Return the page as HTML, with all text escaped and with its styles and scripts inside.

    A ``live`` page asks its server for updates.
    """
    check_renderer()
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(_asset("page.html.j2"))
    return template.render(
        page=page,
        live=live,
        style=Markup(_asset("style.css")),
        tables_script=Markup(_asset("tables.js")),
        charts_script=Markup(_asset("charts.js")),
        live_script=Markup(_asset("live.js")) if live else "",
    )


def check_renderer() -> None:
    """Raise MissingExtraError if jinja2, which renders pages, is not installed."""
    if find_spec("jinja2") is None:
        raise MissingExtraError("a report needs jinja2, which is not installed; pip install 'subswarm[report]'")


def text(value: object) -> Cell:
    """Make a cell of text."""
    return Cell(str(value))


def number(value: float | None, form: str = ".4f") -> Cell:
    """Make a cell with a number, or a dash if it is None or not finite."""
    if value is None or not math.isfinite(value):
        return Cell("–", None, "number")
    return Cell(format(value, form), float(value), "number")


def share(value: float | None, words: str | None = None) -> Cell:
    """Make a cell that shows a share between 0 and 1 as a bar."""
    if value is None or not math.isfinite(value):
        return Cell("–", None, "share")
    return Cell(f"{value:.0%}" if words is None else words, float(value), "share")


def shape(heights: Sequence[Sequence[float]], words: str) -> Cell:
    """Make a cell that draws a line for each row of heights; ``words`` say the same for who cannot see it."""
    top = max((max(line) for line in heights), default=0.0) or 1.0
    lines = []
    for line in heights:
        step = 90 / max(1, len(line) - 1)
        lines.append(" ".join(f"{1 + step * place:.0f},{23 - 21 * each / top:.1f}" for place, each in enumerate(line)))
    return Cell(words, None, "shape", tuple(lines))


def columns(*named: tuple[str, str] | str) -> tuple[Column, ...]:
    """Make headings from names, or from pairs (name, kind)."""
    return tuple(Column(each) if isinstance(each, str) else Column(*each) for each in named)


def rows(cells: Iterable[Iterable[Cell]], chosen: Iterable[bool] | None = None) -> tuple[Row, ...]:
    """Make rows from cells; ``chosen`` marks the rows to highlight."""
    listed = [tuple(row) for row in cells]
    marks = [False] * len(listed) if chosen is None else list(chosen)
    return tuple(Row(row, mark) for row, mark in zip(listed, marks, strict=True))


def _asset(name: str) -> str:
    return files("subswarm.report").joinpath("assets", name).read_text(encoding="utf-8")


def _rounded(value: float) -> float:
    near = float(f"{value:.6g}")
    return int(near) if near.is_integer() else near
