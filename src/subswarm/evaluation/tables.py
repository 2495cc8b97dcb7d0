"""Bad tables and targets get a clear sentence before anything is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, column_or_1d, get_tags
from sklearn.utils.multiclass import type_of_target

from subswarm.core.errors import DataError
from subswarm.core.types import FloatArray

__all__ = ["allows_nan", "check_table", "check_target"]


def check_table(X: Any, *, allow_nan: bool = False) -> FloatArray:
    """The table as a float64 array of shape (N, n), or a DataError that says which column is at fault."""
    if sparse.issparse(X):
        raise DataError(
            "X is a sparse matrix; a dense table is wanted, since a search reads every column thousands of times. "
            "Use X.toarray()."
        )
    names = getattr(X, "columns", None)
    if names is None:
        X = np.asarray(X)
        if X.dtype.kind == "c":
            raise DataError("Complex data not supported: X has complex numbers; take their real or absolute values.")
        if X.ndim != 2:
            raise DataError(
                f"X must be a table of shape (rows, features); got an array of shape {X.shape}. Reshape your data: "
                "X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one row."
            )
    strings = _text_columns(X)
    if strings:
        shown = _named(strings, names)
        raise DataError(
            f"X has text in {shown}; numbers are wanted. Encode such columns first (OneHotEncoder, OrdinalEncoder), "
            "and pass feature_groups to keep the columns of one category together."
        )
    table: FloatArray = check_array(
        X, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0, ensure_min_features=0
    )
    rows, columns = table.shape
    if columns == 0:
        raise DataError(
            f"Found array with 0 feature(s) (shape={table.shape}) while a minimum of 1 is required: X has no columns."
        )
    if rows < 2:
        raise DataError(f"X has n_samples={rows}; at least 2 rows are needed to train on some and test on others.")
    infinite = np.flatnonzero(np.isinf(table).any(axis=0))
    if len(infinite):
        raise DataError(f"X has infinite values (inf) in {_named(infinite, names)}; replace or drop them.")
    missing = np.flatnonzero(np.isnan(table).any(axis=0))
    if len(missing) and not allow_nan:
        raise DataError(
            f"X has missing values (NaN) in {_named(missing, names)}, and the estimator does not accept them. Impute "
            "them (a pipeline with SimpleImputer or KNNImputer), or use an estimator that takes NaN."
        )
    return table


def allows_nan(estimator: Any) -> bool:
    """Whether an estimator takes missing values: by its tags, and for a pipeline up to the step that imputes them."""
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


def check_target(y: Any, n_rows: int, *, numeric: bool, multi_output: bool = False) -> NDArray[Any]:
    """The target as an array with one entry a row."""
    if y is None:
        raise DataError("y is None; this selector requires y to be passed, but the target y is None.")
    if sparse.issparse(y):
        raise DataError("y is sparse; a dense target is wanted. Use y.toarray().")
    target: NDArray[Any] = np.asarray(y)
    if target.ndim != 2 or not multi_output:
        target = column_or_1d(target, warn=True)
    if len(target) != n_rows:
        raise DataError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows and y has {len(target)}; "
            "give one target a row."
        )
    if target.dtype.kind == "c":
        raise DataError("Complex data not supported: y has complex numbers.")
    if numeric:
        try:
            target = target.astype(np.float64)
        except (TypeError, ValueError):
            raise DataError("y has entries that are not numbers; a regressor needs a numeric target.") from None
    if target.dtype.kind == "f" and not np.isfinite(target).all():
        raise DataError("y has missing (NaN) or infinite (inf) values; drop those rows.")
    if target.dtype == object and any(value is None or value != value for value in target.ravel()):
        raise DataError("y has missing values (None or NaN); drop those rows.")
    if not numeric:
        _check_classes(target)
    return target


def _check_classes(target: NDArray[Any]) -> None:
    kind = type_of_target(target)
    if kind.startswith("continuous"):
        raise DataError(
            f"Unknown label type: {kind}. y holds continuous values, and the estimator is a classifier. Use a "
            "regressor, or bin the target."
        )
    if target.ndim == 1 and len(np.unique(target.astype(str) if target.dtype == object else target)) < 2:
        raise DataError("y has only one class; at least two classes are needed to tell them apart.")


def _text_columns(X: Any) -> list[int]:
    """Columns with entries that are text and no number."""
    if hasattr(X, "columns"):
        columns = [np.asarray(X[name]) for name in X.columns]
    else:
        if X.dtype.kind not in "OUS":
            return []
        columns = list(X.T)
    return [position for position, column in enumerate(columns) if column.dtype.kind in "OUS" and _has_text(column)]


def _has_text(column: NDArray[Any]) -> bool:
    for value in column:
        if isinstance(value, str | bytes):
            try:
                float(value)
            except ValueError:
                return True
    return False


def _named(columns: Any, names: Any, most: int = 5) -> str:
    shown = [repr(str(names[j])) if names is not None else str(int(j)) for j in list(columns)[:most]]
    more = f" and {len(columns) - most} more" if len(columns) > most else ""
    return f"column{'s' if len(columns) > 1 else ''} {', '.join(shown)}{more}"
