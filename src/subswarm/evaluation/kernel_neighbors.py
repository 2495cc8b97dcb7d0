"""Votes of the nearest neighbours on a CUDA device: the Triton kernels, how they are launched, and when they pay."""

from __future__ import annotations

from typing import Any

import numpy as np

from subswarm.evaluation import triton_neighbors as kernels
from subswarm.evaluation.torch_device import ColumnLists
from subswarm.evaluation.torch_neighbors import NeighborTensors

__all__ = ["KernelNeighbors"]

_SPARE = 3
_ROWS, _LANES, _DEPTH, _WARPS, _STAGES = 64, 64, 32, 4, 3
"""Tile of the filter: test rows, training rows, columns; warps and pipeline stages."""
_WIDEST_SCAN = 2048
_MANY = 0.5
"""Share of doubtful rows from which the filter costs more than it saves."""


class KernelNeighbors:
    """Codes of subsets from the kernels; the filter is left out once it is seen to leave most rows in doubt."""

    def __init__(self, tensors: NeighborTensors, torch: Any) -> None:
        self._tensors = tensors
        self._torch = torch
        self._single = tensors.filter.to(torch.float32).contiguous()
        self._weights = None if tensors.weights is None else tensors.weights.to(torch.float32).contiguous()
        self._programs = torch.cuda.get_device_properties(tensors.filter.device).multi_processor_count
        self._filtering = True

    @staticmethod
    def fits(n_neighbors: int) -> bool:
        """Whether the kernels' lists are long enough."""
        return n_neighbors + _SPARE <= 64

    def subset_bytes(self) -> int:
        """Device memory for one subset of all columns."""
        tensors = self._tensors
        folds = 1 if tensors.weights is None else int(tensors.barred.shape[0])
        sides = tensors.n_rows if tensors.weights is None else tensors.n_rows + tensors.n_tests
        return 4 * sides * (self._single.shape[1] + _DEPTH) + 4 * folds * tensors.n_rows + 6 * tensors.n_tests

    def codes(self, lists: ColumnLists) -> tuple[Any, Any]:
        """The codes (P, T), and how many rows had to be settled, both still on the device."""
        torch, tensors = self._torch, self._tensors
        P, T = len(lists), tensors.n_tests
        blocks = np.zeros(P + 1, dtype=np.int32)
        np.cumsum(-(-lists.sizes // _DEPTH), out=blocks[1:])
        sent = torch.from_numpy(np.concatenate([lists.starts, blocks, lists.columns])).pin_memory()
        sent = sent.to(tensors.tests.device, non_blocking=True)
        starts, on_blocks, columns = sent[: P + 1], sent[P + 1 : 2 * P + 2], sent[2 * P + 2 :]
        codes = torch.empty((P, T), dtype=torch.int16, device=sent.device)
        if self._filtering:
            count = torch.zeros(1, dtype=torch.int32, device=sent.device)
            work = torch.empty(P * T, dtype=torch.int32, device=sent.device)
            self._shortlist(P, int(blocks[-1]), starts, on_blocks, columns, codes, work, count)
        else:
            work = torch.arange(P * T, dtype=torch.int32, device=sent.device)
            count = torch.full((1,), P * T, dtype=torch.int32, device=sent.device)
        self._settle(starts, columns, codes, work, count)
        return codes, count

    def learn(self, settled: int, asked: int) -> None:
        """Leave the filter out from now on where most rows were in doubt."""
        if self._filtering and settled > _MANY * asked:
            self._filtering = False

    def _shortlist(
        self, P: int, n_blocks: int, starts: Any, blocks: Any, columns: Any, codes: Any, work: Any, count: Any
    ) -> None:
        torch, tensors = self._torch, self._tensors
        N, T, F = tensors.n_rows, tensors.n_tests, int(tensors.barred.shape[0])
        lda = self._single.shape[1]

        def halves(rows: int) -> Any:
            return torch.empty((2, n_blocks * _DEPTH * rows), dtype=torch.bfloat16, device=codes.device)

        weighted = self._weights is not None
        weights = self._weights if weighted else self._single
        norms = torch.empty(P * N * (F if weighted else 1), dtype=torch.float32, device=codes.device)
        right = left = halves(N)
        shared = (self._single, weights, columns, starts, blocks, tensors.tests, tensors.fold_of)
        kernels.compact[(_tiles(N, 64), P)](*shared, *right, norms, N, lda, WEIGHTED=False, BR=64, BK=_DEPTH)
        if weighted:
            left = halves(T)
            kernels.compact[(_tiles(T, 64), P)](*shared, *left, norms, T, lda, WEIGHTED=True, BR=64, BK=_DEPTH)
            kernels.weigh[(_tiles(N, 64), P, F)](
                self._single, weights, columns, starts, norms, N, lda, F, BR=64, BK=_DEPTH
            )
        kernels.shortlist[(_tiles(T, _ROWS), P)](
            *left,
            *right,
            norms,
            starts,
            blocks,
            tensors.tests,
            tensors.fold_of,
            tensors.barred,
            tensors.labels,
            codes,
            work,
            count,
            N,
            T,
            F,
            tensors.n_neighbors,
            WEIGHTED=weighted,
            NUMBERS=_power_of_two(_tiles(N, _LANES)),
            FOLD=False,
            BM=_ROWS,
            BN=_LANES,
            BK=_DEPTH,
            K=_power_of_two(tensors.n_neighbors + _SPARE),
            num_warps=_WARPS,
            num_stages=_STAGES,
        )

    def _settle(self, starts: Any, columns: Any, codes: Any, work: Any, count: Any) -> None:
        tensors = self._tensors
        N, T = tensors.n_rows, tensors.n_tests
        width = min(_WIDEST_SCAN, max(64, _power_of_two(N)))
        warps = max(1, min(8, width // 256))
        kernels.settle[(self._programs * (32 // warps),)](
            tensors.exact,
            tensors.exact[0].numel() if tensors.exact.shape[0] > 1 else 0,
            columns,
            starts,
            tensors.tests,
            tensors.fold_of,
            tensors.barred,
            tensors.labels,
            codes,
            work,
            count,
            N,
            T,
            tensors.n_neighbors,
            BN=width,
            K=_power_of_two(tensors.n_neighbors),
            num_warps=warps,
            enable_fp_fusion=False,
        )


def _tiles(length: int, size: int) -> int:
    return -(-length // size)


def _power_of_two(number: int) -> int:
    """The smallest power of two that is no smaller (and at least 2)."""
    return max(2, 1 << (number - 1).bit_length())
