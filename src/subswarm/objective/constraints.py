"""Constraints on subsets, and the features of a search: limits, fixed features, groups of columns, and prices.

A group of columns is one feature of the search. `ColumnsView` is the objective for masks over these features.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from subswarm._checks import as_tuple, check_int, check_real, shown
from subswarm._fingerprint import digest
from subswarm._types import FloatArray, IntArray, Limits, Mask, Masks
from subswarm.errors import SettingError
from subswarm.objective.objective import Objective

__all__ = ["ColumnsView", "Space", "column_prices", "feature_prices", "make_space"]


@dataclass(frozen=True, eq=False)
class Space:
    """The features a search selects from, the columns behind them, and the limits on subsets.

    Attributes
    ----------
    owner : the feature that each column belongs to, or -1 if the column is never selected; shape (columns,)
    fixed : features that are in every subset
    initial : subsets to start from, as feature indices
    min_columns, max_columns : fewest and most columns of a subset; None for no maximum
    """

    owner: IntArray
    fixed: tuple[int, ...]
    initial: tuple[tuple[int, ...], ...]
    min_columns: int = 1
    max_columns: int | None = None

    @property
    def n_features(self) -> int:
        return int(self.owner.max()) + 1

    @cached_property
    def _is_identity(self) -> bool:
        return np.array_equal(self.owner, np.arange(len(self.owner)))

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """Number of columns behind each feature, or None if every feature is one column."""
        counts = np.bincount(self.owner[self.owner >= 0])
        return None if (counts == 1).all() else tuple(counts.tolist())

    def columns(self, masks: Masks) -> Masks:
        """Convert masks over features (..., n) to masks over columns (..., columns)."""
        if self._is_identity:
            return masks
        return np.asarray(np.take(masks, self.owner, axis=-1) & (self.owner >= 0))

    def among(self, features: Iterable[int]) -> Space:
        """Return the space of only these features and the fixed ones."""
        kept = sorted({*(int(feature) for feature in features), *self.fixed})
        place = np.full(self.n_features, -1, dtype=np.intp)
        place[kept] = np.arange(len(kept))
        initial = [tuple(int(place[feature]) for feature in subset if place[feature] >= 0) for subset in self.initial]
        return replace(
            self,
            owner=place[self.owner],
            fixed=tuple(int(place[feature]) for feature in self.fixed),
            initial=tuple(subset for subset in initial if subset),
        )

    def among_best(self, scores: FloatArray, keep: int) -> Space:
        """Return the space of the ``keep`` features with the highest scores, and the fixed ones."""
        check_int("keep", keep, low=1)
        return self.among(np.sort(np.argsort(-scores, kind="stable")[:keep]).tolist())

    def feature_scores(self, scores: FloatArray) -> FloatArray:
        """Return the scores of features for those of columns: the score of a group is that of its best column."""
        best = np.full(self.n_features, -np.inf)
        is_feature = self.owner >= 0
        np.maximum.at(best, self.owner[is_feature], scores[is_feature])
        return best

    def feature_sums(self, values: FloatArray) -> FloatArray:
        """Return the sum over the columns of each feature, shape (P, n), for values of columns, shape (P, columns)."""
        is_feature = self.owner >= 0
        sums = np.zeros((self.n_features, len(values)))
        np.add.at(sums, self.owner[is_feature], values[:, is_feature].T)
        return np.ascontiguousarray(sums.T)

    @property
    def limits(self) -> Limits:
        """The limits that a search has to keep."""
        return Limits(self.min_columns, self.max_columns, self.fixed, self.sizes, self.initial)


def make_space(
    n_columns: int,
    names: Sequence[str] | None = None,
    *,
    fixed_features: Iterable[object] | None = None,
    feature_groups: Iterable[Iterable[object]] | None = None,
    initial_subsets: Iterable[object] | None = None,
    min_features: int = 1,
    max_features: int | None = None,
) -> Space:
    """Return the space of a table whose columns have these names; columns are given by index or by name.

    Examples
    --------
    >>> space = make_space(4, ["age", "red", "green", "blue"], feature_groups=[["red", "green", "blue"]])
    >>> space.owner.tolist(), space.sizes
    ([0, 1, 1, 1], (1, 3))
    """
    groups = _rows(feature_groups, "feature_groups", of="groups of columns")
    owner = _owners(n_columns, [_indices(group, n_columns, names, "feature_groups") for group in groups])
    fixed = _indices(fixed_features if fixed_features is not None else (), n_columns, names, "fixed_features")
    initial = [
        _indices(subset, n_columns, names, "initial_subsets")
        for subset in _rows(initial_subsets, "initial_subsets", of="subsets")
    ]
    return Space(
        owner,
        _owned(owner, fixed),
        tuple(_owned(owner, subset) for subset in initial),
        min_columns=min_features,
        max_columns=max_features,
    )


class ColumnsView:
    """An objective for masks over the features of a space instead of columns, which may have prices, shape (n,)."""

    def __init__(self, objective: Objective, space: Space, prices: FloatArray | None = None) -> None:
        self._objective = objective
        self._space = space
        self.n_features = space.n_features
        self.n_partitions = objective.n_partitions
        self.n_left_out = objective.n_left_out
        self.n_rows: int | None = objective.n_rows
        self.prices = prices

    def __call__(self, masks: Masks, partitions: IntArray | None = None) -> FloatArray:
        return self._objective(self._space.columns(masks), partitions)

    def losses_of(self, mask: Mask) -> FloatArray:
        return self._objective.losses_of(self._space.columns(mask))

    def other_losses(self, masks: Masks, /) -> FloatArray:
        return self._objective.other_losses(self._space.columns(masks))

    def importances(self, masks: Masks, partitions: IntArray | None = None, /) -> FloatArray | None:
        found = self._objective.importances(self._space.columns(masks), partitions)
        return None if found is None else self._space.feature_sums(found)

    @property
    def limits(self) -> Limits:
        """The limits on subsets that the space sets."""
        return self._space.limits

    def ranking(self, name: str, partition: int | None = None, /) -> FloatArray:
        """Return the scores of all features in the ranking of this name."""
        return self._space.feature_scores(self._objective.ranking(name, partition))

    def fingerprint_parts(self) -> dict[str, str]:
        """Return the digests of the objective's parts, and of which columns belong to which feature of the search."""
        return self._objective.fingerprint_parts() | {
            "feature groups or preselected columns": digest(self._space.owner)
        }

    @property
    def computed(self) -> int:
        return self._objective.computed

    @property
    def engine(self) -> str:
        return self._objective.engine

    @property
    def at_once(self) -> int:
        return self._objective.at_once


