"""What a swarm learns of moves: on both dimensions, the likelihood that one helps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from subswarm.core.types import FloatArray, Mask, Masks

__all__ = ["ADD", "REMOVE", "Moves"]

ADD, REMOVE = 0, 1
"""The two kinds of move, an axis of what is learnt of them."""

_LEAST = 1e-9
"""Keeps what was learnt from vanishing where nothing has helped for very long."""


@dataclass(frozen=True, eq=False)
class Moves:
    """What each of C clans has learnt of moves, recent ones weighing more.

    Attributes
    ----------
    tried : how often each feature was added and removed, shape (C, 2, n)
    helped : how often that gave a better subset, shape (C, 2, n)
    """

    tried: FloatArray
    helped: FloatArray

    @classmethod
    def unknown(cls, clans: int, n_features: int) -> Moves:
        """As if one move in ten had helped, additions as often as removals."""
        even = np.full((clans, 2, n_features), 1 / n_features)
        return cls(10 * even, even)

    def after(self, before: Masks, children: Masks, better: Mask, memory: float) -> Moves:
        """With one more step: from where to where each particle moved, (C, P, n), and whether that helped, (C, P)."""
        moves = np.stack([children & ~before, before & ~children], axis=1)
        helped = (moves & better[:, None, :, None]).sum(axis=2)
        return Moves(memory * self.tried + moves.sum(axis=2), memory * self.helped + helped)

    def likelihood(self, caution: float) -> FloatArray:
        """That adding and removing each feature helps, shape (C, 2, n), drawn to the mean of all by so many tries."""
        tried, helped = (_LEAST + each.sum(axis=2, keepdims=True) for each in (self.tried, self.helped))
        return np.asarray((self.helped + caution * helped / tried) / (self.tried + caution))

    def direction(self) -> FloatArray:
        """How many features to add and to remove, shape (C, 2): one each at first, then more of what has helped."""
        helped = _LEAST + self.helped.sum(axis=2)
        return np.asarray(2 * helped / helped.sum(axis=1, keepdims=True))
