"""Boolean PSO: velocities from the Boolean operations and, or and exclusive or."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from subswarm._checks import check_int, check_real
from subswarm._types import FloatArray, Masks
from subswarm.algorithms.base import Algorithm, State
from subswarm.algorithms.particles import Bests, first_bests, improved, updated
from subswarm.algorithms.state import Layout
from subswarm.algorithms.two_d.learning import ranked_features

__all__ = ["BooleanPSO", "BooleanSwarm", "at_most", "boolean_velocity"]


@dataclass(frozen=True, eq=False)
class BooleanSwarm(State):
    """Positions and velocities as bits, both of shape (P, n), and the bests."""

    layout: ClassVar[Layout | None] = Layout()

    masks: Masks
    velocity: Masks
    bests: Bests


@dataclass(frozen=True, kw_only=True)
class BooleanPSO(Algorithm[BooleanSwarm]):
    """Boolean PSO: random bits are flipped in which a particle differs from its personal best and the global best.

    v = (ω ∧ v) ∨ (c₁ ∧ (pbest ⊕ x)) ∨ (c₂ ∧ (gbest ⊕ x)) and x = x ⊕ v, with random bits ω, c₁ and c₂. A step
    evaluates ``particles`` subsets.

    Parameters
    ----------
    particles : int, default=30
    inertia, cognitive, social : float, default=0.1, 0.5 and 0.5
        Probabilities that a bit of ω, c₁ and c₂ is one.
    max_velocity : int or None, default=2
        Maximum number of bits that a particle flips in a step; if there are more, a random selection is flipped. None
        sets no limit; then the swarm soon converges, because a bit that is equal in all particles cannot change.
    min_features, max_features, fixed_features, feature_sizes, initial_subsets
        See `subswarm.algorithms.Algorithm`.
    """

    source: ClassVar[str] = (
        "Marandi, Afshinmanesh, Shahabadi, Bahrami, IEEE Congress on Evolutionary Computation (2006) 3212-3218; for "
        "features: Gunasundari, Janakiraman, Meenambal, Expert Systems with Applications 56 (2016) 28-47"
    )

    particles: int = 30
    inertia: float = 0.1
    cognitive: float = 0.5
    social: float = 0.5
    max_velocity: int | None = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("particles", self.particles, low=1)
        for name in ("inertia", "cognitive", "social"):
            check_real(name, getattr(self, name), low=0, high=1)
        check_int("max_velocity", self.max_velocity, low=1, optional=True)

    def begin(self, n_features: int, rng: Generator) -> BooleanSwarm:
        masks = self.first_masks(self.particles, n_features, rng)
        return BooleanSwarm(masks, self._bounded(rng.random(masks.shape) < 0.5, rng), first_bests(masks))

    def rivals(self, state: BooleanSwarm) -> Masks:
        return state.bests.masks

    def step(self, state: BooleanSwarm, fitness: FloatArray, progress: float, rng: Generator) -> BooleanSwarm:
        better = improved(state.bests, state.masks, fitness)
        bests = updated(state.bests, state.masks, fitness, better)
        shape = state.masks.shape
        inertia, own, leading = (rng.random(shape) < p for p in (self.inertia, self.cognitive, self.social))
        velocity = boolean_velocity(state.velocity, state.masks, bests, inertia, own, leading)
        velocity = self._bounded(velocity, rng)
        masks = self.rules(shape[1]).legalize(state.masks ^ velocity, rng)
        return BooleanSwarm(masks, velocity, bests)

    def _bounded(self, velocity: Masks, rng: Generator) -> Masks:
        return velocity if self.max_velocity is None else at_most(self.max_velocity, velocity, rng)


def boolean_velocity(velocity: Masks, masks: Masks, bests: Bests, inertia: Masks, own: Masks, leading: Masks) -> Masks:
    """(ω ∧ v) ∨ (c₁ ∧ (pbest ⊕ x)) ∨ (c₂ ∧ (gbest ⊕ x)), shape (P, n)."""
    return np.asarray(
        (inertia & velocity) | (own & (bests.masks ^ masks)) | (leading & (bests.global_best ^ masks)), dtype=bool
    )


def at_most(count: int, bits: Masks, rng: Generator) -> Masks:
    """Return the bits with a random selection of at most ``count`` ones in each row."""
    if count >= bits.shape[1]:
        return bits
    preferred = np.where(bits, rng.random(bits.shape), -1.0)
    return bits & ranked_features(preferred, np.full(len(bits), count, dtype=np.intp))
