"""The state of an elite swarm."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from subswarm._types import FloatArray, IntArray, Masks, WordArray
from subswarm.algorithms.base import State
from subswarm.algorithms.elite.cross_fit import ELITE_SIZES
from subswarm.algorithms.elite.moves import Moves
from subswarm.algorithms.layout import Layout
from subswarm.algorithms.sequential import Walk

__all__ = ["EliteSwarm", "merge_keys"]


@dataclass(frozen=True, eq=False)
class EliteSwarm(State):
    """The state of C islands of P particles each on n features.

    Attributes
    ----------
    masks : the subsets to evaluate next, shape (Q, n): children, candidates of the walk, or agreed subsets
    partitions : the repeat to score each child on, that of its island; None for all repeats
    elite : the best subset of each particle, shape (C * P, n)
    fitness : its fitness, infinite before it was evaluated, shape (C * P,)
    stagnation : steps without a better one, shape (C * P,)
    moves : what each island has learnt about moves
    words : a random word for each feature, then for each island; the key of a subset is the sum of its words
    visited : the keys of all subsets visited, ascending
    spent : evaluations so far
    walk : the state of the floating forward search at the start; without masks once it has ended
    walking : whether the masks are candidates of the walk
    agreeing : whether the masks are the subsets that the islands agree on
    agreed, agreed_fitness : those subsets and their losses, shape (A, n) and (A,); empty before they are evaluated
    guide : number of the ranking that each particle was drawn by, 0 for none, shape (C * P,)
    places : place of each feature in the guides' rankings on the rows of each island, and on all rows, shape
        (G, C + 1, n); G is 0 unless the objective is cross-fitted
    left_out : losses of each island's candidates on the rows it leaves out, shape (candidates, C); empty before that
    """

    layout: ClassVar[Layout | None] = Layout(
        varying={
            "masks": "children",
            "partitions": "children",
            "visited": "visited",
            "agreed": "agreed",
            "agreed_fitness": "agreed",
            "left_out": "left_out",
        },
        optional=("partitions",),
        ranges={
            "stagnation": (0, None),
            "spent": (0, None),
            "guide": (0, None),
            "places": (0, "n_features"),
        },
    )

    masks: Masks
    partitions: IntArray | None = field()
    elite: Masks
    fitness: FloatArray
    stagnation: IntArray
    moves: Moves
    words: WordArray
    visited: WordArray
    spent: int
    walk: Walk
    walking: bool
    agreeing: bool
    agreed: Masks
    agreed_fitness: FloatArray
    guide: IntArray
    places: IntArray
    left_out: FloatArray

    def is_consistent(self) -> bool:
        """Return whether the number of masks fits what they are evaluated for."""
        if (self.guide > len(self.places)).any():
            return False
        agreed = len(self.left_out) + ELITE_SIZES * (self.island_count - 1)  # subsets of all islands stand for one
        if len(self.left_out) and len(self.agreed) not in (0, agreed):
            return False
        if self.agreeing:
            return not self.walking
        expected = self.walk.masks if self.walking else self.elite
        return self.partitions is not None and len(self.masks) == len(expected)

    @property
    def island_count(self) -> int:
        """C."""
        return len(self.moves.tried)

    @property
    def islands(self) -> IntArray:
        """The island of each particle, shape (C * P,)."""
        return np.repeat(np.arange(self.island_count), len(self.elite) // self.island_count)

    @property
    def cardinality(self) -> IntArray:
        """The size of each elite subset, shape (C * P,)."""
        return np.asarray(self.elite.sum(axis=1))

    @property
    def cardinality_likelihood(self) -> FloatArray:
        """Share of the elite that has each cardinality 1..n, shape (n,)."""
        return np.bincount(self.cardinality, minlength=self.elite.shape[1] + 1)[1:] / len(self.elite)

    def ranking(self) -> IntArray:
        """Return the particles of each island, shape (C, P), by loss and then by size."""
        order = np.lexsort((self.cardinality, self.fitness, self.islands))
        return np.asarray(order.reshape(self.island_count, -1))


def merge_keys(ascending: WordArray, keys: WordArray) -> WordArray:
    """Return all keys, ascending and without duplicates."""
    if not len(keys):
        return ascending
    both = np.concatenate([ascending, keys])
    both.sort(kind="stable")  # fast, because the keys are two sorted runs or nearly so
    return np.asarray(both[np.append(True, both[1:] != both[:-1])])
