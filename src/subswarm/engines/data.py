"""The table, its target, the folds and the scorer, which are fixed for a whole search.

Tables can be of any kind: a subset of a frame is a frame, and one of a sparse matrix a sparse matrix, so that the
estimator sees them as they are. Settings of the estimator that name columns name those of the subset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from subswarm._fingerprint import digest
from subswarm._types import AnyArray, BoolArray, Estimator, FloatArray, IntArray, Mask, Scorer

__all__ = [
    "WORST_LOSS",
    "Codes",
    "Fold",
    "FoldedData",
    "Int32Array",
    "Int64Array",
    "Scoring",
    "cloneable",
    "column_names",
    "for_columns",
    "is_frame",
    "is_table_frame",
    "library_of",
    "params_for_columns",
    "take_columns",
]

E = TypeVar("E", bound=Estimator)

_LISTED = ("categorical_features", "categorical_feature", "cat_features", "text_features", "embedding_features")
"""Settings of gradient boosting that list columns: of scikit-learn, LightGBM and CatBoost."""
_PER_COLUMN = ("monotonic_cst", "monotone_constraints", "feature_types")
"""Settings with one value for each column, or a dict of values by name."""
_LIBRARIES = ("lightgbm", "xgboost", "catboost")
"""Libraries that are recognised by a class that extends one of theirs."""
_INNER = ("estimator", "regressor")
"""Settings of an estimator whose value is an estimator that sees the same columns."""


def is_frame(X: object) -> bool:
    """Return whether a table is a frame of pandas or Polars."""
    return is_table_frame(X) and (hasattr(X, "iloc") or hasattr(X, "get_columns"))


def is_table_frame(X: object) -> bool:
    """Return whether a table has named columns with a dtype each: a frame of pandas or Polars, or a PyArrow table."""
    return hasattr(X, "shape") and hasattr(X, "columns") and (hasattr(X, "dtypes") or hasattr(X, "schema"))


def column_names(X: object) -> list[str] | None:
    """Return the names of a frame's columns; None for an array, or if the names are not text."""
    names = list(getattr(X, "columns", ())) if is_frame(X) else []
    return names if names and all(isinstance(name, str) for name in names) else None


def library_of(estimator: object) -> str:
    """Return the library that an estimator's class comes from, or the boosting library whose class it extends.

    Examples
    --------
    >>> library_of(ColumnTransformer([]))
    'sklearn'
    """
    found = [kind.__module__.partition(".")[0] for kind in type(estimator).__mro__]
    return next((name for name in found if name in _LIBRARIES), found[0])


def take_columns(X: Any, mask: Mask) -> Any:
    """Return the selected columns as a table of the same kind: a frame, a sparse matrix or an array."""
    if sparse.issparse(X):
        rows = X.tocsc()[:, np.flatnonzero(mask)].tocsr()
        if max(rows.nnz, *rows.shape) <= np.iinfo(np.int32).max:  # many estimators refuse indices of 64 bits
            rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
        return rows
    if hasattr(X, "iloc"):
        return X.iloc[:, np.flatnonzero(mask)]
    return X[:, np.flatnonzero(mask).tolist()] if is_frame(X) else X[:, mask]


def for_columns(estimator: E, mask: Mask, names: Sequence[str] | None = None) -> E:
    """Return the estimator for a subset of the columns: its settings that name columns name those of the subset.

    These are the column lists of a `ColumnTransformer`, the categorical columns and the constraints of gradient
    boosting. Names and positions of columns that are not in the subset are left out, and positions are counted among
    the selected columns. Anything else, such as `make_column_selector`, stays as it is. The given estimator is not
    changed; it is returned itself if there is nothing to change.

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> model = HistGradientBoostingClassifier(categorical_features=[0, 2])
    >>> for_columns(model, np.array([False, True, True])).categorical_features
    [1]
    """
    changed = {} if mask.all() else _changed_settings(estimator, mask, names)
    return clone(estimator).set_params(**changed) if changed else estimator


def cloneable(estimator: E) -> E:
    """Return an estimator that scikit-learn can clone: a CatBoost model needs tuples instead of lists for that."""
    if isinstance(estimator, Pipeline):
        steps = [(name, cloneable(step)) for name, step in estimator.steps]
        same = all(new[1] is old[1] for new, old in zip(steps, estimator.steps, strict=True))
        return estimator if same else cast(E, copy(estimator).set_params(steps=steps))
    if library_of(estimator) != "catboost":
        return estimator
    settings = estimator.get_params()
    if not any(isinstance(value, list) for value in settings.values()):
        return estimator
    return type(estimator)(**{name: tuple(v) if isinstance(v, list) else v for name, v in settings.items()})


