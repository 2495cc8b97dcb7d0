"""Tabu search: always to the best neighbour, never straight back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from subswarm.algorithms.subset_settings import SubsetSettings
from subswarm.core.checks import check_int
from subswarm.core.masks import SubsetRules
from subswarm.core.types import FloatArray, IntArray, Mask, Masks

__all__ = ["TabuSearch", "Trail", "chosen_neighbour", "neighbours"]


@dataclass(frozen=True, eq=False)
class Trail:
    """Where a tabu search is.

    Attributes
    ----------
    masks : the neighbours to evaluate (at first the start alone), shape (C, n)
    current : where it stands, shape (n,)
    tabu_until : the step up to which each feature may not be flipped again, shape (n,)
    best : the lowest fitness seen
    steps : moves made
    """

    masks: Masks
    current: Mask
    tabu_until: IntArray
    best: float
    steps: int


@dataclass(frozen=True, kw_only=True)
class TabuSearch(SubsetSettings):
    """Tabu search: always to the best subset one flip away, unless the flip is tabu and nothing better than all before.

    A flip that breaks a limit becomes a swap with a random other feature. A step asks all neighbours: n subsets, or
    ``sample`` of them; the first asks the start alone, which is the first of ``initial_subsets`` or a random subset.

    Parameters
    ----------
    tenure : int, default=7
        Steps during which a flipped feature may not be flipped back.
    sample : int or None, default=None
        Try only so many neighbours a step, drawn at random; None tries them all.
    min_features, max_features, fixed_features, feature_sizes, initial_subsets
        See `subswarm.algorithms.SubsetSettings`.
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
    """The best neighbour that is not tabu or beats all before; where all are tabu, the one free the soonest."""
    tabu = np.flatnonzero(trail.tabu_until >= trail.steps)
    flips = trail.masks[:, tabu] ^ trail.current[tabu]
    until = np.where(flips, trail.tabu_until[tabu], -1).max(axis=1, initial=-1)
    open_to_us = (until < trail.steps) | (fitness < trail.best)
    if open_to_us.any():
        return int(np.where(open_to_us, fitness, np.inf).argmin())
    return int(until.argmin())


def neighbours(current: Mask, rules: SubsetRules, rng: Generator, sample: int | None = None) -> Masks:
    """The legal subsets one flip away, a flip that breaks a limit being made good elsewhere at random; shape (C, n)."""
    free = np.flatnonzero(~rules.fixed)
    if sample is not None and sample < len(free):
        free = np.sort(rng.choice(free, size=sample, replace=False))
    masks = np.repeat(current[None], len(free), axis=0)
    masks[np.arange(len(free)), free] ^= True
    for rows, partners in (
        (~current[free], np.flatnonzero(current & ~rules.fixed)),
        (current[free], np.flatnonzero(~current)),
    ):
        broken = np.flatnonzero(rows & ~rules.is_legal(masks))
        if len(broken) and len(partners):
            masks[broken, rng.choice(partners, size=len(broken))] ^= True
    masks = rules.legalize(masks, rng)  # a swap of whole groups may still break a limit
    return np.asarray(masks[(masks ^ current).any(axis=1)])
