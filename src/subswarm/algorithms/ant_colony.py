"""Ant colony on a binary graph: each feature has an edge that selects it and one that does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from subswarm._checks import check_int, check_real
from subswarm._types import FloatArray, Masks
from subswarm.algorithms.base import Algorithm, State
from subswarm.algorithms.state import Layout
from subswarm.errors import SettingError

__all__ = ["EXCLUDE", "INCLUDE", "AntColony", "Colony", "inclusion_probability", "renewed_pheromone"]

EXCLUDE, INCLUDE = 0, 1
"""The rows of the pheromone."""


@dataclass(frozen=True, eq=False)
class Colony(State):
    """The paths of the ants, shape (P, n), and the pheromone τ on the edges, shape (2, n)."""

    layout: ClassVar[Layout | None] = Layout()

    masks: Masks
    pheromone: FloatArray


@dataclass(frozen=True, kw_only=True)
class AntColony(Algorithm[Colony]):
    """Ant colony: an ant selects a feature with probability τ₁/(τ₀ + τ₁), from the pheromone on its two edges.

    There is no heuristic term. A step evaluates ``ants`` subsets.

    Parameters
    ----------
    ants : int, default=50
    evaporation : float, default=0.2
        Share of the pheromone that evaporates in each step.
    elite : float, default=0.1
        Share of the ants, the best of the step, that deposit pheromone (at least one ant).
    deposit_divisor : float, default=5
        a: an ant with loss J deposits (1 - J)/a on each edge of its path.
    min_pheromone, max_pheromone : float, default=0.3 and 1.5
        Bounds of τ, which starts at 1.
    min_features, max_features, fixed_features, feature_sizes, initial_subsets
        See `subswarm.algorithms.Algorithm`.
    """

    source: ClassVar[str] = "Yu, Gu, Liu, Shen, Zhao, Genomics, Proteomics & Bioinformatics 7 (2009) 200-208"

    ants: int = 50
    evaporation: float = 0.2
    elite: float = 0.1
    deposit_divisor: float = 5.0
    min_pheromone: float = 0.3
    max_pheromone: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("ants", self.ants, low=1)
        check_real("evaporation", self.evaporation, low=0, high=1)
        check_real("elite", self.elite, low=0, high=1)
        check_real("deposit_divisor", self.deposit_divisor, above=0)
        check_real("min_pheromone", self.min_pheromone, above=0)
        check_real("max_pheromone", self.max_pheromone, above=0)
        if self.min_pheromone > self.max_pheromone:
            raise SettingError(
                f"min_pheromone={self.min_pheromone} is more than max_pheromone={self.max_pheromone}; widen them."
            )

    def begin(self, n_features: int, rng: Generator) -> Colony:
        start = np.clip(1.0, self.min_pheromone, self.max_pheromone)
        return Colony(self.first_masks(self.ants, n_features, rng), np.full((2, n_features), start))

    def step(self, state: Colony, fitness: FloatArray, progress: float, rng: Generator) -> Colony:
        best = np.argsort(fitness, kind="stable")[: max(1, round(self.elite * self.ants))]
        left = np.maximum(1.0 - fitness[best], 0.0) / self.deposit_divisor
        pheromone = np.clip(
            renewed_pheromone(state.pheromone, state.masks[best], left, self.evaporation),
            self.min_pheromone,
            self.max_pheromone,
        )
        chance = inclusion_probability(pheromone)
        masks = rng.random(state.masks.shape) < chance
        preferred = np.broadcast_to(chance, masks.shape) * rng.random(masks.shape) if self._is_limited else None
        return Colony(self.rules(masks.shape[1]).legalize(masks, rng, preference=preferred), pheromone)

    @property
    def _is_limited(self) -> bool:
        return self.min_features > 1 or self.max_features is not None


def inclusion_probability(pheromone: FloatArray) -> FloatArray:
    """Return the probability that an ant selects each feature, shape (n,)."""
    return np.asarray(pheromone[INCLUDE] / pheromone.sum(axis=0))


def renewed_pheromone(pheromone: FloatArray, paths: Masks, left: FloatArray, evaporation: float) -> FloatArray:
    """Return τ after evaporation and the deposits ``left`` by these ants on their paths, before clipping.

    Examples
    --------
    >>> renewed_pheromone(np.ones((2, 2)), np.array([[True, False]]), np.array([0.18]), 0.2).round(6).tolist()
    [[0.8, 0.98], [0.98, 0.8]]
    """
    renewed = (1.0 - evaporation) * pheromone
    renewed[INCLUDE] += left @ paths
    renewed[EXCLUDE] += left @ ~paths
    return renewed