def params_for_columns(params: Mapping[str, object], mask: Mask, names: Sequence[str] | None) -> dict[str, object]:
    """Return the arguments of ``fit`` for a subset of the columns, such as ``cat_features`` of CatBoost."""
    return {
        name: _listed(value, mask, names) if name.rpartition("__")[2] in _LISTED else value
        for name, value in params.items()
    }


def _changed_settings(estimator: Any, mask: Mask, names: Sequence[str] | None) -> dict[str, object]:
    """Return the settings that differ for a subset, by name."""
    changed: dict[str, object] = {}
    if isinstance(estimator, Pipeline):
        steps = list(estimator.steps)
        for place, (name, step) in enumerate(steps):
            if step is None or isinstance(step, str):
                continue
            steps[place] = (name, for_columns(step, mask, names))
            if not isinstance(step, OneToOneFeatureMixin):  # the steps behind it see other columns
                break
        return (
            {} if all(new[1] is old[1] for new, old in zip(steps, estimator.steps, strict=True)) else {"steps": steps}
        )
    if isinstance(estimator, ColumnTransformer):
        return {
            "transformers": [
                (name, transformer, columns if callable(columns) else _listed(columns, mask, names))
                for name, transformer, columns in estimator.transformers
            ]
        }
    for name, value in estimator.get_params(deep=False).items() if hasattr(estimator, "get_params") else ():
        new = value
        if value is None:
            continue
        if name in _LISTED:
            new = _listed(value, mask, names)
            new = tuple(new) if isinstance(value, tuple) else new
        elif name in _PER_COLUMN:
            new = _per_column(value, mask, names)
        elif name in _INNER and hasattr(value, "fit"):
            new = for_columns(value, mask, names)
        if new is not value:
            changed[name] = new
    return changed


def _listed(columns: Any, mask: Mask, names: Sequence[str] | None) -> Any:
    """Return a list of columns, given by name, position, slice or mask, for the subset only."""
    if isinstance(columns, str):
        if names is None or columns not in names:
            return columns  # not a column, but a word such as "from_dtype"
        return columns if mask[list(names).index(columns)] else []
    if isinstance(columns, int | np.integer):  # a transformer that expects a single column, such as one of texts
        return next(iter(_among(np.array([columns % len(mask)]), mask)), [])
    if isinstance(columns, slice):
        if isinstance(columns.start, str) or isinstance(columns.stop, str):
            places = _places_between(columns, names or [])
        else:
            places = np.arange(len(mask))[columns]
        return _among(places, mask)
    array = np.asarray(columns)
    if array.dtype == bool and array.shape == mask.shape:
        return _among(np.flatnonzero(array), mask)
    if array.dtype.kind in "iu":
        return _among(array.ravel() % len(mask), mask)
    known = {} if names is None else dict(zip(names, mask.tolist(), strict=True))
    return [name for name in list(columns) if known.get(name, True)]  # an unknown name is the estimator's own error


def _places_between(named: slice, names: Sequence[str]) -> IntArray:
    """Return the positions of a slice of names, whose end is included."""
    known = list(names)
    first = 0 if named.start is None else known.index(named.start)
    last = len(known) - 1 if named.stop is None else known.index(named.stop)
    return np.arange(first, last + 1)


def _among(places: AnyArray, mask: Mask) -> list[int]:
    """Return positions among the selected columns, without those that are not selected."""
    new = np.cumsum(mask) - 1
    return [int(new[place]) for place in places.tolist() if mask[place]]


def _per_column(values: Any, mask: Mask, names: Sequence[str] | None) -> Any:
    if isinstance(values, Mapping):
        known = {} if names is None else dict(zip(names, mask.tolist(), strict=True))
        return {name: value for name, value in values.items() if known.get(cast(str, name), True)}
    if isinstance(values, str) or np.shape(values) != mask.shape:
        return values
    kept = [value for value, chosen in zip(values, mask, strict=True) if chosen]
    return tuple(kept) if isinstance(values, tuple) else kept


Codes = NDArray[np.int16]
"""Predicted classes as positions among the sorted classes."""
Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]
WORST_LOSS = 1e300
"""The loss of a failed subset for scorers without a lower bound; a score must be nearer to zero than this."""


@dataclass(frozen=True, eq=False)
class Fold:
    """Row indices to train on and to test on."""

    train: IntArray
    test: IntArray


