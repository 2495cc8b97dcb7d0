"""The folds of a search, which are drawn once, and the outer folds of nested cross-validation."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeGuard

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
    check_cv,
)
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target

from subswarm._checks import check_int, shown
from subswarm._types import AnyArray, Estimator, FloatArray, IntArray, Splits
from subswarm.engines.data import Fold
from subswarm.errors import DataError, SettingError, SubswarmWarning

__all__ = [
    "DEFAULT_FOLDS",
    "NestedFold",
    "check_outer",
    "cross_fit_folds",
    "default_folds",
    "fixed_folds",
    "is_number",
    "is_splits",
    "is_stratified",
    "nested_folds",
    "partitions_in",
    "sample_rows",
]

DEFAULT_FOLDS = 10
"""Number of folds if ``cv`` is not given and the rows allow it."""

LEAST_OF_CLASS = 20
"""Rows of a rare class that a sample of the rows has at least."""


def fixed_folds(
    cv: Splits | None,
    X: FloatArray,
    y: AnyArray,
    *,
    estimator: Estimator,
    groups: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = 0,
    repeats: int = 1,
    least_test_rows: int = 1,
    setting: str = "cv",
) -> tuple[Fold, ...]:
    """Draw the folds.

    An integer means shuffled folds drawn from ``random_state``: stratified for a classifier, plain otherwise; with
    ``repeats``, as scikit-learn's ``RepeatedStratifiedKFold`` (or ``RepeatedKFold``) draws them, so that the first
    repeat is the one that would have been drawn alone. None means `default_folds`, with a warning if these are fewer
    than usual. Anything else that scikit-learn accepts as ``cv`` (a splitter, a list of splits) is used unchanged.
    ``setting`` is the name of ``cv`` in messages.
    """
    if not (cv is None or is_number(cv) or is_splits(cv)):
        raise DataError(f"{setting} must be a number of folds, a splitter or a list of splits; got {shown(cv)}.")
    classifier = is_classifier(estimator)
    reason = ""
    if cv is None:
        cv, reason = default_folds(y, classifier=classifier, least_test_rows=least_test_rows)
        if reason:
            warnings.warn(f"cv was not given, and {reason}, so {cv} folds are used.", SubswarmWarning, stacklevel=3)
    if is_number(cv):
        cv = _shuffled(int(cv), y, classifier, random_state, repeats, setting)
    try:
        with warnings.catch_warnings():
            if reason:  # the warning above is enough
                warnings.filterwarnings("ignore", message="The least populated class")
            splits = [(train, test) for train, test in check_cv(cv, y, classifier=classifier).split(X, y, groups)]
    except (TypeError, ValueError) as error:
        raise DataError(f"{setting} cannot split the rows into folds: {error}") from error
    if not splits:
        raise DataError(f"{setting} gave no folds; at least one split into training and test rows is needed.")
    return tuple(Fold(_rows(train, len(y), setting), _rows(test, len(y), setting)) for train, test in splits)


def default_folds(y: AnyArray, *, classifier: bool, least_test_rows: int = 1) -> tuple[int, str]:
    """Return the default number of folds, and the reason if it is less than 10.

    Stratified folds need a class with as many rows, and each fold needs rows to test on; R² needs two.

    Examples
    --------
    >>> default_folds(np.repeat([0, 1, 2], 20), classifier=True)
    (10, '')
    >>> default_folds(np.repeat([0, 1, 2], 7), classifier=True)
    (7, 'the usual 10 stratified folds need a class with 10 rows, but the largest has 7')
    """
    wanted = DEFAULT_FOLDS
    if is_stratified(y, classifier):
        largest = int(np.unique(y, return_counts=True)[1].max())
        if largest < wanted:
            return max(2, largest), (
                f"the usual {wanted} stratified folds need a class with {wanted} rows, but the largest has {largest}"
            )
    if len(y) < wanted * least_test_rows:
        each = "" if least_test_rows == 1 else f" (each fold is tested on at least {least_test_rows})"
        return max(2, len(y) // least_test_rows), (
            f"the usual {wanted} folds need {wanted * least_test_rows} rows{each}, but the table has {len(y)}"
        )
    return wanted, ""


def cross_fit_folds(
    cv: Splits | None,
    y: AnyArray,
    *,
    estimator: Estimator,
    random_state: int | np.random.RandomState | None = 0,
    repeats: int,
    least_test_rows: int = 1,
    max_rows: int | None = None,
) -> tuple[tuple[Fold, ...], tuple[Fold, ...]] | None:
    """Draw the folds of cross-fitted repeats, and the rows that each repeat leaves out.

    The rows are divided into as many blocks as there are repeats. Repeat c has folds of the rows outside block c, or of
    about ``max_rows`` of them; the left-out fold c trains on all rows outside block c and tests on block c. Returns the
    folds of all repeats, one repeat after the other, and the left-out folds; None if ``cv`` is not a number of folds,
    or if there are too few rows.
    """
    if not (cv is None or is_number(cv)):
        return None
    classifier = is_classifier(estimator)
    stratified = is_stratified(y, classifier)
    wanted = default_folds(y, classifier=classifier, least_test_rows=least_test_rows)[0] if cv is None else int(cv)
    blocks = _blocks(repeats, y, stratified, random_state)
    if blocks is None or min(map(len, blocks)) < least_test_rows:
        return None
    remaining = [np.setdiff1d(np.arange(len(y)), block) for block in blocks]
    room = min(min(len(rows), max_rows or len(rows)) // least_test_rows for rows in remaining)
    if stratified:
        room = min(room, *(int(np.unique(y[rows], return_counts=True)[1].max()) for rows in remaining))
    if room < 2 or (room < wanted and cv is not None):
        return None
    folds = []
    for number, outside in enumerate(remaining):
        seed = random_state + number if isinstance(random_state, int | np.integer) else random_state
        rows = outside if max_rows is None else outside[sample_rows(y[outside], max_rows, stratified, seed)]
        splitter = _shuffled(min(wanted, room), y[rows], classifier, seed, 1, "cv")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class")
            folds += [Fold(rows[train], rows[test]) for train, test in splitter.split(rows, y[rows])]
    return tuple(folds), tuple(Fold(rows, block) for rows, block in zip(remaining, blocks, strict=True))


def sample_rows(
    y: AnyArray, count: int, stratified: bool, random_state: int | np.random.RandomState | None
) -> IntArray:
    """Return about ``count`` of the rows, ascending, with the classes or the values of the target in proportion.

    Of a rare class there are at least `LEAST_OF_CLASS` rows, or all it has.

    Examples
    --------
    >>> y = np.repeat([0, 1, 2], [900, 95, 5])
    >>> np.bincount(y[sample_rows(y, 200, True, 0)]).tolist()
    [180, 20, 5]
    """
    if count >= len(y):
        return np.arange(len(y))
    order = check_random_state(random_state).permutation(len(y))
    if not stratified:
        if y.ndim == 1:
            order = order[np.argsort(y[order], kind="stable")]
        return np.sort(order[np.linspace(0, len(y) - 1, count).round().astype(np.intp)])
    classes = np.unique(y, return_inverse=True)[1].reshape(-1)[order]
    chosen = []
    for label in range(int(classes.max()) + 1):
        members = order[classes == label]
        chosen.append(members[: max(-(-len(members) * count // len(y)), LEAST_OF_CLASS)])
    return np.sort(np.concatenate(chosen))


def _blocks(
    count: int, y: AnyArray, stratified: bool, random_state: int | np.random.RandomState | None
) -> list[IntArray] | None:
    """Divide the rows into blocks, stratified if the largest class has enough rows; None if there are too few rows."""
    if count < 2 or len(y) < 2 * count:
        return None
    stratified = stratified and int(np.unique(y, return_counts=True)[1].max()) >= count
    splitter = (StratifiedKFold if stratified else KFold)(count, shuffle=True, random_state=random_state)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        return [test.astype(np.intp) for _, test in splitter.split(y, y)]


def is_number(cv: object) -> TypeGuard[int]:
    """Return whether ``cv`` is a number of folds."""
    return isinstance(cv, int | np.integer) and not isinstance(cv, bool)


def is_splits(cv: object) -> bool:
    """Return whether ``cv`` is a splitter or a list of splits."""
    if isinstance(cv, str | bytes | Mapping | type):
        return False
    return isinstance(cv, Iterable) or hasattr(cv, "split")


def is_stratified(y: AnyArray, classifier: bool) -> bool:
    """Return whether folds are stratified by this target."""
    return classifier and type_of_target(y) in ("binary", "multiclass")


def partitions_in(cv: Splits | None, n_folds: int, repeats: int = 1) -> int:
    """Return how many repeats the ``n_folds`` folds are that were drawn from ``cv``.

    scikit-learn's repeated splitters have their own number of repeats, an integer is repeated ``repeats`` times, and a
    list of splits holds ``repeats`` repeats one after the other. Any other splitter gives one repeat.
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
            f"cv lists {n_folds} splits, which cannot be divided into repeats={repeats} repeats of equally many folds."
        )
    return repeats


