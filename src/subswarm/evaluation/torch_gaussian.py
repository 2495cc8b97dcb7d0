"""Gaussian log-likelihoods of a swarm with torch: plain operations on any device, our kernel on CUDA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from subswarm.evaluation.fast_engine import FoldClasses
from subswarm.evaluation.gaussian_tables import GaussianTables
from subswarm.evaluation.torch_device import ColumnLists
from subswarm.evaluation.torch_replay import Batch

__all__ = ["GaussianTensors", "KernelTables", "plain_classes"]

_EPS = 2.0**-52
_TOO_SMALL = 1e-250


@dataclass(frozen=True, eq=False)
class GaussianTensors:
    """A fold's moments and test rows on the device (F folds, C classes at most, n columns and one of zeros).

    Attributes
    ----------
    theta, class_variance, mean_error : (F, C, n + 1) float64; variance : (F, n + 1)
    rows : test rows, fold after fold, each fold column by column (with the one of zeros)
    known : (F, C), the classes a fold has; log_prior : (F, C)
    gaps : (F, C, n + 1, longest fold), squared distances of the test rows from the means; for plain torch only
    """

    theta: Any
    class_variance: Any
    mean_error: Any
    variance: Any
    rows: Any
    row_starts: Any
    sizes: Any
    test_starts: Any
    n_classes: Any
    known: Any
    log_prior: Any
    gaps: Any
    longest: int
    n_tests: int
    var_smoothing: float
    slack: float
    slack_alone: float

    @classmethod
    def of(
        cls, tables: GaussianTables, classes: FoldClasses, torch: Any, device: str, *, plain: bool
    ) -> GaussianTensors:
        means, variances, errors = (
            array.transpose(0, 2, 1) for array in (tables.theta, tables.class_variance, tables.mean_error)
        )
        F, C, n = means.shape
        longest = int(tables.sizes.max())

        def moved(array: Any) -> Any:
            return torch.as_tensor(np.ascontiguousarray(array), device=device)

        def widened(array: Any) -> Any:
            return moved(np.concatenate([array, np.zeros((*array.shape[:-1], 1))], axis=-1))

        blocks = [tables.test_rows(np.arange(n), f).T for f in range(F)]
        padded = [np.concatenate([block, np.zeros((1, block.shape[1]))]) for block in blocks]
        gaps = None
        if plain:
            filled = np.zeros((F, 1, n + 1, longest))
            for f, block in enumerate(padded):
                filled[f, 0, :, : block.shape[1]] = block
            theta = np.concatenate([means, np.zeros((F, C, 1))], axis=2)
            squares = (filled - theta[..., None]) ** 2
            gaps = moved(np.where(np.isfinite(squares), squares, 0.0))  # NaN columns are told by their variance
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
            longest=longest,
            n_tests=int(tables.sizes.sum()),
            var_smoothing=tables.var_smoothing,
            slack=tables.slack,
            slack_alone=tables.slack_alone,
        )


def plain_classes(tensors: GaussianTensors, lists: ColumnLists, torch: Any) -> tuple[Any, Any]:
    """Codes (P, T) of all test rows, and how many rows of each fold are too close to call, (P, F)."""
    device = tensors.theta.device
    P, width = len(lists), tensors.theta.shape[2]
    chosen = torch.zeros((P, width), dtype=torch.bool, device=device)
    chosen.scatter_(1, torch.as_tensor(lists.table(), device=device), True)
    chosen[:, -1] = False
    picked = chosen[:, None, :]
    largest = torch.where(picked, tensors.variance, -1.0).amax(dim=2)
    smoothing = tensors.var_smoothing * largest  # NaN where a column is not certain: in doubt, all of it
    v = tensors.class_variance[None] + smoothing[:, :, None, None]
    inside = picked[:, :, None, :] & tensors.known[None, :, :, None]
    terms = torch.where(inside, -0.5 * torch.log(2.0 * torch.pi * v), 0.0)
    terms.masked_fill_(inside & ~(v > _TOO_SMALL), float("nan"))
    weights = torch.where(inside, 0.5 / v, 0.0)
    squares = torch.einsum("pfcj,fcjs->pfcs", weights, tensors.gaps)
    k = torch.as_tensor(lists.sizes, device=device).to(torch.float64)[:, None, None]
    peril = torch.where(inside, tensors.mean_error[None] ** 2 / v, 0.0).sum(dim=3) * (k == 1)
    relative = torch.where(k == 1, tensors.slack_alone, tensors.slack) + (k + 16) * _EPS + peril
    swing = torch.sqrt(peril / (k + 1))
    base = relative * (tensors.log_prior.abs() + terms.abs().sum(dim=3) + k) + swing * (k + 1)
    fixed, rate = tensors.log_prior + terms.sum(dim=3), relative + swing
    known = tensors.known[None, :, :, None]
    highest = (fixed + base)[..., None] - (1 - rate)[..., None] * squares
    lowest = (fixed - base)[..., None] - (1 + rate)[..., None] * squares
    finite = torch.isfinite(torch.where(known, highest, 0.0).sum(dim=2))
    highest = torch.where(known, highest, -torch.inf)
    best = (highest == highest.amax(dim=2, keepdim=True)).to(torch.int8).argmax(dim=2)
    second = highest.scatter(2, best[:, :, None], -torch.inf).amax(dim=2)
    sure = (torch.where(known, lowest, -torch.inf).amax(dim=2) > second) & finite
    real = torch.arange(tensors.longest, device=device) < tensors.sizes[:, None]
    return best[:, real].to(torch.int16), (~sure & real).sum(dim=2)


class KernelTables:
    """What depends on the smoothing, for every widest column there can be, with the classes last."""

    def __init__(self, tensors: GaussianTensors, alike: Any, torch: Any) -> None:
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
        self.constant, self.half, self.risk = (torch.empty(shape, dtype=torch.float64, device=device) for _ in range(3))
        for f, level in enumerate(levels):
            columns = torch.as_tensor(level, device=device)
            smoothing = tensors.var_smoothing * tensors.variance[f, columns]
            v = tensors.class_variance[f].T[None] + smoothing[:, None, None]
            part = slice(int(firsts[f]), int(firsts[f + 1]))
            self.constant[part] = torch.where(v > _TOO_SMALL, -0.5 * torch.log(2.0 * torch.pi * v), torch.nan)
            self.half[part] = 0.5 / v
            self.risk[part] = tensors.mean_error[f].T[None] ** 2 / v
        for table in (self.constant, self.half, self.risk):
            table[:, -1] = 0.0

    @staticmethod
    def nbytes(alike: Any, n_classes: int) -> int:
        """What the tables take."""
        levels = sum(len(np.unique(row)) + 1 for row in alike)
        return int(3 * 8 * levels * (alike.shape[1] + 1) * n_classes)

    def classify(self, batch: Batch, doubts: Any, torch: Any) -> Any:
        """As `plain_classes`, in one kernel; doubts go into an int32 tensor, codes (P, T) are returned."""
        from subswarm.evaluation.triton_gaussian import classify

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
            self.risk,
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
