"""The floor every search must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from subswarm.algorithms.learning import ranked_features
from subswarm.algorithms.subset_settings import SubsetSettings
from subswarm.core.checks import check_choice, check_int
from subswarm.core.types import FloatArray, Masks

__all__ = ["Batch", "RandomSearch"]


@dataclass(frozen=True, eq=False)
class Batch:
    """Subsets to evaluate, and nothing else to remember."""

    masks: Masks


@dataclass(frozen=True, kw_only=True)
class RandomSearch(SubsetSettings):
    """Random subsets, learning nothing.

    Parameters
    ----------
    batch : int, default=30
        Subsets a step.
    sizes : "uniform" or "bernoulli"
        Every size equally likely, or every feature in with probability ½ (almost all sizes near n/2).
    """

    source: ClassVar[str] = "the floor: subsets drawn at random"

    batch: int = 30
    sizes: str = "uniform"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("batch", self.batch, low=1)
        check_choice("sizes", self.sizes, ("uniform", "bernoulli"))

    def begin(self, n_features: int, rng: Generator) -> Batch:
        masks = self._drawn(n_features, rng)
        given = len(self.initial_subsets)
        if given:
            masks[:given] = self.first_masks(self.batch, n_features, rng)[:given]
        return Batch(masks)

    def step(self, state: Batch, fitness: FloatArray, progress: float, rng: Generator) -> Batch:
        return Batch(self._drawn(state.masks.shape[1], rng))

    def _drawn(self, n_features: int, rng: Generator) -> Masks:
        rules = self.rules(n_features)
        if self.sizes == "bernoulli":
            return rules.random(self.batch, rng)
        low, high = rules.cardinalities
        wish = np.where(rules.fixed, np.inf, rng.random((self.batch, n_features)))
        masks = ranked_features(wish, rng.integers(low, high + 1, size=self.batch))
        return rules.legalize(masks, rng, preference=wish)
