"""Runs batches on a CUDA device by replaying recorded graphs, with one copy to the device and one back.

A graph is recorded once for each power of two of subsets. A replay launches all kernels at once, allocates nothing and
compiles nothing while other processes wait for their turn. Processes that share a GPU take turns.
"""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np

from subswarm.engines.data import Int32Array
from subswarm.engines.gpu.device import UNROLLED, ColumnLists

if TYPE_CHECKING:
    from torch import Tensor
    from torch.cuda import CUDAGraph

__all__ = ["BLOCK", "Batch", "GraphRunner", "affordable", "aligned", "on_turn"]

_TURNS = 2
"""Processes that may compute at a time."""


@contextmanager
def on_turn() -> Iterator[None]:
    """Wait for a turn on the GPU, for the duration of one batch.

    A GPU that several processes use at the same time switches between them in time slices, and each waits for all the
    others. Two at a time keep it busy: one computes while the other copies. Without file locks, no process waits.
    """
    locks, file = _locks(), _turn_file()
    if locks is None or file is None:
        yield
        return
    locks.flock(file, locks.LOCK_EX)
    try:
        yield
    finally:
        locks.flock(file, locks.LOCK_UN)


@cache
def _locks() -> ModuleType | None:
    try:
        import fcntl
    except ImportError:
        return None
    return fcntl


@cache
def _turn_file() -> IO[str] | None:
    """Open the lock file of this process's turn; the processes of one user share them."""
    user = getattr(os, "getuid", str)()
    path = Path(tempfile.gettempdir()) / f"subswarm-gpu-{user}-{os.getpid() % _TURNS}.lock"
    try:
        return path.open("a")
    except OSError:
        return None


BLOCK = 64
"""Columns are compacted in blocks of this many."""
_FEWEST, _MOST = 16, 512
"""Subsets in the smallest and the largest batch that is recorded; batches are powers of two."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Column lists on the device, and how many there are; ``n_blocks`` bounds the blocks of all lists together."""

    size: int
    n_blocks: int
    starts: Tensor
    sizes: Tensor
    blocks: Tensor
    columns: Tensor


class _Recorded(NamedTuple):
    """A graph, the arrays on this side, and the tensors that the graph reads and writes at every replay."""

    graph: CUDAGraph
    packed: Int32Array
    counts: Int32Array
    tensors: tuple[Tensor, ...]


class GraphRunner:
    """Copies column lists to the device, runs the kernels on them and copies the counts back.

    Parameters
    ----------
    launch : queues the kernels for a `Batch`, which write counts into an int32 tensor
    n_counts : the number of counts of a batch of a given size
    """

    def __init__(
        self,
        torch: ModuleType,
        device: str,
        launch: Callable[[Batch, Tensor], None],
        n_counts: Callable[[int], int],
    ) -> None:
        self._torch, self._device = torch, device
        self._launch, self._n_counts = launch, n_counts
        self._pool: object = None
        self._recorded: dict[int, _Recorded] = {}

    def forget(self) -> None:
        """Drop the recorded graphs, because the work has changed."""
        self._recorded.clear()

    def counts(self, lists: ColumnLists) -> Int32Array:
        """Return the counts of the lists (at most 512 of them), then those of the empty subsets that pad the batch."""
        size = max(_FEWEST, 1 << (len(lists) - 1).bit_length())
        if size not in self._recorded:
            self._recorded[size] = self._record(lists, size)
        recorded = self._recorded[size]
        _pack(lists, size, recorded.packed)
        with on_turn():
            recorded.graph.replay()
            self._torch.cuda.current_stream().synchronize()
        return recorded.counts

    def sent(self, lists: ColumnLists) -> Batch:
        """Copy the lists to the device."""
        torch, size = self._torch, len(lists)
        packed = torch.empty(_length(size, lists.n_features), dtype=torch.int32, pin_memory=True)
        n_blocks = _pack(lists, size, packed.numpy())
        return self._listed(packed.to(self._device, non_blocking=True), size, lists.n_features, n_blocks)

    def _listed(self, packed: Tensor, size: int, n_features: int, n_blocks: int) -> Batch:
        """Return the packed lists as a batch, with the columns that the masks select one after the other."""
        from subswarm.engines.gpu.triton import list_columns

        torch, room = self._torch, aligned(size + 1)
        starts, sizes, blocks, masks = packed.split([room, room, room, len(packed) - 3 * room])
        columns = torch.empty(size * (n_features + UNROLLED), dtype=torch.int32, device=packed.device)
        width = 1 << (n_features + UNROLLED - 1).bit_length()
        list_columns[(size,)](masks.view(torch.int8), starts, sizes, columns, n_features, BN=width, num_warps=4)
        return Batch(size, n_blocks, starts, sizes, blocks, columns)

    def _record(self, lists: ColumnLists, size: int) -> _Recorded:
        torch = self._torch
        length = _length(size, lists.n_features)
        packed = torch.zeros(length, dtype=torch.int32).pin_memory()
        found = torch.zeros(self._n_counts(size), dtype=torch.int32).pin_memory()
        on_device = torch.zeros(length, dtype=torch.int32, device=self._device)
        counts = torch.zeros(len(found), dtype=torch.int32, device=self._device)
        most_blocks = size * -(-lists.n_features // BLOCK)
        _pack(lists, size, packed.numpy())

        def work() -> None:
            on_device.copy_(packed, non_blocking=True)
            self._launch(self._listed(on_device, size, lists.n_features, most_blocks), counts)
            found.copy_(counts, non_blocking=True)

        work()  # compiles what is not compiled yet
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        with (
            _no_collection(),
            torch.cuda.graph(graph, pool=self._pool),
        ):  # graphs run one at a time, so they share memory
            work()
        return _Recorded(graph, packed.numpy(), found.numpy(), (on_device, counts, packed, found))


@contextmanager
def _no_collection() -> Iterator[None]:
    """Collect garbage now, and not while a graph is recorded: freeing an old graph meanwhile is a fatal error."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def affordable(subsets: int) -> int:
    """Return the size of the largest recorded batch of at most so many subsets (at least 1)."""
    return min(_MOST, 1 << (max(1, subsets).bit_length() - 1))


def aligned(length: int) -> int:
    """Round a length up to whole 16 bytes of int32: kernels are compiled again for arrays that start elsewhere."""
    return -(-length // 4) * 4


def _length(size: int, n_features: int) -> int:
    return 3 * aligned(size + 1) + -(-size * n_features // 4)


def _pack(lists: ColumnLists, size: int, packed: Int32Array) -> int:
    """Pack starts, sizes, blocks and masks into one array, padded with empty subsets; returns the number of blocks."""
    P, room = len(lists), aligned(size + 1)
    starts, sizes, blocks = packed[: size + 1], packed[room : room + size], packed[2 * room : 2 * room + size + 1]
    starts[: P + 1], starts[P + 1 :] = lists.starts, lists.starts[-1]
    sizes[:P], sizes[P:] = lists.sizes, 0
    blocks[0] = 0
    np.cumsum(-(-sizes // BLOCK), out=blocks[1:])
    packed[3 * room :].view(np.bool_)[: lists.masks.size] = lists.masks.ravel()
    return int(blocks[-1])
