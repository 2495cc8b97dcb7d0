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
from subswarm.evaluation.torch_device import ColumnLists, has_kernels, in_pieces, right_counts, tally, torch_on
from subswarm.evaluation.torch_gaussian import GaussianTensors, KernelTables, plain_classes
from subswarm.evaluation.torch_replay import Batch, Courier, affordable, aligned

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
        self._courier = Courier(torch, device, self._launch, lambda size: 2 * aligned(size * data.n_folds))

    @classmethod
    def is_usable_for(cls, estimator: Any, data: FoldedData, device: str) -> bool:
        return super().is_usable_for(estimator, data, "cpu") and data.scoring.name in LABEL_SCORERS

    def _scores(self, masks: Masks) -> FloatArray:
        if self._data.scoring.name != "accuracy":
            return super()._scores(masks)
        right, doubts = np.empty((2, len(masks), self._data.n_folds), dtype=np.int64)

        def work(first: int, last: int) -> None:
            lists = ColumnLists(masks[first:last])
            right[first + lists.order], doubts[first + lists.order] = self._counts(lists)

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
            lists = ColumnLists(masks[first:last])
            found, doubtful = self._device_codes(lists)
            codes[first + lists.order] = found.cpu().numpy()
            doubts[first + lists.order] = doubtful.cpu().numpy()

        refused = in_pieces(work, 0, len(masks), most=self._most_at_once())
        doubts[refused] = 1
        for p, f in zip(*np.nonzero(doubts), strict=True):
            codes[p, self._classes.rows_of(int(f))] = self._asked_model(masks[p], int(f))
        return codes

    def _counts(self, lists: ColumnLists) -> tuple[NDArray[Any], NDArray[Any]]:
        """Rows classified rightly and rows in doubt, each (P, F)."""
        P, F = len(lists), self._data.n_folds
        if self._kernels is not None:
            both = self._courier.counts(lists).reshape(2, -1)[:, : P * F]
            return both[0].reshape(P, F), both[1].reshape(P, F)
        codes, doubts = self._device_codes(lists)
        right = right_counts(codes, self._device_truth, self._device_starts, self._torch)
        return right.cpu().numpy(), doubts.cpu().numpy()

    def _device_codes(self, lists: ColumnLists) -> tuple[Any, Any]:
        torch = self._torch
        if self._kernels is None:
            return plain_classes(self._tensors, lists, torch)
        shape = (len(lists), self._data.n_folds)
        doubts = torch.empty(shape, dtype=torch.int32, device=self._device_truth.device)
        return self._kernels.classify(self._courier.sent(lists), doubts, torch), doubts

    def _launch(self, batch: Batch, counts: Any) -> None:
        assert self._kernels is not None
        codes = self._kernels.classify(batch, counts[len(counts) // 2 :], self._torch)
        tally(codes, self._device_truth, self._device_starts, counts)

    def _most_at_once(self) -> int:
        T = len(self._classes.codes)
        if self._kernels is not None:
            return affordable(self._max_bytes // (4 * T + 8 * self._data.n_features))
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
        self._device_truth = torch.as_tensor(self._classes.codes, device=device)
        self._device_starts = torch.as_tensor(starts.astype(np.int32), device=device)
        self._courier = Courier(torch, device, self._launch, lambda size: size * data.n_folds)

    @classmethod
    def is_usable_for(cls, estimator: Any, data: FoldedData, device: str) -> bool:
        return super().is_usable_for(estimator, data, "cpu")

    def _accuracy(self, masks: Masks) -> tuple[FloatArray, NDArray[np.bool_]]:
        if not self._compiled:
            return super()._accuracy(masks)
        right, unsure = np.empty((len(masks), self._data.n_folds)), self._touched(masks)

        def work(first: int, last: int) -> None:
            lists = ColumnLists(masks[first:last])
            counts = self._courier.counts(lists)
            right[first + lists.order] = counts[: len(lists) * self._data.n_folds].reshape(len(lists), -1)

        for p in in_pieces(work, 0, len(masks), most=self._most_at_once()):
            scores, unsure[p] = (part[0] for part in super()._accuracy(masks[p : p + 1]))
            right[p] = scores * self._classes.sizes
        return np.asarray(right / self._classes.sizes), unsure

    def _codes(self, masks: Masks) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
        codes = np.empty((len(masks), len(self._classes.codes)), dtype=np.int16)
        unsure = self._touched(masks)

        def work(first: int, last: int) -> None:
            lists = ColumnLists(masks[first:last])
            codes[first + lists.order] = self._device_codes(lists).cpu().numpy()

        for p in in_pieces(work, 0, len(masks), most=self._most_at_once()):
            codes[p], unsure[p] = (part[0] for part in super()._codes(masks[p : p + 1]))
        return codes, unsure

    def _touched(self, masks: Masks) -> NDArray[np.bool_]:
        """The masks with a column that is not certain."""
        return np.asarray((masks & self._unsure).any(axis=1))

    def _summed(self, lists: ColumnLists) -> Any:
        torch = self._torch
        totals = self._device_prior[None].repeat(len(lists), 1, 1)
        for column in torch.as_tensor(lists.table().T, device=totals.device):
            totals += self._device_table[column]
        return (totals == totals.amax(dim=1, keepdim=True)).to(torch.int8).argmax(dim=1).to(torch.int16)

    def _device_codes(self, lists: ColumnLists) -> Any:
        return self._added(self._courier.sent(lists)) if self._compiled else self._summed(lists)

    def _launch(self, batch: Batch, counts: Any) -> None:
        tally(self._added(batch), self._device_truth, self._device_starts, counts)

    def _added(self, batch: Batch) -> Any:
        from subswarm.evaluation.triton_gaussian import add_up

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
        if self._compiled:
            return affordable(self._max_bytes // (2 * self._device_prior.shape[1] + 8 * self._data.n_features))
        return int(max(1, self._max_bytes // (8 * 3 * self._device_prior.numel())))
