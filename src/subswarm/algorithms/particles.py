"""What particle swarms share: their personal bests, and settings that follow their success (parameter control).

Under control, each particle draws its own settings at every step, around the centres of a history. A step in which
personal bests improved replaces the oldest centre by the mean of the settings that improved them, weighted by how much.
This is the success history of SHADE (Tanabe and Fukunaga 2013).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from subswarm._checks import as_tuple, check_bool, check_choice
from subswarm._types import FloatArray, Mask, Masks
from subswarm.algorithms.state import Layout, StatePart

__all__ = ["Bests", "Control", "controlled_settings", "first_bests", "improved", "updated"]


@dataclass(frozen=True, eq=False)
class Bests(StatePart):
    """Personal bests of all particles.

    Attributes
    ----------
    masks : the best position of each particle, shape (P, n)
    fitness : its fitness, shape (P,)
    leader : index of the particle whose personal best is the global best
    """

    layout: ClassVar[Layout | None] = Layout(ranges={"leader": (0, "masks")})

    masks: Masks
    fitness: FloatArray
    leader: int

    @property
    def global_best(self) -> Mask:
        """The global best subset, shape (n,)."""
        return np.asarray(self.masks[self.leader])

    @property
    def global_fitness(self) -> float:
        return float(self.fitness[self.leader])


def first_bests(masks: Masks) -> Bests:
    """Return the bests before the first evaluation; their losses are infinite, so that any evaluation improves them."""
    return Bests(masks.copy(), np.full(len(masks), np.inf), 0)


def improved(bests: Bests, masks: Masks, fitness: FloatArray, *, parsimonious: bool = False) -> Mask:
    """Return which particles beat their personal best: strictly, or if parsimonious (D7) with fewer features."""
    better = fitness < bests.fitness
    if parsimonious:
        better |= (fitness == bests.fitness) & (masks.sum(axis=1) < bests.masks.sum(axis=1))
    return np.asarray(better)


def updated(bests: Bests, masks: Masks, fitness: FloatArray, better: Mask, *, parsimonious: bool = False) -> Bests:
    """Return the bests after the ``better`` particles improved; the leader changes only for a better one (D7)."""
    if not better.any():
        return bests
    kept, values = bests.masks.copy(), np.where(better, fitness, bests.fitness)
    kept[better] = masks[better]
    leader = bests.leader
    sizes = kept.sum(axis=1) if parsimonious else np.zeros(len(kept), dtype=np.intp)
    challenger = int(np.lexsort((sizes, values))[0]) if parsimonious else int(np.argmin(values))
    if (values[challenger], sizes[challenger]) < (values[leader], sizes[leader]):
        leader = challenger
    return Bests(kept, values, leader)


HISTORY = 6
"""Centres that are remembered for each setting."""

_RANGES = {
    "inertia": (0.0, 1.2, 0.1),
    "cognitive": (0.0, 4.0, 0.3),
    "social": (0.0, 4.0, 0.3),
    "acceleration": (0.0, 4.0, 0.3),
    "unification": (0.0, 1.0, 0.1),
    "refresh_gap": (1.0, 20.0, 1.5),
}
"""Lowest and highest value of each setting, and the standard deviation of the draws around a centre."""


def controlled_settings(adaptive: bool, wanted: object, known: tuple[str, ...]) -> tuple[str, ...]:
    """Return the settings to control: none if not ``adaptive``, all known ones if None are wanted.

    Examples
    --------
    >>> controlled_settings(True, ["social"], ("inertia", "social"))
    ('social',)
    >>> controlled_settings(True, None, ("inertia", "social"))
    ('inertia', 'social')
    """
    check_bool("adaptive", adaptive)
    names = known if wanted is None else as_tuple("adaptive_settings", wanted, of="settings")
    for name in names:
        check_choice("each of adaptive_settings", name, known)
    return names if adaptive else ()


@dataclass(frozen=True, eq=False)
class Control(StatePart):
    """What a swarm of P particles knows about its K controlled settings.

    Attributes
    ----------
    centres : the history, shape (HISTORY, K)
    drawn : the settings of each particle in this step, shape (P, K)
    oldest : the centre that is replaced next
    """

    layout: ClassVar[Layout | None] = Layout(ranges={"oldest": (0, "centres")})

    centres: FloatArray
    drawn: FloatArray
    oldest: int

    @classmethod
    def begin(cls, published: tuple[float, ...], particles: int) -> Control:
        """Return the control before the first step: every centre and every particle has the published settings."""
        return cls(np.tile(published, (HISTORY, 1)), np.tile(published, (particles, 1)), 0)

    def after(self, better: Mask, gain: FloatArray) -> Control:
        """Return what is known after a step in which the ``better`` particles improved by ``gain``, shape (P,)."""
        known = better & np.isfinite(gain)
        if not known.any():
            return self
        weights, values = gain[known], self.drawn[known]
        largest = weights.max()
        weights = weights / largest if largest > 0 else np.ones_like(weights)
        centres = self.centres.copy()
        centres[self.oldest] = weights @ values / weights.sum()
        return Control(centres, self.drawn, (self.oldest + 1) % HISTORY)

    def redrawn(self, names: tuple[str, ...], rng: Generator) -> Control:
        """Return the control with new settings for each particle."""
        low, high, spread = np.array([_RANGES[name] for name in names]).T
        centre = self.centres[rng.integers(HISTORY, size=len(self.drawn))]
        drawn = np.clip(centre + spread * rng.standard_normal(centre.shape), low, high)
        return Control(self.centres, drawn, self.oldest)
