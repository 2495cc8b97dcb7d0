"""The outer folds of nested cross-validation, and the inner splitter on their training rows."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.model_selection import (
    BaseCrossValidator,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    LeavePGroupsOut,
    LeavePOut,
    PredefinedSplit,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)

from subswarm._checks import check_int, shown
from subswarm._types import AnyArray, Estimator, FloatArray, IntArray, Splits
from subswarm.engines.data import Fold
from subswarm.errors import DataError, SettingError, SubswarmWarning
from subswarm.objective.folds import default_folds, fixed_folds, is_number, is_splits, is_stratified

__all__ = ["NestedFold", "check_outer", "nested_folds"]

RandomState = int | np.random.RandomState | None
_OF_ROWS = (
    KFold,
    LeaveOneOut,
    LeavePOut,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
"""Splitters for independent rows."""
_OF_GROUPS = (GroupKFold, GroupShuffleSplit, LeaveOneGroupOut, LeavePGroupsOut, StratifiedGroupKFold)


@dataclass(frozen=True, eq=False)
class NestedFold:
    """An outer fold, and the ``cv`` of the search on its training rows."""

    outer: Fold
    cv: Splits


def check_outer(setting: str, outer: object) -> None:
    """Raise SettingError unless ``outer`` is a number of outer folds, a splitter or a list of splits."""
    if is_number(outer):
        check_int(setting, outer, low=2)
    elif not is_splits(outer):
        raise SettingError(
            f"{setting} must be a number of outer folds, a splitter or a list of splits; got {shown(outer)}."
        )


def nested_folds(
    cv: Splits | None,
    outer: Splits,
    X: FloatArray,
    y: AnyArray,
    *,
    estimator: Estimator,
    groups: ArrayLike | None = None,
    random_state: RandomState = 0,
    least_test_rows: int = 1,
    setting: str = "held_out",
) -> tuple[NestedFold, ...]:
    """Return the outer folds, each with the ``cv`` of its training rows; an error if a search could not run there.

    Parameters
    ----------
    cv : the search's own ``cv``
    outer : int, splitter or list of splits
        A number of outer folds is turned into a splitter of the kind of ``cv``; anything else is used unchanged.
    X, y : checked table and target
    setting : the name of ``outer`` in messages
    """
    if isinstance(cv, Iterator):
        raise SettingError("cv is an iterator, which can be read only once; nested cross-validation needs a list.")
    splitter, wanted_groups = outer, groups
    if is_number(outer):
        splitter, wanted_groups = _following(cv, int(outer), y, estimator, groups, random_state, setting)
    folds = fixed_folds(
        splitter, X, y, estimator=estimator, groups=wanted_groups, random_state=random_state, setting=setting
    )
    nested = tuple(NestedFold(fold, _on_rows(cv, fold.train, X, y, estimator, least_test_rows)) for fold in folds)
    for number, each in enumerate(nested):
        _check_search(each, number, X, y, estimator, groups, setting)
    if cv is None:
        _warn_of_fewer_folds(nested, y, estimator, least_test_rows)
    return nested


def _following(
    cv: Splits | None,
    folds: int,
    y: AnyArray,
    estimator: Estimator,
    groups: ArrayLike | None,
    random_state: RandomState,
    setting: str,
) -> tuple[Splits, ArrayLike | None]:
    """Return an outer splitter of the kind of ``cv``, and the groups it needs."""
    if isinstance(cv, TimeSeriesSplit) and _is_exactly(cv, TimeSeriesSplit):
        # Without max_train_size: it limits what a model is trained on, while the search inside needs all earlier rows.
        return TimeSeriesSplit(folds, gap=cv.gap, test_size=cv.test_size), None
    if isinstance(cv, PredefinedSplit) and _is_exactly(cv, PredefinedSplit):
        return _of_predefined_folds(cv, folds, len(y), setting), None
    if not (cv is None or is_number(cv) or _is_exactly(cv, *_OF_ROWS, *_OF_GROUPS)):
        what = "a list of splits" if not hasattr(cv, "split") else shown(cv)
        raise SettingError(
            f"{setting}={folds} has no meaning where cv is {what}: how its outer folds should be drawn is not known. "
            f"Pass the outer splitter itself, {setting}=splitter."
        )
    if groups is not None or _is_exactly(cv, *_OF_GROUPS):
        return _of_groups(folds, y, estimator, groups, random_state, setting), groups
    if isinstance(cv, KFold | StratifiedKFold) and not cv.shuffle:
        return (StratifiedKFold if isinstance(cv, StratifiedKFold) else KFold)(folds), None
    return folds, None


def _is_exactly(cv: object, *kinds: type) -> bool:
    """Return whether ``cv`` is of one of these classes, and not of a subclass, which may split in another way."""
    return type(cv) in kinds


def _of_groups(
    folds: int,
    y: AnyArray,
    estimator: Estimator,
    groups: ArrayLike | None,
    random_state: RandomState,
    setting: str,
) -> BaseCrossValidator:
    count = 0 if groups is None else len(np.unique(np.asarray(groups)))
    if count < folds:
        raise DataError(f"{setting}={folds} outer folds of whole groups need at least {folds} groups; got {count}.")
    if is_stratified(y, is_classifier(estimator)):
        return StratifiedGroupKFold(folds, shuffle=True, random_state=random_state)
    return GroupKFold(folds)


def _of_predefined_folds(cv: PredefinedSplit, folds: int, n_rows: int, setting: str) -> list[tuple[IntArray, IntArray]]:
    """Return outer folds of whole predefined folds; rows that are never tested (-1) are in every training set."""
    place = np.asarray(cv.test_fold)
    if place.shape != (n_rows,):
        raise DataError(f"cv is a PredefinedSplit of {len(place)} rows, but the table has {n_rows} rows.")
    named = np.unique(place[place >= 0])
    if len(named) < folds:
        raise SettingError(
            f"{setting}={folds} outer folds are made of whole predefined folds, and cv, a PredefinedSplit, has "
            f"{len(named)}; give at most as many, or pass the outer splitter itself, {setting}=splitter."
        )
    parts = np.array_split(named, folds)
    return [(np.flatnonzero(~np.isin(place, part)), np.flatnonzero(np.isin(place, part))) for part in parts]


def _on_rows(
    cv: Splits | None, rows: IntArray, X: FloatArray, y: AnyArray, estimator: Estimator, least_test_rows: int
) -> Splits:
    """Return ``cv`` for these rows only; a splitter that uses the rows it is given is returned unchanged."""
    if cv is None:
        return default_folds(y[rows], classifier=is_classifier(estimator), least_test_rows=least_test_rows)[0]
    if isinstance(cv, PredefinedSplit):
        part: Splits = PredefinedSplit(np.asarray(cv.test_fold)[rows])
        return part
    if is_number(cv) or hasattr(cv, "split"):
        return cv
    place = np.full(len(y), -1, dtype=np.intp)
    place[rows] = np.arange(len(rows))
    kept = [(place[fold.train], place[fold.test]) for fold in fixed_folds(cv, X, y, estimator=estimator)]
    kept = [(train[train >= 0], test[test >= 0]) for train, test in kept]
    return [(train, test) for train, test in kept if len(train) and len(test)]


def _check_search(
    nested: NestedFold,
    number: int,
    X: FloatArray,
    y: AnyArray,
    estimator: Estimator,
    groups: ArrayLike | None,
    setting: str,
) -> None:
    """Raise DataError if the search could not run on an outer fold's training rows, before any search is run."""
    rows = nested.outer.train
    left = f"outer fold {number + 1} of {setting} leaves {len(rows)} rows to search on"
    if is_stratified(y, is_classifier(estimator)) and len(np.unique(y[rows])) < 2:
        raise DataError(f"{left}, all of one class; pass another outer splitter, {setting}=splitter.")
    inner_groups = None if groups is None else np.asarray(groups)[rows]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the search itself will warn
            fixed_folds(copy.deepcopy(nested.cv), X[rows], y[rows], estimator=estimator, groups=inner_groups)
    except DataError as error:
        raise DataError(
            f"{left}, too few for cv ({error}) Use fewer folds in cv, or pass another outer splitter, "
            f"{setting}=splitter."
        ) from error


def _warn_of_fewer_folds(
    nested: tuple[NestedFold, ...], y: AnyArray, estimator: Estimator, least_test_rows: int
) -> None:
    usual = default_folds(y, classifier=is_classifier(estimator), least_test_rows=least_test_rows)[0]
    fewest = min(each.cv for each in nested if is_number(each.cv))
    if fewest < usual:
        warnings.warn(
            f"cv was not given, and the searches of the nested cross-validation have fewer rows: they use as few as "
            f"{fewest} folds instead of {usual}.",
            SubswarmWarning,
            stacklevel=4,
        )
