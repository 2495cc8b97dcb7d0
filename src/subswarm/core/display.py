"""A result as a small piece of HTML, for notebooks. Nothing here needs more than the standard library and NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subswarm.core.types import FloatArray, SearchResult

__all__ = ["result_html", "rows_html"]

_MOST_NAMES = 40


def result_html(result: SearchResult, names: Sequence[str] | None = None) -> str:
    """What was found and how, as a table with the course of the best loss drawn beside it."""
    chosen = [str(index) if names is None else str(names[index]) for index in result.best.features]
    more = f" and {len(chosen) - _MOST_NAMES} more" if len(chosen) > _MOST_NAMES else ""
    seconds = result.algorithm_seconds + result.evaluation_seconds
    return rows_html(
        {
            "best loss": f"{result.best.fitness:.6g}",
            "features": f"{result.best.cardinality} of {len(result.best.mask)}: "
            + ", ".join(chosen[:_MOST_NAMES])
            + more,
            "search": f"{result.algorithm}, {result.evaluations} evaluations, {result.computed} distinct, "
            f"{seconds:.1f} s, engine {result.engine}, stopped by {result.stop_reason}",
        },
        picture=_course_svg(result.history.best_fitness),
    )


def rows_html(rows: dict[str, str], picture: str = "") -> str:
    """A two-column table, every word escaped; ``picture`` is HTML of our own."""
    lines = "".join(
        f'<tr><th scope="row" style="text-align:left;vertical-align:top">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows.items()
    )
    shown = f'<tr><th scope="row" style="text-align:left">course</th><td>{picture}</td></tr>' if picture else ""
    return f'<table class="subswarm">{lines}{shown}</table>'


def _course_svg(values: FloatArray, width: int = 240, height: int = 36) -> str:
    if len(values) < 2:
        return ""
    low, high = float(values.min()), float(values.max())
    span = high - low or 1.0
    points = " ".join(
        f"{place * (width - 4) / (len(values) - 1) + 2:.1f},{(high - float(value)) / span * (height - 4) + 2:.1f}"
        for place, value in enumerate(values)
    )
    return (
        f'<svg width="{width}" height="{height}" role="img" aria-label="best loss from {high:.4g} to {low:.4g}">'
        f'<polyline points="{points}" fill="none" stroke="#0072B2" stroke-width="1.5"/></svg>'
    )
