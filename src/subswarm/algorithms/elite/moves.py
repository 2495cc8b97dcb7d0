"""What an elite swarm learns: which moves help, and which features many good subsets have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from subswarm._types import FloatArray, Mask, Masks
from subswarm.algorithms.layout import Layout, StatePart

__all__ = ["ADD", "REMOVE", "Moves", "nested_by_agreement"]

ADD, REMOVE = 0, 1
"""Indices of the two kinds of move."""

_LEAST = 1e-9
"""Keeps the sums above zero if nothing has helped for very long."""


@dataclass(frozen=True, eq=False)
class Moves(StatePart):
    """What each of C islands has learnt about moves; recent moves weigh more.

    Attributes
    ----------
    tried : how often each feature was added and removed, shape (C, 2, n)
    helped : how often that led to a better subset, shape (C, 2, n)
    """

    layout: ClassVar[Layout | None] = Layout()

    tried: FloatArray
    helped: FloatArray

    @classmethod
    def unknown(cls, islands: int, n_features: int) -> Moves:
        """Return the prior: one move in ten helps, additions as often as removals."""
        even = np.full((islands, 2, n_features), 1 / n_features)
        return cls(10 * even, even)

    def after(self, before: Masks, children: Masks, better: Mask, memory: float) -> Moves:
        """Return what is known after a step to these children (C, P, n); ``better`` (C, P) tells which helped."""
        moves = np.stack([children & ~before, before & ~children], axis=1)
        helped = (moves & better[:, None, :, None]).sum(axis=2)
        return Moves(memory * self.tried + moves.sum(axis=2), memory * self.helped + helped)

    def likelihood(self, caution: float) -> FloatArray:
        """Return the likelihood that adding and removing each feature helps, shape (C, 2, n).

        It is shrunk towards the mean of all moves, which weighs as much as ``caution`` tries.
        """
        tried, helped = (_LEAST + each.sum(axis=2, keepdims=True) for each in (self.tried, self.helped))
        return np.asarray((self.helped + caution * helped / tried) / (self.tried + caution))

    def direction(self) -> FloatArray:
        """Return how many features to add and to remove, shape (C, 2): one each at first, then more of what helped."""
        helped = _LEAST + self.helped.sum(axis=2)
        return np.asarray(2 * helped / helped.sum(axis=1, keepdims=True))


def nested_by_agreement(subsets: Masks, count: int) -> tuple[Masks, FloatArray]:
    """Return the prefixes of a ranking by votes for at most ``count`` sizes, and the votes.

    The votes of a feature are the share of the subsets that contain it; ties are broken by index. The sizes are spaced
    geometrically up to twice the mean size of the subsets.

    Examples
    --------
    >>> subsets = np.array([[1, 1, 0, 0], [1, 0, 0, 1], [1, 0, 0, 1]], dtype=bool)
    >>> nested, votes = nested_by_agreement(subsets, 3)
    >>> nested.astype(int)
    array([[1, 0, 0, 0],
           [1, 0, 0, 1],
           [1, 1, 1, 1]])
    """
    n_features = subsets.shape[1]
    votes = subsets.mean(axis=0)
    place = np.empty(n_features, dtype=np.intp)
    place[np.argsort(-votes, kind="stable")] = np.arange(n_features)
    largest = min(n_features, max(2.0, 2 * float(subsets.sum(axis=1).mean())))
    sizes = np.unique(np.round(np.geomspace(1, largest, count)).astype(np.intp))
    return place < sizes[:, None], np.asarray(votes)
