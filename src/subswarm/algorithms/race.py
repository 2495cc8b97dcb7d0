"""A race: new subsets are scored on one repeat of the cross-validation, and only the best of them on all repeats."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import ClassVar, Self, TypeVar

import numpy as np
from numpy.random import Generator

from subswarm._checks import check_int, shown
from subswarm._types import FloatArray, IntArray, Masks
from subswarm.algorithms.base import Algorithm, AnyAlgorithm, Finalists, Problem, State
from subswarm.algorithms.masks import SubsetRules
from subswarm.algorithms.state import Layout
from subswarm.errors import SettingError

__all__ = ["Race", "RaceState", "Wrapper", "keys_of", "with_masks"]

S = TypeVar("S", bound=State)


@dataclass(frozen=True, eq=False)
class RaceState(State):
    """The state of a race.

    Attributes
    ----------
    masks : the subsets to evaluate next, shape (Q, n): the new ones, or the promoted ones once for each other repeat;
        none once the inner algorithm has finished
    partitions : the repeat to score each of them on, shape (Q,)
    inner : the inner algorithm's state, whose masks (P, n) are the new subsets
    first : their losses on the first repeat, shape (P,); empty before they are scored there
    promoted : indices of those being scored on the other repeats, best first
    elite : the best subsets scored on all repeats, shape (K, n), by loss and then by size
    elite_fitness : their mean losses over all repeats, shape (K,)
    """

    layout: ClassVar[Layout | None] = Layout(
        varying={
            "masks": "asked",
            "partitions": "asked",
            "first": "first",
            "promoted": "promoted",
            "elite": "elite",
            "elite_fitness": "elite",
        },
        ranges={"promoted": (0, "first")},
    )

    masks: Masks
    partitions: IntArray = field()
    inner: State
    first: FloatArray
    promoted: IntArray
    elite: Masks
    elite_fitness: FloatArray

    def is_consistent(self) -> bool:
        """Return whether the masks are the new subsets, or the promoted ones once for each of the other repeats."""
        if not len(self.promoted):
            return len(self.masks) == len(self.inner.masks) and not self.partitions.any()
        others = np.arange(1, len(self.masks) // len(self.promoted) + 1)
        expected = np.tile(others, len(self.promoted))
        return len(self.first) == len(self.inner.masks) and np.array_equal(self.partitions, expected)

    @property
    def cardinality_likelihood(self) -> FloatArray | None:
        """The likelihoods of the inner state."""
        return self.inner.cardinality_likelihood


@dataclass(frozen=True)
class Wrapper(Algorithm[S]):
    """Base class of algorithms that run another one, which sees a single repeat of the cross-validation.

    Parameters
    ----------
    algorithm : the inner algorithm; its limits, fixed features and groups are those of the wrapper
    n_partitions : int or None
        Number of repeats of the cross-validation; filled in by the search.
    """

    uses_single_partitions: ClassVar[bool] = True

    algorithm: AnyAlgorithm
    _: KW_ONLY
    n_partitions: int | None = None

    # Copied from the inner algorithm, so they are no settings of the wrapper.
    min_features: int = field(init=False, repr=False)
    max_features: int | None = field(init=False, repr=False)
    fixed_features: tuple[int, ...] = field(init=False, repr=False)
    feature_sizes: tuple[int, ...] | None = field(init=False, repr=False)
    initial_subsets: tuple[tuple[int, ...], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_int("n_partitions", self.n_partitions, low=1, optional=True)
        if not isinstance(self.algorithm, Algorithm):
            raise SettingError(f"a race runs an algorithm such as TwoDUPSO(); got {shown(self.algorithm)}.")
        if self.algorithm.n_losses > 1:
            raise SettingError('a race compares subsets by one loss; use an algorithm without objectives="scores".')
        inner = self.algorithm.with_partitions(1)
        object.__setattr__(self, "algorithm", inner)
        for name in (*(shared.name for shared in fields(Algorithm)), "parsimonious", "needs_monotone"):
            object.__setattr__(self, name, getattr(inner, name))

    def bind(self, problem: Problem) -> Self:
        """Return the wrapper with its inner algorithm bound; the inner one sees a single repeat."""
        inner = self.algorithm.bind(replace(problem, n_partitions=1, n_left_out=0))
        bound = self if inner is self.algorithm else replace(self, algorithm=inner)
        return bound.with_partitions(problem.n_partitions)

    def with_partitions(self, n_partitions: int) -> Self:
        """Return the wrapper with the number of repeats filled in."""
        return self if self.n_partitions is not None else replace(self, n_partitions=n_partitions)

    def with_costs(self, costs: tuple[float, ...]) -> Self:
        """Return the wrapper with its inner algorithm for these prices."""
        return replace(self, algorithm=self.algorithm.with_costs(costs))

    def rules(self, n_features: int) -> SubsetRules:
        return self.algorithm.rules(n_features)

    def passing_rules(self, n_features: int) -> SubsetRules:
        return self.algorithm.passing_rules(n_features)


@dataclass(frozen=True)
class Race(Wrapper[RaceState]):
    """Run any algorithm so that most subsets cost one evaluation on a repeated cross-validation.

    Every subset that the inner algorithm proposes is scored on the first repeat. If its loss there is at most the mean
    loss of the worst member of the elite (the best subsets known on all repeats), it is then scored on the other
    repeats, for one evaluation each. At most as many subsets of a batch are promoted as the elite holds. The inner
    algorithm receives the mean loss over all repeats if it is known, and the loss on the first repeat otherwise. The
    finalists of the race are its elite.

    Without repeats, a race is identical to its inner algorithm.

    Parameters
    ----------
    algorithm : an algorithm, such as ``TwoDUPSO()``
        Its limits, fixed features and groups are those of the race.
    elite : int, default=60
        Number of best subsets to keep.
    n_partitions : int or None
        Number of repeats of the cross-validation; filled in by the search.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from subswarm import Budget, make_objective, search
    >>> from subswarm.algorithms import Race, TwoDUPSO
    >>> objective = make_objective(GaussianNB(), *load_wine(return_X_y=True), cv=5, repeats=4)
    >>> result = search(Race(TwoDUPSO()), objective, Budget(evaluations=400), rng=0)
    >>> bool(np.isclose(result.best.fitness, objective(result.best.mask)[0]))
    True
    """

    _: KW_ONLY
    elite: int = 60

    def __post_init__(self) -> None:
        check_int("elite", self.elite, low=1)
        super().__post_init__()

    def begin(self, n_features: int, rng: Generator) -> RaceState:
        inner = self.algorithm.begin(n_features, rng)
        no_masks, no_losses = np.empty((0, n_features), dtype=bool), np.empty(0)
        no_indices = no_losses.astype(np.intp)
        empty = RaceState(no_masks, no_indices, inner, no_losses, no_indices, no_masks, no_losses)
        return _ask_first_repeat(empty, inner)

    def step(self, state: RaceState, fitness: FloatArray, progress: float, rng: Generator) -> RaceState:
        """Promote the best new subsets to the other repeats; once they are scored there, step the inner algorithm."""
        if len(state.promoted):
            known = self._add_scored(state, fitness)
        else:
            known = replace(state, inner=with_masks(state.inner, state.masks), first=fitness)
            promoted = self._select_promising(known)
            if len(promoted):
                return self._ask_other_repeats(replace(known, promoted=promoted))
        moved = self.algorithm.step(known.inner, _losses_for_inner(known), progress, rng)
        known = self._trim_elite(known)
        if moved is None:
            return replace(known, masks=known.masks[:0], partitions=known.partitions[:0])
        return _ask_first_repeat(known, moved)

    def on_truncated(self, state: RaceState, fitness: FloatArray) -> RaceState:
        """Return the state with the promoted subsets that are scored on all repeats added to the elite."""
        return self._trim_elite(self._add_scored(state, fitness)) if len(state.promoted) else state

    def finalists(self, state: RaceState) -> Finalists:
        """Return the elite, best first, with the mean losses over all repeats."""
        return Finalists(state.elite, state.elite_fitness)

    @property
    def _other_repeats(self) -> IntArray:
        return np.arange(1, self.n_partitions or 1)

    def _select_promising(self, state: RaceState) -> IntArray:
        """Return the new subsets to score on the other repeats, best first, without illegal and known ones."""
        if not len(self._other_repeats):
            return np.empty(0, dtype=np.intp)
        masks, rules = state.inner.masks, self.rules(state.elite.shape[1])
        limit = state.elite_fitness[-1] if len(state.elite) >= self.elite else np.inf
        eligible = rules.is_legal(masks) & (state.first <= limit)
        keys, seen, promoted = keys_of(masks), set(keys_of(state.elite)), []
        for row in np.lexsort((rules.columns(masks), state.first)).tolist():
            if eligible[row] and keys[row] not in seen:
                seen.add(keys[row])
                promoted.append(row)
        return np.array(promoted[: self.elite], dtype=np.intp)

    def _ask_other_repeats(self, state: RaceState) -> RaceState:
        """Return the state that asks for the promoted subsets on every repeat except the first."""
        return replace(
            state,
            masks=np.repeat(state.inner.masks[state.promoted], len(self._other_repeats), axis=0),
            partitions=np.tile(self._other_repeats, len(state.promoted)),
        )

    def _add_scored(self, state: RaceState, fitness: FloatArray) -> RaceState:
        """Return the state with every promoted subset in its elite that is now scored on all repeats."""
        others = len(self._other_repeats)
        rows = state.promoted[: len(fitness) // others]
        losses = np.column_stack([state.first[rows], fitness[: len(rows) * others].reshape(-1, others)])
        masks = np.concatenate([state.elite, state.inner.masks[rows]])
        fitness = np.concatenate([state.elite_fitness, losses.mean(axis=1)])
        order = np.lexsort((self.rules(masks.shape[1]).columns(masks), fitness))
        return replace(state, elite=masks[order], elite_fitness=fitness[order])

    def _trim_elite(self, state: RaceState) -> RaceState:
        return replace(state, elite=state.elite[: self.elite], elite_fitness=state.elite_fitness[: self.elite])


def _ask_first_repeat(state: RaceState, inner: State) -> RaceState:
    """Return the state that asks for the masks of the inner state on the first repeat."""
    none = np.empty(0)
    return replace(
        state,
        masks=inner.masks,
        partitions=np.zeros(len(inner.masks), dtype=np.intp),
        inner=inner,
        first=none,
        promoted=none.astype(np.intp),
    )


def with_masks(inner: S, masks: Masks) -> S:
    """Return the inner state with the masks that were asked, because the search may have made some legal."""
    return inner if np.array_equal(inner.masks, masks) else replace(inner, masks=masks)


def _losses_for_inner(state: RaceState) -> FloatArray:
    """Return for each new subset its mean loss over all repeats if known, otherwise its loss on the first repeat."""
    known = dict(zip(keys_of(state.elite), state.elite_fitness.tolist(), strict=True))
    keys = keys_of(state.inner.masks)
    return np.array([known.get(key, loss) for key, loss in zip(keys, state.first.tolist(), strict=True)])


def keys_of(masks: Masks) -> list[bytes]:
    """Return a key for each mask that equal masks share."""
    return [row.tobytes() for row in np.packbits(masks, axis=1)]
