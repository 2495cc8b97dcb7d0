"""The table, its target, the folds and the scorer, which are fixed for a whole search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from subswarm._fingerprint import digest
from subswarm._types import AnyArray, BoolArray, FloatArray, IntArray, Mask, Scorer
from subswarm.engines.columns import column_names, take_columns

__all__ = ["WORST_LOSS", "Codes", "Fold", "FoldedData", "Int32Array", "Int64Array", "Scoring"]

Codes = NDArray[np.int16]
"""Predicted classes as positions among the sorted classes."""
Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]
WORST_LOSS = 1e300
"""The loss of a failed subset for scorers without a lower bound; a score must be nearer to zero than this."""


@dataclass(frozen=True, eq=False)
class Fold:
    """Row indices to train on and to test on."""

    train: IntArray
    test: IntArray


@dataclass(frozen=True, eq=False)
class FoldedData:
    """The data of an engine.

    Attributes
    ----------
    X : float array of shape (N, n): what the fast engines and the rankings use; a sparse matrix if that was passed
    y : array of shape (N,) or (N, outputs)
    folds : the fixed folds; those of the first repeat first
    scoring : how a fitted estimator is scored, and how the score becomes a loss
    params : metadata for ``fit`` and the scorer (``sample_weight``, ...); empty for most searches
    n_partitions : number of repeats of the cross-validation, each with the same number of folds
    frame : the frame that the estimator gets instead of ``X``, or None
    is_plain : whether the table has nothing but numbers, so that a fast engine may be used
    """

    X: FloatArray
    y: AnyArray
    folds: tuple[Fold, ...]
    scoring: Scoring
    params: Mapping[str, object] = field(default_factory=dict)
    n_partitions: int = 1
    frame: object | None = None
    is_plain: bool = True

    @property
    def table(self) -> object:
        """What the estimator gets: a frame, a sparse matrix or an array."""
        return self.X if self.frame is None else self.frame

    @property
    def names(self) -> list[str] | None:
        """The names of a frame's columns."""
        return column_names(self.frame)

    def columns(self, mask: Mask) -> object:
        """Return the selected columns, as the estimator gets them."""
        return take_columns(self.table, mask)

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def n_folds(self) -> int:
        return len(self.folds)

    @property
    def folds_each(self) -> int:
        """The number of folds of one repeat."""
        return self.n_folds // self.n_partitions

    def partition(self, number: int) -> FoldedData:
        """Return the same rows with the folds of one repeat only."""
        if self.n_partitions == 1:
            return self
        size = self.folds_each
        return replace(self, folds=self.folds[number * size : (number + 1) * size], n_partitions=1)

    def fingerprint_parts(self) -> dict[str, str]:
        """Return a digest of each part that determines how a subset scores, by its name in messages."""
        return {
            "table": digest(self.table),
            "target": digest(self.y),
            "folds": digest([self.n_partitions, [(fold.train, fold.test) for fold in self.folds]]),
            "metadata": digest(dict(self.params)),
            "scoring": digest([self.scoring.name, self.scoring.given]),
        }


@dataclass(frozen=True, eq=False)
class Scoring:
    """How a fitted estimator is scored, and how the score becomes a loss.

    Attributes
    ----------
    name : the scorer's name; "accuracy" or "r2" for the estimator's own ``score``
    scorer : ``scorer(estimator, X, y) -> float``, higher is better
    negated : the loss is ``-score`` (scorers called ``neg_...``) instead of ``1 - score``
    worst : the finite loss of an empty or failed subset
    given : what the user passed: a name, a callable, or None for the estimator's own ``score``
    """

    name: str
    scorer: Scorer
    negated: bool
    worst: float
    given: object = None

    @property
    def least_rows(self) -> int:
        """The number of test rows that a score needs: R² is a share of a variance, which one row does not have."""
        return 2 if self.name == "r2" else 1

    def accepts(self, scores: FloatArray) -> BoolArray:
        """Return which scores a search can use: neither missing nor so large that a mean of them is infinite."""
        return np.asarray(np.abs(scores) < WORST_LOSS)

    def loss(self, scores: FloatArray) -> FloatArray:
        """Return scores as losses, elementwise; they are negative for a profit above 1."""
        return np.asarray((0.0 if self.negated else 1.0) - scores + 0.0)  # + 0.0 turns -0.0 into 0.0

    def score(self, loss: float) -> float:
        """Return the score that belongs to a loss, up to rounding."""
        return (0.0 if self.negated else 1.0) - loss
