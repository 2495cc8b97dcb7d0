"""The second objective of a multi-objective search: the number of columns of a subset, its cost, or another loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, Self

import numpy as np

from subswarm._checks import as_tuple, check_choice, check_real
from subswarm._types import FloatArray, Masks
from subswarm.algorithms.base import Algorithm, S
from subswarm.errors import SettingError

__all__ = ["MultiObjective"]


@dataclass(frozen=True, kw_only=True)
class MultiObjective(Algorithm[S], Generic[S]):
    """Base class of searches that minimise the loss and a second objective together.

    Parameters
    ----------
    objectives : "size" or "scores"
        The second objective: the number of columns (or the cost), or the loss by a second scorer.
    feature_costs : tuple of float or None
        Price of each feature of the search; a group of columns is one feature and is priced once. None makes the
        number of columns the second objective.
    """

    parsimonious = True

    objectives: str = "size"
    feature_costs: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("objectives", self.objectives, ("size", "scores"))
        if self.feature_costs is not None:
            costs = as_tuple("feature_costs", self.feature_costs, of="prices, one for each feature")
            for cost in costs:
                check_real("each of feature_costs", cost, low=0)
            object.__setattr__(self, "feature_costs", tuple(float(cost) for cost in costs))
            if self.objectives == "scores":
                raise SettingError(
                    'objectives="scores" minimises the losses by two scorers, and feature_costs are for '
                    'objectives="size"; set one of them.'
                )

    @property
    def n_losses(self) -> int:
        """Losses of each mask that `step` is told: two if both objectives are losses."""
        return 2 if self.objectives == "scores" else 1

    def with_costs(self, costs: tuple[float, ...]) -> Self:
        """Return the algorithm with these prices, unless it has its own; SettingError if it minimises two losses."""
        return self if self.feature_costs is not None else replace(self, feature_costs=costs)

    def prices(self, n_features: int) -> FloatArray:
        """Return what each feature adds to the second objective, shape (n,)."""
        if self.feature_costs is None:
            return self.rules(n_features).sizes.astype(np.float64)
        if len(self.feature_costs) != n_features:
            raise SettingError(
                f"feature_costs must have one price for each of {n_features} features; got {len(self.feature_costs)}."
            )
        return np.array(self.feature_costs)

    def objectives_of(self, masks: Masks, fitness: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the loss and the second objective of each subset, each of shape (P,), from what `step` is told."""
        return (fitness[:, 0], fitness[:, 1]) if self.n_losses == 2 else (fitness, self.known_costs(masks))

    def known_costs(self, masks: Masks) -> FloatArray:
        """Return the second objective of each subset before it is evaluated, shape (P,); infinite if it is a loss."""
        if self.n_losses == 2:
            return np.full(len(masks), np.inf)
        return np.asarray(masks @ self.prices(masks.shape[1]))
