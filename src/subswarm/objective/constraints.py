"""Constraints on subsets: limits, fixed features, and groups of columns that are one feature of the search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from subswarm._checks import as_tuple, check_int, shown
from subswarm._types import FloatArray, IntArray, Limits, Masks
from subswarm.errors import SettingError

__all__ = ["Space", "make_space"]


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
