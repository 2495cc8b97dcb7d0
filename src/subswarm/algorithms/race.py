"""A race: newcomers are scored on one partition of a repeated cross-validation, and only the elite on all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from subswarm.algorithms.partitions import informed
from subswarm.algorithms.subset_settings import rules_of
from subswarm.core.checks import check_int
from subswarm.core.errors import SettingError
from subswarm.core.masks import SubsetRules
from subswarm.core.types import FloatArray, IntArray, Masks

__all__ = ["Race", "RaceState", "inside"]


@dataclass(frozen=True, eq=False)
class RaceState:
    """Where a race is: newcomers on the first partition, or those of them that did well there on the others.

    Attributes
    ----------
    masks : what to evaluate next, shape (Q, n); none once the inner algorithm has finished
    partitions : the partition to score each of them on, shape (Q,)
    inner : the inner algorithm's state, whose masks (P, n) are the newcomers
    first : their losses on the first partition, shape (P,); none before they were scored there
    promoted : which of them are being scored on the other partitions, best first
    elite : the best subsets scored on all partitions, best first and the smaller where equally good, shape (K, n)
    elite_fitness : their mean losses over all partitions, shape (K,)
    """

    masks: Masks
    partitions: IntArray
    inner: Any
    first: FloatArray
    promoted: IntArray
    elite: Masks
    elite_fitness: FloatArray

    @property
    def cardinality_likelihood(self) -> FloatArray | None:
        """What the inner state holds likely, for plots; None where it has no such thing."""
        return getattr(self.inner, "cardinality_likelihood", None)


@dataclass(frozen=True)
class Race:
    """Any algorithm, its subsets scored on one partition first and only the elite on all: most cost one evaluation.

    Every subset that the inner algorithm asks for is scored on the first partition. Those whose loss there is no more
    than the mean loss of the worst of the elite, the best subsets known on all partitions, are then scored on the
    others, each for one evaluation; of one batch at most as many as the elite may hold. The inner algorithm is told the
    mean over all partitions where it is known, and the loss on the first one where not. The elite is what the race
    vouches for.

    With one partition it is the inner algorithm, subset by subset and draw by draw.

    Parameters
    ----------
    algorithm : an algorithm, such as ``TwoDUPSO()``
        Its limits, fixed features and groups are the race's.
    elite : int, default=60
        How many of the best subsets are kept.
    n_partitions : int or None
        Partitions of the objective, filled in by the search.

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

    algorithm: Any
    _: KW_ONLY
    elite: int = 60
    n_partitions: int | None = None

    def __post_init__(self) -> None:
        check_int("elite", self.elite, low=1)
        check_int("n_partitions", self.n_partitions, low=1, optional=True)
        inner: Any = self.algorithm
        if not hasattr(inner, "begin") or not dataclasses.is_dataclass(inner) or isinstance(inner, type):
            raise SettingError(f"a race wants an algorithm such as TwoDUPSO(); got {inner!r}.")
        inner = informed(inner, 1)
        if getattr(inner, "n_partitions", 1) != 1:
            raise SettingError(
                f"{type(inner).__name__} has n_partitions={inner.n_partitions}, but inside a race it sees one; "
                "leave its n_partitions at None."
            )
        object.__setattr__(self, "algorithm", inner)

    @property
    def parsimonious(self) -> bool:
        """Whether the smaller of equally good subsets is the better one: as the inner algorithm has it."""
        return bool(getattr(self.algorithm, "parsimonious", False))

    @property
    def needs_monotone(self) -> bool:
        """Whether the inner algorithm wants a fitness that never falls when a feature is dropped."""
        return bool(getattr(self.algorithm, "needs_monotone", False))

    @property
    def feature_sizes(self) -> tuple[int, ...] | None:
        """Columns behind each feature, as the inner algorithm has them."""
        sizes: tuple[int, ...] | None = getattr(self.algorithm, "feature_sizes", None)
        return sizes

    def rules(self, n_features: int) -> SubsetRules:
        """What a legal subset is: as the inner algorithm has it."""
        return rules_of(self.algorithm, n_features)[0]

    def passing_rules(self, n_features: int) -> SubsetRules:
        """What may be asked on the way to an answer: as the inner algorithm has it."""
        return rules_of(self.algorithm, n_features)[1]

    def begin(self, n_features: int, rng: Generator) -> RaceState:
        nobody, nothing = np.empty((0, n_features), dtype=bool), np.empty(0)
        nowhere = nothing.astype(np.intp)
        empty = RaceState(nobody, nowhere, None, nothing, nowhere, nobody, nothing)
        return _on_the_first(empty, self.algorithm.begin(n_features, rng))

    def step(self, state: RaceState, fitness: FloatArray, progress: float, rng: Generator) -> RaceState:
        """Send what did well on the first partition to the others; once all is known there, let the inner one step."""
        if len(state.promoted):
            known = self._with_scored(state, fitness)
        else:
            known = replace(state, inner=_with_masks(state.inner, state.masks), first=fitness)
            promoted = self._promising(known)
            if len(promoted):
                return self._on_the_others(replace(known, promoted=promoted))
        moved = self.algorithm.step(known.inner, _told(known), progress, rng)
        known = self._kept(known)
        if moved is None:
            return replace(known, masks=known.masks[:0], partitions=known.partitions[:0])
        return _on_the_first(known, moved)

    def cut_short(self, state: RaceState, fitness: FloatArray) -> RaceState:
        """The state after the first few of its masks were scored: what is known on all partitions joins the elite."""
        return self._kept(self._with_scored(state, fitness)) if len(state.promoted) else state

    def answers(self, state: RaceState) -> tuple[Masks, FloatArray]:
        """The elite, best first, with the mean losses over all partitions."""
        return state.elite, state.elite_fitness

    @property
    def _others(self) -> IntArray:
        """Every partition but the first."""
        return np.arange(1, self.n_partitions or 1)

    def _promising(self, state: RaceState) -> IntArray:
        """The newcomers to score on the other partitions, best first; none that is known there or is no answer."""
        if not len(self._others):
            return np.empty(0, dtype=np.intp)
        masks, rules = state.inner.masks, self.rules(state.elite.shape[1])
        limit = state.elite_fitness[-1] if len(state.elite) >= self.elite else np.inf
        wanted = rules.is_legal(masks) & (state.first <= limit)
        keys, seen, promoted = _keys(masks), set(_keys(state.elite)), []
        for row in np.lexsort((rules.columns(masks), state.first)).tolist():
            if wanted[row] and keys[row] not in seen:
                seen.add(keys[row])
                promoted.append(row)
        return np.array(promoted[: self.elite], dtype=np.intp)

    def _on_the_others(self, state: RaceState) -> RaceState:
        """Ask for the promoted on every partition but the first."""
        return replace(
            state,
            masks=np.repeat(state.inner.masks[state.promoted], len(self._others), axis=0),
            partitions=np.tile(self._others, len(state.promoted)),
        )

    def _with_scored(self, state: RaceState, fitness: FloatArray) -> RaceState:
        """The state, the promoted that are now known on all partitions among its elite, however many these are."""
        others = len(self._others)
        rows = state.promoted[: len(fitness) // others]
        losses = np.column_stack([state.first[rows], fitness[: len(rows) * others].reshape(-1, others)])
        masks = np.concatenate([state.elite, state.inner.masks[rows]])
        fitness = np.concatenate([state.elite_fitness, losses.mean(axis=1)])
        order = np.lexsort((self.rules(masks.shape[1]).columns(masks), fitness))
        return replace(state, elite=masks[order], elite_fitness=fitness[order])

    def _kept(self, state: RaceState) -> RaceState:
        """The state with no more than the best in its elite."""
        return replace(state, elite=state.elite[: self.elite], elite_fitness=state.elite_fitness[: self.elite])


def inside(algorithm: Any, change: Callable[[Any], Any]) -> Any:
    """The algorithm after a change; of a race, the inner one is changed."""
    if isinstance(algorithm, Race):
        return replace(algorithm, algorithm=inside(algorithm.algorithm, change))
    return change(algorithm)


def _on_the_first(state: RaceState, inner: Any) -> RaceState:
    """Ask for all that the inner state asks for, on the first partition."""
    none = np.empty(0)
    return replace(
        state,
        masks=inner.masks,
        partitions=np.zeros(len(inner.masks), dtype=np.intp),
        inner=inner,
        first=none,
        promoted=none.astype(np.intp),
    )


def _with_masks(inner: Any, masks: Masks) -> Any:
    """The inner state with the masks that were asked, some of which the search may have made legal."""
    return inner if np.array_equal(inner.masks, masks) else replace(inner, masks=masks)


def _told(state: RaceState) -> FloatArray:
    """For each newcomer the mean over all partitions where it is known, else its loss on the first."""
    known = dict(zip(_keys(state.elite), state.elite_fitness.tolist(), strict=True))
    keys = _keys(state.inner.masks)
    return np.array([known.get(key, loss) for key, loss in zip(keys, state.first.tolist(), strict=True)])


def _keys(masks: Masks) -> list[bytes]:
    return [row.tobytes() for row in np.packbits(masks, axis=1)]
