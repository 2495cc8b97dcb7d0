"""Tables of Gaussian squares in float32: the sums of many subsets are one product, masks x table.

Squares hardly depend on the smoothing unless a class's variance is tiny, so columns whose smoothings make no relevant
difference share a table (a *level*). The errors of rounding and of the level's smoothing are bounded relative to the
sums, because squares are positive; rows that are closer than that are summed again in float64 by the kernels of
`numba`.

A class that is constant in a column is an exception: its variance is the smoothing itself. There a square is either
almost zero or larger than anything else, and only which of the two matters, not how large it is (`IMMENSE`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import NamedTuple

import numpy as np

from subswarm._types import BoolArray, Float32Array, FloatArray
from subswarm.engines.data import Int64Array
from subswarm.engines.fast import ready_or_none
from subswarm.engines.naive_bayes.tables import GaussianTables

__all__ = [
    "IMMENSE",
    "LARGEST",
    "LEVEL_ERROR",
    "NOTHING",
    "WIDEST_LEVEL",
    "GaussianProducts",
    "ProductTables",
    "product_kernels",
]

LEVEL_ERROR = 2.0**-20
"""How much a square may differ, relatively, within a level."""
NOTHING = 1e-9
"""Squares below this count as zero."""
IMMENSE = 1e6
"""Sums from which on they can contain squares of classes without variance, which do depend on the smoothing."""
LARGEST = 1e25
"""Sums from which on a class loses or is left to float64."""
_OPEN_ENOUGH = 0.02
"""Share of rows left open by differences of squares from which the squares of both classes are stored instead."""
WIDEST_LEVEL = 16.0
"""The largest ratio of two smoothings in a level."""
_ASKED_ENOUGH = 24
"""Subsets of all columns (or twice as many half-full ones, and so on) for which making a table takes as long as it
saves; it is made once so many subsets have needed it."""
_BYTES_TO_MAKE_ONE = 32
"""Memory needed to make a table, for each of its entries."""


class ProductTables(NamedTuple):
    """The tables for a batch of masks, for a kernel.

    Attributes
    ----------
    masks : (P, n), zeros and ones
    store : all tables
    starts : (P, F), where in ``store`` the table of a mask and fold starts, negative if there is none
    stretch : (P, F), how much larger than in the table a square can be at most
    paired : (F,), whether the fold's tables hold differences
    """

    masks: Float32Array
    store: Float32Array
    starts: Int64Array
    stretch: FloatArray
    paired: BoolArray


@dataclass(eq=False)
class GaussianProducts:
    """The tables of the levels in use, in one array: for each column of the data a row of squares.

    With two classes a table holds the difference of their squares (first minus second), and one more row: the sum of
    both over all columns, which bounds the rounding. With more classes, or if differences leave too many rows open, it
    holds the squares of class after class.

    Attributes
    ----------
    room : bytes the tables may take; making one takes as many again
    level : (F, n), the widest column of the level that a column's smoothing belongs to
    lowest : (F, n), for the widest column of a level the smallest variance in it
    paired : (F,), whether the fold's tables hold differences
    asked : (F, n), how many columns the masks selected that needed a level's table
    start : (F, n), where the table of a level starts; -1 if not made yet, -2 if it is not to be made
    """

    tables: GaussianTables
    room: int
    level: Int64Array = field(init=False)
    lowest: FloatArray = field(init=False)
    paired: BoolArray = field(init=False)
    start: Int64Array = field(init=False)
    asked: Int64Array = field(init=False)
    store: Float32Array = field(init=False)
    used: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        kernels = product_kernels()
        assert kernels is not None, "tables need compiled kernels"
        self.kernels = kernels
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

    def starts_of(self, widest: Int64Array, n_selected: Int64Array) -> tuple[Int64Array, FloatArray]:
        """Return where the tables for the widest columns (P, F) start, negative if there is none.

        Tables that pay off are made, which depends on how many columns the masks select, ``n_selected`` (P,). Also
        returned is the ratio of the smoothings: how much larger than in the table a square can be at most.
        """
        variance = self.tables.variance
        starts, stretch = np.empty(widest.shape, dtype=np.int64), np.empty(widest.shape)
        look_up = partial(self.kernels.look_up, widest, self.level, self.start, variance, starts, stretch)
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
        """Return how many numbers a table of this fold has."""
        n, classes, size = self.level.shape[1], self.tables.n_classes[fold], self.tables.sizes[fold]
        return int((n + 1) * size if self.paired[fold] else n * classes * size)

    def _forget(self) -> None:
        self.used = 0
        self.asked[:] = 0
        self.start[self.start >= 0] = -1

    def _squares(self, fold: int, variance: float) -> tuple[FloatArray, FloatArray]:
        """Return half the squares over their variances, (n, C, rows), for a smoothing, and the variances, (n, C)."""
        tables = self.tables
        C = tables.n_classes[fold]
        v = tables.class_variance[fold, :, :C] + tables.var_smoothing * variance
        gaps = tables.test_columns(fold)[:, None, :] - tables.theta[fold, :, :C, None]
        return gaps * gaps * (0.5 / v)[:, :, None], v

    def _set_levels(self, fold: int) -> None:
        spread, smoothing = self.tables.variance[fold], self.tables.var_smoothing
        order = self.tables.order[fold]
        squares, v = self._squares(fold, spread[order[0]])
        extreme = np.asarray(((squares <= NOTHING) | (squares >= 4 * IMMENSE)).all(axis=2))
        if self.paired[fold]:
            immense = ((squares >= 4 * IMMENSE) & extreme[:, :, None]).any(axis=(0, 1))
            self.paired[fold] = immense.mean() <= _OPEN_ENOUGH
        variances = v - smoothing * spread[order[0]]
        least = np.min(variances, where=~extreme & (variances >= 0), initial=np.inf)
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
        fill = self.kernels.fill_differences if self.paired[fold] else self.kernels.fill_squares
        if fill(tables.test_columns(fold), tables.theta[fold], v, follows, self.store[self.used : stop]):
            self.start[fold, column] = self.used
            self.used = stop
        else:
            self.start[fold, column] = -2


def product_kernels() -> ModuleType | None:
    """Return the compiled kernels for these tables; None if there are none (yet)."""
    return ready_or_none("subswarm.engines.naive_bayes.products_numba")
