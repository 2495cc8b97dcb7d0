"""One look for all figures: colours that colour-blind people tell apart, on paper and on screens of both themes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from subswarm.core.errors import DataError, MissingExtraError
from subswarm.core.types import SearchResult

__all__ = ["DASHES", "MARKERS", "PALETTE", "Results", "colormap", "grouped", "new_axes", "tidy"]

PALETTE = ("#1B7FBD", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6BB1", "#7F7F7F")
"""After Okabe and Ito: a slightly lighter blue, and no yellow and black, which vanish on one of the two themes."""
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (8, 2)), (0, (3, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

Results = SearchResult | Sequence[SearchResult] | Mapping[str, SearchResult | Sequence[SearchResult]]


def new_axes(ax: Any, size: tuple[float, float] = (6.4, 3.8)) -> Any:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingExtraError(
            "plots need matplotlib, which is not installed; pip install 'subswarm[plot]'"
        ) from error
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def tidy(ax: Any, *, grid: str | None = "both") -> None:
    """No box around the figure, a faint grid in the colour of the text (so that it suits either theme)."""
    ax.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        ax.grid(visible=True, axis=grid, color=ax.xaxis.label.get_color(), alpha=0.13, linewidth=0.8)
        ax.set_axisbelow(True)


def colormap() -> Any:
    """The colour map of heat maps: even in lightness, and readable without colour."""
    from matplotlib import colormaps

    return colormaps["cividis"]


def grouped(results: Results) -> dict[str, list[SearchResult]]:
    """Results by name: a list goes by its algorithms' names."""
    if isinstance(results, SearchResult):
        results = [results]
    if isinstance(results, Mapping):
        groups = {name: [runs] if isinstance(runs, SearchResult) else list(runs) for name, runs in results.items()}
    else:
        groups = {}
        for result in results:
            groups.setdefault(result.algorithm, []).append(result)
    if not groups or not all(groups.values()):
        raise DataError("there is nothing to plot: at least one result of each name is wanted.")
    return groups
