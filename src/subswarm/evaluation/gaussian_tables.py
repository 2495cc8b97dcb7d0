"""Moments of every fold's training rows, and what Gaussian likelihoods need of them, kept for each smoothing seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from subswarm.core.types import FloatArray, IntArray, Masks
from subswarm.evaluation.fast_engine import FoldClasses
from subswarm.evaluation.folds import FoldedData
from subswarm.evaluation.scaling import scaled_rows

__all__ = ["GaussianTables", "Gaussians", "gaussian_kernels", "tables_for"]

_EPS = float(np.finfo(np.float64).eps)
_SAME_SMOOTHING = 2e-14
"""Columns whose variances agree this well share their tables; the bound on rounding allows for it."""
_TOO_SMALL = 1e-250
"""A variance under which squares underflow: such columns are scikit-learn's to judge."""


class Gaussians(NamedTuple):
    """What a kernel needs: the rows and moments of `GaussianTables`, and what is kept for S widest columns.

    Attributes
    ----------
    constant, half_precision, risk : (S, n, C): -log(2 pi v) / 2, 1 / (2 v), and what an error in the means can do
    magnitude : (S, C), no less than the sum of any subset's constants without their signs
    too_small : a variance under which the constant is unknown
    """

    rows: FloatArray
    row_starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    n_classes: NDArray[np.int64]
    theta: FloatArray
    class_variance: FloatArray
    variance: FloatArray
    mean_error: FloatArray
    log_prior: FloatArray
    constant: FloatArray
    half_precision: FloatArray
    risk: FloatArray
    magnitude: FloatArray
    slack: float
    slack_alone: float
    var_smoothing: float
    too_small: float


