"""Plots of search results.

Each function takes ``ax=None`` and returns the matplotlib axes it drew on; matplotlib is imported when a plot is drawn.
Results are one `SearchResult`, a list of them (grouped by algorithm), or a dict from a name to either. The plots of a
single search are also methods of a result and of a fitted selector: ``result.plot.trade_off()``,
``selector.plot.trade_off()``.
"""

from subswarm.plot._methods import Plots
from subswarm.plot._ranks import critical_difference
from subswarm.plot._runs import convergence, timing
from subswarm.plot._style import PALETTE
from subswarm.plot._subsets import cardinality_likelihood, front, selection_frequency, trade_off

__all__ = [
    "PALETTE",
    "Plots",
    "cardinality_likelihood",
    "convergence",
    "critical_difference",
    "front",
    "selection_frequency",
    "timing",
    "trade_off",
]
