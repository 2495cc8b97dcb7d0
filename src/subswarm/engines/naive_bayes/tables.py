"""The moments of every fold's training rows, and the tables of Gaussian likelihoods for each smoothing in use.

How far rounding can move the Gaussian log-likelihoods of scikit-learn is bounded here, in one place for all backends.

The log-likelihood of a class is ``fixed - quadratic``: ``fixed`` is the log prior plus a constant for each column, and
``quadratic`` is the sum of (x - mean)² / (2 v) over the columns. The backends and scikit-learn sum the same terms in
different orders, so their results for k columns differ by at most

    base + rate * quadratic,   base = relative * (|log prior| + sum of |constants| + k),   rate = relative

where ``relative`` is `relative_error`: each of the k terms carries the rounding of its own operations and of the sum,
and columns whose variances differ by less than `SAME_SMOOTHING` share a table (`GaussianTables.alike`).

A subset of one column is special: NumPy sums the moments of a single column in another order too. The variance then
differs by a relative error that grows with the number of rows (`slack_alone`), and the mean by some d. That changes
q = (x - mean)² / (2 v) by at most 2 sqrt(q) s + s² with s = d / sqrt(2 v), the `swing`, and 2 sqrt(q) s is at most
s + s q. `error_terms` adds this to base and rate with a factor of two to spare.

A class is certain to win if ``fixed - base - (1 + rate) * quadratic`` of it is larger than
``fixed + base - (1 - rate) * quadratic`` of every other class; otherwise the fold is left to `GaussianNB` itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import NamedTuple, TypeVar

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.naive_bayes import GaussianNB

from subswarm._types import FloatArray, IntArray, Mask, Masks
from subswarm.engines.data import FoldedData, Int64Array
from subswarm.engines.fast import FoldClasses, kernels_of
from subswarm.engines.recipe import scaled_rows

__all__ = [
    "EPS",
    "SAME_SMOOTHING",
    "SPARE_TERMS",
    "TOO_SMALL",
    "GaussianTables",
    "Gaussians",
    "error_terms",
    "gaussian_kernels",
    "relative_error",
    "slacks",
    "swing_of",
    "tables_for",
]

EPS = float(np.finfo(np.float64).eps)
SPARE_TERMS = 16
"""Roundings of a sum of k terms beyond one for each term."""
SAME_SMOOTHING = 2e-14
"""Columns whose variances agree this well share their tables."""
TOO_SMALL = 1e-250
"""Squares over a smaller variance can overflow or underflow; scikit-learn scores such columns."""

Number = TypeVar("Number", float, FloatArray)


def slacks(n_rows: int) -> tuple[float, float]:
    """Return the relative errors of a term, in a subset of several columns and in one of a single column."""
    return 16 * EPS + 2 * SAME_SMOOTHING, (n_rows + 32) * EPS + 2 * SAME_SMOOTHING


def relative_error(slack: float, k: int) -> float:
    """Return the relative error of a sum over k columns; ``slack`` is that of a term (see `slacks`)."""
    return slack + (k + SPARE_TERMS) * EPS


def swing_of(mean_error: FloatArray, variance: FloatArray) -> FloatArray:
    """Return what an error of the mean can do to a square over this variance, as ``error_terms`` takes it."""
    return np.asarray(mean_error / np.sqrt(2.0 * variance))


def error_terms(relative: Number, swing: Number, size: Number) -> tuple[Number, Number]:
    """Return base and rate of the bound.

    ``swing`` is 0 unless the subset is a single column, and ``size`` is |log prior| + sum of |constants| + k. Only
    sums and products are used, so the arguments can be numbers, NumPy arrays or tensors; numba compiles the function,
    and the Triton kernel repeats it.
    """
    share = relative + 2.0 * swing * swing
    return share * size + 2.0 * swing, share + swing


class Gaussians(NamedTuple):
    """What a kernel needs: the rows and moments of `GaussianTables`, and the tables for S widest columns.

    Attributes
    ----------
    constant, half_precision, swing : (S, n, C): -log(2 pi v) / 2, 1 / (2 v), and the effect of an error in the means
    magnitude : (S, C), an upper bound of the sum of any subset's absolute constants
    slack, slack_alone : relative errors of a term (see `slacks`)
    """

    rows: FloatArray
    row_starts: Int64Array
    sizes: Int64Array
    n_classes: Int64Array
    theta: FloatArray
    class_variance: FloatArray
    variance: FloatArray
    mean_error: FloatArray
    log_prior: FloatArray
    constant: FloatArray
    half_precision: FloatArray
    swing: FloatArray
    magnitude: FloatArray
    slack: float
    slack_alone: float
    var_smoothing: float


@dataclass(eq=False)
class GaussianTables:
    """The moments of the training rows (F folds, at most C classes), and the test rows to classify.

    The n columns are those of the data, or room for those that were measured so far.

    Attributes
    ----------
    theta, class_variance : (F, n, C), the moments as scikit-learn computes them
    variance : (F, n), of all training rows; the largest one among the selected columns sets the smoothing
    class_count, prior : (F, C)
    rows : test rows, fold after fold, each fold column by column
    mean_error : (F, n, C), how far the means of a single column can be off, because they are summed in another order
    order : (F, n), columns from the largest variance to the smallest; (F, 0) if they are measured later
    alike : (F, n), the column that represents all columns with the same variance
    place : where in these arrays each column of the data is, -1 if it is not measured yet; if all are, at its index
    slot : (F, n), where the tables for that widest column are; -1 if they are not made yet
    lacked : (F, n), how many columns were computed without such tables
    """

    var_smoothing: float
    sizes: Int64Array
    row_starts: Int64Array
    n_classes: Int64Array
    rows: FloatArray
    theta: FloatArray
    class_variance: FloatArray
    variance: FloatArray
    class_count: FloatArray
    prior: FloatArray
    log_prior: FloatArray
    mean_error: FloatArray
    order: Int64Array
    alike: Int64Array
    slack: float
    slack_alone: float
    capacity: int
    place: Int64Array
    slot: Int64Array = field(init=False)
    lacked: Int64Array = field(init=False)
    used: int = field(init=False, default=0)
    store: FloatArray = field(init=False)
    magnitude: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.slot = np.full(self.variance.shape, -1, dtype=np.int64)
        self.lacked = np.zeros(self.variance.shape, dtype=np.int64)
        self.store = np.empty((3, 0, *self.theta.shape[1:]))
        self.magnitude = np.empty((0, self.most_classes))

    @classmethod
    def of(
        cls,
        data: FoldedData,
        scaler: TransformerMixin | None,
        model: GaussianNB,
        classes: FoldClasses,
        max_bytes: int,
        *,
        known: bool = True,
    ) -> GaussianTables:
        """Compute the moments of all folds, or of no column yet; the tables take at most a quarter of ``max_bytes``."""
        F, n = data.n_folds, data.n_features
        C = max(len(labels) for labels in classes.classes)
        counts = np.zeros((F, C))
        for f, labels in enumerate(classes.classes):
            counts[f, : len(labels)] = [np.count_nonzero(data.y[data.folds[f].train] == label) for label in labels]
        prior = counts / counts.sum(axis=1, keepdims=True) if model.priors is None else np.zeros((F, C))
        if model.priors is not None:
            prior[:] = np.asarray(model.priors, dtype=np.float64)
        with np.errstate(all="ignore"):
            log_prior = np.log(prior)
        slot_bytes = 3 * C * n * 8
        slack, slack_alone = slacks(len(data.X))
        theta, variances, mean_error = np.zeros((3, F, 0, C))
        tables = cls(
            var_smoothing=float(model.var_smoothing),
            sizes=classes.sizes.astype(np.int64),
            row_starts=np.zeros(F, dtype=np.int64),
            n_classes=np.array([len(labels) for labels in classes.classes], dtype=np.int64),
            rows=np.empty(0),
            theta=theta,
            class_variance=variances,
            variance=np.empty((F, 0)),
            class_count=counts,
            prior=prior,
            log_prior=log_prior,
            mean_error=mean_error,
            order=np.empty((F, 0), dtype=np.int64),
            alike=np.empty((F, 0), dtype=np.int64),
            slack=slack,
            slack_alone=slack_alone,
            capacity=max(F, max_bytes // 4 // slot_bytes),
            place=np.full(n, -1, dtype=np.int64),
        )
        if not known:
            return tables
        tables.measure(np.ones(n, dtype=bool), data, scaler, classes)
        order, alike = np.argsort(-tables.variance, axis=1, kind="stable"), np.empty((F, n), dtype=np.int64)
        for f, columns in enumerate(order):
            alike[f, columns] = columns[_first_alike(tables.variance[f, columns])]
        return replace(tables, order=order, alike=alike)

    def measure(self, wanted: Mask, data: FoldedData, scaler: TransformerMixin | None, classes: FoldClasses) -> None:
        """Compute the moments of these columns of the data, unless they are known."""
        new = np.flatnonzero(wanted & (self.place < 0))
        if not len(new):
            return
        used, count = int(self.place.max()) + 1, len(new)
        own = slice(used, used + count)
        self._make_columns(used + count)
        self.place[new] = np.arange(used, used + count)
        if count == 1 and len(wanted) > 1:  # NumPy sums a single column in another order than several
            new = np.append(new, (new + 1) % len(wanted))
        X = data.X if count == len(wanted) else data.X[:, new]
        with np.errstate(all="ignore"):
            for f, fold in enumerate(data.folds):
                train, test = scaled_rows(X, fold, scaler)
                self.test_columns(f)[own] = test.T[:count]
                self.variance[f, own] = _moments(train)[1][:count]
                target = data.y[fold.train]
                for c, label in enumerate(classes.classes[f]):
                    rows = train[target == label]
                    means, variances = _moments(rows)
                    self.theta[f, own, c], self.class_variance[f, own, c] = means[:count], variances[:count]
                    largest = np.abs(rows).max(axis=0)[:count]
                    self.mean_error[f, own, c] = 4 * (len(rows) + 4) * EPS * largest

    def _make_columns(self, wanted: int) -> None:
        """Make room for the moments of so many columns, or for more, so that this is seldom necessary."""
        have, most = self.variance.shape[1], len(self.place)
        if wanted <= have:
            return
        room = min(most, max(wanted, 2 * have))
        before = [self.test_columns(f) for f in range(len(self.sizes))]
        self.row_starts = np.concatenate([[0], np.cumsum(self.sizes * room)[:-1]]).astype(np.int64)
        self.rows = np.empty(int(self.sizes.sum()) * room)
        for name in ("theta", "class_variance", "mean_error", "variance"):
            old = getattr(self, name)
            grown = np.zeros((len(old), room, *old.shape[2:]))
            grown[:, :have] = old
            setattr(self, name, grown)
        for f, rows in enumerate(before):
            self.test_columns(f)[:have] = rows

    @property
    def most_classes(self) -> int:
        return int(self.theta.shape[2])

    def batches(self, masks: Masks) -> Iterator[tuple[int, int]]:
        """Yield slices of the masks, each with no more smoothings than there is room for."""
        length = max(1, self.capacity // len(self.sizes))
        for start in range(0, len(masks), length):
            yield start, min(start + length, len(masks))

    def slots_of(self, widest: Int64Array) -> Int64Array:
        """Return where the tables for the widest columns (P, F) are, (P, F); those that are missing are made."""
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

    def slots_worth_it(self, widest: Int64Array, sizes: Int64Array) -> Int64Array:
        """Return the same for masks of these sizes (P,), but make tables only if they would have paid off by now.

        That is the case once as many columns were computed without them as they have; until then the slot is -1.
        """
        folds = np.arange(len(self.sizes))
        slots = self.slot[folds, widest]
        lacking = slots < 0
        if lacking.any():
            flat = (folds * self.slot.shape[1] + widest)[lacking]
            np.add.at(self.lacked.reshape(-1), flat, np.broadcast_to(sizes[:, None], slots.shape)[lacking])
            worth = np.unique(flat[self.lacked.reshape(-1)[flat] >= self.slot.shape[1]])
            if self.used + len(worth) > self.capacity:  # no room: start again, and see which tables are needed now
                self.slot[:], self.lacked[:], self.used = -1, 0, 0
            else:
                self._fill_all(worth)
            slots = self.slot[folds, widest]
        return np.asarray(slots)

    def gaussians(self) -> Gaussians:
        """Return the current tables, for a kernel."""
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
        )

    def joint_log_likelihood(self, columns: IntArray, fold: int) -> FloatArray:
        """Return what `GaussianNB` computes for each class and test row, (C, rows): the same sums in the same order."""
        C, rows, columns = self.n_classes[fold], self.test_rows(columns, fold), self.place[columns]
        theta = np.ascontiguousarray(self.theta[fold, columns, :C].T)
        v = np.ascontiguousarray(self.class_variance[fold, columns, :C].T)
        v += self.var_smoothing * self.variance[fold, columns].max()
        constant = -0.5 * np.log(2.0 * np.pi * v).sum(axis=1)
        squares = ((rows - theta[:, None]) ** 2 / v[:, None]).sum(axis=2)
        return np.asarray(self.log_prior[fold, :C, None] + (constant[:, None] - 0.5 * squares))

    def is_reliable(self, columns: IntArray, fold: int) -> bool:
        """Return whether the fold's scaled columns are known to the last bit, and scikit-learn accepts their values."""
        known = not np.isnan(self.variance[fold, self.place[columns]]).any()
        return known and bool(np.isfinite(self.test_rows(columns, fold)).all())

    def test_rows(self, columns: IntArray, fold: int) -> FloatArray:
        """Return the fold's test rows on these columns, as the model gets them."""
        return np.ascontiguousarray(self.test_columns(fold)[self.place[columns]].T)

    def test_columns(self, fold: int) -> FloatArray:
        """Return the fold's test rows, column by column, (n, rows)."""
        start, size = self.row_starts[fold], self.sizes[fold]
        return self.rows[start : start + size * self.variance.shape[1]].reshape(-1, size)

    def widest_of(self, columns: Int64Array, starts: Int64Array) -> Int64Array:
        """Return the place of the column that sets the smoothing of each mask in each fold, (P, F).

        ``columns`` has the places of the columns of mask after mask, which start at ``starts``.
        """
        variance = self.variance[:, columns]
        variance[np.isnan(variance)] = -np.inf
        largest = np.repeat(np.maximum.reduceat(variance, starts[:-1], axis=1), np.diff(starts), axis=1)
        place = np.where(variance == largest, np.arange(len(columns)), len(columns))
        return np.ascontiguousarray(columns[np.minimum.reduceat(place, starts[:-1], axis=1)].T)

    def widest_and_slots(self, masks: Masks) -> tuple[Int64Array, Int64Array, bool]:
        """Return the column that sets the smoothing, or represents it, and its slot, each (P, F).

        Also returned is whether all of these columns have tables.
        """
        widest, slots = np.empty((2, len(masks), len(self.sizes)), dtype=np.int64)
        known = gaussian_kernels().widest_columns(masks, self.order, self.alike, self.slot, widest, slots)
        return widest, slots, bool(known)

    def _fill_all(self, wanted: Int64Array) -> None:
        """Make the tables for these widest columns, each given as fold * n + column."""
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
    """Return constants, half precisions and swings for smoothed variances (k, C), and the magnitude (C,)."""
    with np.errstate(all="ignore"):  # columns with a variance of zero are left to scikit-learn
        constant = -0.5 * np.log(2.0 * np.pi * v)
        constant[~(v > TOO_SMALL)] = np.nan
        magnitude = np.where(np.isfinite(constant), np.abs(constant), 0.0).sum(axis=0)
        return np.stack([constant, 0.5 / v, swing_of(mean_error, v)]), np.asarray(magnitude)


def _moments(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the means and variances of the columns with the bits of ``mean`` and ``var``, which take twice as long."""
    means = np.add.reduce(rows, axis=0) / len(rows)
    gaps = rows - means
    gaps *= gaps
    return means, np.add.reduce(gaps, axis=0) / len(rows)


def _first_alike(variance: FloatArray) -> IntArray:
    """Return, for variances from the largest to the smallest, the place of the first that is equal up to rounding."""
    first = np.arange(len(variance))
    is_near = np.append(False, variance[1:] >= variance[:-1] * (1 - SAME_SMOOTHING))
    starts = np.flatnonzero(~is_near)
    stops = np.append(starts[1:], len(variance))
    for run in np.flatnonzero(stops - starts > 1):
        start, stop = int(starts[run]), int(stops[run])
        while start < stop:  # a run whose ends differ has several groups
            end = start + int((variance[start:stop] >= variance[start] * (1 - SAME_SMOOTHING)).sum())
            first[start:end] = start
            start = end
    return first


def gaussian_kernels() -> ModuleType:
    """Return the compiled kernels, or the same functions in NumPy without numba."""
    return kernels_of("subswarm.engines.naive_bayes.")
