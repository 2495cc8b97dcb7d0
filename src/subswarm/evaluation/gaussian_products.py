"""Tables of Gaussian squares in float32: a swarm's sums are one product, masks x table, which decides most rows.

Squares hardly depend on the smoothing unless a class's variance is tiny, so columns whose smoothings make no difference
to speak of share a table (a *level*). The product errs by rounding and by the level's smoothing, both bounded relative
to the sums (squares are positive); rows closer than that are summed anew in float64 by `gaussian_kernel`.

A class that is constant in a column is the exception: its variance is the smoothing itself. There a square is either
nothing or larger than anything else, and which of the two is all that matters, not how large (`IMMENSE`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subswarm.core.types import FloatArray
from subswarm.evaluation.gaussian_tables import GaussianTables

__all__ = ["IMMENSE", "LARGEST", "LEVEL_ERROR", "NOTHING", "WIDEST_LEVEL", "GaussianProducts", "product_kernels"]

LEVEL_ERROR = 2.0**-20
"""How much a square may differ, relatively, for a column's smoothing to belong to a level."""
NOTHING = 1e-9
"""Squares under this may differ by themselves."""
IMMENSE = 1e6
"""Sums from which on squares of classes without variance may be among them, which do depend on the smoothing."""
LARGEST = 1e25
"""Sums from which on a class is beaten or left to float64."""
_OPEN_ENOUGH = 0.02
"""The share of rows left open by differences of squares from which the squares of both classes are kept instead."""
WIDEST_LEVEL = 16.0
"""The largest ratio of two smoothings in a level."""
_ASKED_ENOUGH = 24
"""Making a table takes the time that it saves so many subsets of all columns (or twice as many half-full ones, and so
on); it is made when so many have asked for it."""
_BYTES_TO_MAKE_ONE = 32
"""Memory needed to make a table, for each of its entries."""


