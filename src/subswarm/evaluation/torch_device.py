"""Where torch computes, what it says when it cannot, and batches that are halved until they fit its memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subswarm.core.errors import MissingExtraError, SettingError
from subswarm.core.types import IntArray, Masks

__all__ = ["ColumnLists", "has_kernels", "in_pieces", "right_counts", "tally", "torch_on"]

UNROLLED = 4
"""Kernels take columns four at a time; lists are filled up with a column of zeros."""


def torch_on(device: str) -> Any:
    """The torch module, once it is certain that it can compute on ``device``."""
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
    return torch


def has_kernels(device: str) -> bool:
    """Whether our Triton kernels can run on the device; else plain torch does the work."""
    if device != "cuda":
        return False
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True


def in_pieces(work: Callable[[int, int], None], first: int, last: int, *, most: int) -> list[int]:
    """Call ``work`` on slices of at most ``most`` that cover a range; a slice that memory refuses is halved.

    Returns the items that memory refused even alone.
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
            torch.cuda.empty_cache()  # after the except block, so that nothing of the failed call is still held
        middle = (start + stop) // 2
        if middle == start:
            refused.append(start)
        else:
            waiting += [(middle, stop), (start, middle)]
    return refused


def right_counts(codes: Any, truth: Any, test_starts: Any, torch: Any) -> Any:
    """How many codes (P, T) of each fold are right, (P, F); ``test_starts`` (F + 1,) says where each fold begins."""
    right = torch.cumsum(codes == truth, dim=1)
    return torch.diff(torch.nn.functional.pad(right, (1, 0))[:, test_starts.long()], dim=1)


def tally(codes: Any, truth: Any, test_starts: Any, counts: Any) -> None:
    """As `right_counts`, by our kernel, into the first P F entries of ``counts``."""
    from subswarm.evaluation.triton_neighbors import tally as kernel

    F = len(test_starts) - 1
    kernel[(F, len(codes))](codes, truth, test_starts, counts, codes.shape[1], F, BT=128, num_warps=1)


class ColumnLists:
    """Which columns masks select, largest subset first; lists are filled up with a column of zeros.

    Attributes
    ----------
    order : which of the given masks each one is
    masks : (P, n), in that order
    sizes : (P,), how many columns are selected
    starts : (P + 1,), where each list begins and ends where all are written in a row
    """

    def __init__(self, masks: Masks) -> None:
        self.n_features = masks.shape[1]
        sizes = np.count_nonzero(masks, axis=1)
        self.order: IntArray = np.argsort(-sizes, kind="stable")
        self.masks: Masks = masks[self.order]
        self.sizes: NDArray[np.int32] = sizes[self.order].astype(np.int32)
        self.starts: NDArray[np.int32] = np.zeros(len(masks) + 1, dtype=np.int32)
        np.cumsum(-(-self.sizes // UNROLLED) * UNROLLED, out=self.starts[1:])

    def __len__(self) -> int:
        return len(self.sizes)

    def table(self) -> NDArray[np.int64]:
        """The lists as rows of one table (P, longest); ``n_features`` stands for the column of zeros."""
        table = np.full((len(self), int(self.sizes[0])), self.n_features, dtype=np.int64)
        table[np.arange(table.shape[1]) < self.sizes[:, None]] = np.nonzero(self.masks)[1]
        return table
