"""Colours and shared helpers of all plots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from subswarm._checks import shown
from subswarm._search.result import SearchResult
from subswarm.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

__all__ = ["DASHES", "PALETTE", "Results", "check_result", "colormap", "group_results", "new_axes", "tidy"]

PALETTE = ("#1B7FBD", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6BB1", "#7F7F7F")
"""Colours for colour-blind readers after Okabe and Ito, with a lighter blue and without yellow and black, which are
hard to see on one of the two themes."""
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (8, 2)), (0, (3, 1)), (0, (1, 1)))

Results = SearchResult | Sequence[SearchResult] | Mapping[str, SearchResult | Sequence[SearchResult]]


def new_axes(ax: Axes | None, size: tuple[float, float] = (6.4, 3.8)) -> Axes:
    """Return the axes given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingExtraError(
            "plots need matplotlib, which is not installed; pip install 'subswarm[plot]'"
        ) from error
    axes: Axes = pyplot.subplots(figsize=size, layout="constrained")[1]
    return axes


def tidy(ax: Axes, *, grid: str | None = "both") -> None:
    """Remove the box around the axes and add a faint grid in the colour of the text, which suits both themes."""
    ax.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        ax.grid(visible=True, axis=grid, color=ax.xaxis.label.get_color(), alpha=0.13, linewidth=0.8)  # type: ignore[arg-type]
        ax.set_axisbelow(True)


def colormap() -> Colormap:
    """Return the colour map of heat maps, which is even in lightness and readable without colour."""
    from matplotlib import colormaps

    return colormaps["cividis"]


def check_result(result: object) -> None:
    """Raise DataError unless this is a SearchResult."""
    if not isinstance(result, SearchResult):
        raise DataError(
            f"expected a SearchResult, such as result_ of a fitted selector or the result of search(); "
            f"got {shown(result)}."
        )


def group_results(results: Results) -> dict[str, list[SearchResult]]:
    """Return lists of results by name; the results of a plain list are grouped by algorithm."""
    groups: dict[str, list[SearchResult]] = {}
    if isinstance(results, Mapping):
        for name, runs in results.items():
            groups[str(name)] = _as_list(runs)
    else:
        for result in _as_list(results):
            groups.setdefault(result.algorithm, []).append(result)
    if not groups or not all(groups.values()):
        raise DataError("there is nothing to plot; expected at least one result for each name.")
    return groups


def _as_list(results: object) -> list[SearchResult]:
    if isinstance(results, SearchResult):
        return [results]
    if isinstance(results, str | bytes | Mapping) or not isinstance(results, Iterable):
        check_result(results)
        return []
    try:
        listed = list(results)
    except TypeError:  # an array without dimensions is iterable only by its type
        listed = [results]
    for result in listed:
        check_result(result)
    return listed
