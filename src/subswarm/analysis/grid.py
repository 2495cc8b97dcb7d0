"""A table of words, and four ways to print it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from subswarm.core.checks import check_choice

__all__ = ["FORMATS", "Grid", "render"]


@dataclass(frozen=True)
class Grid:
    """A table.

    Attributes
    ----------
    title : what it shows
    headers : one for each column
    rows : cells as text; a rule is drawn where the first cell changes
    notes : what a reader must know
    """

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def without_repeats(self) -> list[tuple[str, ...]]:
        """The rows with the first cell left empty where it says the same as the one above."""
        shown = []
        for above, row in zip([None, *self.rows], self.rows, strict=False):
            shown.append(("", *row[1:]) if above is not None and above[0] == row[0] else row)
        return shown


def render(grids: Sequence[Grid], form: str) -> str:
    """The tables as "text", "markdown", "latex" or "csv".

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
    console = Console(width=max(sum(longest) + 3 * len(longest), 80), file=io.StringIO(), color_system=None)
    console.print(table)
    for note in grid.notes:
        console.print(Text(note))
    out = console.file
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"  # type: ignore[attr-defined]


def _markdown(grid: Grid) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    lines = [f"### {grid.title}", "", line(grid.headers), "|" + "---|" * len(grid.headers)]
    lines += [line(row) for row in grid.without_repeats()]
    lines += [f"\n{note}" for note in grid.notes]
    return "\n".join(lines) + "\n"


def _latex(grid: Grid) -> str:
    """A booktabs table; the preamble needs ``\\usepackage{booktabs}``."""
    lines = [
        r"\begin{table}",
        rf"\caption{{{_escaped(grid.title)}}}",
        r"\centering",
        rf"\begin{{tabular}}{{{'l' * len(grid.headers)}}}",
        r"\toprule",
        " & ".join(map(_escaped, grid.headers)) + r" \\",
    ]
    for row, full in zip(grid.without_repeats(), grid.rows, strict=True):
        if row[0] == full[0]:
            lines.append(r"\midrule" if row[0] else "")
        lines.append(" & ".join(map(_escaped, row)) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\footnotesize {_escaped(note)}" for note in grid.notes]
    return "\n".join([*filter(None, lines), r"\end{table}"]) + "\n"


def _csv(grids: Sequence[Grid]) -> str:
    """Plain rows with the title as first column; tables of the same columns make one table."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    above: tuple[str, ...] | None = None
    for grid in grids:
        if grid.headers != above:
            writer.writerow(["table", *grid.headers])
        writer.writerows([grid.title, *row] for row in grid.rows)
        above = grid.headers
    return out.getvalue()


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


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(letter, letter) for letter in text)


_PRINTERS: dict[str, Callable[[Grid], str]] = {"text": _text, "markdown": _markdown, "latex": _latex}
FORMATS = (*_PRINTERS, "csv")
