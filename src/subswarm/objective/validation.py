"""Checks of tables, targets and groups, before anything is computed."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from inspect import Parameter, signature
from numbers import Integral
from typing import Protocol, TypeGuard

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, column_or_1d, get_tags
from sklearn.utils.multiclass import type_of_target

from subswarm._checks import shown
from subswarm._types import AnyArray, Estimator, FloatArray, IntArray
from subswarm.errors import DataError, DataTypeError, SettingError

__all__ = ["allows_nan", "check_groups", "check_sample_weight", "check_table", "check_target", "weights_argument"]

_ENCODE = (
    "Encode such columns first (OneHotEncoder, OrdinalEncoder), and pass feature_groups to keep the columns of one "
    "category together"
)


_NO_NUMBER = " (the argument must be a string or a number)"  # as float() says, and scikit-learn's checks expect


_REMEDIES = {
    "text": f"X has text in {{}}; expected numbers. {_ENCODE}.",
    "categories": f"X has categories in {{}}; the estimator would get them as plain numbers. {_ENCODE}. If the "
    "categories are numbers, convert them: astype(int) in pandas, cast(pl.Int64) in Polars.",
    "times": "X has dates, times or durations in {}; expected numbers. Convert them, for example to days since a "
    "date or to columns of year, month and weekday, or drop them.",
    "intervals": "X has intervals in {}; expected numbers. Use their middles or their order as numbers.",
    "nested": f"X has lists, dicts or other nested values in {{}}{_NO_NUMBER}; give each of their values a column "
    "of its own.",
    "complex": "Complex data not supported: X has complex numbers in {}; take their real or absolute values.",
    "huge": "X has numbers too large for a float64 in {}; scale or drop them.",
    "missing": "X has missing values (NA) among objects in {}; convert the column to numbers first, for example with "
    "astype('Float64').",
    "objects": f"X has objects that are not numbers in {{}}{_NO_NUMBER}; convert or drop them.",
}
"""The message for each kind of column, in the order in which the kinds are checked."""


_BY_DTYPE = {
    "categories": ("category", "categorical", "enum", "dictionary"),
    "times": ("date", "time", "duration", "period"),  # also datetime64, timestamp, timedelta64 and date32
    "intervals": ("interval",),
    "nested": ("list", "large_list", "fixed_size_list", "array", "struct", "map"),
    "complex": ("complex",),
}


_TO_LOOK_INTO = ("object", "str", "utf8", "large_str", "binary", "large_binary")


_TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


_NESTED = (list, tuple, dict, set, frozenset)
Names = Sequence[object] | None
"""The names of a frame's columns; None for an array."""


class _Frame(Protocol):
    """What this module uses of a frame of pandas or Polars, or a table of PyArrow."""

    columns: Sequence[object]
    shape: tuple[int, int]


def check_table(X: object, *, allow_nan: bool = False) -> FloatArray:
    """Return the table as a float64 array of shape (N, n); a DataError names the column that cannot be used."""
    if sparse.issparse(X):
        raise DataError(
            "X is a sparse matrix; expected a dense table, because a search reads every column thousands of times. "
            "Use X.toarray()."
        )
    if hasattr(X, "collect") and not hasattr(X, "shape"):
        raise DataError(f"X is a {type(X).__name__}, which is not computed yet; use X.collect().")
    table = X if _is_frame(X) else _as_two_dimensional(X)
    names = _column_names(table)
    rows, columns = table.shape
    if columns == 0:
        raise DataError(
            f"Found array with 0 feature(s) (shape={(rows, columns)}) while a minimum of 1 is required: X has no "
            "columns."
        )
    if rows < 2:
        raise DataError(f"X has n_samples={rows}; at least 2 rows are needed to train on some and test on others.")
    _check_columns(table, names)
    values = _as_floats(table)
    infinite = np.flatnonzero(np.isinf(values).any(axis=0))
    if len(infinite):
        raise DataError(f"X has infinite values (inf) in {_describe_columns(infinite, names)}; replace or drop them.")
    missing = np.flatnonzero(np.isnan(values).any(axis=0))
    if len(missing) and not allow_nan:
        raise DataError(
            f"X has missing values (NaN) in {_describe_columns(missing, names)}, and the estimator does not accept "
            "them. Impute them (a pipeline with SimpleImputer or KNNImputer), or use an estimator that accepts NaN."
        )
    return values


