"""Tables from named columns: features as numbers, and a target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from subswarm._checks import suggest
from subswarm._types import AnyArray, BoolArray, FloatArray
from subswarm.datasets._impute import impute_nearest
from subswarm.errors import DataError

__all__ = ["Column", "Table", "make_table"]

_MOST_CLASSES = 20


@dataclass(frozen=True, eq=False)
class Column:
    """A column of the source.

    Attributes
    ----------
    name : name of the column
    values : float array (NaN: missing), or object array of str (None: missing)
    unusable : description of the content if it is neither numbers nor text, such as "dates"
    is_flag : whether the values are True and False
    """

    name: str
    values: AnyArray
    unusable: str | None = None
    is_flag: bool = False

    @property
    def is_text(self) -> bool:
        return self.values.dtype == object

    @property
    def missing(self) -> BoolArray:
        if self.is_text:
            return np.array([value is None for value in self.values], dtype=bool)
        return np.asarray(np.isnan(self.values))


@dataclass(frozen=True, eq=False)
class Table:
    """A table of numbers and its target.

    Attributes
    ----------
    name : name of the source
    X : float array of shape (N, n), without missing values
    y : array of shape (N,): text, booleans, integers or floats, as in the source
    feature_names : n names; the columns of an encoded text column are named ``column=value``
    feature_groups : lists of columns that are selected together (those of one encoded text column)
    target_name : name of the target
    task : "classification" or "regression", decided from the target
    imputed : number of imputed cells
    notes : remarks on how the source was read
    """

    name: str
    X: FloatArray
    y: AnyArray
    feature_names: tuple[str, ...]
    feature_groups: list[list[int]]
    target_name: str
    task: str
    imputed: int
    notes: tuple[str, ...] = ()

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
    """Make a table from its columns; DataError names columns that cannot be used and says what to do.

    Parameters
    ----------
    name : str
        Name of the source, for messages.
    columns : sequence of Column
        All columns, including the target.
    target : str
        Name of the target column.
    drop : names of columns to leave out
    impute : bool, default=False
        Fill missing cells from the nearest row that has a value there.
    one_hot : bool, default=False
        Encode each text column as one 0/1 column for each value, grouped in ``feature_groups``. A text column with two
        values becomes one 0/1 column.
    max_categories : int, default=100
        Most values that a text column may have.
    """
    _check_names(name, columns, target, drop)
    chosen = next(column for column in columns if column.name == target)
    features = [column for column in columns if column.name != target and column.name not in drop]
    if not features:
        raise DataError(f"{name} has no column besides the target {target!r}; at least one feature is needed.")
    if not len(chosen.values):
        raise DataError(f"{name} has column names but no rows; at least 2 rows are needed.")
    y, task = _target(name, chosen)
    _check_features(name, features, impute=impute, one_hot=one_hot, max_categories=max_categories)
    encoded = [_encode(column) for column in features]
    X = np.column_stack([block for block, _ in encoded])
    missing = sum(int(column.missing.sum()) for column in features)
    return Table(
        name=name,
        X=_impute(name, X),
        y=y,
        feature_names=_feature_names(name, [label for _, labels in encoded for label in labels]),
        feature_groups=_groups([len(labels) for _, labels in encoded]),
        target_name=target,
        task=task,
        imputed=missing,
    )


def _impute(name: str, X: FloatArray) -> FloatArray:
    try:
        return impute_nearest(X)
    except DataError as error:
        raise DataError(f"in {name}, {error}") from error


def _check_names(name: str, columns: Sequence[Column], target: str, drop: Collection[str]) -> None:
    counts = Counter(column.name for column in columns)
    twice = [column for column, count in counts.items() if count > 1]
    if twice:
        raise DataError(f"{name} has {_listed(twice)} more than once; column names must be unique.")
    for asked, role in [(target, "target"), *((column, "dropped") for column in drop)]:
        if asked not in counts:
            hint = suggest(asked, counts, most=3) or f" It has {_listed(list(counts), most=10)}."
            raise DataError(f"{name} has no column {asked!r} (the {role} one).{hint}")
    if target in drop:
        raise DataError(f"{target!r} is both the target and dropped; choose one.")


def _target(name: str, column: Column) -> tuple[AnyArray, str]:
    """Return the values of the target, and the task decided from them."""
    if column.unusable:
        raise DataError(f"the target {column.name!r} of {name} holds {column.unusable}; expected text or numbers.")
    missing = np.flatnonzero(column.missing)
    if len(missing):
        shown = ", ".join(str(row + 1) for row in missing[:5]) + (", ..." if len(missing) > 5 else "")
        raise DataError(
            f"the target {column.name!r} of {name} lacks {len(missing)} of {len(column.values)} values (in row "
            f"{shown}, counted from 1); drop those rows, since targets are not imputed."
        )
    if column.is_text:
        return column.values.astype(str), "classification"
    if column.is_flag:
        return column.values.astype(bool), "classification"
    if not np.isfinite(column.values).all():
        raise DataError(
            f"the target {column.name!r} of {name} has infinite values, or numbers too large for a "
            "float; replace or drop those rows."
        )
    if (column.values == np.round(column.values)).all() and np.abs(column.values).max() < 2**53:
        few = len(np.unique(column.values)) <= min(_MOST_CLASSES, len(column.values) // 2)
        return column.values.astype(np.int64), "classification" if few else "regression"
    return column.values, "regression"


def _check_features(name: str, features: Sequence[Column], *, impute: bool, one_hot: bool, max_categories: int) -> None:
    """Raise DataError for columns that are not numbers and are not to be converted to numbers."""

    def refuse(is_bad: Callable[[Column], bool], what: str, remedy: str) -> None:
        bad = [column.name for column in features if is_bad(column)]
        if bad:
            raise DataError(f"{name} has {what} in {_listed(bad)}. {remedy}")

    for kind in dict.fromkeys(column.unusable for column in features if column.unusable):
        refuse(
            partial(_holds, kind),
            kind,
            "Features must be numbers: drop these columns (drop=..., --drop), or convert them first.",
        )
    refuse(
        lambda column: bool(column.missing.all()),
        "no value at all",
        "Drop such columns (drop=..., --drop).",
    )
    refuse(
        lambda column: not column.is_text and bool(np.isinf(column.values).any()),
        "infinite values, or numbers too large for a float,",
        "Replace them, or drop these columns.",
    )
    if not one_hot:
        refuse(
            lambda column: column.is_text,
            "text",
            f"{_odd_cells(features)}Features must be numbers: encode these columns (one_hot=True, --one-hot), or drop "
            "them (drop=..., --drop).",
        )
    refuse(
        lambda column: column.is_text and len(_categories(column)) > max_categories,
        f"more than {max_categories} different texts",
        "Drop these columns (drop=..., --drop), or raise max_categories.",
    )
    if not impute:
        refuse(
            lambda column: bool(column.missing.any()),
            f"{sum(int(column.missing.sum()) for column in features)} missing cells",
            "Fill them from the nearest row (impute=True, --impute), or drop the rows or columns.",
        )


def _odd_cells(features: Sequence[Column]) -> str:
    """Name the cell that makes a column text although most of its cells are numbers."""
    for column in features:
        odd = [row for row, value in enumerate(column.values) if not _is_number(value)] if column.is_text else []
        if odd and len(odd) <= len(column.values) // 2:
            row = odd[0]
            return f"{column.name!r} is text because of {column.values[row][:40]!r} in row {row + 1}. "
    return ""


def _is_number(value: str | None) -> bool:
    try:
        float(value or 0)
    except ValueError:
        return False
    return True


def _holds(kind: str, column: Column) -> bool:
    return column.unusable == kind


def _encode(column: Column) -> tuple[FloatArray, list[str]]:
    """Return a column as numbers of shape (N, k), and its k names. Missing text is missing in all its columns."""
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
    """Return the column indices of each block wider than one."""
    ends = np.cumsum(widths)
    return [list(range(end - width, end)) for width, end in zip(widths, ends.tolist(), strict=True) if width > 1]


def _listed(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"column{'s' if len(names) > 1 else ''} {', '.join(map(repr, names[:most]))}{more}"
