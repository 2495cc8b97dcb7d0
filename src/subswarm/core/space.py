"""From the columns of a table to the features a search decides on: groups are one feature each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from subswarm.core.errors import SettingError
from subswarm.core.types import Front, IntArray, Masks, Recording, SearchResult, Subset

__all__ = ["Space", "make_space"]


@dataclass(frozen=True, eq=False)
class Space:
    """Which feature of the search each column belongs to.

    Attributes
    ----------
    owner : for each column, the index of its feature, or -1 where it is never in; int array of shape (columns,)
    fixed : features that are always in
    initial : subsets to start from, as feature indices
    """

    owner: IntArray
    fixed: tuple[int, ...]
    initial: tuple[tuple[int, ...], ...]

    @property
    def n_features(self) -> int:
        return int(self.owner.max()) + 1

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """Columns behind each feature, or None where every feature is one column."""
        counts = np.bincount(self.owner[self.owner >= 0])
        return None if (counts == 1).all() else tuple(counts.tolist())

    def columns(self, masks: Masks) -> Masks:
        """Masks over features (..., n) as masks over columns (..., columns)."""
        return np.asarray(masks[..., self.owner] & (self.owner >= 0))

    def among(self, features: Iterable[int]) -> Space:
        """The space in which only these features, and the fixed ones, can be in."""
        kept = sorted({*(int(feature) for feature in features), *self.fixed})
        place = np.full(self.n_features, -1, dtype=np.intp)
        place[kept] = np.arange(len(kept))
        initial = [tuple(int(place[feature]) for feature in subset if place[feature] >= 0) for subset in self.initial]
        return Space(
            owner=place[self.owner],
            fixed=tuple(int(place[feature]) for feature in self.fixed),
            initial=tuple(subset for subset in initial if subset),
        )

    def settings(self) -> dict[str, Any]:
        """What an algorithm must be told of this space."""
        return {"fixed_features": self.fixed, "feature_sizes": self.sizes, "initial_subsets": self.initial}

    def result_on_columns(self, result: SearchResult) -> SearchResult:
        """The result with every mask over columns."""
        return replace(
            result,
            best=Subset(self.columns(result.best.mask), result.best.fitness),
            front=Front(self.columns(result.front.masks), result.front.fitness),
            recording=None if result.recording is None else self._recording_on_columns(result.recording),
        )

    def _recording_on_columns(self, recording: Recording) -> Recording:
        counts = np.where(self.owner >= 0, recording.chosen[self.owner], 0)
        return replace(recording, chosen=counts)


def make_space(
    n_columns: int,
    names: Sequence[str] | None = None,
    *,
    fixed_features: Iterable[Any] | None = None,
    feature_groups: Iterable[Iterable[Any]] | None = None,
    initial_subsets: Iterable[Any] | None = None,
) -> Space:
    """The space of a table whose columns are named by ``names``; columns may be given by index or by name.

    Examples
    --------
    >>> space = make_space(4, ["age", "red", "green", "blue"], feature_groups=[["red", "green", "blue"]])
    >>> space.owner.tolist(), space.sizes
    ([0, 1, 1, 1], (1, 3))
    """
    owner = _owners(n_columns, [_indices(group, n_columns, names, "feature_groups") for group in feature_groups or ()])
    fixed = _indices(fixed_features if fixed_features is not None else (), n_columns, names, "fixed_features")
    initial = [_indices(subset, n_columns, names, "initial_subsets") for subset in _rows(initial_subsets)]
    return Space(owner, _owned(owner, fixed), tuple(_owned(owner, subset) for subset in initial))


def _owners(n_columns: int, groups: list[list[int]]) -> IntArray:
    first = np.arange(n_columns)
    for group in groups:
        if not group:
            raise SettingError("feature_groups has an empty group; each group names at least one column.")
        taken = [column for column in group if first[column] != column or group.count(column) > 1]
        if taken:
            raise SettingError(f"feature_groups names column {taken[0]} twice; a column belongs to one group at most.")
        first[group] = min(group)
    again = [group for position, group in enumerate(groups) for other in groups[:position] if set(group) & set(other)]
    if again:
        raise SettingError(f"feature_groups names column {again[0][0]} twice; a column belongs to one group at most.")
    return np.unique(first, return_inverse=True)[1].reshape(-1).astype(np.intp)


def _owned(owner: IntArray, columns: list[int]) -> tuple[int, ...]:
    return tuple(np.unique(owner[columns]).tolist()) if columns else ()


def _rows(subsets: Any) -> list[Any]:
    if subsets is None:
        return []
    if isinstance(subsets, str):
        raise SettingError(f"initial_subsets must be a list of subsets; got the text {subsets!r}.")
    return list(subsets)


def _indices(columns: Any, n_columns: int, names: Sequence[str] | None, setting: str) -> list[int]:
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise SettingError(f"{setting} wants lists of column indices or names; got {columns!r}.")
    listed = list(columns)
    if len(listed) == n_columns and all(isinstance(item, bool | np.bool_) for item in listed):
        return [int(index) for index in np.flatnonzero(np.asarray(listed))]
    return [_index(column, n_columns, names, setting) for column in listed]


def _index(column: Any, n_columns: int, names: Sequence[str] | None, setting: str) -> int:
    if isinstance(column, str):
        if names is None:
            raise SettingError(f"{setting} names column {column!r}, but the table has no column names; use indices.")
        if column not in list(names):
            raise SettingError(f"{setting} names column {column!r}, which is not in the table.")
        return list(names).index(column)
    if isinstance(column, bool | np.bool_) or not isinstance(column, int | np.integer):
        raise SettingError(f"{setting} wants column indices or names (or one bool for each column); got {column!r}.")
    if not -n_columns <= column < n_columns:
        raise SettingError(f"{setting} names column {column}, but the table has {n_columns} columns.")
    return int(column) % n_columns
