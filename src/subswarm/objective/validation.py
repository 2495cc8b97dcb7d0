"""Checks of estimators, tables, targets and groups, before anything is computed."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from numbers import Integral
from typing import Any, Protocol, TypeGuard, cast

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import check_array, column_or_1d, get_tags
from sklearn.utils.multiclass import type_of_target

from subswarm._checks import shown
from subswarm._types import AnyArray, Estimator, FloatArray, IntArray
from subswarm.engines.data import cloneable, is_frame, is_table_frame, library_of, take_columns
from subswarm.errors import DataError, DataTypeError, SettingError

__all__ = [
    "CheckedTable",
    "accepted_kinds",
    "allows_nan",
    "check_estimator",
    "check_groups",
    "check_metadata",
    "check_sample_weight",
    "check_table",
    "check_target",
    "clone_estimator",
    "read_table",
    "weights_argument",
]

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

_CATEGORIES_INSTEAD = {
    "text": "X has text in {}; expected numbers or categories. Make the text categories: astype('category') in pandas, "
    "cast(pl.Categorical) in Polars.",
}
"""The messages that differ if the estimator uses categories."""

_OF_LIBRARIES = {
    "lightgbm": frozenset(["categories"]),
    "xgboost": frozenset(["categories"]),
    "catboost": frozenset(["categories", "text", "nested"]),
    "subswarm": frozenset(),
}
"""The kinds that estimators of other libraries use."""

_PASSING_ON = (CalibratedClassifierCV, GridSearchCV, RandomizedSearchCV, TransformedTargetRegressor)
"""Estimators that pass the table on to the one inside them."""


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


@dataclass(frozen=True, eq=False)
class CheckedTable:
    """A table that has been checked.

    Attributes
    ----------
    values : float array of shape (N, n): the numbers, and codes for categories and text; or a sparse matrix
    frame : the frame of pandas or Polars that was given, or None
    is_plain : whether the table has nothing but numbers
    """

    values: FloatArray
    frame: object | None = None
    is_plain: bool = True


def read_table(X: object, estimator: Estimator) -> CheckedTable:
    """Check a table for an estimator: a frame and a sparse matrix stay as they are, anything else is an array.

    A frame may have columns that are not numbers if the estimator can use them, and missing values if it accepts them.
    A DataError names the columns that cannot be used.
    """
    if sparse.issparse(X):
        return CheckedTable(_check_sparse(X, estimator), is_plain=False)
    if not is_frame(X) or not _has_usable_names(X):
        return CheckedTable(check_table(X, allow_nan=allows_nan(estimator)))
    assert _is_frame(X)
    kinds = _frame_kinds(X, as_declared=True) if X.shape[1] else {}
    accepted = accepted_kinds(estimator)
    if not any(kind in accepted for kind in kinds.values()):
        return CheckedTable(check_table(X, allow_nan=allows_nan(estimator)), frame=X)
    _check_shape(X.shape)
    if not hasattr(X, "iloc") and _library(estimator) == "lightgbm":
        raise DataError(  # LightGBM reads it through Arrow, and ends the process
            f"X is a Polars frame with categories in {_describe_columns(list(kinds), _column_names(X))}, which "
            "LightGBM cannot read; use X.to_pandas()."
        )
    refused = {place: kind for place, kind in kinds.items() if kind not in accepted}
    refused = {place: kind for place, kind in _frame_kinds(X).items() if place in refused}
    _check_kinds(refused, _column_names(X), categories_allowed="categories" in accepted)
    rest = [place for place in range(X.shape[1]) if place not in kinds]
    values = np.empty(X.shape)
    for place in kinds:
        values[:, place] = _codes(_column(X, place))
    if rest:
        chosen = np.isin(np.arange(X.shape[1]), rest)
        values[:, rest] = check_table(take_columns(X, chosen), allow_nan=allows_nan(estimator))
    return CheckedTable(values, frame=X, is_plain=False)


def _has_usable_names(X: object) -> bool:
    """Return whether scikit-learn accepts the names of a frame's columns: all are text, or none is."""
    return len({isinstance(name, str) for name in getattr(X, "columns", ())}) < 2


