"""Save every picture for light and for dark pages, as SVG files that are the same at every run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.figure import Figure

_INK = {"light": "#1d2530", "dark": "#e7ebf0"}
_COMMON = {"svg.hashsalt": "subswarm", "font.size": 10, "savefig.transparent": True, "axes.facecolor": "none"}


def save(folder: Path, name: str, draw: Callable[[], Figure]) -> None:
    """Draw a figure in both themes to ``name-light.svg`` and ``name-dark.svg``."""
    for theme, ink in _INK.items():
        names = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "hatch.color")
        with matplotlib.rc_context({**_COMMON, **dict.fromkeys(names, ink)}):
            figure = draw()
            figure.savefig(folder / f"{name}-{theme}.svg", metadata={"Date": None})
            pyplot.close(figure)
    print(folder / f"{name}-*.svg")
