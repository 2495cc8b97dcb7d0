"""Who a particle looks at."""

from __future__ import annotations

from functools import lru_cache

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
    everyone, neighbours = _ring(len(bests.fitness), radius)
    nearest = bests.fitness[neighbours].argmin(axis=1)
    return np.asarray(neighbours[everyone, nearest])


@lru_cache(maxsize=16)
def _ring(count: int, radius: int) -> tuple[IntArray, IntArray]:
    """The particles, (P,), and each one's neighbourhood, itself first, then the nearest, (P, K)."""
    reach = min(radius, count // 2)
    offsets = [0, *(sign * distance for distance in range(1, reach + 1) for sign in (-1, 1))]
    everyone = np.arange(count)
    return everyone, (everyone[:, None] + offsets) % count
