"""Finds neighbours: chooses the kernel and its precision, distributes subsets over threads and reuses their memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType

import numpy as np

from subswarm._types import FloatArray, IntArray, Masks
from subswarm.engines.data import Codes, Int64Array
from subswarm.engines.fast import column_lists, ready_or_none
from subswarm.engines.neighbors import numpy as numpy_kernels
from subswarm.engines.neighbors.layout import AS_IS, BLOCK, Filter, NeighborLayout, Scratch, SingleScratch
from subswarm.engines.workers import spread

__all__ = ["NeighborFinder"]

_CACHE = 32 << 20
"""Bytes of products (as doubles) up to which all pairs of rows are held, each computed once, instead of a band."""
_FEW = 64
"""Rows in a band, a multiple of a block."""
_ROW_SECONDS, _PAIR_SECONDS, _WORTH_THREADS = 2e-7, 2e-11, 3e-4
"""Rough costs of selecting a row's neighbours and of one product, and seconds of work from which threads pay off."""
_MANY, _MANY_SCALED = 1 / 64, 1 / 256
"""Share of all rows that each test row is compared with, because of rounding, from which a float64 filter is faster;
with a scaler, exact distances cost more."""
_ROUNDING = {"float32": (2.0**-24, 1e-36), "float64": (2.0**-53, 1e-290)}
"""Half a unit in the last place, and what underflow can lose, of values of at most 1."""


class _Memory:
    """The memory of one thread, as scratch for both precisions of the filter."""

    def __init__(self, n_columns: int, n_products: int, n_tests: int, k: int) -> None:
        columns, products = np.empty(n_columns), np.empty(n_products)
        nearest, distances = np.empty((n_tests, k), dtype=np.int64), np.empty((n_tests, k))
        # A view as float32 has twice as many elements, and the kernels derive the size of a band from the length.
        self.scratch: dict[str, Scratch | SingleScratch] = {
            precision: kind(
                columns.view(precision)[:n_columns], products.view(precision)[:n_products], nearest, distances
            )
            for precision, kind in (("float32", SingleScratch), ("float64", Scratch))
        }


