"""Tabu search: always moves to the best neighbour that is not tabu."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from subswarm._checks import check_int
from subswarm._types import FloatArray, IntArray, Mask, Masks
from subswarm.algorithms.base import Algorithm, State
from subswarm.algorithms.masks import SubsetRules
from subswarm.algorithms.state import Layout

__all__ = ["TabuSearch", "Trail", "chosen_neighbour", "neighbours"]


@dataclass(frozen=True, eq=False)
class Trail(State):
    """The state of a tabu search.

    Attributes
    ----------
    masks : the neighbours to evaluate (at first only the starting subset), shape (C, n)
    current : the current subset, shape (n,)
    tabu_until : the step until which each feature may not be flipped again, shape (n,)
    best : the lowest loss so far
    steps : number of moves
    """

    layout: ClassVar[Layout | None] = Layout(
        varying={"masks": "neighbours"}, ranges={"steps": (0, None), "tabu_until": (-1, None)}
    )

    masks: Masks
    current: Mask
    tabu_until: IntArray
    best: float
    steps: int


@dataclass(frozen=True, kw_only=True)
class TabuSearch(Algorithm[Trail]):
    """Tabu search: moves to the best subset one flip away, unless the flip is tabu and not the best so far.

    A flip that breaks a limit becomes a swap with a random other feature. A step evaluates all n neighbours, or
    ``sample`` of them. The first step evaluates only the starting subset: the first of ``initial_subsets``, or a random
    one.

    Parameters
    ----------
    tenure : int, default=7
        Steps during which a flipped feature may not be flipped back.
    sample : int or None, default=None
        Number of random neighbours to evaluate in a step; None evaluates all.
    min_features, max_features, fixed_features, feature_sizes, initial_subsets
        See `subswarm.algorithms.Algorithm`.
    """

    source: ClassVar[str] = (
        "Glover, ORSA Journal on Computing 1 (1989) 190-206; for features: Zhang, Sun, Pattern Recognition 35 (2002) "
        "701-711"
    )

    tenure: int = 7
    sample: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("tenure", self.tenure, low=0)
        check_int("sample", self.sample, low=1, optional=True)

    def begin(self, n_features: int, rng: Generator) -> Trail:
        start = self.first_masks(max(1, len(self.initial_subsets)), n_features, rng)[:1]
        return Trail(start, start[0].copy(), np.full(n_features, -1, dtype=np.intp), np.inf, 0)

    def step(self, state: Trail, fitness: FloatArray, progress: float, rng: Generator) -> Trail | None:
        chosen = chosen_neighbour(state, fitness)
        current = state.masks[chosen].copy()
        changed = current ^ state.current
        masks = neighbours(current, self.rules(len(current)), rng, self.sample)
        if not len(masks):
            return None
        return Trail(
            masks=masks,
            current=current,
            tabu_until=np.where(changed, state.steps + self.tenure, state.tabu_until),
            best=min(state.best, float(fitness.min())),
            steps=state.steps + 1,
        )


def chosen_neighbour(trail: Trail, fitness: FloatArray) -> int:
    """Return the best neighbour that is not tabu or beats all before; otherwise the one that is free soonest."""
    tabu = np.flatnonzero(trail.tabu_until >= trail.steps)
    flips = trail.masks[:, tabu] ^ trail.current[tabu]
    until = np.where(flips, trail.tabu_until[tabu], -1).max(axis=1, initial=-1)
    allowed = (until < trail.steps) | (fitness < trail.best)
    if allowed.any():
        return int(np.where(allowed, fitness, np.inf).argmin())
    return int(until.argmin())


def neighbours(current: Mask, rules: SubsetRules, rng: Generator, sample: int | None = None) -> Masks:
    """Return the legal subsets one flip away, shape (C, n); a flip that breaks a limit becomes a random swap."""
    free = np.flatnonzero(~rules.fixed)
    if sample is not None and sample < len(free):
        free = np.sort(rng.choice(free, size=sample, replace=False))
    masks = np.repeat(current[None], len(free), axis=0)
    masks[np.arange(len(free)), free] ^= True
    for rows, partners in (
        (~current[free], np.flatnonzero(current & ~rules.fixed)),
        (current[free], np.flatnonzero(~current)),
    ):
        illegal = np.flatnonzero(rows & ~rules.is_legal(masks))
        if len(illegal) and len(partners):
            masks[illegal, rng.choice(partners, size=len(illegal))] ^= True
    masks = rules.legalize(masks, rng)  # a swap of whole groups may still break a limit
    return np.asarray(masks[(masks ^ current).any(axis=1)])
