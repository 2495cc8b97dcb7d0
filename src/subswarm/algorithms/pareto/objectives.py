"""The second objective of a multi-objective search: the number of columns of a subset, or its cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, Self

import numpy as np

from subswarm._checks import as_tuple, check_real
from subswarm._types import FloatArray, Masks
from subswarm.algorithms.base import Algorithm, S
from subswarm.errors import SettingError

__all__ = ["MultiObjective"]


@dataclass(frozen=True, kw_only=True)
class MultiObjective(Algorithm[S], Generic[S]):
    """Base class of searches that minimise the loss and the cost of a subset together.

    Parameters
    ----------
    feature_costs : tuple of float or None
        Price of each feature of the search; a group of columns is one feature and is priced once. None makes the
        number of columns the second objective.
    """

    parsimonious = True

    feature_costs: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.feature_costs is not None:
            costs = as_tuple("feature_costs", self.feature_costs, of="prices, one for each feature")
            for cost in costs:
                check_real("each of feature_costs", cost, low=0)
            object.__setattr__(self, "feature_costs", tuple(float(cost) for cost in costs))

    def with_costs(self, costs: tuple[float, ...]) -> Self:
        """Return the algorithm with these prices, unless it has its own."""
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

    def costs(self, masks: Masks) -> FloatArray:
        """Return the second objective of each subset, shape (P,)."""
        return np.asarray(masks @ self.prices(masks.shape[1]))