@dataclass(eq=False)
class GaussianTables:
    """What a fold's training rows say (F folds, C classes at most, n columns), and the test rows to be classified.

    Attributes
    ----------
    theta, class_variance : (F, n, C), the moments scikit-learn computes
    variance : (F, n), of all training rows: its largest selected entry sets the smoothing
    class_count, prior : (F, C)
    rows : test rows, fold after fold, each fold column by column
    mean_error : (F, n, C), how far a lone column's means may be off: those are summed in another order
    order : (F, n), columns from the largest variance to the least
    alike : (F, n), the column that stands for all with the same variance
    slot : (F, n), where the tables for that widest column are; -1 where not made yet
    lacked : (F, n), how many columns were reckoned for want of them
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
    order: NDArray[np.int64]
    alike: NDArray[np.int64]
    slack: float
    slack_alone: float
    capacity: int
    slot: NDArray[np.int64] = field(init=False)
    lacked: NDArray[np.int64] = field(init=False)
    used: int = field(init=False, default=0)
    store: FloatArray = field(init=False)
    magnitude: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.slot = np.full(self.variance.shape, -1, dtype=np.int64)
        self.lacked = np.zeros(self.variance.shape, dtype=np.int64)
        self.store = np.empty((3, 0, *self.theta.shape[1:]))
        self.magnitude = np.empty((0, self.most_classes))

    @classmethod
    def of(cls, data: FoldedData, scaler: Any, model: Any, classes: FoldClasses, max_bytes: int) -> GaussianTables:
        """The tables of a model on the folds' rows; a quarter of ``max_bytes`` is for the smoothings."""
        F, n = data.n_folds, data.n_features
        C = max(len(known) for known in classes.classes)
        theta, variances, mean_error = np.zeros((3, F, n, C))
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
                    theta[f, :, c], variances[f, :, c] = rows.mean(axis=0), rows.var(axis=0)
                    counts[f, c] = len(rows)
                    mean_error[f, :, c] = 4 * (len(rows) + 4) * _EPS * np.abs(rows).max(axis=0)
            prior = counts / counts.sum(axis=1, keepdims=True) if model.priors is None else np.zeros((F, C))
            if model.priors is not None:
                prior[:] = np.asarray(model.priors, dtype=np.float64)
            log_prior = np.log(prior)
        order = np.argsort(-variance, axis=1, kind="stable")
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
            order=order,
            alike=_alike(variance, order),
            slack=16 * _EPS + 2 * _SAME_SMOOTHING,
            slack_alone=(len(data.X) + 32) * _EPS + 2 * _SAME_SMOOTHING,
            capacity=max(F, max_bytes // 4 // slot_bytes),
        )

    @property
    def most_classes(self) -> int:
        return int(self.theta.shape[2])

    def batches(self, masks: Masks) -> Iterator[tuple[int, int]]:
        """Slices of the masks, each with no more smoothings than there is room for."""
        length = max(1, self.capacity // len(self.sizes))
        for start in range(0, len(masks), length):
            yield start, min(start + length, len(masks))

    def slots_of(self, widest: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the tables for the widest columns (P, F) are, (P, F); made here where they were not."""
        folds = np.arange(len(self.sizes))
        slots = self.slot[folds, widest]
        if (slots < 0).any():
            wanted = np.unique((folds * self.slot.shape[1] + widest)[slots < 0])
            if self.used + len(wanted) > self.capacity:
                self.slot[:] = -1
                self.used = 0
                wanted = np.unique(folds * self.slot.shape[1] + widest)
            self._fill_all(wanted)
            slots = self.slot[folds, widest]
        return np.asarray(slots)

    def slots_worth_it(self, widest: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same for masks of these sizes (P,), but tables are made only once they would have saved their price.

        That is when as many columns were reckoned without them as they have; until then the slot is -1.
        """
        folds = np.arange(len(self.sizes))
        slots = self.slot[folds, widest]
        lacking = slots < 0
        if lacking.any():
            flat = (folds * self.slot.shape[1] + widest)[lacking]
            np.add.at(self.lacked.reshape(-1), flat, np.broadcast_to(sizes[:, None], slots.shape)[lacking])
            worth = np.unique(flat[self.lacked.reshape(-1)[flat] >= self.slot.shape[1]])
            if self.used + len(worth) > self.capacity:  # no room: begin anew, and see what is wanted now
                self.slot[:], self.lacked[:], self.used = -1, 0, 0
            else:
                self._fill_all(worth)
            slots = self.slot[folds, widest]
        return np.asarray(slots)

    def gaussians(self) -> Gaussians:
        """The tables as they are now, for a kernel."""
        return Gaussians(
            self.rows,
            self.row_starts,
            self.sizes,
            self.n_classes,
            self.theta,
            self.class_variance,
            self.variance,
            self.mean_error,
            self.log_prior,
            self.store[0],
            self.store[1],
            self.store[2],
            self.magnitude,
            self.slack,
            self.slack_alone,
            self.var_smoothing,
            _TOO_SMALL,
        )

    def joint_log_likelihood(self, columns: IntArray, fold: int) -> FloatArray:
        """What `GaussianNB` has on these columns for each class and test row, (C, rows): its sums, in its order."""
        C, rows = self.n_classes[fold], self.test_rows(columns, fold)
        theta = np.ascontiguousarray(self.theta[fold, columns, :C].T)
        v = np.ascontiguousarray(self.class_variance[fold, columns, :C].T)
        v += self.var_smoothing * self.variance[fold, columns].max()
        constant = -0.5 * np.log(2.0 * np.pi * v).sum(axis=1)
        squares = ((rows - theta[:, None]) ** 2 / v[:, None]).sum(axis=2)
        return np.asarray(self.log_prior[fold, :C, None] + (constant[:, None] - 0.5 * squares))

    def is_reliable(self, columns: IntArray, fold: int) -> bool:
        """Whether the fold's scaled columns are certain to the last bit, and numbers that scikit-learn takes."""
        known = not np.isnan(self.variance[fold, columns]).any()
        return known and bool(np.isfinite(self.test_columns(fold)[columns]).all())

    def test_rows(self, columns: IntArray, fold: int) -> FloatArray:
        """The fold's test rows on these columns, as the model gets them."""
        return np.ascontiguousarray(self.test_columns(fold)[columns].T)

    def test_columns(self, fold: int) -> FloatArray:
        """The fold's test rows, column by column, (n, rows)."""
        start, size = self.row_starts[fold], self.sizes[fold]
        return self.rows[start : start + size * self.variance.shape[1]].reshape(-1, size)

    def widest(self, masks: Masks) -> NDArray[np.int64]:
        """For each mask and fold, the column that sets the smoothing, or the one that stands for it, (P, F)."""
        widest = np.empty((len(masks), len(self.sizes)), dtype=np.int64)
        gaussian_kernels().widest_columns(masks, self.order, self.alike, self.slot, widest, np.empty_like(widest))
        return widest

    def widest_and_slots(self, masks: Masks) -> tuple[NDArray[np.int64], NDArray[np.int64], bool]:
        """The `widest` columns and their slots, each (P, F), and whether all of them have one."""
        widest, slots = np.empty((2, len(masks), len(self.sizes)), dtype=np.int64)
        known = gaussian_kernels().widest_columns(masks, self.order, self.alike, self.slot, widest, slots)
        return widest, slots, bool(known)

    def _fill_all(self, wanted: NDArray[np.int64]) -> None:
        """Make the tables for these widest columns, each named by fold * n + column."""
        self._make_room(self.used + len(wanted))
        for fold, column in zip(*np.divmod(wanted, self.slot.shape[1]), strict=True):
            self._fill(int(fold), int(column))

    def _make_room(self, wanted: int) -> None:
        have = self.store.shape[1]
        if wanted > have:
            grown = np.empty((3, min(self.capacity, max(wanted, 2 * have)), *self.theta.shape[1:]))
            grown[:, :have] = self.store
            self.magnitude = np.concatenate([self.magnitude, np.empty((grown.shape[1] - have, self.most_classes))])
            self.store = grown

    def _fill(self, fold: int, column: int) -> None:
        v = self.class_variance[fold] + self.var_smoothing * self.variance[fold, column]
        self.store[:, self.used], self.magnitude[self.used] = tables_for(v, self.mean_error[fold])
        self.slot[fold, column] = self.used
        self.used += 1


def tables_for(v: FloatArray, mean_error: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Constants, half precisions and risks (see `Gaussians`) for smoothed variances (k, C), and the magnitude (C,)."""
    with np.errstate(all="ignore"):  # a variance of zero is for scikit-learn to judge
        constant = -0.5 * np.log(2.0 * np.pi * v)
        constant[~(v > _TOO_SMALL)] = np.nan
        magnitude = np.where(np.isfinite(constant), np.abs(constant), 0.0).sum(axis=0)
        return np.stack([constant, 0.5 / v, mean_error**2 / v]), np.asarray(magnitude)


def _alike(variance: FloatArray, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each fold and column, the first column (by variance) of those that have the same variance up to rounding."""
    alike = np.empty(variance.shape, dtype=np.int64)
    for f, row in enumerate(variance):
        stands = -1
        for column in order[f]:
            if stands < 0 or not row[column] >= row[stands] * (1 - _SAME_SMOOTHING):
                stands = int(column)
            alike[f, column] = stands
    return alike


def gaussian_kernels() -> Any:
    """The compiled kernels, or the same in NumPy where numba is not installed."""
    try:
        from subswarm.evaluation import gaussian_kernel as kernels
    except ImportError:
        from subswarm.evaluation import gaussian_numpy as kernels  # type: ignore[no-redef]
    return kernels
