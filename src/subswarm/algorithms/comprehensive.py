"""Comprehensive learning (Liang, Qin, Suganthan, Baskar, 2006): whom a particle learns each feature from."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from subswarm.core.types import FloatArray, IntArray

__all__ = ["comprehensive_teachers", "learning_probability"]


def learning_probability(particles: int) -> FloatArray:
    """Pc of each particle: from 0.05 for the first to 0.5 for the last, shape (P,)."""
    place = np.arange(particles) / max(particles - 1, 1)
    return np.asarray(0.05 + 0.45 * np.expm1(10 * place) / np.expm1(10))


def comprehensive_teachers(rows: IntArray, n_features: int, fitness: FloatArray, rng: Generator) -> IntArray:
    """Whose personal best each of these particles learns each feature from, shape (len(rows), n).

    With probability Pc the better of two random others, else the particle itself; where it would learn nothing from
    others, one random feature comes from a random other.
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