def column_prices(costs: object, n_columns: int, names: Sequence[str] | None) -> FloatArray:
    """Return the price of each column; ``costs`` has one for each column, or maps names to prices.

    Examples
    --------
    >>> column_prices({"dose": 2, "age": 1}, 2, ["age", "dose"]).tolist()
    [1.0, 2.0]
    """
    if isinstance(costs, Mapping):
        costs = _prices_by_name(costs, n_columns, names)
    listed = as_tuple("feature_costs", costs, of="prices, one for each column")
    if len(listed) != n_columns:
        raise SettingError(f"feature_costs must have one price for each of {n_columns} columns; got {len(listed)}.")
    for price in listed:
        check_real("each of feature_costs", price, low=0)
    return np.array([float(price) for price in listed])


def _prices_by_name(costs: Mapping[object, object], n_columns: int, names: Sequence[str] | None) -> list[object]:
    known = list(range(n_columns)) if names is None else [str(name) for name in names]
    unknown = [name for name in costs if name not in known]
    if unknown:
        raise SettingError(f"feature_costs names column {shown(unknown[0])}, which is not in the table.")
    missing = [name for name in known if name not in costs]
    if missing:
        raise SettingError(f"feature_costs has no price for column {shown(missing[0])}; give 0 for a free column.")
    return [costs[name] for name in known]


def feature_prices(prices: FloatArray, owner: IntArray) -> FloatArray:
    """Return the price of each feature; a group of columns is priced once, at the highest price of its columns.

    ``owner`` is the feature of each column, -1 for none.

    Examples
    --------
    >>> feature_prices(np.array([3.0, 2.0, 2.0, 2.0, 9.0]), np.array([0, 1, 1, 1, -1])).tolist()
    [3.0, 2.0]
    """
    found = np.zeros(int(owner.max()) + 1)
    is_feature = owner >= 0
    np.maximum.at(found, owner[is_feature], prices[is_feature])
    return found


def _owners(n_columns: int, groups: list[list[int]]) -> IntArray:
    """Return the feature of each column, in the order of the features' first columns."""
    if not all(groups):
        raise SettingError("feature_groups has an empty group; each group names at least one column.")
    counts = Counter(column for group in groups for column in group)
    for column, count in counts.items():
        if count > 1:
            raise SettingError(f"feature_groups names column {column} twice; a column belongs to one group at most.")
    first = np.arange(n_columns)
    for group in groups:
        first[group] = min(group)
    return np.unique(first, return_inverse=True)[1].reshape(-1).astype(np.intp)


def _owned(owner: IntArray, columns: list[int]) -> tuple[int, ...]:
    """Return the features of these columns, ascending."""
    return tuple(np.unique(owner[columns]).tolist()) if columns else ()


def _rows(listed: object, setting: str, *, of: str) -> tuple[object, ...]:
    return () if listed is None else as_tuple(setting, listed, of=of)


def _indices(columns: object, n_columns: int, names: Sequence[str] | None, setting: str) -> list[int]:
    """Return the indices of columns that are given by index, by name or as a mask."""
    listed = as_tuple(setting, columns, of="column indices or names")
    if len(listed) == n_columns and all(isinstance(item, bool | np.bool_) for item in listed):
        return [int(index) for index in np.flatnonzero(np.asarray(listed))]
    return [_index(column, n_columns, names, setting) for column in listed]


def _index(column: object, n_columns: int, names: Sequence[str] | None, setting: str) -> int:
    if isinstance(column, str):
        if names is None:
            raise SettingError(f"{setting} names column {column!r}, but the table has no column names; use indices.")
        if column not in list(names):
            raise SettingError(f"{setting} names column {column!r}, which is not in the table.")
        return list(names).index(column)
    if isinstance(column, bool | np.bool_) or not isinstance(column, int | np.integer):
        raise SettingError(
            f"{setting} expects column indices or names (or one bool for each column); got {shown(column)}."
        )
    if not -n_columns <= column < n_columns:
        raise SettingError(f"{setting} names column {shown(column)}, but the table has {n_columns} columns.")
    return int(column) % n_columns
