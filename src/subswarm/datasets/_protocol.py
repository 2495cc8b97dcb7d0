"""The fixed folds of each protocol."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike

from subswarm._checks import check_int
from subswarm._types import IntArray
from subswarm.datasets._load import Dataset
from subswarm.errors import DataError

__all__ = ["protocol_folds", "published_folds", "sound_folds"]

Folds = list[tuple[IntArray, IntArray]]


def protocol_folds(dataset: Dataset, *, n_splits: int = 10, seed: int = 0) -> Folds:
    """Return the fixed folds of the data set's protocol, as (training rows, test rows).

    Examples
    --------
    >>> from subswarm.datasets import load_dataset, protocol_folds
    >>> wine = load_dataset("wine")
    >>> [len(test) for train, test in protocol_folds(wine)]
    [18, 18, 18, 18, 18, 18, 18, 18, 17, 17]
    """
    draw = published_folds if dataset.protocol == "published" else sound_folds
    return draw(dataset.y, n_splits=n_splits, seed=seed)


def sound_folds(y: ArrayLike, n_splits: int = 10, seed: int = 0) -> Folds:
    """Return the folds of scikit-learn's shuffled ``StratifiedKFold``. A small class is missing from some test sets."""
    from sklearn.model_selection import StratifiedKFold

    labels = _check_labels(y, n_splits)
    splitter = StratifiedKFold(n_splits, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        return [(train.astype(np.intp), test.astype(np.intp)) for train, test in splitter.split(labels, labels)]


def published_folds(y: ArrayLike, n_splits: int = 10, seed: int = 0) -> Folds:
    """Return one random stratified partition, drawn class by class.

    The rows of each class are shuffled and cut into ``n_splits`` runs of nearly equal length. The runs are assigned to
    the folds in a new random order for each class. A class with fewer rows than folds is in as many folds as it has
    rows.

    Examples
    --------
    >>> folds = published_folds([0, 0, 0, 0, 1, 1, 1, 1], n_splits=4)
    >>> [len(test) for train, test in folds]
    [2, 2, 2, 2]
    """
    labels = _check_labels(y, n_splits)
    rng = np.random.default_rng(seed)
    fold_of = np.empty(len(labels), dtype=np.intp)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        run = -(-n_splits * np.arange(1, len(rows) + 1) // len(rows)) - 1
        fold_of[rows] = rng.permutation(n_splits)[run]
    folds = [(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)) for fold in range(n_splits)]
    if not all(len(test) for _, test in folds):
        raise DataError(f"{n_splits} folds of {len(labels)} rows leave a fold empty; use fewer folds.")
    return folds


def _check_labels(y: ArrayLike, n_splits: int) -> IntArray:
    labels = np.asarray(y)
    check_int("n_splits", n_splits, low=2)
    if labels.ndim != 1:
        raise DataError(f"y must have one label for each row; got an array of shape {labels.shape}.")
    largest = int(np.unique(labels, return_counts=True)[1].max(initial=0))
    if largest < n_splits:
        raise DataError(
            f"n_splits={n_splits} stratified folds need a class with at least {n_splits} rows; the largest "
            f"has {largest}. Use fewer folds."
        )
    return labels
