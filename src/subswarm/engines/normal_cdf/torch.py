"""`NormalCDFBayes` on a torch device, with the losses of the CPU engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from subswarm._types import BoolArray, Estimator, FloatArray, Masks
from subswarm.engines.data import Codes, FoldedData
from subswarm.engines.gpu.device import ColumnLists, has_kernels, in_pieces, tally, torch_on
from subswarm.engines.gpu.replay import Batch, GraphRunner, affordable
from subswarm.engines.normal_cdf.engine import NormalCDFBayesEngine

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["TorchNormalCDFBayesEngine"]


class TorchNormalCDFBayesEngine(NormalCDFBayesEngine):
    """Scores `NormalCDFBayes`, alone or behind one of scikit-learn's scalers: table rows added in column order."""

    name: ClassVar[str] = "normal_cdf_bayes-torch"

    def __init__(
        self, estimator: Estimator, data: FoldedData, *, n_jobs: int | None = None, max_bytes: int, device: str = "cpu"
    ) -> None:
        super().__init__(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)
        self._torch = torch = torch_on(device)
        self._compiled = has_kernels(device)
        starts, n = self._classes.starts, data.n_features
        C = max(len(known) for known in self._classes.classes)
        table, prior = np.zeros((n + 1, C, int(starts[-1]))), np.full((C, int(starts[-1])), -np.inf)
        for f in range(data.n_folds):
            part, log_prior = self._table(f)
            table[:n, : part.shape[1], starts[f] : starts[f + 1]] = part
            prior[: len(log_prior), starts[f] : starts[f + 1]] = log_prior[:, None]
        self._unsure = np.isnan(table[:n]).any(axis=(1, 2))
        self._device_table = torch.as_tensor(table, device=device)
        self._device_prior = torch.as_tensor(prior, device=device)
        self._device_truth = torch.as_tensor(self._classes.codes, device=device)
        self._device_starts = torch.as_tensor(starts.astype(np.int32), device=device)
        self._runner = GraphRunner(torch, device, self._launch, lambda size: size * data.n_folds)

    def _accuracy(self, masks: Masks) -> tuple[FloatArray, BoolArray]:
        if not self._compiled:
            return super()._accuracy(masks)
        correct, unsure = np.empty((len(masks), self._data.n_folds)), self._is_unsure(masks)

        def work(first: int, last: int) -> None:
            lists = ColumnLists(masks[first:last])
            counts = self._runner.counts(lists)
            correct[first + lists.order] = counts[: len(lists) * self._data.n_folds].reshape(len(lists), -1)

        for p in in_pieces(work, 0, len(masks), most=self._most_at_once()):
            scores, unsure[p] = (part[0] for part in super()._accuracy(masks[p : p + 1]))
            correct[p] = scores * self._classes.sizes
        return np.asarray(correct / self._classes.sizes), unsure

    def _codes(self, masks: Masks) -> tuple[Codes, BoolArray]:
        codes = np.empty((len(masks), self._classes.n_tests), dtype=np.int16)
        unsure = self._is_unsure(masks)

        def work(first: int, last: int) -> None:
            lists = ColumnLists(masks[first:last])
            codes[first + lists.order] = self._device_codes(lists).cpu().numpy()

        for p in in_pieces(work, 0, len(masks), most=self._most_at_once()):
            codes[p], unsure[p] = (part[0] for part in super()._codes(masks[p : p + 1]))
        return codes, unsure

    def _is_unsure(self, masks: Masks) -> BoolArray:
        """Return which masks select a column that is not certain."""
        return np.asarray((masks & self._unsure).any(axis=1))

    def _plain_codes(self, lists: ColumnLists) -> Tensor:
        torch = self._torch
        totals = self._device_prior[None].repeat(len(lists), 1, 1)
        for column in torch.as_tensor(lists.table().T, device=totals.device):
            totals += self._device_table[column]
        return (totals == totals.amax(dim=1, keepdim=True)).to(torch.int8).argmax(dim=1).to(torch.int16)

    def _device_codes(self, lists: ColumnLists) -> Tensor:
        return self._kernel_codes(self._runner.sent(lists)) if self._compiled else self._plain_codes(lists)

    def _launch(self, batch: Batch, counts: Tensor) -> None:
        tally(self._kernel_codes(batch), self._device_truth, self._device_starts, counts)

    def _kernel_codes(self, batch: Batch) -> Tensor:
        from subswarm.engines.normal_cdf.triton import add_up

        C, T = self._device_prior.shape
        codes = self._torch.empty((batch.size, T), dtype=self._torch.int16, device=self._device_prior.device)
        add_up[(-(-T // 128), batch.size)](
            batch.columns,
            batch.starts,
            self._device_table,
            self._device_prior,
            codes,
            T,
            C,
            BS=128,
            CP=max(2, 1 << (C - 1).bit_length()),
            num_warps=4,
        )
        return codes

    def _most_at_once(self) -> int:
        """Return how many subsets a batch within ``max_bytes`` can have."""
        if self._compiled:
            return affordable(self._max_bytes // (2 * self._device_prior.shape[1] + 8 * self._data.n_features))
        return int(max(1, self._max_bytes // (8 * 3 * self._device_prior.numel())))
