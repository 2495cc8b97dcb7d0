"""Children of an elite on a wide table: random numbers are drawn for the features in play, not for all of them."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from subswarm._types import AnyArray, FloatArray, IntArray, Mask, Masks
from subswarm.algorithms.elite.numpy import CHOICES, mates_of
from subswarm.algorithms.elite.state import ADD, REMOVE

__all__ = ["WIDE", "breed_few"]

WIDE = 2000
"""Children of tables with more features than this are made by `breed_few`."""


def breed_few(
    elite: Masks,
    order: IntArray,
    place: IntArray,
    parents: IntArray,
    particles: int,
    radius: int,
    progress: float,
    recombination: float,
    likelihood: FloatArray,
    expected: FloatArray,
    fixed: Mask,
    rng: Generator,
) -> Masks:
    """Return one child for each of ``parents``; the arguments are those of `elite.numpy.bred`.

    Where the parents agree, nothing is drawn. The number of features to add is drawn from a Poisson distribution, and
    then which ones they are, instead of a draw for each absent feature. As each is added with a small probability, the
    distribution of the children is nearly the same.
    """
    island = parents // particles
    draws = rng.random((len(parents), CHOICES))
    mates = mates_of(order, place, parents, particles, radius, progress, draws)
    masks = elite[parents]
    row, column = _entries(masks ^ elite[mates])
    swapped = rng.random(len(row)) < (recombination * draws[:, 0])[row]
    masks[row[swapped], column[swapped]] ^= True

    row, column = _entries(masks)
    weights = np.where(fixed[column], 0.0, likelihood[island[row], REMOVE, column])
    scale = _ratios(expected[island, REMOVE], np.bincount(row, weights, minlength=len(masks)))
    removed = rng.random(len(row)) < weights * scale[row]

    new_row, new_column = _additions(masks, row, column, island, likelihood[:, ADD], expected[:, ADD], rng)
    masks[row[removed], column[removed]] = False
    masks[new_row, new_column] = True
    return masks


def _additions(
    masks: Masks,
    row: IntArray,
    column: IntArray,
    island: IntArray,
    likelihood: FloatArray,
    expected: FloatArray,
    rng: Generator,
) -> tuple[IntArray, IntArray]:
    """Return where absent features are added: the child and the feature of each.

    Features are drawn from all of them, and the present ones (``row`` and ``column``) are left out. So more of them are
    drawn than are expected to be added.
    """
    up_to = np.cumsum(likelihood, axis=1)
    whole = up_to[island, -1]
    absent = whole - np.bincount(row, likelihood[island[row], column], minlength=len(masks))
    counts = rng.poisson(expected[island] * whole * _ratios(np.ones(len(masks)), np.maximum(absent, 0.0)))
    child = np.repeat(np.arange(len(masks)), np.minimum(counts, masks.shape[1]))
    points = rng.random(len(child)) * whole[child]
    feature = np.empty(len(child), dtype=np.intp)
    for number, sums in enumerate(up_to):
        own = island[child] == number
        feature[own] = np.searchsorted(sums, points[own], side="right")
    np.minimum(feature, masks.shape[1] - 1, out=feature)
    is_new = ~masks[child, feature]
    return child[is_new], feature[is_new]


def _entries(masks: Masks) -> tuple[IntArray, IntArray]:
    """Return the row and the column of each True."""
    return np.divmod(np.flatnonzero(masks), masks.shape[1])  # ten times as fast as nonzero of two dimensions


def _ratios(numbers: FloatArray, sums: AnyArray) -> FloatArray:
    return np.divide(numbers, sums, out=np.zeros(len(sums)), where=sums > 0)
