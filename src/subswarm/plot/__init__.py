"""Figures for people. Each takes ``ax=None`` and returns the axes it drew on; matplotlib is imported when one is drawn.

Results come in as one `SearchResult`, a list of them (grouped by algorithm) or a dict from a name to either. The same
plots are methods of a result and of a fitted selector: ``result.plot.trade_off()``, ``selector.plot.trade_off()``.

A plot reads values and nothing else, so this package stands right above ``core`` and every other room may use it.
"""

from subswarm.plot.methods import Plots
from subswarm.plot.ranks import critical_difference
from subswarm.plot.runs import convergence, timing
from subswarm.plot.style import PALETTE
from subswarm.plot.subsets import cardinality_likelihood, selection_frequency, trade_off

__all__ = [
    "PALETTE",
    "Plots",
    "cardinality_likelihood",
    "convergence",
    "critical_difference",
    "selection_frequency",
    "timing",
    "trade_off",
]
