"""Finds neighbours: chooses the kernel and its precision, spreads the subsets over threads, reuses their scratch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subswarm.core.types import FloatArray, IntArray, Masks
from subswarm.evaluation import knn_numpy
from subswarm.evaluation.fast_engine import column_lists
from subswarm.evaluation.knn_layout import AS_IS, NeighborLayout
from subswarm.evaluation.threads import spread

__all__ = ["NeighborFinder"]

_CACHE = 32 << 20
"""Bytes of products (as doubles) up to which all pairs are held, each computed once, rather than a band of rows."""
_FEW = 64
"""Rows in a band, a multiple of a block."""
_BLOCK = 16
"""Rows that the kernels work on at a time."""
_ROW_SECONDS, _PAIR_SECONDS, _WORTH_THREADS = 2e-7, 2e-11, 3e-4
"""Rough costs of selecting a row's neighbours and of one product; seconds of work from which starting threads pays."""
_MANY, _MANY_SCALED = 1 / 64, 1 / 256
"""Share of all rows that each test row is compared with, for rounding alone, from which doubles pay as a filter;
scaling makes exact distances dearer."""


@dataclass(eq=False)
class _Scratch:
    """What one thread works in."""

    columns: FloatArray
    products: FloatArray
    nearest: NDArray[np.int64]
    distances: FloatArray


