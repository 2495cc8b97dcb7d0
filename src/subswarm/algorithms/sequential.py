"""Stepwise searches: add or remove one feature at a time, always by the best such step."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from subswarm._checks import check_bool, check_int
from subswarm._types import FloatArray, Mask, Masks
from subswarm.algorithms.base import Algorithm, AnyAlgorithm, State
from subswarm.algorithms.masks import SubsetRules
from subswarm.algorithms.state import Layout
from subswarm.errors import SettingError

__all__ = [
    "SBFS",
    "SBS",
    "SFFS",
    "SFS",
    "Floating",
    "PlusLMinusR",
    "Stepwise",
    "Walk",
    "one_step_away",
    "opening_search",
    "opening_step_fits",
]


@dataclass(frozen=True, eq=False)
class Walk(State):
    """The state of a stepwise search.

    Attributes
    ----------
    masks : the candidates of the next step, shape (C, n); at first only the starting subset, if it is not empty
    current : the current subset, shape (n,)
    fitness : its loss; infinite before it is evaluated
    records : the lowest loss of each number of features 0..n, shape (n + 1,)
    adding : whether the candidates have one feature more (or one less)
    run : steps in this direction since the last change of direction
    last : the feature changed by the last step in the main direction; -1 before the first
    """

    layout: ClassVar[Layout | None] = Layout(
        varying={"masks": "candidates"}, ranges={"run": (0, None), "last": (-1, "n_features")}
    )

    masks: Masks
    current: Mask
    fitness: float
    records: FloatArray
    adding: bool
    run: int
    last: int

    @classmethod
    def ended(cls, n_features: int) -> Walk:
        """Return a walk without candidates."""
        none = np.zeros(n_features, dtype=bool)
        return cls(none[None][:0], none, np.inf, np.full(n_features + 1, np.inf), True, 0, -1)


@dataclass(frozen=True, kw_only=True)
class Stepwise(Algorithm[Walk]):
    """Base class of all stepwise searches; a variant decides the direction of the next step.

    The search goes from no (or the fixed) features up to ``max_features``, or from all features down to
    ``min_features``. It starts from the first of ``initial_subsets`` if there is one. It evaluates subsets outside the
    limits on its way, and selects the best subset within them, so ``min_features = max_features = k`` searches for
    exactly k features. A step evaluates all candidates, at most n subsets; ties are broken by index.
    """

    takes_best_of_batch: ClassVar[bool] = True
    keeps_last: ClassVar[bool] = False
    """Whether a step back may not undo the step before it."""

    @property
    def forward(self) -> bool:
        """Whether the search starts small and adds features."""
        return True

    @abstractmethod
    def adds_next(self, walk: Walk, moved: bool) -> bool:
        """Return whether the next step adds a feature; ``moved`` tells whether the last step was accepted."""

    def accepts(self, walk: Walk, size: int, fitness: float) -> bool:
        """Return whether the search accepts its best candidate, which has this size and loss."""
        return True

    def passing_rules(self, n_features: int) -> SubsetRules:
        return SubsetRules.of(
            n_features,
            min_features=1 if self.forward else self.min_features,
            max_features=self.max_features if self.forward else None,
            fixed_features=self.fixed_features,
            feature_sizes=self.feature_sizes,
        )

    def begin(self, n_features: int, rng: Generator) -> Walk:
        rules = self.passing_rules(n_features)
        current = self._start(n_features, rng)
        records = np.full(n_features + 1, np.inf)
        masks = current[None] if current.any() else one_step_away(current, True, rules)
        return Walk(masks, current, np.inf, records, self.forward, 0, -1)

    def step(self, state: Walk, fitness: FloatArray, progress: float, rng: Generator) -> Walk | None:
        best = int(np.argmin(fitness))
        moved = self.accepts(state, int(state.masks[best].sum()), float(fitness[best]))
        walk = _moved(state, best, float(fitness[best]), self.forward) if moved else state
        rules = self.passing_rules(len(walk.current))
        for adding in dict.fromkeys((self.adds_next(walk, moved), self.forward)):
            kept = walk.last if self.keeps_last and adding != self.forward else -1
            masks = one_step_away(walk.current, adding, rules, kept)
            if len(masks):
                run = walk.run if adding == walk.adding else 0
                return Walk(masks, walk.current, walk.fitness, walk.records, adding, run, walk.last)
        return None

    def _start(self, n_features: int, rng: Generator) -> Mask:
        if self.initial_subsets:
            return np.asarray(self.passing_rules(n_features).legalize(self.initial_masks(n_features)[:1], rng)[0])
        fixed = self.rules(n_features).fixed
        return fixed.copy() if self.forward else np.ones(n_features, dtype=bool)


def _moved(walk: Walk, chosen: int, fitness: float, forward: bool) -> Walk:
    """Return the state after accepting this candidate."""
    current = walk.masks[chosen].copy()
    changed = np.flatnonzero(current ^ walk.current)
    size = int(current.sum())
    records = walk.records.copy()
    records[size] = min(records[size], fitness)
    last = int(changed[0]) if len(changed) and walk.adding == forward else walk.last
    return Walk(walk.masks, current, fitness, records, walk.adding, walk.run + len(changed), last)


def one_step_away(current: Mask, adding: bool, rules: SubsetRules, kept: int = -1) -> Masks:
    """Return the legal subsets with one feature more (or one less, except ``kept``), in order of index, shape (C, n).

    Examples
    --------
    >>> one_step_away(np.array([True, False, False]), True, SubsetRules.of(3)).astype(int)
    array([[1, 1, 0],
           [1, 0, 1]])
    """
    movable = ~current if adding else current & ~rules.fixed
    if kept >= 0:
        movable[kept] = False
    features = np.flatnonzero(movable)
    masks = np.repeat(current[None], len(features), axis=0)
    masks[np.arange(len(features)), features] = adding
    return np.asarray(masks[rules.is_legal(masks)])


@dataclass(frozen=True, kw_only=True)
class SFS(Stepwise):
    """Sequential forward selection: add the best feature, up to ``max_features``."""

    source: ClassVar[str] = "Whitney, IEEE Trans. Computers C-20 (1971) 1100-1103"

    def adds_next(self, walk: Walk, moved: bool) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class SBS(Stepwise):
    """Sequential backward selection: remove the least useful feature, down to ``min_features``."""

    source: ClassVar[str] = "Marill, Green, IEEE Trans. Information Theory 9 (1963) 11-17"

    @property
    def forward(self) -> bool:
        return False

    def adds_next(self, walk: Walk, moved: bool) -> bool:
        return False


@dataclass(frozen=True, kw_only=True)
class PlusLMinusR(Stepwise):
    """Plus l, take away r: repeats l steps forward and r steps back, until it first reaches its limit.

    Parameters
    ----------
    plus, minus : int, default=2 and 1
        l and r. With l > r the search starts from no features, otherwise from all.
    """

    source: ClassVar[str] = "Stearns, Int. Joint Conf. Pattern Recognition (1976) 71-75"

    plus: int = 2
    minus: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("plus", self.plus, low=1)
        check_int("minus", self.minus, low=1)
        if self.plus == self.minus:
            raise SettingError(
                f"plus and minus must differ, or the search makes no progress; got {self.plus} and {self.minus}."
            )

    @property
    def forward(self) -> bool:
        return self.plus > self.minus

    def adds_next(self, walk: Walk, moved: bool) -> bool:
        if self._has_reached_limit(walk):
            return self.forward
        if walk.run < (self.plus if walk.adding else self.minus):
            return walk.adding
        return not walk.adding

    def _has_reached_limit(self, walk: Walk) -> bool:
        return walk.adding == self.forward and not len(
            one_step_away(walk.current, walk.adding, self.passing_rules(len(walk.current)))
        )


@dataclass(frozen=True, kw_only=True)
class Floating(Stepwise):
    """After each step, steps back follow as long as each one beats the best subset of its size so far.

    Parameters
    ----------
    must_beat_current : bool, default=False
        Whether a step back must also beat the subset it starts from, as in mlxtend.
    """

    keeps_last: ClassVar[bool] = True

    must_beat_current: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bool("must_beat_current", self.must_beat_current)

    def adds_next(self, walk: Walk, moved: bool) -> bool:
        steps_back = moved and walk.run > 0
        return self.forward != steps_back

    def accepts(self, walk: Walk, size: int, fitness: float) -> bool:
        if walk.adding == self.forward:
            return True
        return fitness < walk.records[size] and not (self.must_beat_current and fitness >= walk.fitness)


@dataclass(frozen=True, kw_only=True)
class SFFS(Floating):
    """Sequential floating forward selection."""

    source: ClassVar[str] = "Pudil, Novovičová, Kittler, Pattern Recognition Letters 15 (1994) 1119-1125"


@dataclass(frozen=True, kw_only=True)
class SBFS(Floating):
    """Sequential floating backward selection."""

    source: ClassVar[str] = SFFS.source

    @property
    def forward(self) -> bool:
        return False


def opening_search(algorithm: AnyAlgorithm) -> SFFS:
    """Return the floating forward search with which a swarm may start, within the limits of the swarm."""
    shared = {shared.name: getattr(algorithm, shared.name) for shared in fields(Algorithm)}
    return SFFS(**shared | {"initial_subsets": ()})


def opening_step_fits(algorithm: AnyAlgorithm, walk: Walk, spent: int, progress: float, share: float) -> bool:
    """Return whether this share of the budget is enough for an `opening_search`, and for its next step.

    ``spent`` evaluations are ``progress`` of the budget.
    """
    if algorithm.min_features > 1 or progress <= 0 or not len(walk.masks):
        return False
    budget = share * spent / progress
    n_features = walk.masks.shape[1]
    steps = min(n_features, algorithm.max_features or n_features)
    forward = steps * n_features - steps * (steps - 1) // 2  # candidates of a forward search without steps back
    return forward <= budget and spent + len(walk.masks) <= budget
