"""The systems of equations of linear models, one for each fold, and the test rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from subswarm._types import FloatArray
from subswarm.engines.data import Int64Array

__all__ = ["EPS", "FoldSystem", "Scores", "SystemRules", "Systems", "TestRows", "stack_systems", "stack_tests"]

EPS = float(np.finfo(np.float64).eps)
_MOST_INVERTED = 800
"""Columns up to which the products of all of them are inverted once for each fold."""


class Systems(NamedTuple):
    """The systems of F folds over n columns with at most T right sides.

    The weights of a subset solve ``(gram + ridge I) w = target`` with the rows and columns of the subset. ``ridge``
    grows by ``shrink`` times the mean of the subset's ``spread``. A score is ``x w + constant``, where x is centred
    and the constant is ``offset``, less half of ``target w`` if the scores are ``quadratic``.

    Attributes
    ----------
    gram : (F, n, n)
    target : (F, n, T)
    spread : (F, n)
    offset, prior : (F, T)
    level : (F, T), mean size of what the offset is a mean of, because its rounding is a share of that
    noise : (F, n), how far rounding can move a column of the training rows (a length)
    residue : (F, n), squared length of what rounding left of a column without variance; the column counts as zero
    shift : (F, n), what is subtracted from the test rows here, but not by scikit-learn
    ceiling : (F, n), what the diagonal of the inverse cannot exceed in any subset, for columns of length 1
    n_targets : (F,), right sides in use
    uncentred : whether scikit-learn solves for the class means as they are, so that weights and scores grow with them
    drops : whether a column of zeros gets a weight of zero; otherwise the subset is left to scikit-learn
    rounding : roundings in an entry of the Gram matrix
    condition_power : scikit-learn's own rounding goes with the condition of the subset's matrix, its columns as long as
        they are, to this power: 0.5 if it decomposes the rows, 1 if the matrix, 0 if lengths do not matter
    most_error : largest relative error of the weights; subsets that exceed it are left to scikit-learn
    small_error : error that need not be bounded more closely than by ``ceiling``
    most_kappa : largest sum of the diagonal of the inverse, for columns of length 1
    least_share : the share of the largest squared singular value below which scikit-learn drops a direction
    least_rows : number of rows; with more columns, scikit-learn solves ridge regression by the products of rows
    least_between : the same for the class means of linear discriminant analysis; 0 if nothing is dropped
    """

    gram: FloatArray
    target: FloatArray
    spread: FloatArray
    offset: FloatArray
    level: FloatArray
    prior: FloatArray
    noise: FloatArray
    residue: FloatArray
    shift: FloatArray
    ceiling: FloatArray
    n_targets: Int64Array
    ridge: float
    shrink: float
    quadratic: bool
    uncentred: bool
    drops: bool
    rounding: float
    condition_power: float
    most_error: float
    small_error: float
    most_kappa: float
    least_share: float
    least_between: float
    least_rows: float


class TestRows(NamedTuple):
    """The centred test rows of F folds.

    Attributes
    ----------
    rows : fold after fold, each fold column by column; a fold begins at its entry of ``offsets``
    starts, sizes : (F,), the position of a fold among all test rows, and its number of rows
    lengths : (all test rows,), at least the length of the row, each column divided by its length in training
    n_targets : (F,), scores of a row
    """

    rows: FloatArray
    offsets: Int64Array
    starts: Int64Array
    sizes: Int64Array
    lengths: FloatArray
    n_targets: Int64Array


class Scores(NamedTuple):
    """The linear scores of P subsets with K selected columns in all.

    Attributes
    ----------
    weights : (F, T, K)
    constant : (P, F, T)
    rate, base : (P, F), a score is off by at most ``rate`` times the row's length plus ``base``; infinite if the
        subset is left to scikit-learn
    """

    weights: FloatArray
    constant: FloatArray
    rate: FloatArray
    base: FloatArray

    @classmethod
    def room(cls, n_masks: int, n_columns: int, n_folds: int, n_targets: int) -> Scores:
        """Return arrays to be filled."""
        return cls(
            np.empty((n_folds, n_targets, n_columns)),
            np.empty((n_masks, n_folds, n_targets)),
            np.empty((n_masks, n_folds)),
            np.empty((n_masks, n_folds)),
        )


@dataclass(frozen=True, eq=False)
class FoldSystem:
    """One fold's part of `Systems`, and its test rows (rows, n), centred."""

    gram: FloatArray
    target: FloatArray
    spread: FloatArray
    offset: FloatArray
    level: FloatArray
    prior: FloatArray
    noise: FloatArray
    residue: FloatArray
    shift: FloatArray
    test: FloatArray


