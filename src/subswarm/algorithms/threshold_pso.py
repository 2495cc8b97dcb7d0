"""Continuous swarms on [0, 1]ⁿ: a feature is selected if its coordinate is above a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from subswarm._checks import check_bool, check_int, check_real
from subswarm._types import FloatArray, IntArray, Masks
from subswarm.algorithms.base import Algorithm, State
from subswarm.algorithms.particles import Bests, first_bests, improved, updated
from subswarm.algorithms.state import Layout
from subswarm.algorithms.two_d.learning import ranked_features

__all__ = ["PSO42", "ErFS", "ThresholdSwarm", "mixed_sizes", "points_of"]


@dataclass(frozen=True, eq=False)
class ThresholdSwarm(State):
    """The state of a continuous swarm of P particles on n features.

    Attributes
    ----------
    masks : coordinates above the threshold, shape (P, n)
    position, velocity : shape (P, n)
    bests : personal bests as masks, and the leader
    best_position : position of each particle at its personal best, shape (P, n)
    """

    layout: ClassVar[Layout | None] = Layout()

    masks: Masks
    position: FloatArray
    velocity: FloatArray
    bests: Bests
    best_position: FloatArray


@dataclass(frozen=True, kw_only=True)
class ErFS(Algorithm[ThresholdSwarm]):
    """ErFS: a continuous swarm with a threshold that minimises the error only.

    Positions start uniformly on [0, 1]ⁿ and are clipped to it; velocities start at 0 and have no bounds. A step
    evaluates ``particles`` subsets.

    Parameters
    ----------
    particles : int, default=30
    inertia : float, default=0.729
        ω.
    cognitive, social : float, default=1.49
        c₁ and c₂.
    threshold : float, default=0.6
        A feature is selected if its coordinate is above this value.
    parsimonious : bool, default=False
        Whether an equally good but smaller subset becomes a best.
    min_features, max_features, fixed_features, feature_sizes, initial_subsets
        See `subswarm.algorithms.Algorithm`.
    """

    source: ClassVar[str] = (
        "Lin, Ying, Chen, Lee, Expert Systems with Applications 35 (2008) 1817-1824; "
        "Xue, Zhang, Browne, IEEE Trans. Cybernetics 43 (2013) 1656-1671"
    )

    particles: int = 30
    inertia: float = 0.729
    cognitive: float = 1.49
    social: float = 1.49
    threshold: float = 0.6
    parsimonious: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("particles", self.particles, low=1)
        check_real("inertia", self.inertia, low=0)
        check_real("cognitive", self.cognitive, low=0)
        check_real("social", self.social, low=0)
        check_real("threshold", self.threshold, low=0, high=1)
        check_bool("parsimonious", self.parsimonious)

    def first_positions(self, n_features: int, rng: Generator) -> FloatArray:
        """Return the first positions of the particles, shape (P, n); variants override this."""
        return rng.random((self.particles, n_features))

    def begin(self, n_features: int, rng: Generator) -> ThresholdSwarm:
        position = self.first_positions(n_features, rng)
        if self.initial_subsets:
            given = self.first_masks(self.particles, n_features, rng)[: len(self.initial_subsets)]
            position[: len(given)] = points_of(given, self.threshold, rng)
        masks = self._masks(position, rng)
        return ThresholdSwarm(masks, position, np.zeros_like(position), first_bests(masks), position)

    def rivals(self, state: ThresholdSwarm) -> Masks:
        return state.bests.masks

    def step(self, state: ThresholdSwarm, fitness: FloatArray, progress: float, rng: Generator) -> ThresholdSwarm:
        better = improved(state.bests, state.masks, fitness, parsimonious=self.parsimonious)
        bests = updated(state.bests, state.masks, fitness, better, parsimonious=self.parsimonious)
        best_position = np.where(better[:, None], state.position, state.best_position)
        own, leading = (weight * rng.random(state.position.shape) for weight in (self.cognitive, self.social))
        velocity = self.inertia * state.velocity
        velocity += own * (best_position - state.position)
        velocity += leading * (best_position[bests.leader] - state.position)
        position = np.clip(state.position + velocity, 0.0, 1.0)
        return ThresholdSwarm(self._masks(position, rng), position, velocity, bests, best_position)

    def _masks(self, position: FloatArray, rng: Generator) -> Masks:
        rules = self.rules(position.shape[1])
        return rules.legalize(position > self.threshold, rng, preference=position)


@dataclass(frozen=True, kw_only=True)
class PSO42(ErFS):
    """PSO(4-2): starts with mostly small and some large subsets; the smaller of equally good subsets wins.

    Parameters
    ----------
    small_share : float, default=2/3
        Share of the swarm that starts with few features; the others start with a random number from n/2 to n.
    small_size : float, default=0.1
        Size of these subsets as a share of the features (at least one feature).
    """

    source: ClassVar[str] = "Xue, Zhang, Browne, Applied Soft Computing 18 (2014) 261-276"

    parsimonious: bool = True
    small_share: float = 2 / 3
    small_size: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("small_share", self.small_share, low=0, high=1)
        check_real("small_size", self.small_size, low=0, high=1)

    def first_positions(self, n_features: int, rng: Generator) -> FloatArray:
        small = round(self.small_share * self.particles)
        sizes = mixed_sizes(n_features, small, self.particles - small, self.small_size, rng)
        masks = ranked_features(rng.random((self.particles, n_features)), sizes)
        return points_of(masks, self.threshold, rng)


def mixed_sizes(n_features: int, small: int, large: int, share: float, rng: Generator) -> IntArray:
    """Return the sizes of the first subsets: ``small`` of ``share`` n features, ``large`` from U{n/2, ..., n}."""
    few = max(1, round(share * n_features))
    many = rng.integers(max(1, n_features // 2), n_features + 1, size=large)
    return np.concatenate([np.full(small, few, dtype=np.intp), many.astype(np.intp)])


def points_of(masks: Masks, threshold: float, rng: Generator) -> FloatArray:
    """Random points of [0, 1]ⁿ that the threshold turns into these masks."""
    draw = 1.0 - rng.random(masks.shape)  # in (0, 1], so that a selected coordinate is above the threshold
    return np.where(masks, threshold + (1.0 - threshold) * draw, threshold * (1.0 - draw))
