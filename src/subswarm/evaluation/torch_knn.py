"""k nearest neighbours on a torch device, with the losses of the CPU engine, row for row."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier

from subswarm.core.types import FloatArray, Masks
from subswarm.evaluation.answers import LABEL_SCORERS
from subswarm.evaluation.folds import FoldedData
from subswarm.evaluation.knn import KNeighborsEngine
from subswarm.evaluation.torch_device import ColumnLists, has_kernels, in_pieces, right_counts, torch_on
from subswarm.evaluation.torch_neighbors import NeighborTensors, votes
from subswarm.evaluation.torch_replay import affordable

__all__ = ["TorchKNeighborsEngine"]


class TorchKNeighborsEngine(KNeighborsEngine):
    """`KNeighborsClassifier` with uniform weights and euclidean distance, bare or behind one of the scalers."""

    name: ClassVar[str] = "knn-torch"

    def __init__(
        self, estimator: Any, data: FoldedData, *, n_jobs: int | None = None, max_bytes: int, device: str = "cpu"
    ) -> None:
        super().__init__(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)
        self._torch = torch = torch_on(device)
        k = self._finder.n_neighbors
        self._tensors = NeighborTensors.of(self._layout, self._labels, self._n_classes, k, torch, device)
        self._device_truth = torch.as_tensor(self._truth, device=device)
        self._device_starts = torch.as_tensor(self._layout.test_starts.astype(np.int32), device=device)
        self._settled, self._asked = 0, 0
        self._kernels: Any = None
        if has_kernels(device):
            from subswarm.evaluation.kernel_neighbors import KernelNeighbors

            if KernelNeighbors.fits(k):
                self._kernels = KernelNeighbors(self._tensors, self._device_truth, self._device_starts, torch)

    @classmethod
    def is_usable_for(cls, estimator: Any, data: FoldedData, device: str) -> bool:
        return (
            super().is_usable_for(estimator, data, "cpu")
            and data.scoring.name in LABEL_SCORERS
            and _is_plain(estimator)
        )

    @property
    def settled(self) -> tuple[int, int]:
        """Test rows so far that were settled by distances in double precision, and of how many."""
        return (self._kernels.settled, self._kernels.asked) if self._kernels else (self._settled, self._asked)

    def _sure_scores(self, masks: Masks) -> FloatArray:
        if self._data.scoring.name != "accuracy":
            return super()._sure_scores(masks)
        right = np.empty((len(masks), self._data.n_folds))

        def work(first: int, last: int) -> None:
            lists = ColumnLists(masks[first:last])
            right[first + lists.order] = self._right(lists)

        for p in in_pieces(work, 0, len(masks), most=self._most_at_once()):
            right[p] = super()._sure_scores(masks[p : p + 1]) * np.diff(self._layout.test_starts)
        return np.asarray(right / np.diff(self._layout.test_starts))

    def _codes(self, masks: Masks) -> NDArray[np.int16]:
        """The predicted class of each test row, (P, T)."""
        found = np.empty((len(masks), len(self._truth)), dtype=np.int16)

        def work(first: int, last: int) -> None:
            lists = ColumnLists(masks[first:last])
            codes = self._kernels.codes(lists) if self._kernels else self._plain_codes(lists)
            found[first + lists.order] = codes.cpu().numpy()

        for p in in_pieces(work, 0, len(masks), most=self._most_at_once()):
            found[p] = super()._codes(masks[p : p + 1])[0]
        return found

    def _right(self, lists: ColumnLists) -> NDArray[Any]:
        if self._kernels:
            return np.asarray(self._kernels.right(lists))
        codes = self._plain_codes(lists)
        counts = right_counts(codes, self._device_truth, self._device_starts, self._torch)
        return np.asarray(counts.cpu().numpy())

    def _plain_codes(self, lists: ColumnLists) -> Any:
        codes, settled = votes(self._tensors, lists, self._torch)
        self._settled, self._asked = self._settled + settled, self._asked + codes.numel()
        return codes

    def _most_at_once(self) -> int:
        """Subsets in a batch that keeps to ``max_bytes``."""
        if self._kernels is not None:
            return affordable(self._max_bytes // self._kernels.subset_bytes())
        N, T, n = self._tensors.n_rows, self._tensors.n_tests, self._data.n_features
        return max(1, self._max_bytes // (8 * (N * T * 4 + 4 * N * n)))


def _is_plain(estimator: Any) -> bool:
    model = estimator if isinstance(estimator, KNeighborsClassifier) else estimator.steps[-1][1]
    return isinstance(model, KNeighborsClassifier) and model.weights == "uniform" and _euclidean(model)


def _euclidean(model: Any) -> bool:
    return model.metric in ("euclidean", "l2") or (model.metric == "minkowski" and model.p == 2)