@dataclass(frozen=True, eq=False)
class SystemRules:
    """What all folds of `Systems` share; see there."""

    ridge: float = 0.0
    shrink: float = 0.0
    quadratic: bool = False
    uncentred: bool = False
    drops: bool = False
    rounding: float = 0.0
    condition_power: float = 0.0
    most_error: float = 1e-3
    small_error: float = 1e-9
    most_kappa: float = np.inf
    least_share: float = 0.0
    least_between: float = 0.0
    least_rows: float = np.inf


def stack_systems(folds: Sequence[FoldSystem], rules: SystemRules) -> Systems:
    """Return the systems of several folds, for a kernel; missing right sides are zero."""
    T = max(len(fold.offset) for fold in folds)
    return Systems(
        np.stack([fold.gram for fold in folds]),
        np.stack([_widened(fold.target, T) for fold in folds]),
        np.stack([fold.spread for fold in folds]),
        np.stack([_widened(fold.offset, T) for fold in folds]),
        np.stack([_widened(fold.level, T) for fold in folds]),
        np.stack([_widened(fold.prior, T) for fold in folds]),
        np.stack([fold.noise for fold in folds]),
        np.stack([fold.residue for fold in folds]),
        np.stack([fold.shift for fold in folds]),
        np.stack([_ceilings(fold, rules) for fold in folds]),
        np.array([len(fold.offset) for fold in folds], dtype=np.int64),
        rules.ridge,
        rules.shrink,
        rules.quadratic,
        rules.uncentred,
        rules.drops,
        rules.rounding,
        rules.condition_power,
        rules.most_error,
        rules.small_error,
        rules.most_kappa,
        rules.least_share,
        rules.least_between,
        rules.least_rows,
    )


def _ceilings(fold: FoldSystem, rules: SystemRules) -> FloatArray:
    """Return bounds on the diagonal of the inverse for all subsets; infinite where there is none.

    The diagonal of the inverse only grows with further columns, so that of all columns is a bound. With a penalty, each
    entry is at most one over it.
    """
    squares = fold.gram.diagonal() + rules.ridge
    bounds = np.full(len(squares), np.inf)
    if rules.shrink > 0:
        return bounds
    if rules.ridge > 0:
        bounds = squares / rules.ridge
    kept = squares > 0
    if len(squares) > _MOST_INVERTED or not kept.any():
        return bounds
    scale = 1.0 / np.sqrt(squares[kept])
    matrix = fold.gram[np.ix_(kept, kept)] * np.outer(scale, scale)
    np.fill_diagonal(matrix, 1.0)
    try:
        factor = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return bounds
    diagonal = (solve_triangular(factor, np.eye(len(matrix)), lower=True, check_finite=False) ** 2).sum(axis=0)
    noise = (fold.noise[kept] * scale).max()
    if 16.0 * (noise + (len(matrix) + rules.rounding) * EPS) * diagonal.sum() < 0.01:
        bounds[kept] = np.minimum(bounds[kept], 1.05 * diagonal)
    return bounds


def stack_tests(folds: Sequence[FoldSystem], ridge: float) -> TestRows:
    """Return the test rows of several folds, for a kernel."""
    sizes = np.array([len(fold.test) for fold in folds], dtype=np.int64)
    return TestRows(
        np.concatenate([fold.test.T.ravel() for fold in folds]),
        np.concatenate([[0], np.cumsum([fold.test.size for fold in folds])[:-1]]).astype(np.int64),
        np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64),
        sizes,
        np.concatenate([_lengths(fold, ridge) for fold in folds]),
        np.array([len(fold.offset) for fold in folds], dtype=np.int64),
    )


def _lengths(fold: FoldSystem, ridge: float) -> FloatArray:
    squares = fold.gram.diagonal() + ridge
    inverse = np.divide(1.0, squares, out=np.zeros_like(squares), where=squares > 0)
    return np.asarray(np.sqrt(fold.test**2 @ inverse))


def _widened(array: FloatArray, width: int) -> FloatArray:
    wide = np.zeros((*array.shape[:-1], width))
    wide[..., : array.shape[-1]] = array
    return wide
