"""Critical-difference diagrams (Demšar, JMLR 7, 2006)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from subswarm._checks import check_real, shown, suggest
from subswarm.errors import DataError, SettingError
from subswarm.plot._style import PALETTE, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import ColorType

__all__ = ["critical_difference"]

MOST_ALGORITHMS = 1000
"""The highest rank that a diagram can show."""


def critical_difference(
    ranks: Mapping[str, float], *, distance: float, highlight: str | None = None, ax: Axes | None = None
) -> Axes:
    """Plot mean ranks on a line, with bars that connect algorithms without a significant difference.

    Parameters
    ----------
    ranks : mean rank of each algorithm, 1 is best
    distance : Nemenyi's critical difference
    highlight : name to draw in colour
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> ax = critical_difference({"2D-UPSO": 1.7, "BPSO": 2.6, "GA": 7.3, "ACO": 4.1}, distance=1.25)
    """
    if not isinstance(ranks, Mapping) or len(ranks) < 2:
        raise DataError(f"ranks must be a dict with the mean ranks of at least two algorithms; got {shown(ranks)}.")
    for name, rank in ranks.items():
        check_real(f"the rank of {shown(name)}", rank, low=1, high=MOST_ALGORITHMS)
    check_real("distance", distance, low=0)
    distance = float(distance)
    if highlight is not None and not (isinstance(highlight, str) and highlight in ranks):
        raise SettingError(
            f"highlight must be a name in ranks or None; got {shown(highlight)}.{suggest(highlight, ranks)}"
        )
    ordered = sorted(ranks.items(), key=lambda item: item[1])
    left = (len(ordered) + 1) // 2
    cliques = find_cliques([rank for _, rank in ordered], distance)
    ax = new_axes(ax, (7.0, 1.5 + 0.2 * left + 0.1 * len(cliques)))
    low, high = 1.0, float(max(len(ordered), np.ceil(ordered[-1][1])))
    colour = ax.xaxis.label.get_color()
    top = 0.16 + 0.12 * len(cliques)
    ax.plot([low, high], [0, 0], color=colour, linewidth=1.2)
    for tick in np.arange(low, high + 1):
        ax.plot([tick, tick], [0, 0.08], color=colour, linewidth=1)
        ax.text(tick, 0.13, f"{tick:g}", ha="center", va="bottom", color=colour)
    for place, (name, rank) in enumerate(ordered):
        on_left = place < left
        row = place if on_left else len(ordered) - 1 - place
        depth, side = -(top + 0.24 * row), low - 0.25 if on_left else high + 0.25
        shade = PALETTE[1] if name == highlight else colour
        ax.plot([rank, rank, side], [0, depth, depth], color=shade, linewidth=1.8 if name == highlight else 0.9)
        ax.text(
            side, depth, f"{name}  {rank:.2f} " if on_left else f" {rank:.2f}  {name}", va="center",
            ha="right" if on_left else "left", color=shade, fontweight="bold" if name == highlight else "normal",
        )  # fmt: skip
    for row, (first, last) in enumerate(cliques):
        height = -(0.1 + 0.12 * row)
        ends = [ordered[first][1] - 0.04, ordered[last][1] + 0.04]
        ax.plot(ends, [height, height], color=PALETTE[0], linewidth=4, solid_capstyle="round")
    _draw_ruler(ax, low, distance, colour)
    ax.set_ylim(-(top + 0.24 * left), 0.75)
    ax.set_xlim(low - 1.6, high + 1.6)
    ax.set_axis_off()
    return ax


def find_cliques(ranks: list[float], distance: float) -> list[tuple[int, int]]:
    """Return the longest ranges (first, last) of ascending ranks whose ends differ by at most ``distance``.

    Examples
    --------
    >>> find_cliques([1.0, 1.5, 2.4, 5.0], 1.0)
    [(0, 1), (1, 2)]
    """
    found: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = max(place for place, other in enumerate(ranks) if other - rank <= distance)
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found


def _draw_ruler(ax: Axes, start: float, length: float, colour: ColorType) -> None:
    ax.plot([start, start + length], [0.48, 0.48], color=colour, linewidth=1.2)
    for end in (start, start + length):
        ax.plot([end, end], [0.44, 0.52], color=colour, linewidth=1.2)
    ax.text(start + length / 2, 0.54, f"critical difference {length:.2f}", ha="center", va="bottom", color=colour)