def _shuffled(
    n_splits: int,
    y: AnyArray,
    classifier: bool,
    random_state: int | np.random.RandomState | None,
    repeats: int,
    setting: str,
) -> BaseCrossValidator:
    if n_splits < 2:
        raise DataError(f"{setting}={shown(n_splits)}: at least 2 folds are needed.")
    fewer = " Use fewer folds." if n_splits > 2 else ""
    if n_splits > len(y):
        raise DataError(
            f"{setting}={shown(n_splits)} folds need at least {shown(n_splits)} rows; got n_samples={len(y)}.{fewer}"
        )
    if is_stratified(y, classifier):
        largest = int(np.unique(y, return_counts=True)[1].max())
        if largest < n_splits:
            raise DataError(
                f"{setting}={n_splits} stratified folds need a class with at least {n_splits} rows; "
                f"the largest has {largest}.{fewer}"
            )
        if repeats > 1:
            return RepeatedStratifiedKFold(n_splits=n_splits, n_repeats=repeats, random_state=random_state)
        return StratifiedKFold(n_splits, shuffle=True, random_state=random_state)
    if repeats > 1:
        return RepeatedKFold(n_splits=n_splits, n_repeats=repeats, random_state=random_state)
    return KFold(n_splits, shuffle=True, random_state=random_state)


def _rows(indices: ArrayLike, n_rows: int, setting: str) -> IntArray:
    try:
        rows = np.asarray(indices)
    except ValueError as error:
        raise DataError(f"{setting} gave rows that are not a list of row indices: {error}") from error
    if rows.dtype == np.bool_:
        rows = np.flatnonzero(rows)
    if not rows.size:
        raise DataError(f"{setting} gave a fold without training or without test rows; every fold needs both.")
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise DataError(
            f"{setting} gave rows of dtype {rows.dtype} and shape {rows.shape}; expected a list of row indices (or one "
            "bool for each row)."
        )
    outside = rows[(rows < 0) | (rows >= n_rows)]
    if len(outside):
        raise DataError(f"{setting} names row {int(outside[0])}, but the table has {n_rows} rows.")
    return rows.astype(np.intp)


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
