"""Stepwise searches: one feature more or one less, always the best such step, and the rules of when to turn."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from subswarm.algorithms.subset_settings import SubsetSettings
from subswarm.core.checks import check_int
from subswarm.core.errors import SettingError
from subswarm.core.masks import SubsetRules
from subswarm.core.types import FloatArray, Mask, Masks

__all__ = ["SBFS", "SBS", "SFFS", "SFS", "Floating", "PlusLMinusR", "Stepwise", "Walk", "one_step_away"]


@dataclass(frozen=True, eq=False)
class Walk:
    """Where a stepwise search is.

    Attributes
    ----------
    masks : the candidates of the step to come, shape (C, n); at first the start alone, where there is one to evaluate
    current : where it stands, shape (n,)
    fitness : its fitness; infinite where it has none
    records : the lowest fitness met with each number of features 0..n, shape (n + 1,)
    adding : whether the candidates have one feature more, or one less
    run : steps made in this direction since the last turn
    last : the feature moved by the last step in the search's own direction; -1 before the first
    """

    masks: Masks
    current: Mask
    fitness: float
    records: FloatArray
    adding: bool
    run: int
    last: int


@dataclass(frozen=True, kw_only=True)
class Stepwise(SubsetSettings):
    """The walk that all stepwise searches share; a variant says which way its next step goes.

    It goes from nothing (or the fixed features) to ``max_features``, or from everything to ``min_features``, or from
    the first of ``initial_subsets``, and passes through subsets outside the limits on its way; the answer is the best
    subset within them. So ``min_features = max_features = k`` is the search for exactly k features. A step asks all
    its candidates, at most n subsets; equally good ones go by index.
    """

    keeps_last: ClassVar[bool] = False
    """Whether steps back may not undo the step made before them."""

    @property
    def forward(self) -> bool:
        """Whether the walk starts small and grows."""
        return True

    @abstractmethod
    def adds_next(self, walk: Walk, moved: bool) -> bool:
        """Whether the next step adds a feature; ``moved`` tells whether the last candidates were accepted."""

    def accepts(self, walk: Walk, size: int, fitness: float) -> bool:
        """Whether the walk goes on to its best candidate, of this size and fitness."""
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
    """The walk after it went to this candidate."""
    current = walk.masks[chosen].copy()
    changed = np.flatnonzero(current ^ walk.current)
    size = int(current.sum())
    records = walk.records.copy()
    records[size] = min(records[size], fitness)
    last = int(changed[0]) if len(changed) and walk.adding == forward else walk.last
    return Walk(walk.masks, current, fitness, records, walk.adding, walk.run + len(changed), last)


def one_step_away(current: Mask, adding: bool, rules: SubsetRules, kept: int = -1) -> Masks:
    """The legal subsets with one feature more (or one less, but not ``kept``) than this one, by index; shape (C, n).

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
    """Sequential backward selection: drop the feature that is missed least, down to ``min_features``."""

    source: ClassVar[str] = "Marill, Green, IEEE Trans. Information Theory 9 (1963) 11-17"

    @property
    def forward(self) -> bool:
        return False

    def adds_next(self, walk: Walk, moved: bool) -> bool:
        return False


@dataclass(frozen=True, kw_only=True)
class PlusLMinusR(Stepwise):
    """Plus l, take away r: l steps forward, r back, again and again; it ends where it first meets its limit.

    Parameters
    ----------
    plus, minus : int, default=2 and 1
        l and r. With more plus than minus it starts from nothing, with more minus from everything.
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
                f"plus and minus must differ, or the walk gets nowhere; got {self.plus} and {self.minus}."
            )

    @property
    def forward(self) -> bool:
        return self.plus > self.minus

    def adds_next(self, walk: Walk, moved: bool) -> bool:
        if self._is_at_its_end(walk):
            return self.forward
        if walk.run < (self.plus if walk.adding else self.minus):
            return walk.adding
        return not walk.adding

    def _is_at_its_end(self, walk: Walk) -> bool:
        return walk.adding == self.forward and not len(
            one_step_away(walk.current, walk.adding, self.passing_rules(len(walk.current)))
        )


@dataclass(frozen=True, kw_only=True)
class Floating(Stepwise):
    """A step, then steps back for as long as each beats the best subset of its size met so far.

    Parameters
    ----------
    must_beat_current : bool, default=False
        Whether a step back must beat the subset it starts from as well, as mlxtend's floating selector asks.
    """

    keeps_last: ClassVar[bool] = True

    must_beat_current: bool = False

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