def _check_sparse(X: Any, estimator: Estimator) -> FloatArray:
    """Return a sparse matrix by columns, which are what is selected; a DataError unless the estimator accepts it."""
    if not get_tags(estimator).input_tags.sparse:
        raise DataError(
            f"X is a sparse matrix, which {type(estimator).__name__} does not accept; expected a dense table. Use "
            "X.toarray()."
        )
    table = X.tocsc()
    _check_shape(table.shape)
    if table.dtype.kind not in "biuf":
        raise DataError(f"X is a sparse matrix of dtype {table.dtype}; expected numbers.")
    if np.isinf(table.data).any():
        raise DataError("X has infinite values (inf); replace or drop them.")
    if np.isnan(table.data).any() and not allows_nan(estimator):
        raise DataError(
            "X has missing values (NaN), and the estimator does not accept them. Use an estimator that accepts NaN."
        )
    return cast(FloatArray, table)


def _codes(column: AnyArray) -> FloatArray:
    """Return a number for each value of a column that is not numbers, in sorted order if possible; NaN if missing."""
    if column.dtype.kind in "mM":
        times = column.astype(column.dtype.str.partition("[")[0] + "[us]")
        return np.where(np.isnat(times), np.nan, times.astype(np.int64).astype(np.float64))
    missing = np.array([_is_missing(value) or _differs_from_itself(value) for value in column], dtype=bool)
    codes = np.full(len(column), np.nan)
    codes[~missing] = np.unique([repr(value) for value in column[~missing]], return_inverse=True)[1].reshape(-1)
    return codes


def _differs_from_itself(value: object) -> bool:
    """Return whether a value is NaN; a list or an array in a cell is not."""
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return False


def accepted_kinds(estimator: Estimator) -> frozenset[str]:
    """Return which kinds of columns besides numbers, keys of `_REMEDIES`, an estimator uses as they are.

    Estimators of other libraries are expected to know what they accept, and so are transformers for columns.
    """
    inner = _inner(estimator)
    if inner is not estimator:
        return accepted_kinds(inner)
    library = _library(estimator)
    if library != "sklearn":
        return _OF_LIBRARIES.get(library, frozenset(_REMEDIES))
    if isinstance(estimator, ColumnTransformer | FeatureUnion | FunctionTransformer):
        return frozenset(_REMEDIES)
    if isinstance(estimator, HistGradientBoostingClassifier | HistGradientBoostingRegressor):
        return frozenset() if estimator.categorical_features is None else frozenset(["categories"])
    tags = get_tags(estimator).input_tags
    return frozenset(_REMEDIES) if tags.categorical or tags.string else frozenset()


def _inner(estimator: Estimator) -> Estimator:
    """Return the estimator that sees the table first: the first step of a pipeline, or one inside another."""
    if isinstance(estimator, Pipeline):
        return cast(Estimator, next((step for _, step in estimator.steps if hasattr(step, "fit")), estimator))
    if type(estimator).__module__.startswith("subswarm.") or isinstance(estimator, _PASSING_ON):
        inner = getattr(estimator, "estimator", getattr(estimator, "regressor", None))
        return cast(Estimator, inner) if hasattr(inner, "fit") else estimator
    return estimator


def _library(estimator: Estimator) -> str:
    """Return the library of the estimator that sees the table first."""
    inner = _inner(estimator)
    return library_of(estimator) if inner is estimator else _library(inner)


def _check_shape(shape: tuple[int, int]) -> None:
    rows, columns = shape
    if columns == 0:
        raise DataError(
            f"Found array with 0 feature(s) (shape={(rows, columns)}) while a minimum of 1 is required: X has no "
            "columns."
        )
    if rows < 2:
        raise DataError(f"X has n_samples={rows}; at least 2 rows are needed to train on some and test on others.")


