"""Personal bests of a swarm and its global best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from subswarm._types import FloatArray, Mask, Masks
from subswarm.algorithms.layout import Layout, StatePart

__all__ = ["Bests", "first_bests", "improved", "updated"]


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
