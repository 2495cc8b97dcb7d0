"""Torch devices: checks, batches that are halved until they fit the memory, and column lists."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from subswarm._types import IntArray, Masks
from subswarm.engines.data import Int32Array, Int64Array
from subswarm.errors import MissingExtraError, SettingError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["UNROLLED", "ColumnLists", "count_correct", "has_kernels", "in_pieces", "tally", "torch_on"]

UNROLLED = 4
"""Columns that a kernel processes at a time; lists are padded with a column of zeros."""


def torch_on(device: str) -> ModuleType:
    """Import torch and check that it can compute on ``device``."""
    try:
        import torch
    except ImportError:
        raise MissingExtraError(
            f"device={device!r} and engine='torch' need torch, which is not installed; pip install 'subswarm[gpu]', "
            "or leave device at 'cpu' and engine at 'auto'."
        ) from None
    if device == "cuda" and not torch.cuda.is_available():
        raise SettingError(
            "device='cuda' needs an NVIDIA GPU, and torch finds none that it can use here; use device='cpu'."
        )
    return import_module("torch")


def has_kernels(device: str) -> bool:
    """Return whether the Triton kernels can run on the device; otherwise plain torch is used."""
    if device != "cuda":
        return False
    try:
        import_module("triton")
    except ImportError:
        return False
    return True


def in_pieces(work: Callable[[int, int], None], first: int, last: int, *, most: int) -> list[int]:
    """Call ``work`` on slices of at most ``most`` items that cover a range, halving those that run out of memory.

    Returns the items that do not fit the memory even alone.
    """
    import torch

    refused: list[int] = []
    waiting = [(start, min(start + most, last)) for start in range(first, last, most)][::-1]
    while waiting:
        start, stop = waiting.pop()
        try:
            work(start, stop)
            continue
        except torch.OutOfMemoryError:
            pass
        if torch.cuda.is_available():
            torch.cuda.empty_cache()  # after the except block, so that the failed call holds no memory
        middle = (start + stop) // 2
        if middle == start:
            refused.append(start)
        else:
            waiting += [(middle, stop), (start, middle)]
    return refused


def count_correct(codes: Tensor, truth: Tensor, test_starts: Tensor, torch: ModuleType) -> Tensor:
    """Count the correct codes (P, T) of each fold, (P, F); ``test_starts`` (F + 1,) says where each fold starts."""
    correct = torch.cumsum(codes == truth, dim=1)
    return torch.diff(torch.nn.functional.pad(correct, (1, 0))[:, test_starts.long()], dim=1)


def tally(codes: Tensor, truth: Tensor, test_starts: Tensor, counts: Tensor) -> None:
    """Count as `count_correct` does, with a Triton kernel, into the first P F entries of ``counts``."""
    from subswarm.engines.gpu.triton import tally as kernel

    F = len(test_starts) - 1
    kernel[(F, len(codes))](codes, truth, test_starts, counts, codes.shape[1], F, BT=128, num_warps=1)


class ColumnLists:
    """The columns that masks select, largest subset first; lists are padded with a column of zeros.

    Attributes
    ----------
    order : the position of each mask among the given ones
    masks : (P, n), in that order
    sizes : (P,), the number of selected columns
    starts : (P + 1,), where each list starts and ends when all are stored one after the other
    """

    def __init__(self, masks: Masks) -> None:
        self.n_features = masks.shape[1]
        sizes = np.count_nonzero(masks, axis=1)
        self.order: IntArray = np.argsort(-sizes, kind="stable")
        self.masks: Masks = masks[self.order]
        self.sizes: Int32Array = sizes[self.order].astype(np.int32)
        self.starts: Int32Array = np.zeros(len(masks) + 1, dtype=np.int32)
        np.cumsum(-(-self.sizes // UNROLLED) * UNROLLED, out=self.starts[1:])

    def __len__(self) -> int:
        return len(self.sizes)

    def table(self) -> Int64Array:
        """Return the lists as rows of one table (P, longest); ``n_features`` stands for the column of zeros."""
        table = np.full((len(self), int(self.sizes[0])), self.n_features, dtype=np.int64)
        table[np.arange(table.shape[1]) < self.sizes[:, None]] = np.nonzero(self.masks)[1]
        return table
