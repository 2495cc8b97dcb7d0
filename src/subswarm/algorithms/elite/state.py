"""The state of an elite swarm, and what it learns: which moves help, and which features many good subsets share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from subswarm._types import FloatArray, IntArray, Mask, Masks, WordArray
from subswarm.algorithms.base import State
from subswarm.algorithms.elite.cross_fit import ELITE_SIZES
from subswarm.algorithms.masks import sizes_of
from subswarm.algorithms.sequential import Walk
from subswarm.algorithms.state import Layout, StatePart

__all__ = ["ADD", "REMOVE", "EliteSwarm", "Moves", "merge_keys", "nested_by_agreement"]

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
        _, particles, n_features = children.shape
        place = np.flatnonzero(before ^ children)
        particle, feature = np.divmod(place, n_features)
        kind = np.where(children.ravel()[place], ADD, REMOVE)
        move = (particle // particles * 2 + kind) * n_features + feature
        tried, helped = (
            np.bincount(chosen, minlength=self.tried.size).reshape(self.tried.shape)
            for chosen in (move, move[better.ravel()[particle]])
        )
        return Moves(memory * self.tried + tried, memory * self.helped + helped)

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
    left_out, searched : losses of each island's candidates on the rows it leaves out, and on those it searched, shape
        (candidates, C); empty before that
    """

    layout: ClassVar[Layout | None] = Layout(
        varying={
            "masks": "children",
            "partitions": "children",
            "visited": "visited",
            "agreed": "agreed",
            "agreed_fitness": "agreed",
            "left_out": "left_out",
            "searched": "left_out",
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
    searched: FloatArray

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
        return sizes_of(self.elite)

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
