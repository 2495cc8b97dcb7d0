"""The rows, folds and scalings of a table, laid out for the neighbour kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from subswarm._types import AnyArray, BoolArray, FloatArray
from subswarm.engines.data import Codes, Fold, FoldedData, Int32Array, Int64Array
from subswarm.engines.recipe import scaled_rows

__all__ = [
    "AS_IS",
    "BLOCK",
    "MULTIPLY_THEN_SHIFT",
    "SHIFT_THEN_DIVIDE",
    "Filter",
    "FoldRows",
    "NeighborLayout",
    "ScaledRows",
    "Scratch",
    "SingleScratch",
    "repeats_of",
    "rows_are_distinct",
    "share_rounding",
]

_SMALLEST, _LARGEST = 1e-145, 1e140
"""Values outside this range have squares that underflow or overflow in a sum."""
_HALF_ULP = 2.0**-53
_COARSEST = 2.0**-20
"""Columns whose scaled values are rounded to more than this share of their range are left to scikit-learn."""
AS_IS, SHIFT_THEN_DIVIDE, MULTIPLY_THEN_SHIFT = 0, 1, 2
BLOCK = 16
"""Rows that the kernels process at a time."""


class ScaledRows(NamedTuple):
    """The table, and the two numbers by which each fold's scaler maps its values (see `NeighborLayout`)."""

    X: FloatArray
    mode: int
    shifts: FloatArray
    scales: FloatArray


class FoldRows(NamedTuple):
    """The test rows of all folds, where each fold starts among them, and the rows a fold does not train on."""

    rows: Int64Array
    starts: Int64Array
    barred: Int32Array


class Filter(NamedTuple):
    """What the kernels need to bound distances by a matrix product in float32 or float64.

    Attributes
    ----------
    blocks : (blocks, n, `BLOCK`) float64, the centred and scaled columns
    weights, rounding : (F, n), see `NeighborLayout`
    half_ulp : half a unit in the last place of the filter's dtype
    underflow : what underflow can lose in a product of two values of at most 1
    """

    blocks: FloatArray
    weights: FloatArray
    rounding: FloatArray
    half_ulp: float
    underflow: float


class Scratch(NamedTuple):
    """The memory of one thread.

    Attributes
    ----------
    columns, products : flat arrays of the filter's dtype
    nearest, distances : (all test rows, k), the results for one subset
    """

    columns: AnyArray
    products: AnyArray
    nearest: Int64Array
    distances: FloatArray


class SingleScratch(NamedTuple):
    """`Scratch` in float32.

    It is a class of its own because numba before 0.61 tells named tuples apart by their class only, and would call code
    that was compiled for the other dtype.
    """

    columns: AnyArray
    products: AnyArray
    nearest: Int64Array
    distances: FloatArray


@dataclass(frozen=True, eq=False)
class NeighborLayout:
    """The data, as the search for neighbours uses them (N rows, n columns, F folds, R repeats).

    Attributes
    ----------
    X : (N, n)
    mode, shifts, scales : how each fold's scaler maps x to its scaled value, (F, n)
    tests, test_starts : all test rows, fold after fold, and where each fold starts
    barred : (F, N), 1 for rows that are not in the fold's training set
    fold_of : (R, N), the fold in which each row is tested in each repeat; R is 0 if the folds are not repeats of
        one cross-validation
    center, factor, largest : (n,), centre and scale of the filter's columns, and their largest absolute value
    weights : (F, n), weight of a squared difference of the filter's columns in each fold, at most 1
    rounding : (F, n), how far the difference of two scaled values can be off because the scaler rounds them, beyond
        what is relative to their distance from the centre; in units of the scaled values
    unsure : (n,), columns whose subsets are left to scikit-learn
    """

    X: FloatArray
    mode: int
    shifts: FloatArray
    scales: FloatArray
    tests: Int64Array
    test_starts: Int64Array
    barred: Int32Array
    fold_of: Int32Array
    center: FloatArray
    factor: FloatArray
    largest: FloatArray
    weights: FloatArray
    rounding: FloatArray
    unsure: BoolArray

    @classmethod
    def of(cls, data: FoldedData, scaler: TransformerMixin | None) -> NeighborLayout:
        """Lay out the data of a search; ``scaler`` is None if the model gets the columns as they are."""
        X = np.ascontiguousarray(data.X)
        N, n = X.shape
        F = data.n_folds
        shifts, scales, unsure = np.zeros((F, n)), np.ones((F, n)), np.zeros(n, dtype=bool)
        spreads = np.ones((F, n))
        barred = np.ones((F, N), dtype=np.int32)
        with np.errstate(all="ignore"):  # values that overflow make their column unsure
            for f, fold in enumerate(data.folds):
                barred[f, fold.train] = 0
                train, test = scaled_rows(X, fold, scaler)
                highest = np.maximum(np.abs(train).max(axis=0), np.abs(test).max(axis=0))
                unsure |= ~(highest < _LARGEST)
                if scaler is not None:
                    shifts[f], scales[f], spreads[f] = _affine(clone(scaler).fit(X[fold.train]), n)
            mode = AS_IS if scaler is None else SHIFT_THEN_DIVIDE
            if type(scaler) is MinMaxScaler:
                mode = MULTIPLY_THEN_SHIFT
            smallest = spreads.min(axis=0)
            factor = 1.0 / smallest
            center = np.median(X, axis=0)
            largest = np.abs((X - center) * factor).max(axis=0)
            unsure |= ~np.isfinite(largest) | ~np.isfinite(factor) | ((largest > 0) & (largest < _SMALLEST))
            rounding = np.where(largest > 0, _rounding_of_scaling(mode, center, shifts, scales), 0.0)
            unsure |= ~(rounding <= _COARSEST * largest * (smallest / spreads)).all(axis=0)
        return cls(
            X=X,
            mode=mode,
            shifts=shifts,
            scales=scales,
            tests=np.concatenate([fold.test for fold in data.folds]).astype(np.int64),
            test_starts=np.concatenate([[0], np.cumsum([len(fold.test) for fold in data.folds])]).astype(np.int64),
            barred=barred,
            fold_of=repeats_of(data.folds, N),
            center=center,
            factor=factor,
            largest=largest,
            weights=(smallest / spreads) ** 2,
            rounding=rounding,
            unsure=unsure,
        )

    @property
    def scaled_rows(self) -> ScaledRows:
        """The table and its scalings, for the kernels."""
        return ScaledRows(self.X, self.mode, self.shifts, self.scales)

    @property
    def folds(self) -> FoldRows:
        """The test rows and folds, for the kernels."""
        return FoldRows(self.tests, self.test_starts, self.barred)

    def rows_of(self, fold: int) -> slice:
        """Return where a fold's test rows are among all test rows."""
        return slice(int(self.test_starts[fold]), int(self.test_starts[fold + 1]))

    def count_correct(self, codes: Codes, truth: Codes) -> Int32Array:
        """Count the correct codes (P, all test rows) of each fold, (P, F)."""
        return np.add.reduceat(codes == truth, self.test_starts[:-1], axis=1, dtype=np.int32)


