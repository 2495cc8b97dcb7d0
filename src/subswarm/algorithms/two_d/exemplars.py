"""Exemplars: whose personal best a particle learns from, on a ring or feature by feature."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.random import Generator

from subswarm._types import FloatArray, IntArray, Masks
from subswarm.algorithms.bests import Bests

__all__ = ["comprehensive_teachers", "learning_probability", "ring_best", "ring_leaders"]


def ring_best(bests: Bests, radius: int = 1) -> Masks:
    """Return nbest (D5), the best personal best within ``radius`` neighbours on either side of a ring, shape (P, n).

    Ties go to the particle itself, then to the nearest neighbour.
    """
    return bests.masks[ring_leaders(bests, radius)]


def ring_leaders(bests: Bests, radius: int = 1) -> IntArray:
    """Return the particle whose personal best is the best of each particle's neighbourhood, shape (P,)."""
    everyone, neighbours = _ring(len(bests.fitness), radius)
    nearest = bests.fitness[neighbours].argmin(axis=1)
    return np.asarray(neighbours[everyone, nearest])


@lru_cache(maxsize=16)
def _ring(count: int, radius: int) -> tuple[IntArray, IntArray]:
    """Return the particles (P,) and their neighbourhoods (P, K): the particle itself first, then the nearest."""
    reach = min(radius, count // 2)
    offsets = [0, *(sign * distance for distance in range(1, reach + 1) for sign in (-1, 1))]
    everyone = np.arange(count)
    return everyone, (everyone[:, None] + offsets) % count


def learning_probability(particles: int) -> FloatArray:
    """Return Pc of each particle (Liang et al., 2006): from 0.05 for the first to 0.5 for the last, shape (P,)."""
    place = np.arange(particles) / max(particles - 1, 1)
    return np.asarray(0.05 + 0.45 * np.expm1(10 * place) / np.expm1(10))


def comprehensive_teachers(rows: IntArray, n_features: int, fitness: FloatArray, rng: Generator) -> IntArray:
    """Return the particle from whose personal best each of ``rows`` learns each feature, shape (len(rows), n).

    With probability Pc this is the better of two random other particles, otherwise the particle itself. A particle that
    would learn nothing from others learns one random feature from another particle.
    """
    particles, shape = len(fitness), (len(rows), n_features)
    own = np.broadcast_to(rows[:, None], shape)
    first, second = ((own + rng.integers(1, particles, size=shape)) % particles for _ in range(2))
    others = np.where(fitness[second] < fitness[first], second, first)
    from_others = rng.random(shape) < learning_probability(particles)[rows][:, None]
    teachers = np.where(from_others, others, own)
    alone = np.flatnonzero(~from_others.any(axis=1))
    feature = rng.integers(n_features, size=len(alone))
    teachers[alone, feature] = others[alone, feature]
    return teachers
