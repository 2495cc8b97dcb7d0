"""Random search: the baseline that every other search should beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from subswarm._checks import check_choice, check_int
from subswarm._types import FloatArray, Masks
from subswarm.algorithms.base import Algorithm, State
from subswarm.algorithms.state import Layout
from subswarm.algorithms.two_d.learning import ranked_features

__all__ = ["Batch", "RandomSearch"]


@dataclass(frozen=True, eq=False)
class Batch(State):
    """The state of an algorithm that remembers nothing: the subsets to evaluate."""

    layout: ClassVar[Layout | None] = Layout()

    masks: Masks


@dataclass(frozen=True, kw_only=True)
class RandomSearch(Algorithm[Batch]):
    """Random baseline: evaluate random subsets.

    Parameters
    ----------
    batch : int, default=30
        Subsets evaluated in a step.
    sizes : "uniform" or "bernoulli"
        Every size is equally likely, or every feature is in with probability ½ (most sizes are near n/2).
    """

    source: ClassVar[str] = "random baseline"

    batch: int = 30
    sizes: str = "uniform"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("batch", self.batch, low=1)
        check_choice("sizes", self.sizes, ("uniform", "bernoulli"))

    def begin(self, n_features: int, rng: Generator) -> Batch:
        masks = self._draw(n_features, rng)
        given = len(self.initial_subsets)
        if given:
            masks[:given] = self.first_masks(self.batch, n_features, rng)[:given]
        return Batch(masks)

    def step(self, state: Batch, fitness: FloatArray, progress: float, rng: Generator) -> Batch:
        return Batch(self._draw(state.masks.shape[1], rng))

    def _draw(self, n_features: int, rng: Generator) -> Masks:
        rules = self.rules(n_features)
        if self.sizes == "bernoulli":
            return rules.random(self.batch, rng)
        low, high = rules.cardinalities
        preferred = np.where(rules.fixed, np.inf, rng.random((self.batch, n_features)))
        masks = ranked_features(preferred, rng.integers(low, high + 1, size=self.batch))
        return rules.legalize(masks, rng, preference=preferred)
