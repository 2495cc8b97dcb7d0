"""What a swarm remembers: each particle's best position, and whose is the best of all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from subswarm.core.types import FloatArray, Mask, Masks

__all__ = ["Bests", "first_bests", "improved", "updated"]


@dataclass(frozen=True, eq=False)
class Bests:
    """Personal bests, as copies that no later move can change.

    Attributes
    ----------
    masks : the best position of each particle, shape (P, n)
    fitness : its fitness, shape (P,)
    leader : whose personal best is the global best
    """

    masks: Masks
    fitness: FloatArray
    leader: int

    @property
    def global_best(self) -> Mask:
        """gbest, shape (n,)."""
        return np.asarray(self.masks[self.leader])

    @property
    def global_fitness(self) -> float:
        return float(self.fitness[self.leader])


def first_bests(masks: Masks) -> Bests:
    """Bests before anything was evaluated: infinitely bad, so that the first evaluation improves on all of them."""
    return Bests(masks.copy(), np.full(len(masks), np.inf), 0)


def improved(bests: Bests, masks: Masks, fitness: FloatArray, *, parsimonious: bool = False) -> NDArray[np.bool_]:
    """Which particles beat their personal best: strictly, or (parsimonious, D7) equally well with fewer features."""
    better = fitness < bests.fitness
    if parsimonious:
        better |= (fitness == bests.fitness) & (masks.sum(axis=1) < bests.masks.sum(axis=1))
    return np.asarray(better)


def updated(
    bests: Bests, masks: Masks, fitness: FloatArray, better: NDArray[np.bool_], *, parsimonious: bool = False
) -> Bests:
    """The bests after a step in which the ``better`` particles improved; only a better one leads (D7)."""
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