@dataclass(frozen=True, eq=False)
class FoldedData:
    """The data of an engine.

    Attributes
    ----------
    X : float array of shape (N, n): what the fast engines and the rankings use; a sparse matrix if that was passed
    y : array of shape (N,) or (N, outputs)
    folds : the fixed folds; those of the first repeat first
    scoring : how a fitted estimator is scored, and how the score becomes a loss
    params : metadata for ``fit`` and the scorer (``sample_weight``, ...); empty for most searches
    n_partitions : number of repeats of the cross-validation, each with the same number of folds
    frame : the frame that the estimator gets instead of ``X``, or None
    is_plain : whether the table has nothing but numbers, so that a fast engine may be used
    other_scorings : further scorers, whose losses may be further objectives of the search
    """

    X: FloatArray
    y: AnyArray
    folds: tuple[Fold, ...]
    scoring: Scoring
    params: Mapping[str, object] = field(default_factory=dict)
    n_partitions: int = 1
    frame: object | None = None
    is_plain: bool = True
    other_scorings: tuple[Scoring, ...] = ()

    @property
    def table(self) -> object:
        """What the estimator gets: a frame, a sparse matrix or an array."""
        return self.X if self.frame is None else self.frame

    @property
    def names(self) -> list[str] | None:
        """The names of a frame's columns."""
        return column_names(self.frame)

    def columns(self, mask: Mask) -> object:
        """Return the selected columns, as the estimator gets them."""
        return take_columns(self.table, mask)

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def n_folds(self) -> int:
        return len(self.folds)

    @property
    def folds_each(self) -> int:
        """The number of folds of one repeat."""
        return self.n_folds // self.n_partitions

    def partition(self, number: int) -> FoldedData:
        """Return the same rows with the folds of one repeat only."""
        if self.n_partitions == 1:
            return self
        size = self.folds_each
        return replace(self, folds=self.folds[number * size : (number + 1) * size], n_partitions=1)

    def on_used_rows(self) -> FoldedData:
        """Return the data without the rows that no fold trains or tests on, if these are most of them.

        The data stay as they are if there is metadata, which may belong to rows.
        """
        used = np.zeros(len(self.y), dtype=bool)
        for fold in self.folds:
            used[fold.train] = used[fold.test] = True
        if self.params or 2 * used.sum() > len(used):
            return self
        rows, place = np.flatnonzero(used), np.cumsum(used) - 1
        return replace(
            self,
            X=self.X[rows],
            y=self.y[rows],
            frame=None if self.frame is None else _safe_indexing(self.frame, rows),
            folds=tuple(Fold(place[fold.train], place[fold.test]) for fold in self.folds),
        )

    def fingerprint_parts(self) -> dict[str, str]:
        """Return a digest of each part that determines how a subset scores, by its name in messages."""
        others = [[each.name, each.given] for each in self.other_scorings]
        return {
            "table": digest(self.table),
            "target": digest(self.y),
            "folds": digest([self.n_partitions, [(fold.train, fold.test) for fold in self.folds]]),
            "metadata": digest(dict(self.params)),
            "scoring": digest([self.scoring.name, self.scoring.given]),
            **({"other scorers": digest(others)} if others else {}),
        }


@dataclass(frozen=True, eq=False)
class Scoring:
    """How a fitted estimator is scored, and how the score becomes a loss.

    Attributes
    ----------
    name : the scorer's name; "accuracy" or "r2" for the estimator's own ``score``
    scorer : ``scorer(estimator, X, y) -> float``, higher is better
    negated : the loss is ``-score`` (scorers called ``neg_...``) instead of ``1 - score``
    worst : the finite loss of an empty or failed subset
    given : what the user passed: a name, a callable, or None for the estimator's own ``score``
    """

    name: str
    scorer: Scorer
    negated: bool
    worst: float
    given: object = None

    @property
    def least_rows(self) -> int:
        """The number of test rows that a score needs: R² is a share of a variance, which one row does not have."""
        return 2 if self.name == "r2" else 1

    def accepts(self, scores: FloatArray) -> BoolArray:
        """Return which scores a search can use: neither missing nor so large that a mean of them is infinite."""
        return np.asarray(np.abs(scores) < WORST_LOSS)

    def loss(self, scores: FloatArray) -> FloatArray:
        """Return scores as losses, elementwise; they are negative for a profit above 1."""
        return np.asarray((0.0 if self.negated else 1.0) - scores + 0.0)  # + 0.0 turns -0.0 into 0.0

    def score(self, loss: float) -> float:
        """Return the score that belongs to a loss, up to rounding."""
        return (0.0 if self.negated else 1.0) - loss
