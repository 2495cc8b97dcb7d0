"""What a report shows of each selected column: the score without it, and its distribution by class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier

from subswarm._types import FloatArray, IntArray, Mask
from subswarm.objective.objective import Objective

__all__ = ["ColumnFacts", "describe_columns"]

_BINS, _MOST_CLASSES, _MOST_COLUMNS = 16, 6, 60


@dataclass(frozen=True, eq=False)
class ColumnFacts:
    """Facts on the selected columns, in the order of the table.

    Attributes
    ----------
    columns : index of each column, shape (k,)
    losses : loss of the selection without the column, shape (k,); NaN where nothing would be left
    classes : names of the classes, or of thirds of a numeric target
    shares : share of each class's rows in bins of the column's values, shape (k, classes, bins)
    medians : median of the column in each class, shape (k, classes)
    """

    columns: IntArray
    losses: FloatArray
    classes: tuple[str, ...]
    shares: FloatArray
    medians: FloatArray


def describe_columns(objective: Objective, selected: Mask, *, with_losses: bool = True) -> ColumnFacts:
    """Describe at most 60 selected columns. Their losses cost one evaluation each."""
    columns = np.flatnonzero(selected)[:_MOST_COLUMNS]
    losses = np.full(len(columns), np.nan)
    if with_losses and selected.sum() > 1:
        without = np.repeat(selected[None], len(columns), axis=0)
        without[np.arange(len(columns)), columns] = False
        losses = objective(without)
    X: Any = objective.data.X  # an array or a sparse matrix
    y = np.asarray(objective.data.y)
    classes, codes = _classes(y, classification=is_classifier(objective.estimator))
    shares = np.zeros((len(columns), len(classes), _BINS))
    medians = np.full((len(columns), len(classes)), np.nan)
    for row, column in enumerate(columns):
        own = np.asarray(X[:, [column]].toarray() if sparse.issparse(X) else X[:, column], dtype=np.float64).ravel()
        known = np.isfinite(own)
        low, high = np.quantile(own[known], [0.01, 0.99]) if known.any() else (0.0, 1.0)
        for place in range(len(classes)):
            values = own[known & (codes == place)]
            if len(values):
                counts, _ = np.histogram(np.clip(values, low, high), bins=_BINS, range=(low, max(high, low + 1e-300)))
                shares[row, place] = counts / len(values)
                medians[row, place] = np.median(values)
    return ColumnFacts(columns, losses, classes, shares, medians)


def _classes(y: FloatArray | IntArray, *, classification: bool) -> tuple[tuple[str, ...], IntArray]:
    """Return names of classes and the class of each row (-1: not shown), or thirds of a numeric target."""
    if not classification:
        return ("low", "middle", "high"), np.searchsorted(np.quantile(y, [1 / 3, 2 / 3]), y).astype(np.intp)
    labels, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    shown = np.sort(np.argsort(-counts, kind="stable")[:_MOST_CLASSES])
    places = np.full(len(labels), -1)
    places[shown] = np.arange(len(shown))
    return tuple(str(label) for label in labels[shown]), places[codes]