def _as_two_dimensional(X: object) -> AnyArray:
    try:
        array = np.asarray(X)
    except OverflowError as error:
        raise DataError("X has numbers too large for a float64; scale or drop them.") from error
    except (TypeError, ValueError) as error:
        raise DataError(
            f"X must be a table of shape (rows, features) in which every row has equally many entries: {error}"
        ) from error
    if array.dtype.kind == "c":
        raise DataError("Complex data not supported: X has complex numbers; take their real or absolute values.")
    if array.ndim != 2:
        raise DataError(
            f"X must be a table of shape (rows, features); got an array of shape {array.shape}. Reshape your data: "
            "X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one row."
        )
    return array


def _as_floats(X: _Frame | AnyArray) -> FloatArray:
    try:
        with np.errstate(over="ignore"):  # numbers that are too large become infinite, which is reported later
            table: FloatArray = check_array(
                X, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0, ensure_min_features=0
            )
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"X cannot be read as a table of numbers: {error}") from error
    return table


def allows_nan(estimator: Estimator) -> bool:
    """Return whether an estimator accepts missing values: by its tags, in a pipeline up to the step that imputes."""
    if not isinstance(estimator, Pipeline):
        return bool(get_tags(estimator).input_tags.allow_nan)
    for _, step in estimator.steps:
        if step is None or isinstance(step, str):
            continue
        if not allows_nan(step):
            return False
        if type(step).__module__.startswith("sklearn.impute"):
            return True
    return True


def check_target(y: object, n_rows: int, *, numeric: bool, multi_output: bool = False) -> AnyArray:
    """Return the target as an array with one entry for each row."""
    if y is None:
        raise DataError("y is None; this selector requires y to be passed, but the target y is None.")
    if sparse.issparse(y):
        raise DataError("y is sparse; expected a dense target. Use y.toarray().")
    target = _one_entry_per_row(y, multi_output)
    if len(target) != n_rows:
        raise DataError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows and y has {len(target)}; "
            "give one target for each row."
        )
    if target.dtype.kind == "c":
        raise DataError("Complex data not supported: y has complex numbers.")
    entries = target.ravel().tolist() if target.dtype == object else []
    if any(_is_missing(value) or value != value for value in entries):
        raise DataError("y has missing values (None, NaN or NA); drop those rows.")
    if target.dtype.kind in "mM" or any(map(_is_time, entries)):
        raise DataError(
            "y holds dates or times; a regressor needs numbers, such as days since a date, and a classifier needs "
            "classes as text or integers."
        )
    if numeric:
        target = _as_numbers(target)
    if target.dtype.kind == "f" and not np.isfinite(target).all():
        raise DataError("y has missing (NaN) or infinite (inf) values; drop those rows.")
    return target if numeric else _as_classes(target)


def _one_entry_per_row(y: object, multi_output: bool) -> AnyArray:
    try:
        target: AnyArray = np.asarray(y)
    except OverflowError as error:
        raise DataError("y has numbers too large for a float64; scale them.") from error
    except (TypeError, ValueError) as error:
        raise DataError(f"y must have one entry for each row: {error}") from error
    if target.ndim == 1 or (target.ndim == 2 and multi_output):
        return target
    if target.ndim == 2 and target.shape[1] == 1:
        return np.asarray(column_or_1d(target, warn=True))
    takes_one = "; the estimator expects one target for each row" if target.ndim == 2 else ""
    raise DataError(f"y should be a 1d array, got an array of shape {target.shape} instead{takes_one}.")


