"""Plots as methods: ``result.plot`` and ``selector.plot``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from subswarm._search.front import FrontTable
from subswarm._search.result import SearchResult
from subswarm.errors import DataError
from subswarm.plot._runs import convergence, timing
from subswarm.plot._subsets import cardinality_likelihood, front, selection_frequency, trade_off

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Plots"]


class Plots:
    """The plots of one search. Each method takes ``ax=None`` and returns the axes it drew on.

    Parameters
    ----------
    result : SearchResult
    names : names of the features, if they are known
    baseline : loss with all features, if it is known
    table : the front with standard errors, if it is known
    """

    def __init__(
        self,
        result: SearchResult,
        *,
        names: Sequence[str] | None = None,
        baseline: float | None = None,
        table: FrontTable | None = None,
    ) -> None:
        self._result = result
        self._names = names
        self._baseline = baseline
        self._table = table

    def convergence(self, *, show: str = "fitness", baseline: float | None = None, ax: Axes | None = None) -> Axes:
        """Plot the best subset against the evaluations; see `subswarm.plot.convergence`."""
        known = self._baseline if baseline is None else baseline
        return convergence(self._result, show=show, baseline=known, ax=ax)

    def trade_off(self, *, ax: Axes | None = None) -> Axes:
        """Plot the loss against the number of features; see `subswarm.plot.trade_off`."""
        return trade_off(self._result, ax=ax)

    def front(self, *, ax: Axes | None = None) -> Axes:
        """Plot the front with standard errors; see `subswarm.plot.front`. Only a fitted selector has one."""
        if self._table is None:
            raise DataError("a plain search result has no standard errors; use selector.plot.front().")
        return front(self._table, ax=ax)

    def selection_frequency(self, *, top: int = 20, ax: Axes | None = None) -> Axes:
        """Plot how often each feature was selected; see `subswarm.plot.selection_frequency`."""
        return selection_frequency(self._result, names=self._names, top=top, ax=ax)

    def cardinality_likelihood(self, *, ax: Axes | None = None) -> Axes:
        """Plot how likely the swarm considers each number of features; see `subswarm.plot.cardinality_likelihood`."""
        return cardinality_likelihood(self._result, ax=ax)

    def timing(self, *, ax: Axes | None = None) -> Axes:
        """Plot the time in the algorithm and in evaluation; see `subswarm.plot.timing`."""
        return timing(self._result, ax=ax)
