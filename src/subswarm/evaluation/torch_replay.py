"""Batches to a CUDA device and their counts back: one copy each way around the replay of a recorded graph.

A graph is recorded once for each power of two of subsets. Replays launch all kernels at once, allocate nothing, and
compile nothing while other processes wait for their turn.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subswarm.evaluation.torch_device import UNROLLED, ColumnLists
from subswarm.evaluation.torch_turns import on_turn

__all__ = ["BLOCK", "MOST", "Batch", "Courier", "affordable", "aligned"]

BLOCK = 64
"""Columns are compacted in blocks of this many."""
_FEWEST, MOST = 16, 512
"""Subsets in the smallest and the largest batch that is recorded; between them the powers of two."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Column lists on the device, and how many there are; ``n_blocks`` bounds the blocks of all lists together."""

    size: int
    n_blocks: int
    starts: Any
    sizes: Any
    blocks: Any
    columns: Any


class Courier:
    """Sends lists, has the counts computed and brings them back.

    Parameters
    ----------
    launch : queues the work of a `Batch`, with counts into an int32 tensor
    n_counts : how many counts a batch of so many subsets has
    """

    def __init__(
        self, torch: Any, device: str, launch: Callable[[Batch, Any], None], n_counts: Callable[[int], int]
    ) -> None:
        self._torch, self._device = torch, device
        self._launch, self._n_counts = launch, n_counts
        self._pool: Any = None
        self._recorded: dict[int, tuple[tuple[Any, ...], NDArray[np.int32], NDArray[np.int32]]] = {}

    def forget(self) -> None:
        """Drop the recorded graphs: the work has changed."""
        self._recorded.clear()

    def counts(self, lists: ColumnLists) -> NDArray[np.int32]:
        """The counts of the lists (at most MOST of them), then those of the empty subsets that fill the batch."""
        size = max(_FEWEST, 1 << (len(lists) - 1).bit_length())
        if size not in self._recorded:
            self._recorded[size] = self._record(lists, size)
        (graph, *_), packed, counts = self._recorded[size]
        _pack(lists, size, packed)
        with on_turn():
            graph.replay()
            self._torch.cuda.current_stream().synchronize()
        return counts

    def sent(self, lists: ColumnLists) -> Batch:
        """The lists on the device."""
        torch, size = self._torch, len(lists)
        packed = torch.empty(_length(size, lists.n_features), dtype=torch.int32, pin_memory=True)
        n_blocks = _pack(lists, size, packed.numpy())
        return self._listed(packed.to(self._device, non_blocking=True), size, lists.n_features, n_blocks)

    def _listed(self, packed: Any, size: int, n_features: int, n_blocks: int) -> Batch:
        """What was packed, with the columns that the masks select written in a row."""
        from subswarm.evaluation.triton_lists import list_columns

        torch, room = self._torch, aligned(size + 1)
        starts, sizes, blocks, masks = packed.split([room, room, room, len(packed) - 3 * room])
        columns = torch.empty(size * (n_features + UNROLLED), dtype=torch.int32, device=packed.device)
        width = 1 << (n_features + UNROLLED - 1).bit_length()
        list_columns[(size,)](masks.view(torch.int8), starts, sizes, columns, n_features, BN=width, num_warps=4)
        return Batch(size, n_blocks, starts, sizes, blocks, columns)

    def _record(self, lists: ColumnLists, size: int) -> tuple[tuple[Any, ...], NDArray[np.int32], NDArray[np.int32]]:
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
        with _no_collection(), torch.cuda.graph(graph, pool=self._pool):  # graphs run in turn, so they share scratch
            work()
        kept = (graph, on_device, counts, packed, found)  # the graph reads and writes them at every replay
        return kept, packed.numpy(), found.numpy()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Collect garbage now and not in between: to free an old graph while another is recorded is fatal."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def affordable(subsets: int) -> int:
    """The largest batch that is recorded among those of at most so many subsets (and of one at least)."""
    return min(MOST, 1 << (max(1, subsets).bit_length() - 1))


def aligned(length: int) -> int:
    """The length, filled up to whole 16 bytes of int32: kernels are compiled anew for arrays that begin elsewhere."""
    return -(-length // 4) * 4


def _length(size: int, n_features: int) -> int:
    return 3 * aligned(size + 1) + -(-size * n_features // 4)


def _pack(lists: ColumnLists, size: int, packed: NDArray[np.int32]) -> int:
    """Starts, sizes, blocks and masks into one array, filled up with empty subsets; how many blocks there are."""
    P, room = len(lists), aligned(size + 1)
    starts, sizes, blocks = packed[: size + 1], packed[room : room + size], packed[2 * room : 2 * room + size + 1]
    starts[: P + 1], starts[P + 1 :] = lists.starts, lists.starts[-1]
    sizes[:P], sizes[P:] = lists.sizes, 0
    blocks[0] = 0
    np.cumsum(-(-sizes // BLOCK), out=blocks[1:])
    packed[3 * room :].view(np.bool_)[: lists.masks.size] = lists.masks.ravel()
    return int(blocks[-1])