def _as_numbers(target: AnyArray) -> FloatArray:
    try:
        return target.astype(np.float64)
    except OverflowError:
        raise DataError("y has numbers too large for a float64; scale them.") from None
    except (TypeError, ValueError):
        raise DataError("y has entries that are not numbers; a regressor needs a numeric target.") from None


def _as_classes(target: AnyArray) -> AnyArray:
    """Return the target as classes that can be compared and sorted."""
    if target.dtype == object:
        target = _plain_classes(target)
    if target.dtype.kind == "S":
        raise DataError("y holds bytes, which scikit-learn does not accept as classes; decode them: y.astype(str).")
    try:
        kind = type_of_target(target)
    except (TypeError, ValueError) as error:
        raise DataError(f"y cannot be read as classes: {error}") from error
    if kind.startswith("continuous"):
        raise DataError(
            f"Unknown label type: {kind}. y holds continuous values, and the estimator is a classifier. Use a "
            "regressor, or bin the target."
        )
    if target.ndim == 1 and len(np.unique(target)) < 2:
        raise DataError("y has only one class; at least two classes are needed.")
    return target


def _plain_classes(target: AnyArray) -> AnyArray:
    """Return an object array of text unchanged, and one of integers or bools as an array of these; else a DataError."""
    kinds = {type(value) for value in target.ravel()}
    if all(issubclass(kind, str) for kind in kinds):
        return target
    if all(issubclass(kind, bool | np.bool_) for kind in kinds):
        return target.astype(bool)
    if all(issubclass(kind, Integral) and not issubclass(kind, bool) for kind in kinds):
        try:
            return target.astype(np.int64)
        except OverflowError:
            raise DataError("y has whole numbers beyond 64 bits; number the classes, or use text.") from None
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise DataError(
        f"y holds classes of type {names} in an array of objects; classes must be all text or all whole numbers. "
        "Convert them, for example with y.astype(str)."
    )


