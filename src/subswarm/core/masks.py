"""Which subsets are legal, and the nearest legal one to any other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.random import Generator

from subswarm.core.errors import SettingError
from subswarm.core.types import FloatArray, IntArray, Mask, Masks

__all__ = ["SubsetRules", "spread"]


def spread(masks: Masks) -> float:
    """Mean distance between two different rows, as a share of the features: 0 where all rows are equal.

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


@dataclass(frozen=True, eq=False)
class SubsetRules:
    """What a legal subset of ``n_features`` features is.

    Attributes
    ----------
    n_features : number of features the search decides on
    lower, upper : fewest and most columns a subset may have
    fixed : features that are always in, bool array of shape (n,)
    sizes : columns behind each feature (a group of columns is one feature of the search), int array of shape (n,)
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
        """The rules for these settings, or a SettingError where no subset can obey them."""
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
        """Fewest and most *features* (not columns) a legal subset can have."""
        free = np.sort(self.sizes[~self.fixed])
        base_count, base = int(self.fixed.sum()), int(self.sizes[self.fixed].sum())
        most = base_count + int(np.searchsorted(np.cumsum(free), self.upper - base, side="right"))
        fewest = base_count
        if base < self.lower:
            fewest += int(np.searchsorted(np.cumsum(free[::-1]), self.lower - base)) + 1
        return max(fewest, 1), most

    def columns(self, masks: Masks) -> IntArray:
        """How many columns each subset has, shape (P,)."""
        if self._plain:
            return np.asarray(np.add.reduce(masks, axis=1, dtype=np.int32), dtype=np.intp)
        return np.asarray(masks @ self.sizes)

    def is_legal(self, masks: Masks) -> Mask:
        """Which subsets are legal, shape (P,)."""
        if self._any_will_do:
            return np.asarray(masks.any(axis=1))
        columns = self.columns(masks)
        legal = (columns >= self.lower) & (columns <= self.upper)
        if self.fixed.any():
            legal &= masks[:, self.fixed].all(axis=1)
        return np.asarray(legal)

    def legalize(self, masks: Masks, rng: Generator, preference: FloatArray | None = None) -> Masks:
        """Each subset, or the nearest legal one: the least preferred features go first, the most preferred come first.

        ``preference`` has shape (P, n); where it is absent, chance decides (and the generator is touched only then).
        """
        legal = self.is_legal(masks)
        if legal.all():
            return masks
        illegal = np.flatnonzero(~legal)
        wish = rng.random((len(illegal), self.n_features)) if preference is None else preference[illegal]
        masks = masks.copy()
        masks[illegal] = self._nearest(masks[illegal], wish)
        return masks

    def random(self, count: int, rng: Generator, probability: float = 0.5) -> Masks:
        """``count`` random legal subsets: each feature in with this probability, then made legal."""
        return self.legalize(rng.random((count, self.n_features)) < probability, rng)

    @cached_property
    def _any_will_do(self) -> bool:
        """Whether every subset is legal but the empty one."""
        return self.lower == 1 and self.upper == int(self.sizes.sum()) and not self.fixed.any()

    @cached_property
    def _plain(self) -> bool:
        return bool((self.sizes == 1).all())

    def _nearest(self, masks: Masks, wish: FloatArray) -> Masks:
        if self._any_will_do:  # they are empty, then
            return np.asarray(np.arange(self.n_features) == wish.argmax(axis=1)[:, None])
        order = np.lexsort((-wish, ~masks, ~np.broadcast_to(self.fixed, masks.shape)), axis=1)
        if self._plain:
            count = np.clip((masks | self.fixed).sum(axis=1), self.lower, self.upper)
            nearest = np.zeros_like(masks)
            np.put_along_axis(nearest, order, np.arange(self.n_features) < count[:, None], axis=1)
            return nearest
        return np.array([self._fill(mask, row) for mask, row in zip(masks, order, strict=True)])

    def _fill(self, mask: Mask, order: IntArray) -> Mask:
        """Take features in this order while they fit: those of ``mask`` all, others only until there are enough."""
        filled = np.zeros_like(mask)
        total = 0
        for feature in order:
            wanted = mask[feature] or self.fixed[feature] or total < self.lower
            if wanted and total + self.sizes[feature] <= self.upper:
                filled[feature] = True
                total += int(self.sizes[feature])
        return filled if total >= self.lower else self._some_legal_mask

    @cached_property
    def _some_legal_mask(self) -> Mask:
        """One subset whose columns fit, by the sums that the features' sizes can reach."""
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
                f"no choice of whole feature groups has between {self.lower} and {self.upper} columns; "
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
        if not self._plain:
            _ = self._some_legal_mask
