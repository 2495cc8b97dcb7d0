"""The naive Bayes engines on a torch device, with the losses of the CPU engines, fold for fold."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from subswarm.core.types import FloatArray, Masks
from subswarm.evaluation.answers import LABEL_SCORERS
from subswarm.evaluation.folds import FoldedData
from subswarm.evaluation.gaussian_nb import GaussianNBEngine
from subswarm.evaluation.normal_cdf_engine import NormalCDFBayesEngine
from subswarm.evaluation.torch_device import ColumnLists, has_kernels, in_pieces, right_counts, torch_on
from subswarm.evaluation.torch_gaussian import GaussianTensors, KernelTables, kernel_classes, plain_classes

__all__ = ["TorchGaussianNBEngine", "TorchNormalCDFBayesEngine"]


class TorchGaussianNBEngine(GaussianNBEngine):
    """`GaussianNB`, bare or behind one of scikit-learn's scalers."""

    name: ClassVar[str] = "gaussian_nb-torch"

    def __init__(
        self, estimator: Any, data: FoldedData, *, n_jobs: int | None = None, max_bytes: int, device: str = "cpu"
    ) -> None:
        super().__init__(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)
        self._torch = torch = torch_on(device)
        tables, classes = self._tables, self._classes
        compiled = has_kernels(device) and KernelTables.nbytes(tables.alike, tables.most_classes) <= max_bytes
        self._tensors = GaussianTensors.of(tables, classes, torch, device, plain=not compiled)
        self._kernels = KernelTables(self._tensors, tables.alike, torch) if compiled else None
        self._device_truth = torch.as_tensor(classes.codes, device=device)
        self._device_starts = torch.as_tensor(classes.starts.astype(np.int32), device=device)

    @classmethod
    def is_usable_for(cls, estimator: Any, data: FoldedData, device: str) -> bool:
        return super().is_usable_for(estimator, data, "cpu") and data.scoring.name in LABEL_SCORERS

    def _scores(self, masks: Masks) -> FloatArray:
        if self._data.scoring.name != "accuracy":
            return super()._scores(masks)
        right, doubts = np.empty((2, len(masks), self._data.n_folds), dtype=np.int64)

        def work(first: int, last: int) -> None:
            lists, codes, doubtful = self._device_codes(masks[first:last])
            counts = right_counts(codes, self._device_truth, self._device_starts, self._torch)
            right[first + lists.order] = counts.cpu().numpy()
            doubts[first + lists.order] = doubtful.cpu().numpy()

        refused = in_pieces(work, 0, len(masks), most=self._most_at_once())
        doubts[refused] = 1
        for p, f in zip(*np.nonzero(doubts), strict=True):
            rows = self._classes.rows_of(int(f))
            right[p, f] = (self._asked_model(masks[p], int(f)) == self._classes.codes[rows]).sum()
        return np.asarray(right / self._classes.sizes)

    def _codes(self, masks: Masks) -> NDArray[np.int16]:
        codes = np.empty((len(masks), len(self._classes.codes)), dtype=np.int16)
        doubts = np.empty((len(masks), self._data.n_folds), dtype=np.int64)

        def work(first: int, last: int) -> None:
            lists, found, doubtful = self._device_codes(masks[first:last])
            codes[first + lists.order] = found.cpu().numpy()
            doubts[first + lists.order] = doubtful.cpu().numpy()

        refused = in_pieces(work, 0, len(masks), most=self._most_at_once())
        doubts[refused] = 1
        for p, f in zip(*np.nonzero(doubts), strict=True):
            codes[p, self._classes.rows_of(int(f))] = self._asked_model(masks[p], int(f))
        return codes

    def _device_codes(self, masks: Masks) -> tuple[ColumnLists, Any, Any]:
        lists = ColumnLists(masks)
        if self._kernels is not None:
            return lists, *kernel_classes(self._kernels, lists, self._torch)
        return lists, *plain_classes(self._tensors, lists, self._torch)

    def _most_at_once(self) -> int:
        T = len(self._classes.codes)
        if self._kernels is not None:
            return max(1, self._max_bytes // (4 * T + 8 * self._data.n_features))
        F, C, width = self._tensors.theta.shape
        return int(max(1, self._max_bytes // (8 * C * (6 * F * width + 4 * F * self._tensors.longest))))


class TorchNormalCDFBayesEngine(NormalCDFBayesEngine):
    """`NormalCDFBayes`, bare or behind one of scikit-learn's scalers: table rows added in the columns' order."""

    name: ClassVar[str] = "normal_cdf_bayes-torch"

    def __init__(
        self, estimator: Any, data: FoldedData, *, n_jobs: int | None = None, max_bytes: int, device: str = "cpu"
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

    def _codes(self, masks: Masks) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
        codes = np.empty((len(masks), len(self._classes.codes)), dtype=np.int16)
        unsure = (masks & self._unsure).any(axis=1)

        def work(first: int, last: int) -> None:
            lists = ColumnLists(masks[first:last])
            codes[first + lists.order] = (self._added(lists) if self._compiled else self._summed(lists)).cpu().numpy()

        most = max(1, self._max_bytes // (8 * 3 * self._device_prior.numel()))
        for p in in_pieces(work, 0, len(masks), most=most):
            codes[p], unsure[p] = (part[0] for part in super()._codes(masks[p : p + 1]))
        return codes, unsure

    def _summed(self, lists: ColumnLists) -> Any:
        torch = self._torch
        totals = self._device_prior[None].repeat(len(lists), 1, 1)
        for column in torch.as_tensor(lists.table().T, device=totals.device):
            totals += self._device_table[column]
        return (totals == totals.amax(dim=1, keepdim=True)).to(torch.int8).argmax(dim=1).to(torch.int16)

    def _added(self, lists: ColumnLists) -> Any:
        from subswarm.evaluation.triton_gaussian import add_up

        torch, (C, T), P = self._torch, self._device_prior.shape, len(lists)
        sent = torch.from_numpy(np.concatenate([lists.starts, lists.columns])).pin_memory()
        sent = sent.to(self._device_prior.device, non_blocking=True)
        codes = torch.empty((P, T), dtype=torch.int16, device=sent.device)
        add_up[(-(-T // 128), P)](
            sent[P + 1 :],
            sent[: P + 1],
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