@dataclass(eq=False)
class NeighborFinder:
    """The k nearest training rows of every test row, for any subset of the columns."""

    layout: NeighborLayout
    n_neighbors: int
    city_block: bool
    threads: int
    max_bytes: int
    precision: Any = np.float32
    rechecked: tuple[int, int] = (0, 0)
    _pool: list[_Scratch] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        layout, N = self.layout, self._rows_held()
        with np.errstate(all="ignore"):
            columns = (layout.X - layout.center) * layout.factor
        spare = np.zeros((N - len(columns), columns.shape[1]))
        blocks = np.concatenate([columns, spare]).reshape(-1, _BLOCK, columns.shape[1])
        self._filter = np.ascontiguousarray(blocks.transpose(0, 2, 1))

    def votes(self, masks: Masks, labels: NDArray[np.int64], n_classes: int) -> NDArray[np.int16]:
        """The most frequent label among the neighbours, (P, all test rows); the lowest where several are."""
        codes = np.empty((len(masks), len(self.layout.tests)), dtype=np.int16)
        if _kernels() is None or self.city_block:
            self._vote_one_by_one(masks, labels, n_classes, codes)
        else:
            self._vote_together(masks, labels, n_classes, codes)
        return codes

    def _vote_together(self, masks: Masks, labels: NDArray[np.int64], n_classes: int, codes: NDArray[np.int16]) -> None:
        layout, kernels, precision = self.layout, _kernels(), self.precision
        columns, starts = column_lists(masks)
        filtered = (columns, starts, layout.X, self._filter, _units(layout.largest, masks))
        folds = (layout.weights, *self._folds(), *_rounding(precision))
        counts = np.zeros((len(masks), 3), dtype=np.int64)

        def work(first: int, last: int) -> None:
            scratch = self._pool.pop() if self._pool else self._scratch()
            held = (scratch.columns.view(precision), scratch.products.view(precision), scratch.nearest)
            kernels.votes(first, last, *filtered, *folds, *held, labels, n_classes, codes, counts)
            self._pool.append(scratch)

        N, T = len(layout.X), len(layout.tests)
        seconds = len(masks) * T * (_ROW_SECONDS + N * columns.size / len(masks) * _PAIR_SECONDS)
        spread(work, len(masks), self._affordable_threads() if seconds > _WORTH_THREADS else 1)
        self._learn(counts)

    def _vote_one_by_one(
        self, masks: Masks, labels: NDArray[np.int64], n_classes: int, codes: NDArray[np.int16]
    ) -> None:
        def work(first: int, last: int) -> None:
            scratch, unused = self._scratch(), np.zeros(3, dtype=np.int64)
            for p in range(first, last):
                nearest, _ = self._find(np.flatnonzero(masks[p]), scratch, unused)
                codes[p] = (labels[nearest][:, :, None] == np.arange(n_classes)).sum(axis=1).argmax(axis=1)

        spread(work, len(masks), self._affordable_threads())

    def in_order(self, columns: IntArray) -> tuple[NDArray[np.int64], FloatArray]:
        """The neighbours of all test rows, nearest first, and their distances (squared, or city-block)."""
        result: list[tuple[NDArray[np.int64], FloatArray]] = []
        counts = np.zeros((1, 3), dtype=np.int64)

        def work(first: int, last: int) -> None:
            scratch = self._pool.pop() if self._pool else self._scratch()
            nearest, distances = self._find(columns, scratch, counts[0])
            result.append((nearest.copy(), distances.copy()))
            self._pool.append(scratch)

        spread(work, 1, 1)
        self._learn(counts)
        return result[0]

    def _find(
        self, columns: IntArray, scratch: _Scratch, counts: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], FloatArray]:
        kernels, layout = _kernels(), self.layout
        if kernels is None:
            return knn_numpy.neighbors(layout, columns, self.n_neighbors, self.city_block, self.max_bytes)
        if self.city_block:
            kernels.city_block_neighbors(columns, layout.X, *self._folds(), scratch.nearest, scratch.distances)
            return scratch.nearest, scratch.distances
        precision = self.precision
        filtered = (columns, layout.X, self._filter, _unit(layout.largest[columns].max()))
        held = (scratch.columns.view(precision), scratch.products.view(precision))
        results = (scratch.nearest, scratch.distances, counts)
        kernels.neighbors(*filtered, layout.weights, *self._folds(), *_rounding(precision), True, *held, *results)
        return scratch.nearest, scratch.distances

    def _folds(self) -> tuple[Any, ...]:
        layout = self.layout
        return layout.mode, layout.shifts, layout.scales, layout.tests, layout.test_starts, layout.barred

    def _rows_held(self) -> int:
        """How many rows the kernels' tables have: all of them, in whole blocks."""
        return -(-len(self.layout.X) // _BLOCK) * _BLOCK

    def _scratch(self) -> _Scratch:
        T = len(self.layout.tests)
        return _Scratch(
            columns=np.empty(2 * self._rows_held() * self.layout.X.shape[1]),
            products=np.empty(self._band() * self._rows_held()),
            nearest=np.empty((T, self.n_neighbors), dtype=np.int64),
            distances=np.empty((T, self.n_neighbors)),
        )

    def _band(self) -> int:
        """How many rows of products are held at once: all of them where they fit the cache, else a few."""
        N = self._rows_held()
        room = min(_CACHE, self.max_bytes // 4)
        return N if self.layout.mode == AS_IS and room >= 8 * N * N else min(N, _FEW)

    def _affordable_threads(self) -> int:
        N, n = self.layout.X.shape
        each = 8 * N * (2 * n + 8 + _FEW + self._band()) + 16 * len(self.layout.tests) * self.n_neighbors
        return int(max(1, min(self.threads, self.max_bytes // each)))

    def _learn(self, counts: NDArray[np.int64]) -> None:
        """Keep the tally, and filter in doubles from now on where rounding in float32 costs more than they do."""
        doubtful, compared, needless = counts.sum(axis=0).tolist()
        self.rechecked = (self.rechecked[0] + doubtful, self.rechecked[1] + compared)
        many = (_MANY if self.layout.mode == AS_IS else _MANY_SCALED) * len(self.layout.X) * len(self.layout.tests)
        if needless > many * len(counts):
            self.precision = np.float64


def _rounding(precision: Any) -> tuple[float, float]:
    """Half a unit in the last place, and what underflow may lose, of values of at most 1."""
    return (2.0**-24, 1e-36) if precision is np.float32 else (2.0**-53, 1e-290)


def _unit(top: float) -> float:
    """A power of two that brings the largest absolute value to at most 1."""
    return float(2.0 ** -np.ceil(np.log2(top))) if top > 0 else 1.0


def _units(largest: FloatArray, masks: Masks) -> FloatArray:
    """The same for the columns of each mask."""
    tops = np.where(masks, largest, 0.0).max(axis=1)
    tops[tops == 0] = 1.0
    return np.asarray(2.0 ** -np.ceil(np.log2(tops)))


def _kernels() -> Any:
    try:
        from subswarm.evaluation import knn_kernel as kernels
    except ImportError:
        return None
    return kernels