def check_table(X: object, *, allow_nan: bool = False) -> FloatArray:
    """Return the table as a float64 array of shape (N, n); a DataError names the column that cannot be used."""
    if sparse.issparse(X):
        raise DataError("X is a sparse matrix; expected a dense table. Use X.toarray().")
    if hasattr(X, "collect") and not hasattr(X, "shape"):
        raise DataError(f"X is a {type(X).__name__}, which is not computed yet; use X.collect().")
    table = X if _is_frame(X) else _as_two_dimensional(X)
    names = _column_names(table)
    _check_shape(table.shape)
    _check_kinds(_array_kinds(table) if isinstance(table, np.ndarray) else _frame_kinds(table), names)
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
    if isinstance(estimator, ColumnTransformer | FeatureUnion):
        return True  # which of its transformers get the missing values is known only when it is fitted
    if not isinstance(estimator, Pipeline):
        return bool(get_tags(estimator).input_tags.allow_nan)
    for _, step in estimator.steps:
        if step is None or isinstance(step, str):
            continue
        if not allows_nan(step):
            return False
        if type(step).__module__.startswith("sklearn.impute") or isinstance(step, ColumnTransformer | FeatureUnion):
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
    fixed = [name for name in params if name.rpartition("__")[2] == "eval_set"]
    if fixed:
        raise SettingError(
            f"{fixed[0]} has rows for one set of columns, and a search fits many; use early_stopping=50, say, which "
            "draws these rows from the training rows of each fold."
        )
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
    return is_table_frame(X)


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


def _check_kinds(kinds: Mapping[int, str], names: Names, *, categories_allowed: bool = False) -> None:
    """Raise DataError if columns hold anything but numbers, with what to do about it."""
    for kind, sentence in (_REMEDIES | (_CATEGORIES_INSTEAD if categories_allowed else {})).items():
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


def _frame_kinds(X: _Frame, *, as_declared: bool = False) -> dict[int, str]:
    """Return what each column holds that is not numeric; categories of text are text unless ``as_declared``."""
    schema = getattr(X, "schema", None)
    dtypes: Iterable[object] = X.dtypes if hasattr(X, "dtypes") else getattr(schema, "types", ())
    return _known(
        (position, _column_kind(X, position, str(dtype).lower(), as_declared)) for position, dtype in enumerate(dtypes)
    )


def _column_kind(X: _Frame, position: int, dtype: str, as_declared: bool) -> str | None:
    for kind, beginnings in _BY_DTYPE.items():
        if dtype.startswith(beginnings):
            is_text = kind == "categories" and not as_declared and _kind_of_column(_column(X, position)) == "text"
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


def clone_estimator(estimator: Estimator) -> Estimator:
    """Return an unfitted copy of the estimator; raise DataError if scikit-learn cannot make one."""
    try:
        copy: Estimator = clone(cloneable(estimator))
    except (RecursionError, RuntimeError, TypeError) as error:
        raise DataError(f"estimator cannot be cloned by scikit-learn: {error}") from error
    return copy


def check_estimator(estimator: object) -> None:
    """Raise DataError unless the estimator is an object with a fit method and scikit-learn's tags."""
    if not hasattr(estimator, "fit") or isinstance(estimator, type):
        raise DataError(
            f"estimator must be a scikit-learn estimator object with a fit method; got {shown(estimator)}. "
            "Pass an instance, such as GaussianNB()."
        )
    try:
        get_tags(estimator), allows_nan(estimator)  # type: ignore[arg-type]
    except Exception as error:  # a class without tags, or settings that tags cannot be computed from
        raise DataError(
            f"scikit-learn cannot read the tags of {shown(estimator)}: {str(error).rstrip('.')}. An estimator must "
            "derive from sklearn.base.BaseEstimator, and its settings must be valid."
        ) from error


def check_metadata(params: object) -> None:
    """Raise SettingError unless the metadata are a dict of names and values, or None."""
    if params is not None and not (isinstance(params, Mapping) and all(isinstance(name, str) for name in params)):
        raise SettingError(
            f"params must be a dict of metadata by name, such as sample_weight, or None; got {shown(params)}."
        )
