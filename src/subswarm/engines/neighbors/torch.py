"""k nearest neighbours on a torch device, with the same neighbours as the CPU engine.

`votes` is plain torch, for any device; it is used where the Triton kernels cannot run, and tests compare them with it.
A float64 product gives bounds of all distances. Where the bounds decide a vote it is cast; the other rows are settled
by distances in difference form, columns in order, exactly as in the CPU kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from subswarm._types import AnyArray, Estimator, FloatArray, Masks
from subswarm.engines.data import Codes, FoldedData, Int64Array
from subswarm.engines.gpu.device import ColumnLists, count_correct, has_kernels, in_pieces, torch_on
from subswarm.engines.gpu.replay import affordable
from subswarm.engines.metrics import LABEL_SCORERS
from subswarm.engines.neighbors.engine import KNeighborsEngine, is_euclidean
from subswarm.engines.neighbors.layout import AS_IS, SHIFT_THEN_DIVIDE, NeighborLayout
from subswarm.engines.recipe import recipe_for

if TYPE_CHECKING:
    from torch import Tensor

    from subswarm.engines.neighbors.triton_launch import KernelNeighbors

__all__ = ["SPARE", "NeighborTensors", "TorchKNeighborsEngine", "votes"]

SPARE = 3
"""Candidates that are kept beyond the k nearest."""
_HALF_ULP = 2.0**-53


class TorchKNeighborsEngine(KNeighborsEngine):
    """Scores `KNeighborsClassifier` with uniform weights and euclidean distance, alone or behind one of the scalers."""

    name: ClassVar[str] = "knn-torch"

    def __init__(
        self, estimator: Estimator, data: FoldedData, *, n_jobs: int | None = None, max_bytes: int, device: str = "cpu"
    ) -> None:
        super().__init__(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)
        self._torch = torch = torch_on(device)
        k = self._finder.n_neighbors
        self._tensors = NeighborTensors.of(self._layout, self._labels, self._n_classes, k, torch, device)
        self._device_truth = torch.as_tensor(self._truth, device=device)
        self._device_starts = torch.as_tensor(self._layout.test_starts.astype(np.int32), device=device)
        self._settled, self._asked = 0, 0
        self._kernels: KernelNeighbors | None = None
        if has_kernels(device):
            from subswarm.engines.neighbors.triton_launch import KernelNeighbors

            if KernelNeighbors.fits(k):
                self._kernels = KernelNeighbors(self._tensors, self._device_truth, self._device_starts, torch)

    @classmethod
    def is_usable_for(cls, estimator: Estimator, data: FoldedData) -> bool:
        """Return whether the engine scores this estimator, data and scorer exactly."""
        recipe = recipe_for(estimator, (KNeighborsClassifier,))
        return (
            recipe is not None
            and recipe.model.weights == "uniform"
            and is_euclidean(recipe.model)
            and data.scoring.name in LABEL_SCORERS
            and super().is_usable_for(estimator, data)
        )

    @property
    def facts(self) -> dict[str, int]:
        """Test rows so far that were settled by distances in double precision, and of how many."""
        kernels = self._kernels
        settled, asked = (self._settled, self._asked) if kernels is None else (kernels.settled, kernels.asked)
        return super().facts | {"settled": settled, "asked": asked}

    def _sure_scores(self, masks: Masks) -> FloatArray:
        if self._data.scoring.name != "accuracy":
            return super()._sure_scores(masks)
        correct = np.empty((len(masks), self._data.n_folds))

        def work(first: int, last: int) -> None:
            lists = ColumnLists(masks[first:last])
            correct[first + lists.order] = self._count_correct(lists)

        for p in in_pieces(work, 0, len(masks), most=self._most_at_once()):
            correct[p] = super()._sure_scores(masks[p : p + 1]) * np.diff(self._layout.test_starts)
        return np.asarray(correct / np.diff(self._layout.test_starts))

    def _codes(self, masks: Masks) -> Codes:
        found = np.empty((len(masks), len(self._truth)), dtype=np.int16)

        def work(first: int, last: int) -> None:
            lists = ColumnLists(masks[first:last])
            codes = self._plain_codes(lists) if self._kernels is None else self._kernels.codes(lists)
            found[first + lists.order] = codes.cpu().numpy()

        for p in in_pieces(work, 0, len(masks), most=self._most_at_once()):
            found[p] = super()._codes(masks[p : p + 1])[0]
        return found

    def _count_correct(self, lists: ColumnLists) -> AnyArray:
        if self._kernels is not None:
            return np.asarray(self._kernels.count_correct(lists))
        codes = self._plain_codes(lists)
        counts = count_correct(codes, self._device_truth, self._device_starts, self._torch)
        return np.asarray(counts.cpu().numpy())

    def _plain_codes(self, lists: ColumnLists) -> Tensor:
        codes, settled = votes(self._tensors, lists, self._torch)
        self._settled, self._asked = self._settled + settled, self._asked + codes.numel()
        return codes

    def _most_at_once(self) -> int:
        """Return how many subsets a batch within ``max_bytes`` can have."""
        if self._kernels is not None:
            return affordable(self._max_bytes // self._kernels.subset_bytes())
        N, T, n = self._tensors.n_rows, self._tensors.n_tests, self._data.n_features
        return max(1, self._max_bytes // (8 * (N * T * 4 + 4 * N * n)))


@dataclass(frozen=True, eq=False)
class NeighborTensors:
    """What the votes need, on the device (N rows, T test rows, n columns and one of zeros, F folds).

    Attributes
    ----------
    exact : (1 or F, n + 1, N) float64, the columns as the model sees them; one copy if there is no scaler
    filter : (N, n + 1) float64, centred and scaled columns for the bounds
    weights : (F, n + 1) float64, weight of a squared difference of the filter's columns in each fold; None if all are 1
    rounding : (F, n + 1) float64, the scaler's rounding (see `NeighborLayout`) in units of the filter
    tests, fold_of : (T,) int32, the test rows, fold after fold, and the fold of each
    barred : (F, N) int8, 1 for rows that are not in a fold's training set
    tested_in : (N,) int32, the fold that each row is tested in, if the folds are one cross-validation; else None
    labels : (N,) int32
    """

    exact: Tensor
    filter: Tensor
    weights: Tensor | None
    rounding: Tensor
    tests: Tensor
    fold_of: Tensor
    barred: Tensor
    tested_in: Tensor | None
    labels: Tensor
    n_classes: int
    n_neighbors: int

    @classmethod
    def of(
        cls,
        layout: NeighborLayout,
        labels: Int64Array,
        n_classes: int,
        n_neighbors: int,
        torch: ModuleType,
        device: str,
    ) -> NeighborTensors:
        """Copy a layout to the device."""

        def moved(array: AnyArray, dtype: object) -> Tensor:
            return torch.as_tensor(np.ascontiguousarray(array), device=device).to(dtype)

        sizes = np.diff(layout.test_starts)
        columns, unit = _filter_columns(layout)
        return cls(
            exact=moved(_exact_columns(layout), torch.float64),
            filter=moved(_with_zeros(columns * unit), torch.float64),
            weights=None if layout.mode == AS_IS else moved(_with_zeros(layout.weights), torch.float64),
            rounding=moved(_with_zeros(np.where(layout.unsure, 0.0, layout.rounding) * unit), torch.float64),
            tests=moved(layout.tests, torch.int32),
            fold_of=moved(np.repeat(np.arange(len(sizes)), sizes), torch.int32),
            barred=moved(layout.barred, torch.int8),
            tested_in=moved(layout.fold_of[0], torch.int32) if len(layout.fold_of) == 1 else None,
            labels=moved(labels, torch.int32),
            n_classes=n_classes,
            n_neighbors=n_neighbors,
        )

    @property
    def n_rows(self) -> int:
        return int(self.filter.shape[0])

    @property
    def n_tests(self) -> int:
        return int(self.tests.shape[0])


def votes(tensors: NeighborTensors, lists: ColumnLists, torch: ModuleType) -> tuple[Tensor, int]:
    """Return the codes (P, T) of the lists' subsets, and how many rows had to be settled."""
    table = torch.as_tensor(lists.table(), device=tensors.filter.device)
    keys, rows, upper = _bounds(tensors, table, lists, torch)
    k = tensors.n_neighbors
    labels = tensors.labels[rows].long()
    rivals = (keys[:, :, None, :] <= upper[:, :, :, None]).sum(dim=3) - 1
    certain = torch.isfinite(keys) & (rivals < k)
    counts = _count_labels(labels, certain, tensors.n_classes, torch)
    leaders = torch.topk(counts, min(2, tensors.n_classes), dim=2).values
    open_seats = k - certain.sum(dim=2)
    sure = (open_seats == 0) | (leaders[..., 0] > (leaders[..., 1] if leaders.shape[2] > 1 else 0) + open_seats)
    codes = _lowest_leader(counts, torch)
    doubtful = torch.nonzero(~sure)
    room = max(1, (1 << 27) // tensors.n_rows)
    for part in torch.split(doubtful, room):
        codes[part[:, 0], part[:, 1]] = _settle(tensors, table, part, torch)
    return codes.to(torch.int16), len(doubtful)


def _bounds(
    tensors: NeighborTensors, table: Tensor, lists: ColumnLists, torch: ModuleType
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the smallest lower bounds of each test row's distances (P, T, K), their rows, and their upper bounds.

    The bounds are those of the CPU kernels (see ``_start_bounds`` there), in float64.
    """
    chosen = tensors.filter[:, table].permute(1, 0, 2)
    tests, fold_of = tensors.tests.long(), tensors.fold_of.long()
    if tensors.weights is None:
        left, norms = chosen[:, tests], (chosen * chosen).sum(dim=2)[:, None, :]
        own_fold = torch.zeros_like(fold_of)
        rounding = torch.zeros_like(norms[:, :, :1])
    else:
        weights = tensors.weights[:, table].permute(1, 0, 2)
        left, norms = chosen[:, tests] * weights[:, fold_of], weights @ (chosen * chosen).transpose(1, 2)
        own_fold = fold_of
        rounding = tensors.rounding[:, table].sum(dim=2).T[:, :, None]
    sizes = torch.as_tensor(lists.sizes, device=chosen.device).to(torch.float64)[:, None, None]
    share = torch.clamp(rounding, min=8 * _HALF_ULP)  # as `share_rounding`
    looseness = (4.0 * sizes + 64) * _HALF_ULP + share
    floor = (sizes + 8) * 1e-290 + 2.0 * rounding * rounding * (1.0 + 2.0 / share)
    half = looseness * norms + floor / 2
    lower = (norms * (1 - looseness))[:, own_fold] - 2 * (left @ chosen.transpose(1, 2))
    lower.masked_fill_((tensors.barred[fold_of] != 0)[None], float("inf"))
    kept = min(tensors.n_neighbors + SPARE, tensors.n_rows)
    keys, rows = torch.topk(lower, kept, dim=2, largest=False)
    theirs = torch.gather(half[:, own_fold], 2, rows)
    own = half[:, own_fold, tests][:, :, None]
    return keys, rows, keys + 2 * (theirs + own)


def _settle(tensors: NeighborTensors, table: Tensor, items: Tensor, torch: ModuleType) -> Tensor:
    """Return the codes of items (subset, test row), from distances summed over the columns in order."""
    subsets, tests = items[:, 0], items[:, 1]
    rows, folds = tensors.tests.long()[tests], tensors.fold_of.long()[tests]
    copies = folds if tensors.exact.shape[0] > 1 else torch.zeros_like(folds)
    total = torch.zeros((len(items), tensors.n_rows), dtype=torch.float64, device=items.device)
    for column in table.T:
        values = tensors.exact[copies, column[subsets]]
        gap = values.gather(1, rows[:, None]) - values
        total += gap * gap
    total.masked_fill_(tensors.barred[folds] != 0, float("inf"))
    nearest = torch.sort(total, dim=1, stable=True).indices[:, : tensors.n_neighbors]
    labels = tensors.labels[nearest].long()
    counts = _count_labels(labels[None], torch.ones_like(labels, dtype=torch.bool)[None], tensors.n_classes, torch)
    return _lowest_leader(counts, torch)[0]


def _count_labels(labels: Tensor, chosen: Tensor, n_classes: int, torch: ModuleType) -> Tensor:
    """Count the chosen entries that have each label, (P, T, classes)."""
    counts = torch.zeros((*labels.shape[:2], n_classes), dtype=torch.int64, device=labels.device)
    return counts.scatter_add_(2, labels, chosen.to(torch.int64))


def _lowest_leader(counts: Tensor, torch: ModuleType) -> Tensor:
    """Return the label of the highest count, the lowest of several."""
    n_classes = counts.shape[2]
    ranked = counts * n_classes - torch.arange(n_classes, device=counts.device)
    return ranked.argmax(dim=2)


def _exact_columns(layout: NeighborLayout) -> FloatArray:
    X = np.where(layout.unsure, 0.0, layout.X)
    if layout.mode == AS_IS:
        return _with_zeros(X).T[None]
    shifts, scales = layout.shifts[:, None], layout.scales[:, None]
    scaled = (X - shifts) / scales if layout.mode == SHIFT_THEN_DIVIDE else X * shifts + scales
    scaled[:, :, layout.unsure] = 0.0
    return np.ascontiguousarray(_with_zeros(scaled).transpose(0, 2, 1))


def _filter_columns(layout: NeighborLayout) -> tuple[FloatArray, float]:
    """Return the filter's columns, and a power of two that brings their largest absolute value to at most 1."""
    with np.errstate(all="ignore"):
        values = np.where(layout.unsure, 0.0, (layout.X - layout.center) * layout.factor)
    top = float(np.abs(values).max())
    return values, float(2.0 ** -np.ceil(np.log2(top))) if top > 0 else 1.0


def _with_zeros(table: FloatArray) -> FloatArray:
    """Append a column of zeros to the table."""
    return np.concatenate([table, np.zeros((*table.shape[:-1], 1))], axis=-1)
