"""Which subsets an algorithm may propose, and what it starts from: the settings that all algorithms share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from subswarm.core.checks import check_int
from subswarm.core.errors import SettingError
from subswarm.core.masks import SubsetRules
from subswarm.core.types import Masks

__all__ = ["SubsetSettings", "rules_of"]


@dataclass(frozen=True, kw_only=True)
class SubsetSettings:
    """Which subsets an algorithm may propose; the base of every algorithm here.

    Parameters
    ----------
    min_features, max_features : int, int or None
        Fewest and most columns of a subset; ``max_features=None`` allows all of them.
    fixed_features : tuple of int
        Features that are always in.
    feature_sizes : tuple of int or None
        Columns behind each feature, where a group of columns counts as one feature of the search.
    initial_subsets : tuple of tuples of int
        Subsets, as feature indices, to start from.
    """

    min_features: int = 1
    max_features: int | None = None
    fixed_features: tuple[int, ...] = ()
    feature_sizes: tuple[int, ...] | None = None
    initial_subsets: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        check_int("min_features", self.min_features, low=1)
        check_int("max_features", self.max_features, low=1, optional=True)
        for name in ("fixed_features", "feature_sizes"):
            for value in getattr(self, name) or ():
                check_int(f"each of {name}", value, low=0 if name == "fixed_features" else 1)
        for subset in self.initial_subsets:
            for value in subset:
                check_int("each index of initial_subsets", value, low=0)
        if self.max_features is not None and self.max_features < self.min_features:
            raise SettingError(f"min_features={self.min_features} is more than max_features={self.max_features}.")

    def rules(self, n_features: int) -> SubsetRules:
        """What a legal subset of ``n_features`` features is under these settings."""
        return SubsetRules.of(
            n_features,
            min_features=self.min_features,
            max_features=self.max_features,
            fixed_features=self.fixed_features,
            feature_sizes=self.feature_sizes,
        )

    def passing_rules(self, n_features: int) -> SubsetRules:
        """What may be asked on the way to an answer, which itself obeys `rules`.

        The two are the same for most; a stepwise search that starts from nothing (or everything) passes through
        subsets that are still too small (or too large) to be an answer.
        """
        return self.rules(n_features)

    def first_masks(self, count: int, n_features: int, rng: Generator) -> Masks:
        """``count`` legal subsets to start from: the initial ones, then random ones (each bit with probability ½)."""
        rules = self.rules(n_features)
        masks = rules.random(count, rng)
        if self.initial_subsets:
            masks[: len(self.initial_subsets)] = rules.legalize(self.initial_masks(n_features, room=count), rng)
        return masks

    def initial_masks(self, n_features: int, room: int | None = None) -> Masks:
        """The initial subsets as masks, as they were given; there must be ``room`` for all of them."""
        if room is not None and len(self.initial_subsets) > room:
            raise SettingError(
                f"initial_subsets gives {len(self.initial_subsets)} subsets, but the first batch holds {room}; "
                "give fewer, or enlarge the population."
            )
        given = np.zeros((len(self.initial_subsets), n_features), dtype=bool)
        for row, subset in enumerate(self.initial_subsets):
            if max(subset, default=0) >= n_features:
                raise SettingError(f"initial_subsets names feature {max(subset)}, but there are {n_features} features.")
            given[row, list(subset)] = True
        return given


def rules_of(algorithm: Any, n_features: int) -> tuple[SubsetRules, SubsetRules]:
    """What an algorithm calls a legal answer and what may be asked on the way; any subset where it says nothing."""
    rules = getattr(algorithm, "rules", SubsetRules.of)(n_features)
    passing = getattr(algorithm, "passing_rules", None)
    return rules, rules if passing is None else passing(n_features)
