"""Rules for legal subsets, and the nearest legal subset to any other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.random import Generator

from subswarm._types import FloatArray, IntArray, Mask, Masks
from subswarm.errors import SettingError

__all__ = ["SubsetRules", "sizes_of", "spread"]


def spread(masks: Masks) -> float:
    """Return the mean distance between two rows as a share of the features; 0 if all rows are equal.

    Examples
    --------
    >>> spread(np.array([[True, True], [False, False]]))
    1.0
    """
    rows = len(masks)
    if rows < 2:
        return 0.0
    share = np.add.reduce(masks, axis=0, dtype=np.int32) / rows
    return float(2 * (share * (1 - share)).mean() * rows / (rows - 1))


def sizes_of(masks: Masks) -> IntArray:
    """Return the number of features of each subset, shape (P,); counting row by row is the fastest way."""
    return np.fromiter(map(np.count_nonzero, masks), dtype=np.intp, count=len(masks))


@dataclass(frozen=True, eq=False)
class SubsetRules:
    """The rules that a legal subset of ``n_features`` features obeys.

    Attributes
    ----------
    n_features : number of features of the search
    lower, upper : fewest and most columns of a subset
    fixed : features that are in every subset, bool array of shape (n,)
    sizes : number of columns behind each feature (a group of columns is one feature), int array of shape (n,)
    """

    n_features: int
    lower: int
    upper: int
    fixed: Mask
    sizes: IntArray

    @classmethod
    @lru_cache(maxsize=64)
    def of(
        cls,
        n_features: int,
        *,
        min_features: int = 1,
        max_features: int | None = None,
        fixed_features: tuple[int, ...] = (),
        feature_sizes: tuple[int, ...] | None = None,
    ) -> SubsetRules:
        """Return the rules for these settings; raise SettingError if no subset can obey them."""
        sizes = np.ones(n_features, dtype=np.intp) if feature_sizes is None else np.array(feature_sizes, dtype=np.intp)
        if len(sizes) != n_features:
            raise SettingError(
                f"feature_sizes must have one entry for each of {n_features} features; got {len(sizes)}."
            )
        fixed = np.zeros(n_features, dtype=bool)
        if fixed_features:
            outside = [index for index in fixed_features if not 0 <= index < n_features]
            if outside:
                raise SettingError(f"fixed_features names feature {outside[0]}, but there are {n_features} features.")
            fixed[list(fixed_features)] = True
        total = int(sizes.sum())
        upper = total if max_features is None else min(max_features, total)
        rules = cls(n_features, max(min_features, 1), upper, fixed, sizes)
        rules._check_feasible(max_features)
        return rules

    @cached_property
    def cardinalities(self) -> tuple[int, int]:
        """Fewest and most features (not columns) of a legal subset."""
        free = np.sort(self.sizes[~self.fixed])
        base_count, base = int(self.fixed.sum()), int(self.sizes[self.fixed].sum())
        most = base_count + int(np.searchsorted(np.cumsum(free), self.upper - base, side="right"))
        fewest = base_count
        if base < self.lower:
            fewest += int(np.searchsorted(np.cumsum(free[::-1]), self.lower - base)) + 1
        return max(fewest, 1), most

    def columns(self, masks: Masks) -> IntArray:
        """Return the number of columns of each subset, shape (P,)."""
        if self._has_no_groups:
            return np.asarray(np.add.reduce(masks, axis=1, dtype=np.int32), dtype=np.intp)
        return np.asarray(masks @ self.sizes)

    def is_legal(self, masks: Masks) -> Mask:
        """Return which subsets are legal, shape (P,)."""
        if self._allows_all:
            return np.asarray(masks.any(axis=1))
        columns = self.columns(masks)
        legal = (columns >= self.lower) & (columns <= self.upper)
        if self.fixed.any():
            legal &= masks[:, self.fixed].all(axis=1)
        return np.asarray(legal)

    def legalize(self, masks: Masks, rng: Generator, preference: FloatArray | None = None) -> Masks:
        """Return each subset if it is legal, otherwise the nearest legal one.

        The features of the lowest ``preference`` (P, n) are removed first, and those of the highest are added first.
        Without a preference the order is random; the generator is used only then.
        """
        legal = self.is_legal(masks)
        if legal.all():
            return masks
        illegal = np.flatnonzero(~legal)
        preferred = rng.random((len(illegal), self.n_features)) if preference is None else preference[illegal]
        masks = masks.copy()
        masks[illegal] = self._nearest(masks[illegal], preferred)
        return masks

    def random(self, count: int, rng: Generator, probability: float = 0.5) -> Masks:
        """Draw ``count`` random subsets, each feature with this probability, and make them legal."""
        return self.legalize(rng.random((count, self.n_features)) < probability, rng)

    @cached_property
    def _allows_all(self) -> bool:
        """Whether every subset except the empty one is legal."""
        return self.lower == 1 and self.upper == int(self.sizes.sum()) and not self.fixed.any()

    @cached_property
    def _has_no_groups(self) -> bool:
        return bool((self.sizes == 1).all())

    def _nearest(self, masks: Masks, preferred: FloatArray) -> Masks:
        if self._allows_all:  # so all of these masks are empty
            return np.asarray(np.arange(self.n_features) == preferred.argmax(axis=1)[:, None])
        order = np.lexsort((-preferred, ~masks, ~np.broadcast_to(self.fixed, masks.shape)), axis=1)
        if self._has_no_groups:
            count = np.clip((masks | self.fixed).sum(axis=1), self.lower, self.upper)
            nearest = np.zeros_like(masks)
            np.put_along_axis(nearest, order, np.arange(self.n_features) < count[:, None], axis=1)
            return nearest
        return np.array([self._fill(mask, row) for mask, row in zip(masks, order, strict=True)])

    def _fill(self, mask: Mask, order: IntArray) -> Mask:
        """Add features in this order while they fit: all of ``mask``, others only until there are enough columns."""
        filled = np.zeros_like(mask)
        total = 0
        for feature in order:
            is_needed = mask[feature] or self.fixed[feature] or total < self.lower
            if is_needed and total + self.sizes[feature] <= self.upper:
                filled[feature] = True
                total += int(self.sizes[feature])
        return filled if total >= self.lower else self._some_legal_mask

    @cached_property
    def _some_legal_mask(self) -> Mask:
        """A legal subset of whole groups, found by dynamic programming over the sums of their sizes."""
        base = int(self.sizes[self.fixed].sum())
        mask = self.fixed.copy()
        free = np.flatnonzero(~self.fixed)
        reached = [1]
        for feature in free:
            reached.append(reached[-1] | reached[-1] << int(self.sizes[feature]))
        target = next(
            (t for t in range(max(self.lower - base, 0), self.upper - base + 1) if reached[-1] >> t & 1), None
        )
        if target is None:
            raise SettingError(
                f"no selection of whole feature groups has between {self.lower} and {self.upper} columns; "
                "widen min_features and max_features."
            )
        for step in range(len(free), 0, -1):
            if not reached[step - 1] >> target & 1:
                mask[free[step - 1]] = True
                target -= int(self.sizes[free[step - 1]])
        return mask

    def _check_feasible(self, max_features: int | None) -> None:
        total, fixed = int(self.sizes.sum()), int(self.sizes[self.fixed].sum())
        if self.lower > total:
            raise SettingError(f"min_features={self.lower}, but the table has only {total} feature(s).")
        if self.lower > self.upper:
            raise SettingError(f"min_features={self.lower} is more than max_features={max_features}.")
        if fixed > self.upper:
            raise SettingError(f"fixed_features keeps {fixed} features, more than max_features={max_features}.")
        if not self._has_no_groups:
            _ = self._some_legal_mask
