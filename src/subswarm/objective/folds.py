"""The folds of a search, which are drawn once."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.model_selection import (
    BaseCrossValidator,
    KFold,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    check_cv,
)
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target

from subswarm._checks import shown
from subswarm._types import AnyArray, Estimator, FloatArray, IntArray, Splits
from subswarm.engines.data import Fold
from subswarm.errors import DataError, SettingError, SubswarmWarning

__all__ = [
    "DEFAULT_FOLDS",
    "cross_fit_folds",
    "default_folds",
    "fixed_folds",
    "is_number",
    "is_splits",
    "is_stratified",
    "partitions_in",
    "sample_rows",
]

DEFAULT_FOLDS = 10
"""Number of folds if ``cv`` is not given and the rows allow it."""

TRAINING_ROWS = 4
"""How many times ``max_rows`` the models are trained on whose losses are measured on the left-out rows."""

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
    about ``max_rows`` of them. The left-out fold c trains on the rows outside block c, or on about `TRAINING_ROWS`
    times ``max_rows`` of them, and tests on block c, or on about ``max_rows`` of it. Returns the folds of all repeats,
    one repeat after the other, and the left-out folds; None if ``cv`` is not a number of folds, or if there are too few
    rows.
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

    def sampled(rows: IntArray, times: int, seed: int | np.random.RandomState | None) -> IntArray:
        return rows if max_rows is None else rows[sample_rows(y[rows], times * max_rows, stratified, seed)]

    folds, left_out = [], []
    for number, (outside, block) in enumerate(zip(remaining, blocks, strict=True)):
        seed = random_state + number if isinstance(random_state, int | np.integer) else random_state
        rows = sampled(outside, 1, seed)
        left_out.append(Fold(sampled(outside, TRAINING_ROWS, seed), sampled(block, 1, seed)))
        splitter = _shuffled(min(wanted, room), y[rows], classifier, seed, 1, "cv")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class")
            folds += [Fold(rows[train], rows[test]) for train, test in splitter.split(rows, y[rows])]
    return tuple(folds), tuple(left_out)


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