def weights_argument(estimator: Estimator) -> str | None:
    """Return the argument of ``fit`` that takes weights of rows, such as "svc__sample_weight", or None."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = None if last is None or isinstance(last, str) else weights_argument(last)
        return None if inner is None else f"{name}__{inner}"
    parameters = signature(estimator.fit).parameters
    takes_any = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values())
    return "sample_weight" if takes_any or "sample_weight" in parameters else None


def check_sample_weight(estimator: Estimator, params: Mapping[str, object]) -> None:
    """Raise SettingError for weights that the estimator cannot use, unless scikit-learn routes them."""
    given = [name for name in params if name == "sample_weight" or name.endswith("__sample_weight")]
    if not given or get_config().get("enable_metadata_routing", False):
        return
    expected, kind = weights_argument(estimator), type(estimator).__name__
    if expected is None:
        raise SettingError(
            f"{kind} cannot use {given[0]}: its fit method takes no weights. Leave them out, or use an estimator that "
            "takes weights."
        )
    if expected != "sample_weight" and "sample_weight" in given:
        raise SettingError(f"a {kind} needs the name of the step that takes the weights: pass {expected}=...")


def check_groups(groups: object, n_rows: int) -> None:
    """Raise DataError unless there is one group label for each row."""
    if groups is None:
        return
    try:
        shape = np.asarray(groups).shape
    except ValueError:  # lists of different lengths
        shape = ()
    if shape[:1] != (n_rows,):
        got = f"an array of shape {shape}" if shape else shown(groups)
        raise DataError(f"groups must hold one label for each of the {n_rows} rows; got {got}.")
    try:
        np.unique(np.asarray(groups))
    except TypeError as error:  # labels that cannot be sorted
        raise DataError(f"groups must be labels of one type, such as all numbers or all text: {error}.") from error


def _is_frame(X: object) -> TypeGuard[_Frame]:
    """Return whether a table has named columns with a dtype each: a frame of pandas or Polars, or a PyArrow table."""
    return hasattr(X, "columns") and hasattr(X, "shape") and (hasattr(X, "dtypes") or hasattr(X, "schema"))


def _column_names(X: _Frame | AnyArray) -> Names:
    if isinstance(X, np.ndarray):
        return None
    names: Sequence[object] = getattr(X, "column_names", X.columns)
    return names


def _describe_columns(columns: Sequence[int] | IntArray, names: Names, most: int = 5) -> str:
    """Return the columns for a message, by name or else by index; only the first few of many."""
    listed = [repr(str(names[j])) if names is not None else str(int(j)) for j in list(columns)[:most]]
    more = f" and {len(columns) - most} more" if len(columns) > most else ""
    return f"column{'s' if len(columns) > 1 else ''} {', '.join(listed)}{more}"


def _check_columns(X: _Frame | AnyArray, names: Names) -> None:
    """Raise DataError if columns hold anything but numbers, with what to do about it."""
    kinds = _array_kinds(X) if isinstance(X, np.ndarray) else _frame_kinds(X)
    for kind, sentence in _REMEDIES.items():
        columns = [position for position, found in kinds.items() if found == kind]
        if columns:
            error = DataTypeError if kind in ("nested", "objects") else DataError
            raise error(sentence.format(_describe_columns(columns, names)))


def _array_kinds(X: AnyArray) -> dict[int, str]:
    """Return what each column holds that is not numeric, by position."""
    if X.dtype.kind in "mM":
        return dict.fromkeys(range(X.shape[1]), "times")
    if X.dtype.kind not in "OUS":
        return {}
    return _known(enumerate(map(_kind_of_column, X.T)))


def _frame_kinds(X: _Frame) -> dict[int, str]:
    schema = getattr(X, "schema", None)
    dtypes: Iterable[object] = X.dtypes if hasattr(X, "dtypes") else getattr(schema, "types", ())
    return _known((position, _column_kind(X, position, str(dtype).lower())) for position, dtype in enumerate(dtypes))


def _column_kind(X: _Frame, position: int, dtype: str) -> str | None:
    for kind, beginnings in _BY_DTYPE.items():
        if dtype.startswith(beginnings):
            is_text = kind == "categories" and _kind_of_column(_column(X, position)) == "text"
            return "text" if is_text else kind
    return _kind_of_column(_column(X, position)) if dtype.startswith(_TO_LOOK_INTO) else None


def _column(X: _Frame, position: int) -> AnyArray:
    if hasattr(X, "iloc"):
        return np.asarray(X.iloc[:, position])
    column = getattr(X, "to_series", None) or getattr(X, "column", None)
    assert column is not None, "a frame gives access to its columns"
    return np.asarray(column(position))


def _known(kinds: Iterable[tuple[int, str | None]]) -> dict[int, str]:
    return {position: kind for position, kind in kinds if kind is not None}


def _kind_of_column(column: AnyArray) -> str | None:
    """Return the kind of the first entry that is not a number; None if all are numbers or None (a missing value)."""
    if column.dtype.kind not in "OUS":
        return None
    found = (_kind_of(value) for value in column if value is not None)  # None becomes NaN with the other numbers
    return next((kind for kind in found if kind is not None), None)


def _kind_of(value: object) -> str | None:
    """Return the kind of a value that is not a number, a key of `_REMEDIES`; None for a number."""
    if _is_missing(value):
        return "missing"
    if _is_time(value):
        return "times"
    if isinstance(value, _NESTED) or (isinstance(value, np.ndarray) and value.ndim > 0):
        return "nested"
    if isinstance(value, complex | np.complexfloating):
        return "complex"
    try:
        float(value)  # type: ignore[arg-type]
    except OverflowError:
        return "huge"
    except (TypeError, ValueError):
        return "text" if isinstance(value, str | bytes) else "objects"
    return None


def _is_time(value: object) -> bool:
    """Return whether a value is a date, a time, a duration or a period (of pandas)."""
    return isinstance(value, _TIMES) or type(value).__name__ == "Period"


def _is_missing(value: object) -> bool:
    """Return whether a value among objects is None, or pandas' NA or NaT, which cannot be compared."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")