@dataclass(eq=False)
class NeighborFinder:
    """Finds the k nearest training rows of every test row, for any subset of the columns.

    Attributes
    ----------
    precision : "float32", or "float64" once rounding in float32 has turned out to cost more than doubles do
    rechecked : test rows so far that the filter left in doubt, and distances computed for them in double precision
    """

    layout: NeighborLayout
    n_neighbors: int
    city_block: bool
    threads: int
    max_bytes: int
    precision: str = "float32"
    rechecked: tuple[int, int] = (0, 0)
    _pool: list[_Memory] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        layout, N = self.layout, self._rows_held()
        with np.errstate(all="ignore"):
            columns = (layout.X - layout.center) * layout.factor
        spare = np.zeros((N - len(columns), columns.shape[1]))
        blocks = np.concatenate([columns, spare]).reshape(-1, BLOCK, columns.shape[1])
        filter_columns = np.ascontiguousarray(blocks.transpose(0, 2, 1))
        self._filters = {
            precision: Filter(filter_columns, layout.weights, layout.rounding, *rounding)
            for precision, rounding in _ROUNDING.items()
        }
        self._rows, self._folds = layout.scaled_rows, layout.folds

    def votes(self, masks: Masks, labels: Int64Array, n_classes: int) -> Codes:
        """Return the most frequent label among the neighbours, the lowest of several, (P, all test rows)."""
        codes = np.empty((len(masks), len(self.layout.tests)), dtype=np.int16)
        kernels = _kernels()
        if kernels is None or self.city_block:
            self._vote_one_by_one(masks, labels, n_classes, codes)
        else:
            self._vote_together(kernels, masks, labels, n_classes, codes)
        return codes

    def _vote_together(
        self, kernels: ModuleType, masks: Masks, labels: Int64Array, n_classes: int, codes: Codes
    ) -> None:
        precision = self.precision
        columns, starts = column_lists(masks)
        units = _units(self.layout.largest, masks)
        table = (self._rows, self._folds, self._filters[precision])
        counts = np.zeros((len(masks), 3), dtype=np.int64)

        def work(first: int, last: int) -> None:
            memory = self._memory()
            scratch = memory.scratch[precision]
            kernels.votes(first, last, columns, starts, units, *table, scratch, labels, n_classes, codes, counts)
            self._pool.append(memory)

        self._spread(work, len(masks), columns.size)
        self._choose_precision(counts)

    def _vote_one_by_one(self, masks: Masks, labels: Int64Array, n_classes: int, codes: Codes) -> None:
        nearest, _ = self.neighbors_of(masks, in_order=False)
        for p, rows in enumerate(nearest):
            codes[p] = (labels[rows][:, :, None] == np.arange(n_classes)).sum(axis=1).argmax(axis=1)

    def neighbors_of(self, masks: Masks, *, in_order: bool) -> tuple[Int64Array, FloatArray]:
        """Return the neighbours of all test rows, (P, all test rows, k), and their distances (squared, or city-block).

        Unless the nearest come first (``in_order``), distances are not all known.
        """
        shape = (len(masks), len(self.layout.tests), self.n_neighbors)
        nearest, distances = np.empty(shape, dtype=np.int64), np.empty(shape)
        kernels = _kernels()
        if kernels is None or self.city_block:
            self._list_one_by_one(kernels, masks, nearest, distances)
        else:
            self._list_together(kernels, masks, in_order, nearest, distances)
        return nearest, distances

    def _list_together(
        self, kernels: ModuleType, masks: Masks, in_order: bool, nearest: Int64Array, distances: FloatArray
    ) -> None:
        precision = self.precision
        columns, starts = column_lists(masks)
        units = _units(self.layout.largest, masks)
        table = (self._rows, self._folds, self._filters[precision])
        counts = np.zeros((len(masks), 3), dtype=np.int64)

        def work(first: int, last: int) -> None:
            memory = self._memory()
            scratch = memory.scratch[precision]
            found = (nearest, distances, counts)
            kernels.list_neighbors(first, last, columns, starts, units, *table, scratch, in_order, *found)
            self._pool.append(memory)

        self._spread(work, len(masks), columns.size)
        self._choose_precision(counts)

    def _list_one_by_one(
        self, kernels: ModuleType | None, masks: Masks, nearest: Int64Array, distances: FloatArray
    ) -> None:
        def work(first: int, last: int) -> None:
            memory = self._memory()
            for p in range(first, last):
                nearest[p], distances[p] = self._find(kernels, np.flatnonzero(masks[p]), memory)
            self._pool.append(memory)

        spread(work, len(masks), self._affordable_threads())

    def count_votes(self, nearest: Int64Array, labels: Int64Array, n_classes: int) -> FloatArray:
        """Return how many of the neighbours (P, rows, k) have each label, (P, rows, C)."""
        counts = np.empty((*nearest.shape[:2], n_classes))
        count = (_kernels() or numpy_kernels).count_votes
        count(nearest.reshape(-1, nearest.shape[2]), labels, counts.reshape(-1, n_classes))
        return counts

    def mean_values(self, nearest: Int64Array, values: FloatArray) -> FloatArray:
        """Return the mean value of the neighbours (P, rows, k), (P, rows)."""
        means = np.empty(nearest.shape[:2])
        (_kernels() or numpy_kernels).mean_values(nearest.reshape(-1, nearest.shape[2]), values, means.reshape(-1))
        return means

    def in_order(self, columns: IntArray) -> tuple[Int64Array, FloatArray]:
        """Return the same for one subset, nearest first: (all test rows, k)."""
        mask = np.zeros((1, self.layout.X.shape[1]), dtype=bool)
        mask[0, columns] = True
        nearest, distances = self.neighbors_of(mask, in_order=True)
        return nearest[0], distances[0]

    def _find(self, kernels: ModuleType | None, columns: IntArray, memory: _Memory) -> tuple[Int64Array, FloatArray]:
        """Find the neighbours of one subset where `_list_together` does not, nearest first."""
        if kernels is None:
            return numpy_kernels.neighbors(self.layout, columns, self.n_neighbors, self.city_block, self.max_bytes)
        scratch = memory.scratch[self.precision]
        kernels.city_block_neighbors(columns, self._rows, self._folds, scratch.nearest, scratch.distances)
        return scratch.nearest, scratch.distances

    def _spread(self, work: Callable[[int, int], None], n_masks: int, n_columns: int) -> None:
        """Do the work in threads if there is enough of it, for masks that have ``n_columns`` columns together."""
        N, T = len(self.layout.X), len(self.layout.tests)
        seconds = n_masks * T * (_ROW_SECONDS + N * n_columns / n_masks * _PAIR_SECONDS)
        spread(work, n_masks, self._affordable_threads() if seconds > _WORTH_THREADS else 1)

    def _rows_held(self) -> int:
        """Return how many rows the kernels' tables have: all of them, in whole blocks."""
        return -(-len(self.layout.X) // BLOCK) * BLOCK

    def _memory(self) -> _Memory:
        """Take memory from the pool, or allocate it."""
        if self._pool:
            return self._pool.pop()
        N, n_columns = self._rows_held(), self.layout.X.shape[1]
        return _Memory(2 * N * n_columns, self._band() * N, len(self.layout.tests), self.n_neighbors)

    def _band(self) -> int:
        """Return how many rows of products are held at once: all of them if they fit the cache, else a few."""
        N = self._rows_held()
        room = min(_CACHE, self.max_bytes // 4)
        return N if self.layout.mode == AS_IS and room >= 8 * N * N else min(N, _FEW)

    def _affordable_threads(self) -> int:
        N, n = self.layout.X.shape
        each = 8 * N * (2 * n + 8 + _FEW + self._band()) + 16 * len(self.layout.tests) * self.n_neighbors
        return int(max(1, min(self.threads, self.max_bytes // each)))

    def _choose_precision(self, counts: Int64Array) -> None:
        """Add up the counts, and filter in doubles from now on if rounding in float32 costs more than they do."""
        doubtful, compared, needless = counts.sum(axis=0).tolist()
        self.rechecked = (self.rechecked[0] + doubtful, self.rechecked[1] + compared)
        many = (_MANY if self.layout.mode == AS_IS else _MANY_SCALED) * len(self.layout.X) * len(self.layout.tests)
        if needless > many * len(counts):
            self.precision = "float64"


def _units(largest: FloatArray, masks: Masks) -> FloatArray:
    """Return powers of two that bring the largest absolute value of each mask's columns to at most 1."""
    tops = np.where(masks, largest, 0.0).max(axis=1)
    tops[tops == 0] = 1.0
    return np.asarray(2.0 ** -np.ceil(np.log2(tops)))


def _kernels() -> ModuleType | None:
    return ready_or_none("subswarm.engines.neighbors.numba")
