"""The table, its target and the folds that stay fixed for a whole search."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, RepeatedKFold, RepeatedStratifiedKFold, StratifiedKFold, check_cv
from sklearn.utils.multiclass import type_of_target

from subswarm.core.errors import DataError, SettingError
from subswarm.core.types import FloatArray, IntArray
from subswarm.evaluation.scoring import Scoring

__all__ = ["Fold", "FoldedData", "fixed_folds", "partitions_in"]


@dataclass(frozen=True, eq=False)
class Fold:
    """Row indices to train on and to test on."""

    train: IntArray
    test: IntArray


@dataclass(frozen=True, eq=False)
class FoldedData:
    """All that an engine needs to know of the data.

    Attributes
    ----------
    X : float array of shape (N, n)
    y : array of shape (N,) or (N, outputs)
    folds : the fixed folds; those of the first partition first
    scoring : how a fitted estimator is scored, and how the score becomes a loss
    params : metadata for ``fit`` and the scorer (``sample_weight``, ...); empty for most searches
    n_partitions : how many partitions of the rows the folds are, each of equally many folds
    """

    X: FloatArray
    y: NDArray[Any]
    folds: tuple[Fold, ...]
    scoring: Scoring
    params: Mapping[str, Any] = field(default_factory=dict)
    n_partitions: int = 1

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def n_folds(self) -> int:
        return len(self.folds)

    @property
    def folds_each(self) -> int:
        """The folds of one partition."""
        return self.n_folds // self.n_partitions

    def partition(self, number: int) -> FoldedData:
        """The same rows with the folds of one partition only."""
        if self.n_partitions == 1:
            return self
        size = self.folds_each
        return replace(self, folds=self.folds[number * size : (number + 1) * size], n_partitions=1)

    def fingerprint(self) -> str:
        """A digest of rows, target, folds and metadata: equal only where every subset scores the same."""
        digest = hashlib.sha256()
        for array in (self.X, self.y, *(part for fold in self.folds for part in (fold.train, fold.test))):
            content = np.ascontiguousarray(array)
            digest.update(f"{content.shape}{content.dtype}".encode())
            digest.update(repr(content.tolist()).encode() if content.dtype.hasobject else content.tobytes())
        digest.update(repr(sorted((k, np.asarray(v).tolist()) for k, v in self.params.items())).encode())
        digest.update(self.scoring.name.encode())
        if self.n_partitions > 1:
            digest.update(f"{self.n_partitions} partitions".encode())
        return digest.hexdigest()


def fixed_folds(
    cv: Any,
    X: FloatArray,
    y: NDArray[Any],
    *,
    estimator: Any,
    groups: Any = None,
    random_state: int | None = 0,
    repeats: int = 1,
) -> tuple[Fold, ...]:
    """The folds, drawn once.

    An integer means shuffled folds drawn from ``random_state``: stratified for a classifier, plain otherwise; with
    ``repeats``, as scikit-learn's ``RepeatedStratifiedKFold`` (or ``RepeatedKFold``) draws them, so that the first
    partition is the one that would have been drawn alone. Anything else that scikit-learn takes for ``cv`` (a splitter,
    a list of splits) is used as it is.
    """
    if isinstance(cv, bool | np.bool_):
        raise DataError(f"cv must be a number of folds, a splitter or a list of splits; got {cv!r}.")
    if cv is None:
        cv = 10
    if isinstance(cv, int | np.integer):
        cv = _shuffled(int(cv), y, is_classifier(estimator), random_state, repeats)
    try:
        splits = list(check_cv(cv, y, classifier=is_classifier(estimator)).split(X, y, groups))
    except ValueError as error:
        raise DataError(f"the rows cannot be split into folds: {error}") from error
    if not splits:
        raise DataError("cv gave no folds; at least one split into training and test rows is needed.")
    return tuple(Fold(_rows(train, len(X)), _rows(test, len(X))) for train, test in splits)


def partitions_in(cv: Any, n_folds: int, repeats: int = 1) -> int:
    """How many partitions ``n_folds`` folds are that were drawn from ``cv``.

    scikit-learn's repeated splitters say so themselves, an integer is repeated ``repeats`` times, and a list of splits
    holds ``repeats`` partitions one after the other. Any other splitter gives one partition.
    """
    if repeats == 1:
        return int(cv.n_repeats) if isinstance(cv, RepeatedKFold | RepeatedStratifiedKFold) else 1
    if hasattr(cv, "split"):
        raise SettingError(
            f"repeats={repeats} needs a number of folds for cv; got the splitter {cv!r}. Use cv=10, or a splitter such "
            f"as RepeatedStratifiedKFold(n_repeats={repeats}) without repeats."
        )
    if n_folds % repeats:
        raise SettingError(
            f"cv lists {n_folds} splits, which are not repeats={repeats} partitions of equally many folds."
        )
    return repeats


def _shuffled(n_splits: int, y: NDArray[Any], classifier: bool, random_state: int | None, repeats: int) -> Any:
    if n_splits < 2:
        raise DataError(f"cv={n_splits}: at least 2 folds are needed.")
    if n_splits > len(y):
        raise DataError(f"cv={n_splits} folds need at least {n_splits} rows; got n_samples={len(y)}. Use fewer folds.")
    if classifier and type_of_target(y) in ("binary", "multiclass"):
        largest = int(np.unique(y, return_counts=True)[1].max())
        if largest < n_splits:
            raise DataError(
                f"cv={n_splits} stratified folds need a class with at least {n_splits} rows; "
                f"the largest has {largest}. Use fewer folds."
            )
        if repeats > 1:
            return RepeatedStratifiedKFold(n_splits=n_splits, n_repeats=repeats, random_state=random_state)
        return StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
    if repeats > 1:
        return RepeatedKFold(n_splits=n_splits, n_repeats=repeats, random_state=random_state)
    return KFold(n_splits, shuffle=True, random_state=random_state)


def _rows(indices: Any, n_rows: int) -> IntArray:
    rows = np.asarray(indices)
    if rows.dtype == np.bool_:
        rows = np.flatnonzero(rows)
    rows = rows.astype(np.intp)
    if not len(rows):
        raise DataError("cv gave a fold without training or without test rows; every fold needs both.")
    if rows.min() < 0 or rows.max() >= n_rows:
        raise DataError(f"cv names row {int(rows.max())}, but the table has {n_rows} rows.")
    return rows
