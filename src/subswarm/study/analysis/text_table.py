"""Prints tables as text, Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from subswarm._checks import check_choice

__all__ = ["FORMATS", "Grid", "csv_cell", "markdown_cell", "render"]


@dataclass(frozen=True)
class Grid:
    """A table of text.

    Attributes
    ----------
    title : what the table shows
    headers : one for each column
    rows : the cells; a rule separates rows whose first cells differ
    notes : sentences below the table
    """

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def without_repeats(self) -> list[tuple[str, ...]]:
        """Return the rows, with an empty first cell if it equals the one above."""
        shown = []
        for above, row in zip([None, *self.rows], self.rows, strict=False):
            shown.append(("", *row[1:]) if above is not None and above[0] == row[0] else row)
        return shown


def render(grids: Sequence[Grid], form: str) -> str:
    """Print tables as "text", "markdown", "latex" or "csv".

    Examples
    --------
    >>> print(render([Grid("Errors", ("data set", "ga"), (("wine", "0.1"),))], "markdown"))
    ### Errors
    <BLANKLINE>
    | data set | ga |
    |---|---|
    | wine | 0.1 |
    <BLANKLINE>
    """
    check_choice("format", form, FORMATS)
    if form == "csv":
        return _csv(grids)
    return "\n".join(_PRINTERS[form](grid) for grid in grids)


def csv_cell(text: str) -> str:
    """Return the text of a CSV cell that no spreadsheet runs as a formula.

    Names come from files that others may have written, and a spreadsheet runs a cell that starts like a formula. Such
    a cell gets an apostrophe in front, which spreadsheets do not show. Numbers and single signs are not changed.

    Examples
    --------
    >>> csv_cell("=1+1"), csv_cell("-0.5"), csv_cell("+"), csv_cell("wine")
    ("'=1+1", '-0.5', '+', 'wine')
    """
    starts_like_formula = text[:1] in _FORMULA_STARTS or text.lstrip()[:1] in _FORMULA_STARTS
    is_formula = starts_like_formula and text not in _SIGNS and not _is_number(text)
    return ("'" if is_formula else "") + _on_one_line(text)


def markdown_cell(text: str) -> str:
    """Escape text so that Markdown shows it unchanged: HTML, cell and line ends, and backslashes.

    Examples
    --------
    >>> print(markdown_cell("a|b <i>"))
    a\\|b &lt;i&gt;
    """
    return "".join(_MARKDOWN.get(letter, letter) for letter in _on_one_line(text))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text


def _on_one_line(text: str) -> str:
    return " ".join(text.splitlines())


def _text(grid: Grid) -> str:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(grid.title), box=SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    for header in grid.headers:
        table.add_column(Text(header), overflow="fold")
    shown = grid.without_repeats()
    for place, row in enumerate(shown):
        ends = place + 1 < len(shown) and shown[place + 1][0] != "" and len(shown) != len({r[0] for r in grid.rows})
        table.add_row(*map(Text, row), end_section=ends)
    longest = [max(len(cell) for cell in column) for column in zip(grid.headers, *grid.rows, strict=True)]
    out = io.StringIO()
    console = Console(width=max(sum(longest) + 3 * len(longest), 80), file=out, color_system=None)
    console.print(table)
    for note in grid.notes:
        console.print(Text(note))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _markdown(grid: Grid) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(map(markdown_cell, cells)) + " |"

    lines = [f"### {markdown_cell(grid.title)}", "", line(grid.headers), "|" + "---|" * len(grid.headers)]
    lines += [line(row) for row in grid.without_repeats()]
    lines += [f"\n{markdown_cell(note)}" for note in grid.notes]
    return "\n".join(lines) + "\n"


def _latex(grid: Grid) -> str:
    """Return a booktabs table; the preamble needs ``\\usepackage{booktabs}``."""
    lines = [
        r"\begin{table}",
        rf"\caption{{{_escape_latex(grid.title)}}}",
        r"\centering",
        rf"\begin{{tabular}}{{{'l' * len(grid.headers)}}}",
        r"\toprule",
        " & ".join(map(_escape_latex, grid.headers)) + r" \\",
    ]
    for row, full in zip(grid.without_repeats(), grid.rows, strict=True):
        if row[0] == full[0]:
            lines.append(r"\midrule" if row[0] else "")
        lines.append(" & ".join(map(_escape_latex, row)) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\footnotesize {_escape_latex(note)}" for note in grid.notes]
    return "\n".join([*filter(None, lines), r"\end{table}"]) + "\n"


def _csv(grids: Sequence[Grid]) -> str:
    """Return plain rows with the title as first column; tables with the same columns share their headers."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    above: tuple[str, ...] | None = None
    for grid in grids:
        if grid.headers != above:
            writer.writerow(map(csv_cell, ["table", *grid.headers]))
        writer.writerows(map(csv_cell, [grid.title, *row]) for row in grid.rows)
        above = grid.headers
    return out.getvalue()


_FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠")
_SIGNS = tuple("=+-@")
_MARKDOWN = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "\\|", "\\": "\\\\"}

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "±": r"$\pm$",
    "<": "$<$",
    ">": "$>$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "×": r"$\times$",
    "Ξ": r"$\Xi$",
    "ξ": r"$\xi$",
    "Φ": r"$\Phi$",
    "χ": r"$\chi$",
    "δ": r"$\delta$",
    "²": "$^2$",
    "≫": r"$\gg$",
    "ω": r"$\omega$",
    "→": r"$\to$",
}


def _escape_latex(text: str) -> str:
    return "".join(_SPECIAL.get(letter, letter) for letter in _on_one_line(text))


_PRINTERS: dict[str, Callable[[Grid], str]] = {"text": _text, "markdown": _markdown, "latex": _latex}
FORMATS = (*_PRINTERS, "csv")
