"""Launches the Triton kernels that let the nearest neighbours vote on a CUDA device."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from subswarm.engines.data import Int32Array
from subswarm.engines.gpu.device import ColumnLists, tally
from subswarm.engines.gpu.replay import BLOCK, Batch, GraphRunner
from subswarm.engines.neighbors import triton as kernels
from subswarm.engines.neighbors.layout import share_rounding
from subswarm.engines.neighbors.torch import SPARE, NeighborTensors

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["KernelNeighbors"]

_ROWS, _LANES, _WARPS, _STAGES = 64, 64, 4, 3
"""Tile of the filter, test rows by training rows; warps and pipeline stages."""
_WIDEST_SCAN = 2048
_MANY = 0.5
"""Share of the work spent on doubtful rows from which the filter costs more than it saves."""
_TRIAL = 1024
"""Subsets tried before that is decided."""
_HALF_ULP = 2.0**-24


class KernelNeighbors:
    """Predicts the codes of subsets, or counts the correct ones; drops a filter that leaves most rows in doubt."""

    def __init__(self, tensors: NeighborTensors, truth: Tensor, test_starts: Tensor, torch: ModuleType) -> None:
        self._tensors = tensors
        self._torch = torch
        self._truth, self._test_starts = truth, test_starts
        self._n_folds = len(test_starts) - 1
        self._shortest = int(torch.diff(test_starts).min())
        self._single = tensors.filter.to(torch.float32).contiguous()
        self._weights = None if tensors.weights is None else tensors.weights.to(torch.float32).contiguous()
        self._programs = torch.cuda.get_device_properties(tensors.filter.device).multi_processor_count
        self._filtering = True
        device = tensors.filter.device
        self._runner = GraphRunner(torch, device, self._launch, lambda size: size * self._n_folds + 1)
        self._spare_looseness, self._spare_width = _spare(tensors)
        self.settled, self.asked = 0, 0
        self._doubt, self._work = 0.0, 0.0

    @staticmethod
    def fits(n_neighbors: int) -> bool:
        """Return whether the kernels' lists are long enough."""
        return n_neighbors + SPARE <= 64

    def subset_bytes(self) -> int:
        """Return the device memory for one subset of all columns."""
        tensors = self._tensors
        folds = 1 if tensors.weights is None else self._n_folds
        sides = tensors.n_rows if tensors.weights is None else tensors.n_rows + tensors.n_tests
        return int(4 * sides * (self._single.shape[1] + BLOCK) + 4 * folds * tensors.n_rows + 6 * tensors.n_tests)

    def count_correct(self, lists: ColumnLists) -> Int32Array:
        """Count the correctly classified test rows of each fold, (P, F)."""
        counts = self._runner.counts(lists)
        self._learn(int(counts[-1]), lists)
        return counts[: len(lists) * self._n_folds].reshape(len(lists), self._n_folds)

    def codes(self, lists: ColumnLists) -> Tensor:
        """Return the codes (P, T), on the device."""
        batch = self._runner.sent(lists)
        codes, settled = self._vote(batch)
        self._learn(int(settled), lists)
        return codes

    def _launch(self, batch: Batch, counts: Tensor) -> None:
        codes, settled = self._vote(batch)
        tally(codes, self._truth, self._test_starts, counts)
        counts[-1:].copy_(settled)

    def _vote(self, batch: Batch) -> tuple[Tensor, Tensor]:
        torch, P, T = self._torch, batch.size, self._tensors.n_tests
        device = self._tensors.tests.device
        codes = torch.empty((P, T), dtype=torch.int16, device=device)
        if self._filtering:
            count = torch.zeros(1, dtype=torch.int32, device=device)
            work = torch.empty(P * T, dtype=torch.int32, device=device)
            self._shortlist(batch, codes, work, count)
        else:
            work = torch.arange(P * T, dtype=torch.int32, device=device)
            count = torch.full((1,), P * T, dtype=torch.int32, device=device)
        self._settle(batch, codes, work, count)
        return codes, count

    def _learn(self, settled: int, lists: ColumnLists) -> None:
        """Add up the counts, and drop the filter from now on if most of the work was on doubtful rows.

        Rows are weighted by the columns of their subsets: a few columns tie easily, and cost little to settle.
        """
        asked, columns = len(lists) * self._tensors.n_tests, float(lists.sizes.mean())
        self.settled, self.asked = self.settled + min(settled, asked), self.asked + asked
        self._doubt, self._work = self._doubt + columns * min(settled, asked), self._work + columns * asked
        tried = self.asked >= _TRIAL * self._tensors.n_tests
        if self._filtering and tried and self._doubt > _MANY * self._work:
            self._filtering = False
            self._runner.forget()

    def _shortlist(self, batch: Batch, codes: Tensor, work: Tensor, count: Tensor) -> None:
        torch, tensors, P = self._torch, self._tensors, batch.size
        N, T, F = tensors.n_rows, tensors.n_tests, self._n_folds
        lda = self._single.shape[1]

        def halves(rows: int) -> Tensor:
            return torch.empty((2, batch.n_blocks * BLOCK * rows), dtype=torch.bfloat16, device=codes.device)

        weighted = self._weights is not None
        weights = self._weights if weighted else self._single
        norms = torch.empty(P * N * (F if weighted else 1), dtype=torch.float32, device=codes.device)
        right = left = halves(N)
        lists = (batch.columns, batch.starts, batch.blocks)
        shared = (self._single, weights, *lists, tensors.tests, tensors.fold_of)
        kernels.compact[(_tiles(N, 64), P)](*shared, *right, norms, N, lda, WEIGHTED=False, BR=64, BK=BLOCK)
        if weighted:
            left = halves(T)
            kernels.compact[(_tiles(T, 64), P)](*shared, *left, norms, T, lda, WEIGHTED=True, BR=64, BK=BLOCK)
            kernels.weigh[(_tiles(N, 64), P, _tiles(F, 16))](
                self._single, weights, batch.columns, batch.starts, norms, N, lda, F, BR=64, BF=16, BK=32
            )
        kernels.shortlist[(_tiles(T, _ROWS), P)](
            *left,
            *right,
            norms,
            batch.starts,
            batch.blocks,
            tensors.tests,
            tensors.fold_of,
            tensors.barred if tensors.tested_in is None else tensors.tested_in,
            tensors.labels,
            codes,
            work,
            count,
            N,
            T,
            F,
            tensors.n_neighbors,
            self._spare_looseness,
            self._spare_width,
            WEIGHTED=weighted,
            PARTITION=tensors.tested_in is not None,
            TWO_FOLDS=self._shortest >= _ROWS,
            NUMBERS=_power_of_two(_tiles(N, _LANES)),
            BM=_ROWS,
            BN=_LANES,
            BK=BLOCK,
            K=_power_of_two(tensors.n_neighbors + SPARE),
            num_warps=_WARPS,
            num_stages=_STAGES,
        )

    def _settle(self, batch: Batch, codes: Tensor, work: Tensor, count: Tensor) -> None:
        tensors = self._tensors
        N = tensors.n_rows
        width = min(_WIDEST_SCAN, max(64, _power_of_two(N)))
        warps = max(1, min(8, width // 256))
        kernels.settle[(self._programs * (32 // warps),)](
            tensors.exact,
            tensors.exact[0].numel() if tensors.exact.shape[0] > 1 else 0,
            batch.columns,
            batch.starts,
            tensors.tests,
            tensors.fold_of,
            tensors.barred,
            tensors.labels,
            codes,
            work,
            count,
            N,
            tensors.n_tests,
            tensors.n_neighbors,
            BN=width,
            K=_power_of_two(tensors.n_neighbors),
            num_warps=warps,
            enable_fp_fusion=False,
        )


def _spare(tensors: NeighborTensors) -> tuple[float, float]:
    """Return what the scaler's rounding adds to looseness and width of the bounds if all columns are selected."""
    if tensors.weights is None:
        return 0.0, 0.0
    share, rest = share_rounding(float(tensors.rounding.sum(dim=1).max()), _HALF_ULP)
    return share, 2.0 * rest


def _tiles(length: int, size: int) -> int:
    return -(-length // size)


def _power_of_two(number: int) -> int:
    """Return the smallest power of two that is no smaller (and at least 2)."""
    return max(2, 1 << (number - 1).bit_length())
