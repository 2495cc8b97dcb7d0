"""Moments of every fold's training rows, and what Gaussian likelihoods need of them, kept for each smoothing seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subswarm.core.types import FloatArray, IntArray, Masks
from subswarm.evaluation.fast_engine import FoldClasses
from subswarm.evaluation.folds import FoldedData
from subswarm.evaluation.scaling import scaled_rows

__all__ = ["GaussianTables"]

_EPS = float(np.finfo(np.float64).eps)
_SAME_SMOOTHING = 2e-14
"""Columns whose variances agree this well share their tables; the bound on rounding allows for it."""
_TOO_SMALL = 1e-250
"""A variance under which squares underflow: such columns are scikit-learn's to judge."""


@dataclass(eq=False)
class GaussianTables:
    """What a fold's training rows say (F folds, C classes at most, n columns), and the test rows to be classified.

    Attributes
    ----------
    theta, class_variance : (F, C, n), the moments scikit-learn computes
    variance : (F, n), of all training rows: its largest selected entry sets the smoothing
    class_count, prior : (F, C)
    rows : test rows, fold after fold, each fold column by column
    mean_error : (F, C, n), how far a lone column's means may be off: those are summed in another order
    alike : (F, n), the column that stands for all with the same variance
    slot : (F, n), where the tables for that widest column are; -1 where not made yet
    """

    var_smoothing: float
    sizes: NDArray[np.int64]
    row_starts: NDArray[np.int64]
    n_classes: NDArray[np.int64]
    rows: FloatArray
    theta: FloatArray
    class_variance: FloatArray
    variance: FloatArray
    class_count: FloatArray
    prior: FloatArray
    log_prior: FloatArray
    mean_error: FloatArray
    alike: NDArray[np.int64]
    slack: float
    slack_alone: float
    capacity: int
    slot: NDArray[np.int64] = field(init=False)
    used: int = field(init=False, default=0)
    store: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.slot = np.full(self.variance.shape, -1, dtype=np.int64)
        self.store = np.empty((3, 0, *self.theta.shape[1:]))

    @classmethod
    def of(cls, data: FoldedData, scaler: Any, model: Any, classes: FoldClasses, max_bytes: int) -> GaussianTables:
        """The tables of a model on the folds' rows; ``max_bytes`` bounds what is kept for the smoothings."""
        F, n = data.n_folds, data.n_features
        C = max(len(known) for known in classes.classes)
        theta, variances, mean_error = np.zeros((F, C, n)), np.zeros((F, C, n)), np.zeros((F, C, n))
        variance, counts = np.empty((F, n)), np.zeros((F, C))
        blocks = []
        with np.errstate(all="ignore"):
            for f, fold in enumerate(data.folds):
                train, test = scaled_rows(data.X, fold, scaler)
                blocks.append(test.T.ravel())
                variance[f] = train.var(axis=0)
                target = data.y[fold.train]
                for c, label in enumerate(classes.classes[f]):
                    rows = train[target == label]
                    theta[f, c], variances[f, c] = rows.mean(axis=0), rows.var(axis=0)
                    counts[f, c] = len(rows)
                    mean_error[f, c] = 4 * (len(rows) + 4) * _EPS * np.abs(rows).max(axis=0)
            prior = counts / counts.sum(axis=1, keepdims=True) if model.priors is None else np.zeros((F, C))
            if model.priors is not None:
                prior[:] = np.asarray(model.priors, dtype=np.float64)
            log_prior = np.log(prior)
        slot_bytes = 3 * C * n * 8
        return cls(
            var_smoothing=float(model.var_smoothing),
            sizes=classes.sizes.astype(np.int64),
            row_starts=np.concatenate([[0], np.cumsum(classes.sizes * n)[:-1]]).astype(np.int64),
            n_classes=np.array([len(known) for known in classes.classes], dtype=np.int64),
            rows=np.concatenate(blocks),
            theta=theta,
            class_variance=variances,
            variance=variance,
            class_count=counts,
            prior=prior,
            log_prior=log_prior,
            mean_error=mean_error,
            alike=_alike(variance),
            slack=16 * _EPS + 2 * _SAME_SMOOTHING,
            slack_alone=(len(data.X) + 32) * _EPS + 2 * _SAME_SMOOTHING,
            capacity=max(F, max_bytes // slot_bytes),
        )

    @property
    def most_classes(self) -> int:
        return int(self.theta.shape[1])

    def batches(self, masks: Masks) -> Iterator[tuple[int, int]]:
        """Slices of the masks, each with no more smoothings than there is room for."""
        length = max(1, self.capacity // len(self.sizes))
        for start in range(0, len(masks), length):
            yield start, min(start + length, len(masks))

    def slots_of(self, columns: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the tables for each mask and fold are, (P, F); made here where they were not."""
        widest = self._widest(columns, starts)
        folds = np.arange(len(self.sizes))
        slots = self.slot[folds, widest]
        if (slots < 0).any():
            wanted = np.unique(np.argwhere(slots < 0)[:, 1] * self.slot.shape[1] + widest[slots < 0])
            if self.used + len(wanted) > self.capacity:
                self.slot[:] = -1
                self.used = 0
                wanted = np.unique(folds * self.slot.shape[1] + widest)
            self._make_room(self.used + len(wanted))
            for fold, column in zip(*np.divmod(wanted, self.slot.shape[1]), strict=True):
                self._fill(int(fold), int(column))
            slots = self.slot[folds, widest]
        return np.asarray(slots)

    def classify(
        self,
        first: int,
        last: int,
        columns: NDArray[np.int64],
        starts: NDArray[np.int64],
        slots: NDArray[np.int64],
        codes: NDArray[np.int16],
        doubts: NDArray[np.int64],
    ) -> None:
        """Classes and doubts for masks ``first`` to ``last``, into ``codes`` (P, rows) and ``doubts`` (P, F)."""
        _kernels().classify(
            first,
            last,
            columns,
            starts,
            slots,
            self.rows,
            self.row_starts,
            self.sizes,
            self.n_classes,
            self.theta,
            self.log_prior,
            self.store[0],
            self.store[1],
            self.store[2],
            self.slack,
            self.slack_alone,
            codes,
            doubts,
        )

    def is_reliable(self, columns: IntArray, fold: int) -> bool:
        """Whether the fold's scaled columns are certain to the last bit."""
        return not np.isnan(self.variance[fold, columns]).any()

    def test_rows(self, columns: IntArray, fold: int) -> FloatArray:
        """The fold's test rows on these columns, as the model gets them."""
        start, size = self.row_starts[fold], self.sizes[fold]
        block = self.rows[start : start + size * self.variance.shape[1]].reshape(-1, size)
        return np.ascontiguousarray(block[columns].T)

    def _widest(self, columns: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
        widest = np.empty((len(starts) - 1, len(self.sizes)), dtype=np.int64)
        _kernels().widest_columns(columns, starts, self.variance, widest)
        return np.asarray(self.alike[np.arange(len(self.sizes)), widest])

    def _make_room(self, wanted: int) -> None:
        have = self.store.shape[1]
        if wanted > have:
            grown = np.empty((3, min(self.capacity, max(wanted, 2 * have)), *self.theta.shape[1:]))
            grown[:, :have] = self.store
            self.store = grown

    def _fill(self, fold: int, column: int) -> None:
        v = self.class_variance[fold] + self.var_smoothing * self.variance[fold, column]
        constant = -0.5 * np.log(2.0 * np.pi * v)
        constant[~(v > _TOO_SMALL)] = np.nan
        self.store[0, self.used] = constant
        self.store[1, self.used] = 0.5 / v
        self.store[2, self.used] = self.mean_error[fold] ** 2 / v
        self.slot[fold, column] = self.used
        self.used += 1


def _alike(variance: FloatArray) -> NDArray[np.int64]:
    """For each fold and column, the first column (by variance) of those that have the same variance up to rounding."""
    alike = np.empty(variance.shape, dtype=np.int64)
    for f, row in enumerate(variance):
        stands = -1
        for column in np.argsort(-row, kind="stable"):
            if stands < 0 or not row[column] >= row[stands] * (1 - _SAME_SMOOTHING):
                stands = int(column)
            alike[f, column] = stands
    return alike


def _kernels() -> Any:
    try:
        from subswarm.evaluation import gaussian_kernel as kernels
    except ImportError:
        from subswarm.evaluation import gaussian_numpy as kernels  # type: ignore[no-redef]
    return kernels