def rows_are_distinct(folds: tuple[Fold, ...]) -> bool:
    """Return whether no fold trains on a row twice, as a bootstrap would."""
    return all(len(np.unique(fold.train)) == len(fold.train) for fold in folds)


def repeats_of(folds: tuple[Fold, ...], n_rows: int) -> Int32Array:
    """Return the fold that tests each row in each repeat, (R, N); R is 0 if the folds are not R complete repeats.

    Examples
    --------
    >>> import numpy as np
    >>> halves = (Fold(np.array([0, 1]), np.array([2, 3])), Fold(np.array([2, 3]), np.array([0, 1])))
    >>> repeats_of(halves, 4).tolist()
    [[1, 1, 0, 0]]
    """
    none = np.empty((0, n_rows), dtype=np.int32)
    found, current = [], np.full(n_rows, -1, dtype=np.int32)
    for f, fold in enumerate(folds):
        kept_out = np.ones(n_rows, dtype=bool)
        kept_out[fold.train] = False
        if not np.array_equal(np.flatnonzero(kept_out), np.sort(fold.test)) or (current[fold.test] >= 0).any():
            return none
        current[fold.test] = f
        if (current >= 0).all():
            found.append(current)
            current = np.full(n_rows, -1, dtype=np.int32)
    return np.array(found) if found and (current < 0).all() else none


def share_rounding(rounding: float, half_ulp: float) -> tuple[float, float]:
    """Return by how much the scaler's rounding increases the looseness and the floor of the bounds.

    ``rounding`` is the sum of `NeighborLayout.rounding` over the columns. An error of E in the vector of differences
    changes its squared length D by at most 2 E sqrt(D) + E², which is at most s D / 2 + E² (1 + 2 / s) for any s > 0,
    and D is at most 2 (|x|² + |y|²). With s = E the two parts are about equal for values near 1, the filter's largest.
    """
    share = max(8.0 * half_ulp, rounding)
    return share, 2.0 * rounding * rounding * (1.0 + 2.0 / share)


def _affine(fitted: TransformerMixin, n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the fitted scaler's two numbers for each column, in the order of their use, and the column's unit."""
    if type(fitted) is MinMaxScaler:
        return fitted.scale_, fitted.min_, 1.0 / fitted.scale_
    centers = fitted.mean_ if type(fitted) is StandardScaler else fitted.center_
    centered = fitted.with_mean if type(fitted) is StandardScaler else fitted.with_centering
    scale = np.ones(n) if fitted.scale_ is None else fitted.scale_
    return centers if centered else np.zeros(n), scale, scale


def _rounding_of_scaling(mode: int, center: FloatArray, shifts: FloatArray, scales: FloatArray) -> FloatArray:
    """Return by how much the scaler's rounding can change the difference of two scaled values, (F, n).

    Both operations of a scaler round their result: (x - a) / b is off by 2u |(x - a) / b| at most (u is half a unit
    in the last place), and x a + b by u |x a| + u |x a + b|. The filter is centred, so it sees none of that. The part
    that is proportional to the distance of x from the centre is covered by the bounds of the kernels; what remains is
    the size of the scaled centre, once for each of the two values.
    """
    if mode == AS_IS:
        return np.zeros_like(shifts)
    if mode == SHIFT_THEN_DIVIDE:
        size = np.abs(center - shifts) / np.abs(scales)
    else:
        size = (np.abs(center * shifts) + np.abs(center * shifts + scales)) / 2
    return np.asarray(4 * _HALF_ULP * size)
