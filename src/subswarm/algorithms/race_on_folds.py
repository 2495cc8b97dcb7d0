"""A race of any algorithm on the folds: a subset that is behind what it must beat is not scored on the other folds."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from subswarm._checks import check_int, check_real
from subswarm._types import FloatArray, IntArray, Mask, Masks
from subswarm.algorithms.base import Finalists, State
from subswarm.algorithms.fold_candidates import FoldCandidates
from subswarm.algorithms.race import Wrapper, keys_of, with_masks
from subswarm.algorithms.state import Layout

__all__ = ["FoldwiseRace", "FoldwiseRaceState"]


@dataclass(frozen=True, eq=False)
class FoldwiseRaceState(State):
    """The state of a race on the folds.

    Attributes
    ----------
    masks, partitions : the subsets to score next, and the fold of each
    inner : the inner algorithm's state, whose masks are the candidates
    race : the candidates being scored
    known : subsets scored on every fold: the best ones, and those that must be beaten, shape (K, n)
    known_losses : their losses, shape (K, C)
    noise : standard deviation of a paired difference in one fold; 0 before the first differences are known
    rounds : number of races
    """

    layout: ClassVar[Layout | None] = Layout(
        varying={"masks": "asked", "partitions": "asked", "known": "known", "known_losses": "known"},
        ranges={"rounds": (0, None)},
    )

    masks: Masks
    partitions: IntArray = field()
    inner: State
    race: FoldCandidates
    known: Masks
    known_losses: FloatArray
    noise: float
    rounds: int

    def is_consistent(self) -> bool:
        """Return whether the masks are the candidates that are still in the race."""
        return len(self.masks) == self.race.running.sum() and self.race.candidates.shape == self.inner.masks.shape

    @property
    def cardinality_likelihood(self) -> FloatArray | None:
        """The likelihoods of the inner state."""
        return self.inner.cardinality_likelihood


@dataclass(frozen=True)
class FoldwiseRace(Wrapper[FoldwiseRaceState]):
    """Run any algorithm so that a subset that is clearly behind is not fitted on the remaining folds.

    The subsets that the inner algorithm proposes together are scored fold by fold, beginning with another fold each
    time. Each has to beat the subset that the algorithm names (`Algorithm.rivals`: the personal best of a particle,
    the parent of a child), or the best of its batch if only that matters (stepwise searches). It is given up if it is
    behind by more than ``caution`` standard errors of the paired differences. The inner algorithm then receives an
    estimate of its loss that never makes it look better than what it had to beat. An algorithm that uses every loss,
    such as a genetic algorithm, has nothing to beat, and its subsets are scored on all folds.

    One evaluation is one fit: each fold is a repeat of its own. `SwarmSelector` sees to that. With one fold, the race
    is identical to its inner algorithm.

    Parameters
    ----------
    algorithm : an algorithm, such as ``TwoDElite()``
        Its limits, fixed features and groups are those of the race.
    caution : float, default=0.5
        Standard errors by which a subset may be behind.
    elite : int, default=60
        Number of best subsets to keep.
    n_partitions : int or None
        Number of folds; filled in by the search.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from subswarm import SwarmSelector
    >>> from subswarm.algorithms import FoldwiseRace, TwoDElite
    >>> race = FoldwiseRace(TwoDElite(particles=8))
    >>> tree = DecisionTreeClassifier(random_state=0)
    >>> fitted = SwarmSelector(tree, race, cv=4, max_fits=100, random_state=0).fit(*load_wine(return_X_y=True))
    >>> fitted.result_.computed <= 100
    True
    """

    scores_folds: ClassVar[bool] = True

    _: KW_ONLY
    caution: float = 0.5
    elite: int = 60

    def __post_init__(self) -> None:
        check_real("caution", self.caution, low=0)
        check_int("elite", self.elite, low=1)
        super().__post_init__()

    def begin(self, n_features: int, rng: Generator) -> FoldwiseRaceState:
        inner = self.algorithm.begin(n_features, rng)
        known, losses = np.empty((0, n_features), dtype=bool), np.empty((0, self.n_partitions or 1))
        race = FoldCandidates.begin(known, losses, np.empty(0), 0)
        empty = FoldwiseRaceState(known, np.empty(0, dtype=np.intp), inner, race, known, losses, 0.0, 0)
        return self._new_race(empty, inner)

    def step(self, state: FoldwiseRaceState, fitness: FloatArray, progress: float, rng: Generator) -> FoldwiseRaceState:
        """Give up what is behind after this fold; after the last one, step the inner algorithm."""
        state = self._raced(state, fitness)
        if not state.race.is_over:
            masks, partitions = state.race.asked
            return replace(state, masks=masks, partitions=partitions)
        inner = with_masks(state.inner, state.race.candidates)
        moved = self.algorithm.step(inner, state.race.pessimistic_losses(), progress, rng)
        state = self._remembered(state, None if moved is None else self._rivals(moved))
        if moved is None:
            return replace(state, masks=state.masks[:0], partitions=state.partitions[:0])
        return self._new_race(state, moved)

    def on_truncated(self, state: FoldwiseRaceState, fitness: FloatArray) -> FoldwiseRaceState:
        """Return the state with the subsets that the budget allowed to complete."""
        told = np.flatnonzero(state.race.running)[: len(fitness)]
        running = np.zeros(len(state.race.running), dtype=bool)
        running[told] = True
        race = replace(state.race, candidates=_as_asked(state), running=running)
        return self._remembered(replace(state, race=race.told(fitness, 0.0, 0.0)), None)

    def finalists(self, state: FoldwiseRaceState) -> Finalists | None:
        """Return the best subsets scored on every fold; None before there are any."""
        if not len(state.known):
            return None
        order = self._order(state.known, state.known_losses)[: self.elite]
        return Finalists(state.known[order], state.known_losses[order].mean(axis=1))

    def _raced(self, state: FoldwiseRaceState, fitness: FloatArray) -> FoldwiseRaceState:
        race = replace(state.race, candidates=_as_asked(state))
        if self.algorithm.takes_best_of_batch:
            race = race.against_leader(fitness)
        return replace(state, race=race.told(fitness, state.noise, self.caution))

    def _new_race(self, state: FoldwiseRaceState, inner: State) -> FoldwiseRaceState:
        """Return the state that asks for the candidates of the inner state on the first fold of a race."""
        count, folds = len(inner.masks), self.n_partitions or 1
        to_beat, is_known = np.zeros((count, folds)), np.full(count, self.algorithm.takes_best_of_batch)
        rivals = self._rivals(inner)
        if rivals is not None:
            rows = dict(zip(keys_of(state.known), range(len(state.known)), strict=True))
            found = np.array([rows.get(key, -1) for key in keys_of(rivals)], dtype=np.intp)
            is_known = found >= 0
            to_beat[is_known] = state.known_losses[found[is_known]]
        slack = np.where(is_known & (state.noise > 0), 0.0, np.inf)
        race = FoldCandidates.begin(inner.masks, to_beat, slack, state.rounds % folds)
        masks, partitions = race.asked
        return replace(
            state, masks=masks, partitions=partitions, inner=inner, race=race, rounds=state.rounds + 1
        )  # fmt: skip

    def _rivals(self, inner: State) -> Masks | None:
        rivals = self.algorithm.rivals(inner)
        return None if rivals is None or rivals.shape != inner.masks.shape else rivals

    def _remembered(self, state: FoldwiseRaceState, rivals: Masks | None) -> FoldwiseRaceState:
        """Return the state that knows the complete candidates, and forgets what is neither good nor a rival."""
        complete = state.race.complete
        losses = state.race.losses[complete]
        known = np.concatenate([state.known, state.race.candidates[complete]])
        known_losses = np.concatenate([state.known_losses, losses])
        order = self._order(known, known_losses)
        keys = keys_of(known[order])
        wanted = set() if rivals is None else set(keys_of(rivals))
        seen: set[bytes] = set()
        kept: list[int] = []
        for row, key in zip(order.tolist(), keys, strict=True):
            if key not in seen and (len(kept) < self.elite or key in wanted):
                kept.append(row)
            seen.add(key)
        rows = np.array(kept, dtype=np.intp)
        return replace(state, known=known[rows], known_losses=known_losses[rows], noise=self._noise(state, complete))

    def _noise(self, state: FoldwiseRaceState, complete: Mask) -> float:
        """Return the standard deviation of a paired difference; recent races weigh more."""
        race, folds = state.race, self.n_partitions or 1
        if complete.sum() < 2 or folds < 2:
            return state.noise
        losses = race.losses[complete]
        rival = race.to_beat[complete]
        rival = np.where(rival.any(axis=1, keepdims=True), rival, losses[losses.mean(axis=1).argmin()])
        differences = losses - rival
        differs = differences.any(axis=1)
        if not differs.any():
            return state.noise
        found = float(differences[differs].std(axis=1, ddof=1).mean())
        return found if state.noise == 0 else 0.8 * state.noise + 0.2 * found

    def _order(self, masks: Masks, losses: FloatArray) -> IntArray:
        """Return the rows by mean loss and then by size."""
        return np.lexsort((self.rules(masks.shape[1]).columns(masks), losses.mean(axis=1)))


def _as_asked(state: FoldwiseRaceState) -> Masks:
    """Return the candidates, of which the search may have made some legal."""
    candidates = state.race.candidates.copy()
    candidates[state.race.running] = state.masks
    return candidates
