"""Who a particle looks at."""

from __future__ import annotations

import numpy as np

from subswarm.algorithms.bests import Bests
from subswarm.core.types import IntArray, Masks

__all__ = ["ring_best"]


def ring_best(bests: Bests, radius: int = 1) -> Masks:
    """nbest: the best personal best among each particle and its ``radius`` neighbours on either side of a ring (D5).

    Of equally good ones a particle takes its own, then the nearest. Shape (P, n).
    """
    return bests.masks[ring_leaders(bests, radius)]


def ring_leaders(bests: Bests, radius: int = 1) -> IntArray:
    """Whose personal best each particle's neighbourhood best is, shape (P,)."""
    count = len(bests.fitness)
    reach = min(radius, count // 2)
    offsets = [0, *(sign * distance for distance in range(1, reach + 1) for sign in (-1, 1))]
    neighbours = (np.arange(count)[:, None] + offsets) % count
    nearest = bests.fitness[neighbours].argmin(axis=1)
    return np.asarray(neighbours[np.arange(count), nearest])
