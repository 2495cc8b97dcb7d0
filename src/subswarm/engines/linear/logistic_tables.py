"""The rows of logistic regression, in columns of one scale that all folds share."""

from __future__ import annotations

from typing import NamedTuple

from subswarm._types import FloatArray
from subswarm.engines.data import Int64Array

__all__ = ["CLOSE", "CONVERGED", "STEPS", "LogisticRows"]

CLOSE = 0.5
"""The squared length of a step, in the metric of the Hessian, after which the folds go on from the common weights."""
CONVERGED = 1e-9
"""The same for the last step of a fold."""
STEPS = 40
"""The most steps; what has not converged then is left to scikit-learn."""


class LogisticRows(NamedTuple):
    """All rows, and what each of F folds makes of them.

    A scaler only shifts and stretches the columns. With an intercept the shift does not matter, and the stretch changes
    only how much a weight is penalised. So all folds share the columns, and each has its own penalties.

    Attributes
    ----------
    columns : (n, N), centred and of length 1 a row on average if there is an intercept
    targets : (K, N), 1 for the class of the row; K is 1 for two classes, and the class is then the second
    weights : (F + 1, N), weight of a row's loss: 0 for rows that a fold does not train on; the last are for all rows
    penalty : (F + 1, n), weight of a squared weight; the last are for all rows
    gram : (n + 1, n + 1), weighted products of the columns and of a column of ones
    left, left_starts : rows that the folds do not train on, fold after fold
    is_partition : whether each row is left out once; the rows are then ordered by the fold that leaves them out
    are_weights_common : whether the weights of a fold's training rows are those of all rows
    """

    columns: FloatArray
    targets: FloatArray
    weights: FloatArray
    penalty: FloatArray
    gram: FloatArray
    left: Int64Array
    left_starts: Int64Array
    is_partition: bool
    are_weights_common: bool
    intercept: bool
