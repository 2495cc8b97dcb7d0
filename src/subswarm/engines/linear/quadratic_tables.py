"""The covariances of quadratic discriminant analysis, one for each fold and class, and the test rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from subswarm._types import FloatArray
from subswarm.engines.data import Int64Array

__all__ = ["Covariances", "FoldCovariances", "QuadraticRules", "TestColumns", "stack_columns", "stack_covariances"]


class Covariances(NamedTuple):
    """The covariances of C classes in F folds over n columns.

    The covariance of a subset is its rows and columns of ``gram``, plus ``ridge`` on the diagonal, plus ``shrink``
    times the mean of the subset's ``spread``.

    Attributes
    ----------
    gram : (F, C, n, n)
    spread : (F, C, n), variances before they are shrunk
    mean : (F, C, n)
    log_prior : (F, C)
    noise : (F, C, n), how far rounding can move the mean of a column
    most_columns : (F, C), subsets of more columns are left to scikit-learn
    n_classes : (F,), classes in use; 0 if scikit-learn refuses the fold
    least : the variance that every direction must have; otherwise the subset is left to scikit-learn
    rounding : roundings in an entry of a covariance
    squares : whether scikit-learn decomposes the rows; otherwise it decomposes the covariance
    """

    gram: FloatArray
    spread: FloatArray
    mean: FloatArray
    log_prior: FloatArray
    noise: FloatArray
    most_columns: Int64Array
    n_classes: Int64Array
    ridge: float
    shrink: float
    least: float
    rounding: float
    squares: bool


class TestColumns(NamedTuple):
    """The test rows of F folds.

    Attributes
    ----------
    rows : fold after fold, each fold column by column; a fold begins at its entry of ``offsets``
    starts, sizes : (F,), the position of a fold among all test rows, and its number of rows
    """

    rows: FloatArray
    offsets: Int64Array
    starts: Int64Array
    sizes: Int64Array


@dataclass(frozen=True, eq=False)
class FoldCovariances:
    """One fold's part of `Covariances`, and its test rows (rows, n)."""

    gram: FloatArray
    spread: FloatArray
    mean: FloatArray
    log_prior: FloatArray
    noise: FloatArray
    most_columns: Int64Array
    is_refused: bool
    test: FloatArray


@dataclass(frozen=True, eq=False)
class QuadraticRules:
    """What all folds of `Covariances` share; see there."""

    ridge: float
    shrink: float
    least: float
    rounding: float
    squares: bool


def stack_covariances(folds: Sequence[FoldCovariances], rules: QuadraticRules) -> Covariances:
    """Return the covariances of several folds, for a kernel; those of missing classes are zero."""
    C = max(len(fold.log_prior) for fold in folds)

    def stacked(parts: list[FloatArray]) -> FloatArray:
        room = np.zeros((len(parts), C, *parts[0].shape[1:]), dtype=parts[0].dtype)
        for place, part in zip(room, parts, strict=True):
            place[: len(part)] = part
        return room

    return Covariances(
        stacked([fold.gram for fold in folds]),
        stacked([fold.spread for fold in folds]),
        stacked([fold.mean for fold in folds]),
        stacked([fold.log_prior for fold in folds]),
        stacked([fold.noise for fold in folds]),
        np.stack([np.pad(fold.most_columns, (0, C - len(fold.most_columns))) for fold in folds]),
        np.array([0 if fold.is_refused else len(fold.log_prior) for fold in folds], dtype=np.int64),
        rules.ridge,
        rules.shrink,
        rules.least,
        rules.rounding,
        rules.squares,
    )


def stack_columns(tests: Sequence[FloatArray]) -> TestColumns:
    """Return the test rows of several folds, each (rows, n), for a kernel."""
    sizes = np.array([len(test) for test in tests], dtype=np.int64)
    return TestColumns(
        np.concatenate([test.T.ravel() for test in tests]),
        np.concatenate([[0], np.cumsum([test.size for test in tests])[:-1]]).astype(np.int64),
        np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64),
        sizes,
    )
