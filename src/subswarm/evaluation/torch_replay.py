"""Batches to a CUDA device and their counts back: one copy each way, small batches as replays of a recorded graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subswarm.evaluation.torch_device import UNROLLED, ColumnLists

__all__ = ["BLOCK", "Batch", "Courier"]

BLOCK = 64
"""Columns are compacted in blocks of this many."""
_SMALL = 64
"""Subsets in a batch up to which launches would take longer than the work, so that they are recorded once."""
_STEP = 16
"""Recorded batches hold a multiple of this many subsets, the last ones empty."""


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
        self._recorded: dict[int, tuple[Any, NDArray[np.int32], NDArray[np.int32]]] = {}

    def forget(self) -> None:
        """Drop the recorded graphs: the work has changed."""
        self._recorded.clear()

    def counts(self, lists: ColumnLists, *, record: bool) -> NDArray[np.int32]:
        """The counts of all lists, with those of empty subsets after each part's own where they were recorded."""
        if record and len(lists) <= _SMALL:
            return self._replayed(lists)
        torch = self._torch
        packed = torch.empty(_packed_length(lists, len(lists)), dtype=torch.int32, pin_memory=True)
        n_blocks = _pack(lists, len(lists), packed.numpy())
        counts = torch.empty(self._n_counts(len(lists)), dtype=torch.int32, device=self._device)
        self._launch(_unpack(packed.to(self._device, non_blocking=True), len(lists), n_blocks), counts)
        return np.asarray(counts.cpu().numpy())

    def sent(self, lists: ColumnLists) -> Batch:
        """The lists on the device, for work of another kind."""
        packed = np.empty(_packed_length(lists, len(lists)), dtype=np.int32)
        n_blocks = _pack(lists, len(lists), packed)
        return _unpack(self._torch.from_numpy(packed).to(self._device), len(lists), n_blocks)

    def _replayed(self, lists: ColumnLists) -> NDArray[np.int32]:
        size = -(-len(lists) // _STEP) * _STEP
        if size not in self._recorded:
            self._recorded[size] = self._record(lists, size)
        graph, packed, counts = self._recorded[size]
        _pack(lists, size, packed)
        graph.replay()
        self._torch.cuda.current_stream().synchronize()
        return counts

    def _record(self, lists: ColumnLists, size: int) -> tuple[Any, NDArray[np.int32], NDArray[np.int32]]:
        torch = self._torch
        capacity = 3 * size + 2 + size * (lists.n_features + UNROLLED)
        packed = torch.zeros(capacity, dtype=torch.int32).pin_memory()
        found = torch.zeros(self._n_counts(size), dtype=torch.int32).pin_memory()
        on_device = torch.zeros(capacity, dtype=torch.int32, device=self._device)
        counts = torch.zeros(len(found), dtype=torch.int32, device=self._device)
        batch = _unpack(on_device, size, size * -(-lists.n_features // BLOCK))
        _pack(lists, size, packed.numpy())

        def work() -> None:
            on_device.copy_(packed, non_blocking=True)
            self._launch(batch, counts)
            found.copy_(counts, non_blocking=True)

        work()  # compiles what is not compiled yet
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        graph.kept = (batch, counts, packed, found)  # the graph writes to them at every replay
        return graph, packed.numpy(), found.numpy()


def _packed_length(lists: ColumnLists, size: int) -> int:
    return 3 * size + 2 + len(lists.columns)


def _pack(lists: ColumnLists, size: int, packed: NDArray[np.int32]) -> int:
    """Starts, sizes, blocks and columns into one array, filled up with empty lists; how many blocks there are."""
    P = len(lists)
    starts, sizes, blocks = packed[: size + 1], packed[size + 1 : 2 * size + 1], packed[2 * size + 1 : 3 * size + 2]
    starts[: P + 1], starts[P + 1 :] = lists.starts, lists.starts[-1]
    sizes[:P], sizes[P:] = lists.sizes, 0
    blocks[0] = 0
    np.cumsum(-(-sizes // BLOCK), out=blocks[1:])
    packed[3 * size + 2 : 3 * size + 2 + len(lists.columns)] = lists.columns
    return int(blocks[-1])


def _unpack(packed: Any, size: int, n_blocks: int) -> Batch:
    return Batch(
        size=size,
        n_blocks=n_blocks,
        starts=packed[: size + 1],
        sizes=packed[size + 1 : 2 * size + 1],
        blocks=packed[2 * size + 1 : 3 * size + 2],
        columns=packed[3 * size + 2 :],
    )
