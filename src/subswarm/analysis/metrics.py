"""The paper's measures: PI, Ξ and ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from subswarm.core.types import FloatArray

__all__ = ["average_ranks", "cardinality_reduction", "performance_improvement", "ranks"]

_SAME = 1e-12


def performance_improvement(error: float, error_all: float) -> float:
    """PI in percent: how much of the error of all features, J(U), is gone.

    Examples
    --------
    >>> round(performance_improvement(0.2122, 0.6007), 1)  # the paper's Wine with naive Bayes
    64.7
    """
    return float("nan") if error_all == 0 else 100.0 * (error_all - error) / error_all


def cardinality_reduction(cardinality: float, n_features: int) -> float:
    """Ξ in percent: how many of the features are gone.

    Examples
    --------
    >>> round(cardinality_reduction(4.15, 13), 1)  # the paper's Wine with naive Bayes
    68.1
    """
    return 100.0 * (n_features - cardinality) / n_features


def ranks(values: ArrayLike) -> FloatArray:
    """Ranks along the last axis, the lowest value first; equal values share the lower number, as in the paper.

    Values that differ by rounding alone (1e-12) are equal.

    Examples
    --------
    >>> ranks([0.2, 0.1, 0.1, 0.3]).tolist()
    [3.0, 1.0, 1.0, 4.0]
    """
    array = np.asarray(values, dtype=np.float64)
    return np.asarray(1.0 + (array[..., None, :] < array[..., :, None] - _SAME).sum(axis=-1))


def average_ranks(values: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The average of each column's rank over the rows, and the overall rank that follows from it.

    Examples
    --------
    >>> average, overall = average_ranks([[0.1, 0.2, 0.3], [0.1, 0.1, 0.3]])
    >>> average.tolist(), overall.tolist()
    ([1.0, 1.5, 3.0], [1.0, 2.0, 3.0])
    """
    average = ranks(values).mean(axis=0)
    return average, ranks(average)
