"""Votes of the nearest neighbours in plain torch, on any device: the fallback and the oracle of the Triton kernels.

A float64 product gives bounds of all distances; where they leave no doubt about a vote it is cast, and the other rows
are settled by distances in difference form, columns in order, exactly as `knn_kernel` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from subswarm.core.types import FloatArray
from subswarm.evaluation.knn_layout import AS_IS, SHIFT_THEN_DIVIDE, NeighborLayout
from subswarm.evaluation.torch_device import ColumnLists

__all__ = ["NeighborTensors", "votes"]

_SPARE = 3
_EPS = 2.0**-52


@dataclass(frozen=True, eq=False)
class NeighborTensors:
    """What the votes need, on the device (N rows, T test rows, n columns and one of zeros, F folds).

    Attributes
    ----------
    exact : (1 or F, n + 1, N) float64, the columns as the model sees them; one copy where no scaler comes first
    filter : (N, n + 1) float64, centred and scaled columns for the bounds
    weights : (F, n + 1) float64, what a squared difference of the filter's columns counts in each fold; None for 1
    tests, fold_of : (T,) int32, the test rows, fold after fold, and the fold of each
    barred : (F, N) int8, 1 for rows that are not in a fold's training set
    tested_in : (N,) int32, the fold that each row is tested in, where that says all; else None
    labels : (N,) int32
    """

    exact: Any
    filter: Any
    weights: Any
    tests: Any
    fold_of: Any
    barred: Any
    tested_in: Any
    labels: Any
    n_classes: int
    n_neighbors: int

    @classmethod
    def of(
        cls, layout: NeighborLayout, labels: Any, n_classes: int, n_neighbors: int, torch: Any, device: str
    ) -> NeighborTensors:
        def moved(array: Any, dtype: Any) -> Any:
            return torch.as_tensor(np.ascontiguousarray(array), device=device).to(dtype)

        sizes = np.diff(layout.test_starts)
        return cls(
            exact=moved(_exact(layout), torch.float64),
            filter=moved(_filter(layout), torch.float64),
            weights=None if layout.mode == AS_IS else moved(_with_zeros(layout.weights), torch.float64),
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


def votes(tensors: NeighborTensors, lists: ColumnLists, torch: Any) -> tuple[Any, int]:
    """The codes (P, T) of the lists' subsets, and how many rows had to be settled."""
    table = torch.as_tensor(lists.table(), device=tensors.filter.device)
    keys, rows, upper = _bounds(tensors, table, lists, torch)
    k = tensors.n_neighbors
    labels = tensors.labels[rows].long()
    rivals = (keys[:, :, None, :] <= upper[:, :, :, None]).sum(dim=3) - 1
    certain = torch.isfinite(keys) & (rivals < k)
    counts = _counts(labels, certain, tensors.n_classes, torch)
    leaders = torch.topk(counts, min(2, tensors.n_classes), dim=2).values
    open_seats = k - certain.sum(dim=2)
    sure = (open_seats == 0) | (leaders[..., 0] > (leaders[..., 1] if leaders.shape[2] > 1 else 0) + open_seats)
    codes = _lowest_leader(counts, torch)
    doubtful = torch.nonzero(~sure)
    room = max(1, (1 << 27) // tensors.n_rows)
    for part in torch.split(doubtful, room):
        codes[part[:, 0], part[:, 1]] = _settled(tensors, table, part, torch)
    return codes.to(torch.int16), len(doubtful)


def _bounds(tensors: NeighborTensors, table: Any, lists: ColumnLists, torch: Any) -> tuple[Any, Any, Any]:
    """The smallest lower bounds of each test row's distances (P, T, K), of which rows, and their upper bounds."""
    chosen = tensors.filter[:, table].permute(1, 0, 2)
    tests, fold_of = tensors.tests.long(), tensors.fold_of.long()
    if tensors.weights is None:
        left, norms = chosen[:, tests], (chosen * chosen).sum(dim=2)[:, None, :]
        own_fold = torch.zeros_like(fold_of)
    else:
        weights = tensors.weights[:, table].permute(1, 0, 2)
        left, norms = chosen[:, tests] * weights[:, fold_of], weights @ (chosen * chosen).transpose(1, 2)
        own_fold = fold_of
    sizes = torch.as_tensor(lists.sizes, device=chosen.device).to(torch.float64)[:, None, None]
    looseness, floor = (3.0 * sizes + 64) * _EPS, (sizes + 8) * 1e-290
    lower = (norms * (1 - looseness))[:, own_fold] - 2 * (left @ chosen.transpose(1, 2))
    lower.masked_fill_((tensors.barred[fold_of] != 0)[None], float("inf"))
    kept = min(tensors.n_neighbors + _SPARE, tensors.n_rows)
    keys, rows = torch.topk(lower, kept, dim=2, largest=False)
    theirs = torch.gather(norms[:, own_fold], 2, rows)
    own = norms[:, own_fold, tests][:, :, None]
    return keys, rows, keys + 2 * looseness * (theirs + own) + floor


def _settled(tensors: NeighborTensors, table: Any, items: Any, torch: Any) -> Any:
    """The codes of items (subset, test row), from distances summed over the columns in order."""
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
    counts = _counts(labels[None], torch.ones_like(labels, dtype=torch.bool)[None], tensors.n_classes, torch)
    return _lowest_leader(counts, torch)[0]


def _counts(labels: Any, chosen: Any, n_classes: int, torch: Any) -> Any:
    """How many chosen entries have each label, (P, T, classes)."""
    counts = torch.zeros((*labels.shape[:2], n_classes), dtype=torch.int64, device=labels.device)
    return counts.scatter_add_(2, labels, chosen.to(torch.int64))


def _lowest_leader(counts: Any, torch: Any) -> Any:
    """The label of the highest count, the lowest where several are."""
    n_classes = counts.shape[2]
    ranked = counts * n_classes - torch.arange(n_classes, device=counts.device)
    return ranked.argmax(dim=2)


def _exact(layout: NeighborLayout) -> FloatArray:
    X = np.where(layout.unsure, 0.0, layout.X)
    if layout.mode == AS_IS:
        return _with_zeros(X).T[None]
    shifts, scales = layout.shifts[:, None], layout.scales[:, None]
    scaled = (X - shifts) / scales if layout.mode == SHIFT_THEN_DIVIDE else X * shifts + scales
    scaled[:, :, layout.unsure] = 0.0
    return np.ascontiguousarray(_with_zeros(scaled).transpose(0, 2, 1))


def _filter(layout: NeighborLayout) -> FloatArray:
    values = np.where(layout.unsure, 0.0, (layout.X - layout.center) * layout.factor)
    top = float(np.abs(values).max())
    return _with_zeros(values * 2.0 ** -np.ceil(np.log2(top)) if top > 0 else values)


def _with_zeros(table: FloatArray) -> FloatArray:
    """The table with one more column, of zeros."""
    return np.concatenate([table, np.zeros((*table.shape[:-1], 1))], axis=-1)
