"""Rows, folds and scalings laid out for the neighbour kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from subswarm.core.types import FloatArray
from subswarm.evaluation.folds import Fold, FoldedData
from subswarm.evaluation.scaling import scaled_rows

__all__ = ["NeighborLayout", "partitions", "rows_are_distinct"]

_LARGEST = 1e140
"""Values whose squares may be summed without overflow."""
AS_IS, SHIFT_THEN_DIVIDE, MULTIPLY_THEN_SHIFT = 0, 1, 2


@dataclass(frozen=True, eq=False)
class NeighborLayout:
    """What finding neighbours needs to know of the data (N rows, n columns, F folds, R partitions).

    Attributes
    ----------
    X : (N, n)
    mode, shifts, scales : how each fold's scaler makes x into its scaled value, (F, n)
    tests, test_starts : all test rows, fold after fold, and where each fold's begin
    barred : (F, N), 1 for rows that are not in the fold's training set
    fold_of : (R, N), the fold of each row in each partition; R is 0 where the folds are no partitions
    center, factor, largest : (n,), centre and scale of the filter's columns, and their largest absolute value
    weights : (F, n), what a squared difference of the filter's columns counts in each fold, at most 1
    unsure : (n,), columns whose subsets are left to scikit-learn
    """

    X: FloatArray
    mode: int
    shifts: FloatArray
    scales: FloatArray
    tests: NDArray[np.int64]
    test_starts: NDArray[np.int64]
    barred: NDArray[np.int32]
    fold_of: NDArray[np.int32]
    center: FloatArray
    factor: FloatArray
    largest: FloatArray
    weights: FloatArray
    unsure: NDArray[np.bool_]

    @classmethod
    def of(cls, data: FoldedData, scaler: Any) -> NeighborLayout:
        X = np.ascontiguousarray(data.X)
        N, n = X.shape
        F = data.n_folds
        shifts, scales, unsure = np.zeros((F, n)), np.ones((F, n)), np.zeros(n, dtype=bool)
        spreads = np.ones((F, n))
        barred = np.ones((F, N), dtype=np.int32)
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
        unsure |= ~np.isfinite(largest) | ~np.isfinite(factor)
        fold_of = partitions(data.folds, N)
        tests = np.concatenate([fold.test for fold in data.folds]).astype(np.int64)
        return cls(
            X=X,
            mode=mode,
            shifts=shifts,
            scales=scales,
            tests=tests,
            test_starts=np.concatenate([[0], np.cumsum([len(fold.test) for fold in data.folds])]),
            barred=barred,
            fold_of=fold_of,
            center=center,
            factor=factor,
            largest=largest,
            weights=(smallest / spreads) ** 2,
            unsure=unsure,
        )


def rows_are_distinct(folds: tuple[Fold, ...]) -> bool:
    """Whether no fold trains on a row twice (a bootstrap would)."""
    return all(len(np.unique(fold.train)) == len(fold.train) for fold in folds)


def partitions(folds: tuple[Fold, ...], n_rows: int) -> NDArray[np.int32]:
    """The fold of each row in each partition, (R, N), where the folds are R partitions in a row; else R is 0.

    Examples
    --------
    >>> import numpy as np
    >>> halves = (Fold(np.array([0, 1]), np.array([2, 3])), Fold(np.array([2, 3]), np.array([0, 1])))
    >>> partitions(halves, 4).tolist()
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


def _affine(fitted: Any, n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The fitted scaler's two numbers for each column, in the order it applies them, and the column's unit."""
    if type(fitted) is MinMaxScaler:
        return fitted.scale_, fitted.min_, 1.0 / fitted.scale_
    centers = fitted.mean_ if type(fitted) is StandardScaler else fitted.center_
    centered = fitted.with_mean if type(fitted) is StandardScaler else fitted.with_centering
    scale = np.ones(n) if fitted.scale_ is None else fitted.scale_
    return centers if centered else np.zeros(n), scale, scale
