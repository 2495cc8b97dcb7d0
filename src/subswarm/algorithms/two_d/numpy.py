"""The most expensive computations of `learning` in NumPy, used if numba is not installed or not loaded."""

from __future__ import annotations

import numpy as np

from subswarm._types import FloatArray, IntArray, Masks

__all__ = ["add_pull", "ranked_features", "roulette_slots"]


def add_pull(velocity: FloatArray, exemplar: Masks, position: Masks, weight: FloatArray, whole_exemplar: bool) -> None:
    """Add ``weight`` times what the particles at ``position`` learn from exemplars (P or 1, n), in place.

    The weight has shape (P, 1 or 2, 1 or n).
    """
    sizes = exemplar.sum(axis=1)
    taught = np.flatnonzero(np.broadcast_to(sizes, len(velocity)))
    entry = sizes[taught % len(sizes)] - 1
    velocity[taught, 0, entry] += weight[taught, 0, entry % weight.shape[2]]
    velocity[:, 1] += weight[:, -1] * (exemplar if whole_exemplar else np.greater(exemplar, position))


def roulette_slots(likelihood: FloatArray, turn: FloatArray, raw: bool) -> IntArray:
    """Return the slot at which each wheel of likelihoods (P, n) stops; negative ones count as 0 unless ``raw``."""
    if not raw:
        likelihood = np.maximum(likelihood, 0.0)
        hopeless = ~(likelihood.max(axis=1) > 0)
        if hopeless.any():
            likelihood[hopeless] = 1.0
    cumulative = np.cumsum(likelihood, axis=1)
    reached = cumulative >= (turn * cumulative[:, -1])[:, None]
    slots = reached.argmax(axis=1)
    return np.asarray(np.where(reached[np.arange(len(slots)), slots], slots, likelihood.shape[1] - 1))


def ranked_features(likelihood: FloatArray, cardinality: IntArray) -> Masks:
    """Return the ``cardinality`` most likely features of each particle, shape (P, n); ties are broken by index.

    Rounding to float32 keeps the order and makes sorting twice as fast. A particle with ties at the limit is sorted in
    full precision.
    """
    with np.errstate(over="ignore"):
        rough = likelihood.astype(np.float32)
    limit = np.take_along_axis(np.sort(rough, axis=1), likelihood.shape[1] - cardinality[:, None], axis=1)
    masks = rough >= limit
    surplus = np.flatnonzero(masks.sum(axis=1) > cardinality)
    for p in surplus:
        order = np.argsort(-likelihood[p], kind="stable")
        masks[p] = False
        masks[p, order[: cardinality[p]]] = True
    return masks
