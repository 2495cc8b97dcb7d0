"""Your own table: named columns become numbers and a target, or a sentence says which one is in the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subswarm.core.errors import DataError
from subswarm.core.types import FloatArray
from subswarm.datasets.impute import impute_nearest

__all__ = ["Column", "Table", "make_table"]

_MOST_CLASSES = 20


@dataclass(frozen=True, eq=False)
class Column:
    """A column as it was read.

    Attributes
    ----------
    name : its name
    values : float array (NaN: missing), or object array of str (None: missing)
    unusable : what the column holds where it is neither numbers nor text, such as "dates"
    is_flag : whether the numbers are truth values
    """

    name: str
    values: NDArray[Any]
    unusable: str | None = None
    is_flag: bool = False

    @property
    def is_text(self) -> bool:
        return self.values.dtype == object

    @property
    def missing(self) -> NDArray[np.bool_]:
        if self.is_text:
            return np.array([value is None for value in self.values], dtype=bool)
        return np.asarray(np.isnan(self.values))


@dataclass(frozen=True, eq=False)
class Table:
    """A table of numbers and its target.

    Attributes
    ----------
    name : where it comes from
    X : float array of shape (N, n), without missing values
    y : array of shape (N,): text, truth values, whole numbers or floats, as in the source
    feature_names : n names; the columns of an encoded text column are called ``column=value``
    feature_groups : lists of column indices that belong together (the columns of one encoded text column)
    target_name : name of the target
    task : "classification" or "regression", as the target looks
    imputed : how many cells were imputed
    """

    name: str
    X: FloatArray
    y: NDArray[Any]
    feature_names: tuple[str, ...]
    feature_groups: list[list[int]]
    target_name: str
    task: str
    imputed: int

    def __repr__(self) -> str:
        rows, features = self.X.shape
        return f"Table({self.name}: {rows} rows, {features} features, {self.task} of {self.target_name!r})"


def make_table(
    name: str,
    columns: Sequence[Column],
    target: str,
    *,
    drop: Collection[str] = (),
    impute: bool = False,
    one_hot: bool = False,
    max_categories: int = 100,
) -> Table:
    """A table from its columns; DataError names the columns that stand in the way and says what to do.

    Parameters
    ----------
    name : str
        Where the columns come from.
    columns : sequence of Column
        All columns, the target among them.
    target : str
        Name of the target column.
    drop : names of columns to leave out
    impute : bool, default=False
        Fill missing cells from the nearest row that has a value there.
    one_hot : bool, default=False
        Turn each text column into one 0/1 column a value, kept together as a group; a text column with two
        values becomes one 0/1 column.
    max_categories : int, default=100
        A text column with more values than this is refused: it is more of a name than a category.
    """
    _check_names(name, columns, target, drop)
    chosen = next(column for column in columns if column.name == target)
    features = [column for column in columns if column.name != target and column.name not in drop]
    if not features:
        raise DataError(f"{name} has no column besides the target {target!r}; at least one feature is needed.")
    if not len(chosen.values):
        raise DataError(f"{name} has column names and no rows; at least 2 rows are needed.")
    y, task = _target(name, chosen)
    _check_features(name, features, impute=impute, one_hot=one_hot, max_categories=max_categories)
    encoded = [_encoded(column) for column in features]
    X = np.column_stack([block for block, _ in encoded])
    missing = sum(int(column.missing.sum()) for column in features)
    return Table(
        name=name,
        X=impute_nearest(X),
        y=y,
        feature_names=_feature_names(name, [label for _, labels in encoded for label in labels]),
        feature_groups=_groups([len(labels) for _, labels in encoded]),
        target_name=target,
        task=task,
        imputed=missing,
    )


def _check_names(name: str, columns: Sequence[Column], target: str, drop: Collection[str]) -> None:
    counts = Counter(column.name for column in columns)
    twice = [column for column, count in counts.items() if count > 1]
    if twice:
        raise DataError(f"{name} has {_listed(twice)} more than once; give every column a name of its own.")
    for wanted, role in [(target, "target"), *((column, "dropped") for column in drop)]:
        if wanted not in counts:
            raise DataError(f"{name} has no column {wanted!r} (the {role} one). {_suggestion(wanted, list(counts))}")
    if target in drop:
        raise DataError(f"{target!r} is both the target and dropped; choose one.")


def _suggestion(wanted: str, names: list[str]) -> str:
    lowered = {name.lower(): name for name in names}
    close = get_close_matches(wanted.lower(), lowered, n=3)
    if close:
        return f"Did you mean {' or '.join(repr(lowered[name]) for name in close)}?"
    return f"It has {_listed(names, most=10)}."


def _target(name: str, column: Column) -> tuple[NDArray[Any], str]:
    """The target's values and the task they look like."""
    if column.unusable:
        raise DataError(f"the target {column.name!r} of {name} holds {column.unusable}; text or numbers are wanted.")
    missing = np.flatnonzero(column.missing)
    if len(missing):
        shown = ", ".join(str(row + 1) for row in missing[:5]) + (", ..." if len(missing) > 5 else "")
        raise DataError(
            f"the target {column.name!r} of {name} lacks {len(missing)} of {len(column.values)} values (in row "
            f"{shown}, the first being 1); drop those rows, since a target cannot be made up."
        )
    if column.is_text:
        return column.values.astype(str), "classification"
    if column.is_flag:
        return column.values.astype(bool), "classification"
    if not np.isfinite(column.values).all():
        raise DataError(f"the target {column.name!r} of {name} has infinite values; replace or drop those rows.")
    if (column.values == np.round(column.values)).all() and np.abs(column.values).max() < 2**53:
        few = len(np.unique(column.values)) <= min(_MOST_CLASSES, len(column.values) // 2)
        return column.values.astype(np.int64), "classification" if few else "regression"
    return column.values, "regression"


def _check_features(name: str, features: Sequence[Column], *, impute: bool, one_hot: bool, max_categories: int) -> None:
    """Refuse, with what to do, columns that are neither numbers nor wanted to be made into numbers."""

    def refuse(is_bad: Callable[[Column], Any], what: str, remedy: str) -> None:
        bad = [column.name for column in features if is_bad(column)]
        if bad:
            raise DataError(f"{name} has {what} in {_listed(bad)}. {remedy}")

    for kind in dict.fromkeys(column.unusable for column in features if column.unusable):
        refuse(
            partial(_holds, kind),
            kind,
            "Numbers are wanted: drop them (drop=..., --drop), or turn them into numbers first.",
        )
    refuse(
        lambda column: column.missing.all(),
        "no value at all",
        "Such a column tells nothing: drop it (drop=..., --drop).",
    )
    refuse(
        lambda column: not column.is_text and np.isinf(column.values).any(),
        "infinite values",
        "Replace them, or drop these columns.",
    )
    if not one_hot:
        refuse(
            lambda column: column.is_text,
            "text",
            "Numbers are wanted: encode them (one_hot=True, --one-hot), or drop them (drop=..., --drop).",
        )
    refuse(
        lambda column: column.is_text and len(_categories(column)) > max_categories,
        f"more than {max_categories} different texts",
        "That is more of a name than a category: drop them (drop=..., --drop), or raise max_categories.",
    )
    if not impute:
        refuse(
            lambda column: column.missing.any(),
            f"{sum(int(column.missing.sum()) for column in features)} missing cells",
            "Fill them from the nearest row (impute=True, --impute), or drop the rows or columns.",
        )


def _holds(kind: str, column: Column) -> bool:
    return column.unusable == kind


def _encoded(column: Column) -> tuple[FloatArray, list[str]]:
    """A column as numbers of shape (N, k), and its k names; a missing text is missing in all its columns."""
    if not column.is_text:
        return column.values.astype(np.float64)[:, None], [column.name]
    categories = _categories(column)
    shown = categories[1:] if len(categories) == 2 else categories
    block = np.array([[float(value == category) for category in shown] for value in column.values])
    block[column.missing] = np.nan
    return block, [f"{column.name}={category}" for category in shown]


def _categories(column: Column) -> list[str]:
    return sorted({value for value in column.values if value is not None})


def _feature_names(name: str, names: list[str]) -> tuple[str, ...]:
    twice = [column for column, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(f"{name} gets {_listed(twice)} more than once when encoded; rename the columns.")
    return tuple(names)


def _groups(widths: Sequence[int]) -> list[list[int]]:
    """The column indices of every block wider than one."""
    ends = np.cumsum(widths)
    return [list(range(end - width, end)) for width, end in zip(widths, ends.tolist(), strict=True) if width > 1]


def _listed(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"column{'s' if len(names) > 1 else ''} {', '.join(map(repr, names[:most]))}{more}"
