"""Gaussian naive Bayes on a torch device, with the losses of the CPU engine.

`classify` is plain torch, for any device; `KernelTables` runs the Triton kernel on CUDA. Both use the bound of
`tables`, and leave doubtful folds to `GaussianNB` itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from subswarm._types import AnyArray, BoolArray, Estimator, FloatArray, Masks
from subswarm.engines.data import Codes, FoldedData, Int64Array
from subswarm.engines.fast import FoldClasses
from subswarm.engines.gpu.device import ColumnLists, count_correct, has_kernels, in_pieces, tally, torch_on
from subswarm.engines.gpu.replay import Batch, GraphRunner, affordable, aligned
from subswarm.engines.metrics import LABEL_SCORERS
from subswarm.engines.naive_bayes.engine import GaussianNBEngine
from subswarm.engines.naive_bayes.tables import TOO_SMALL, GaussianTables, error_terms, relative_error

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["GaussianTensors", "KernelTables", "TorchGaussianNBEngine", "classify"]


class TorchGaussianNBEngine(GaussianNBEngine):
    """Scores `GaussianNB`, alone or behind one of scikit-learn's scalers."""

    name: ClassVar[str] = "gaussian_nb-torch"
    _can_measure_later: ClassVar[bool] = False

    def __init__(
        self, estimator: Estimator, data: FoldedData, *, n_jobs: int | None = None, max_bytes: int, device: str = "cpu"
    ) -> None:
        super().__init__(estimator, data, n_jobs=n_jobs, max_bytes=max_bytes)
        self._torch = torch = torch_on(device)
        tables, classes = self._tables, self._classes
        compiled = has_kernels(device) and KernelTables.nbytes(tables.alike, tables.most_classes) <= max_bytes
        self._tensors = GaussianTensors.of(tables, classes, torch, device, with_gaps=not compiled)
        self._kernels = KernelTables(self._tensors, tables.alike, torch) if compiled else None
        self._device_truth = torch.as_tensor(classes.codes, device=device)
        self._device_starts = torch.as_tensor(classes.starts.astype(np.int32), device=device)
        self._runner = GraphRunner(torch, device, self._launch, lambda size: 2 * aligned(size * data.n_folds))

    @classmethod
    def is_usable_for(cls, estimator: Estimator, data: FoldedData) -> bool:
        """Return whether the engine scores this estimator, data and scorer exactly as scikit-learn does."""
        return data.scoring.name in LABEL_SCORERS and super().is_usable_for(estimator, data)

    def _scores(self, masks: Masks) -> FloatArray:
        if self._data.scoring.name != "accuracy":
            return super()._scores(masks)
        correct, doubts = np.empty((2, len(masks), self._data.n_folds), dtype=np.int64)

        def work(first: int, last: int) -> None:
            lists = ColumnLists(masks[first:last])
            correct[first + lists.order], doubts[first + lists.order] = self._counts(lists)

        refused = in_pieces(work, 0, len(masks), most=self._most_at_once())
        doubts[refused] = 1
        scores = np.asarray(correct / self._classes.sizes)
        open_masks = np.flatnonzero(doubts.any(axis=1))
        if len(open_masks):
            codes = np.zeros((len(open_masks), self._classes.n_tests), dtype=np.int16)
            failed = self._recheck(masks[open_masks], codes, doubts[open_masks])
            rechecked = self._classes.accuracy(codes)
            rechecked[failed] = np.nan
            scores[open_masks] = np.where(doubts[open_masks] > 0, rechecked, scores[open_masks])
            scores[open_masks[failed]] = np.nan
        return scores

    def _codes(self, masks: Masks) -> tuple[Codes, BoolArray]:
        codes = np.empty((len(masks), self._classes.n_tests), dtype=np.int16)
        doubts = np.empty((len(masks), self._data.n_folds), dtype=np.int64)

        def work(first: int, last: int) -> None:
            lists = ColumnLists(masks[first:last])
            found, doubtful = self._device_codes(lists)
            codes[first + lists.order] = found.cpu().numpy()
            doubts[first + lists.order] = doubtful.cpu().numpy()

        refused = in_pieces(work, 0, len(masks), most=self._most_at_once())
        doubts[refused] = 1
        return codes, self._recheck(masks, codes, doubts)

    def _counts(self, lists: ColumnLists) -> tuple[AnyArray, AnyArray]:
        """Count correctly classified rows and doubtful rows, each (P, F)."""
        P, F = len(lists), self._data.n_folds
        if self._kernels is not None:
            both = self._runner.counts(lists).reshape(2, -1)[:, : P * F]
            return both[0].reshape(P, F), both[1].reshape(P, F)
        codes, doubts = self._device_codes(lists)
        correct = count_correct(codes, self._device_truth, self._device_starts, self._torch)
        return correct.cpu().numpy(), doubts.cpu().numpy()

    def _device_codes(self, lists: ColumnLists) -> tuple[Tensor, Tensor]:
        torch = self._torch
        if self._kernels is None:
            return classify(self._tensors, lists, torch)
        shape = (len(lists), self._data.n_folds)
        doubts = torch.empty(shape, dtype=torch.int32, device=self._device_truth.device)
        return self._kernels.classify(self._runner.sent(lists), doubts, torch), doubts

    def _launch(self, batch: Batch, counts: Tensor) -> None:
        assert self._kernels is not None
        codes = self._kernels.classify(batch, counts[len(counts) // 2 :], self._torch)
        tally(codes, self._device_truth, self._device_starts, counts)

    def _most_at_once(self) -> int:
        """Return how many subsets a batch within ``max_bytes`` can have."""
        if self._kernels is not None:
            return affordable(self._max_bytes // (4 * self._classes.n_tests + 8 * self._data.n_features))
        F, C, width = self._tensors.theta.shape
        return int(max(1, self._max_bytes // (8 * C * (6 * F * width + 4 * F * self._tensors.longest))))


@dataclass(frozen=True, eq=False)
class GaussianTensors:
    """Moments and test rows on the device (F folds, at most C classes, n columns and one of zeros).

    Attributes
    ----------
    theta, class_variance, mean_error : (F, C, n + 1) float64; variance : (F, n + 1)
    rows : test rows, fold after fold, each fold column by column (with the one of zeros)
    known : (F, C), whether a fold has the class; log_prior : (F, C)
    gaps : (F, C, n + 1, longest fold), squared distances of the test rows from the means, 0 where not finite; for
        plain torch only
    unbounded : (F, n + 1), whether a column has squares that are not finite; for plain torch only
    """

    theta: Tensor
    class_variance: Tensor
    mean_error: Tensor
    variance: Tensor
    rows: Tensor
    row_starts: Tensor
    sizes: Tensor
    test_starts: Tensor
    n_classes: Tensor
    known: Tensor
    log_prior: Tensor
    gaps: Tensor | None
    unbounded: Tensor | None
    longest: int
    n_tests: int
    var_smoothing: float
    slack: float
    slack_alone: float

    @classmethod
    def of(
        cls, tables: GaussianTables, classes: FoldClasses, torch: ModuleType, device: str, *, with_gaps: bool
    ) -> GaussianTensors:
        """Copy tables to the device; ``with_gaps`` for plain torch."""
        means, variances, errors = (
            array.transpose(0, 2, 1) for array in (tables.theta, tables.class_variance, tables.mean_error)
        )
        F, C, n = means.shape
        longest = int(tables.sizes.max())

        def moved(array: AnyArray) -> Tensor:
            return torch.as_tensor(np.ascontiguousarray(array), device=device)

        def widened(array: FloatArray) -> Tensor:
            return moved(np.concatenate([array, np.zeros((*array.shape[:-1], 1))], axis=-1))

        blocks = [tables.test_rows(np.arange(n), f).T for f in range(F)]
        padded = [np.concatenate([block, np.zeros((1, block.shape[1]))]) for block in blocks]
        gaps = unbounded = None
        if with_gaps:
            filled = np.zeros((F, 1, n + 1, longest))
            for f, block in enumerate(padded):
                filled[f, 0, :, : block.shape[1]] = block
            theta = np.concatenate([means, np.zeros((F, C, 1))], axis=2)
            with np.errstate(all="ignore"):
                squares = (filled - theta[..., None]) ** 2
            gaps = moved(np.where(np.isfinite(squares), squares, 0.0))  # a column that is not selected weighs 0 * gap
            unbounded = moved(~np.isfinite(squares).all(axis=(1, 3)))
        return cls(
            theta=widened(means),
            class_variance=widened(variances),
            mean_error=widened(errors),
            variance=widened(tables.variance),
            rows=moved(np.concatenate([block.ravel() for block in padded])),
            row_starts=moved(tables.row_starts.astype(np.int64) + np.concatenate([[0], np.cumsum(tables.sizes)[:-1]])),
            sizes=moved(tables.sizes.astype(np.int32)),
            test_starts=moved(classes.starts.astype(np.int32)),
            n_classes=moved(tables.n_classes.astype(np.int32)),
            known=moved(np.arange(C) < tables.n_classes[:, None]),
            log_prior=moved(np.where(np.arange(C) < tables.n_classes[:, None], tables.log_prior, 0.0)),
            gaps=gaps,
            unbounded=unbounded,
            longest=longest,
            n_tests=int(tables.sizes.sum()),
            var_smoothing=tables.var_smoothing,
            slack=tables.slack,
            slack_alone=tables.slack_alone,
        )


def classify(tensors: GaussianTensors, lists: ColumnLists, torch: ModuleType) -> tuple[Tensor, Tensor]:
    """Return the codes (P, T) of all test rows, and how many rows of each fold are in doubt, (P, F)."""
    device = tensors.theta.device
    P, width = len(lists), tensors.theta.shape[2]
    chosen = torch.zeros((P, width), dtype=torch.bool, device=device)
    chosen.scatter_(1, torch.as_tensor(lists.table(), device=device), True)
    chosen[:, -1] = False
    picked = chosen[:, None, :]
    largest = torch.where(picked, tensors.variance, -1.0).amax(dim=2)
    smoothing = tensors.var_smoothing * largest  # NaN for a column that is not certain: then the whole fold is in doubt
    v = tensors.class_variance[None] + smoothing[:, :, None, None]
    inside = picked[:, :, None, :] & tensors.known[None, :, :, None]
    terms = torch.where(inside, -0.5 * torch.log(2.0 * torch.pi * v), 0.0)
    terms.masked_fill_(inside & ~(v > TOO_SMALL), float("nan"))
    weights = torch.where(inside, 0.5 / v, 0.0)
    squares = torch.einsum("pfcj,fcjs->pfcs", weights, tensors.gaps)
    k = torch.as_tensor(lists.sizes, device=device).to(torch.float64)[:, None, None]
    relative = relative_error(torch.where(k == 1, tensors.slack_alone, tensors.slack), k)
    swing = torch.where(inside, tensors.mean_error[None] / torch.sqrt(2.0 * v), 0.0).sum(dim=3) * (k == 1)
    base, rate = error_terms(relative, swing, tensors.log_prior.abs() + terms.abs().sum(dim=3) + k)
    fixed = tensors.log_prior + terms.sum(dim=3)
    known = tensors.known[None, :, :, None]
    highest = (fixed + base)[..., None] - (1 - rate)[..., None] * squares
    lowest = (fixed - base)[..., None] - (1 + rate)[..., None] * squares
    finite = torch.isfinite(torch.where(known, highest, 0.0).sum(dim=2))
    finite &= ~(picked & tensors.unbounded).any(dim=2, keepdim=True)
    highest = torch.where(known, highest, -torch.inf)
    best = (highest == highest.amax(dim=2, keepdim=True)).to(torch.int8).argmax(dim=2)
    second = highest.scatter(2, best[:, :, None], -torch.inf).amax(dim=2)
    sure = (torch.where(known, lowest, -torch.inf).amax(dim=2) > second) & finite
    real = torch.arange(tensors.longest, device=device) < tensors.sizes[:, None]
    return best[:, real].to(torch.int16), (~sure & real).sum(dim=2)


class KernelTables:
    """The tables for every possible widest column, with the classes last, for the Triton kernel."""

    def __init__(self, tensors: GaussianTensors, alike: Int64Array, torch: ModuleType) -> None:
        self.tensors = tensors
        F, C, width = tensors.theta.shape
        device = tensors.theta.device
        order = torch.argsort(torch.nan_to_num(tensors.variance, nan=torch.inf), dim=1, descending=True, stable=True)
        self.rank = torch.empty((F, width), dtype=torch.int32, device=device)
        self.rank.scatter_(1, order, torch.arange(width, dtype=torch.int32, device=device).expand(F, width))
        stands = np.concatenate([alike, np.full((F, 1), width - 1)], axis=1)
        levels = [np.unique(row) for row in stands]
        firsts = np.concatenate([[0], np.cumsum([len(level) for level in levels])])
        slot = np.stack(
            [firsts[f] + np.searchsorted(level, row) for f, (level, row) in enumerate(zip(levels, stands, strict=True))]
        )
        by_column = torch.as_tensor(slot.astype(np.int32), device=device)
        self.slots = torch.gather(by_column, 1, order).contiguous()
        self.theta = tensors.theta.transpose(1, 2).contiguous()
        shape = (int(firsts[-1]), width, C)
        self.constant, self.half, self.swing = (
            torch.empty(shape, dtype=torch.float64, device=device) for _ in range(3)
        )
        for f, level in enumerate(levels):
            columns = torch.as_tensor(level, device=device)
            smoothing = tensors.var_smoothing * tensors.variance[f, columns]
            v = tensors.class_variance[f].T[None] + smoothing[:, None, None]
            part = slice(int(firsts[f]), int(firsts[f + 1]))
            self.constant[part] = torch.where(v > TOO_SMALL, -0.5 * torch.log(2.0 * torch.pi * v), torch.nan)
            self.half[part] = 0.5 / v
            self.swing[part] = tensors.mean_error[f].T[None] / torch.sqrt(2.0 * v)
        for table in (self.constant, self.half, self.swing):
            table[:, -1] = 0.0

    @staticmethod
    def nbytes(alike: Int64Array, n_classes: int) -> int:
        """Return how many bytes the tables take."""
        levels = sum(len(np.unique(row)) + 1 for row in alike)
        return int(3 * 8 * levels * (alike.shape[1] + 1) * n_classes)

    def classify(self, batch: Batch, doubts: Tensor, torch: ModuleType) -> Tensor:
        """Classify in one kernel; doubts go into an int32 tensor, codes (P, T) are returned."""
        from subswarm.engines.naive_bayes.triton import classify

        tensors = self.tensors
        F, C, width = tensors.theta.shape
        codes = torch.empty((batch.size, tensors.n_tests), dtype=torch.int16, device=tensors.theta.device)
        block = min(256, max(32, 1 << (tensors.longest - 1).bit_length()))
        classify[(F, batch.size)](
            batch.columns,
            batch.starts,
            batch.sizes,
            tensors.rows,
            tensors.row_starts,
            tensors.sizes,
            tensors.test_starts,
            tensors.n_classes,
            self.theta,
            tensors.log_prior,
            self.rank,
            self.slots,
            self.constant,
            self.half,
            self.swing,
            tensors.slack,
            tensors.slack_alone,
            codes,
            doubts,
            tensors.n_tests,
            F,
            C,
            width,
            CP=max(2, 1 << (C - 1).bit_length()),
            BS=block,
            BK=32,
            num_warps=max(1, block // 64),
        )
        return codes