@dataclass(eq=False)
class GaussianProducts:
    """Tables for the levels seen, in one array: for each column of the data a row of squares.

    With two classes a table holds the difference of their squares (first less second), and one row more: the sum of
    both over all columns, which bounds the rounding. With more, or where that leaves too many rows open, it holds the
    squares of class after class.

    Attributes
    ----------
    room : bytes the tables may take; as many again are needed while one is made
    level : (F, n), the widest column of the level that a column's smoothing belongs to
    lowest : (F, n), for the widest column of a level the least variance in it
    paired : (F,), whether the fold's tables hold differences
    asked : (F, n), how many columns the masks selected that asked for a level's table
    start : (F, n), where the table of a level begins; -1 not made yet, -2 not to be made
    """

    tables: GaussianTables
    room: int
    level: NDArray[np.int64] = field(init=False)
    lowest: FloatArray = field(init=False)
    paired: NDArray[np.bool_] = field(init=False)
    start: NDArray[np.int64] = field(init=False)
    asked: NDArray[np.int64] = field(init=False)
    store: NDArray[np.float32] = field(init=False)
    used: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        tables = self.tables
        self.level = np.empty(tables.variance.shape, dtype=np.int64)
        self.lowest = tables.variance.copy()
        self.paired = tables.n_classes == 2
        self.asked = np.zeros(tables.variance.shape, dtype=np.int64)
        self.start = np.full(tables.variance.shape, -1, dtype=np.int64)
        self.store = np.empty(0, dtype=np.float32)
        n = tables.variance.shape[1]
        for f, (size, classes) in enumerate(zip(tables.sizes, tables.n_classes, strict=True)):
            if classes < 2 or _BYTES_TO_MAKE_ONE * size * classes * n > self.room:
                self.level[f] = np.arange(n)
                self.start[f] = -2
            else:
                with np.errstate(all="ignore"):
                    self._set_levels(f)

    def starts_of(
        self, widest: NDArray[np.int64], n_selected: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], FloatArray]:
        """Where the tables for the widest columns (P, F) begin, negative where there is none; made here if worth it.

        Whether it is depends on how many columns the masks select, ``n_selected`` (P,). Returned too is how much larger
        than in the table a square can be at most: the ratio of the smoothings.
        """
        variance = self.tables.variance
        starts, stretch = np.empty(widest.shape, dtype=np.int64), np.empty(widest.shape)
        look_up = partial(product_kernels().look_up, widest, self.level, self.start, variance, starts, stretch)
        if not look_up():
            folds = np.arange(widest.shape[1])
            levels = self.level[folds, widest]
            np.add.at(self.asked, (np.broadcast_to(folds, levels.shape), levels), n_selected[:, None])
            for f, column in np.argwhere((self.asked >= _ASKED_ENOUGH * self.level.shape[1]) & (self.start == -1)):
                if 4 * (self.used + self._entries(f)) > self.room:
                    self._forget()
                    break
                self._make(int(f), int(column))
            look_up()
        return starts, stretch

    def _entries(self, fold: int) -> int:
        """Numbers in a table of this fold."""
        n, classes, size = self.level.shape[1], self.tables.n_classes[fold], self.tables.sizes[fold]
        return int((n + 1) * size if self.paired[fold] else n * classes * size)

    def _forget(self) -> None:
        self.used = 0
        self.asked[:] = 0
        self.start[self.start >= 0] = -1

    def _squares(self, fold: int, variance: float) -> tuple[FloatArray, FloatArray]:
        """Half the squares over their variances, (n, C, rows), for a smoothing; and the variances, (n, C)."""
        tables = self.tables
        C = tables.n_classes[fold]
        v = tables.class_variance[fold, :, :C] + tables.var_smoothing * variance
        gaps = tables.test_columns(fold)[:, None, :] - tables.theta[fold, :, :C, None]
        return gaps * gaps * (0.5 / v)[:, :, None], v

    def _set_levels(self, fold: int) -> None:
        spread, smoothing = self.tables.variance[fold], self.tables.var_smoothing
        order = self.tables.order[fold]
        squares, v = self._squares(fold, spread[order[0]])
        inert = np.asarray(((squares <= NOTHING) | (squares >= 4 * IMMENSE)).all(axis=2))
        if self.paired[fold]:
            immense = ((squares >= 4 * IMMENSE) & inert[:, :, None]).any(axis=(0, 1))
            self.paired[fold] = immense.mean() <= _OPEN_ENOUGH
        variances = v - smoothing * spread[order[0]]
        least = np.min(variances, where=~inert & (variances >= 0), initial=np.inf)
        top = order[0]
        for column in order:
            wide, narrow = spread[top], spread[column]
            tame = smoothing * (wide - narrow) <= LEVEL_ERROR / 2 * (least + smoothing * narrow)
            if not (tame and narrow * WIDEST_LEVEL >= wide):
                top = column
            self.level[fold, column] = top
            self.lowest[fold, top] = narrow

    def _make(self, fold: int, column: int) -> None:
        tables, stop = self.tables, self.used + self._entries(fold)
        if stop > len(self.store):
            grown = np.empty(min(self.room // 4, max(stop, 2 * len(self.store))), dtype=np.float32)
            grown[: self.used] = self.store[: self.used]
            self.store = grown
        wide, narrow = (
            tables.var_smoothing * tables.variance[fold, column],
            tables.var_smoothing * self.lowest[fold, column],
        )
        v = tables.class_variance[fold, :, : tables.n_classes[fold]] + wide
        follows = ~(wide - narrow <= LEVEL_ERROR * (v - (wide - narrow)))
        fill = product_kernels().fill_differences if self.paired[fold] else product_kernels().fill_squares
        if fill(tables.test_columns(fold), tables.theta[fold], v, follows, self.store[self.used : stop]):
            self.start[fold, column] = self.used
            self.used = stop
        else:
            self.start[fold, column] = -2


def product_kernels() -> Any:
    """The compiled kernels for these tables; None where numba is not installed."""
    try:
        from subswarm.evaluation import gaussian_product_kernel
    except ImportError:
        return None
    return gaussian_product_kernel
