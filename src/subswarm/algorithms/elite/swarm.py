"""2D-Elite: a swarm of elite subsets that learns which moves help.

In the paper, a particle's position is drawn at every step from its velocity. Here a particle is its personal best. A
step evaluates one child of each particle: it is recombined with another particle, and then a few features are added or
removed. The swarm learns, for each feature, the likelihood that adding (or removing) it helps, and for the cardinality,
the likelihood that growing (or shrinking) helps. A short floating forward search may run first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol, Self, cast

import numpy as np
from numpy.random import Generator

from subswarm._checks import as_tuple, check_choice, check_int, check_real, shown
from subswarm._compilation import kernel_or
from subswarm._types import FloatArray, IntArray, Mask, Masks, WordArray
from subswarm.algorithms.base import Algorithm, Finalists, Problem
from subswarm.algorithms.elite import numpy as elite_numpy
from subswarm.algorithms.elite.cross_fit import (
    ELITE_SIZES,
    CrossFit,
    best_within_sizes,
    draw_guided,
    first_guides,
    nested_sizes,
    places_of,
    prefixes,
    rank_finalists,
    weigh_guides,
)
from subswarm.algorithms.elite.state import EliteSwarm, Moves, merge_keys, nested_by_agreement
from subswarm.algorithms.elite.wide import WIDE, breed_few
from subswarm.algorithms.masks import sizes_of
from subswarm.algorithms.sequential import Walk, opening_search, opening_step_fits
from subswarm.errors import SettingError

__all__ = ["TwoDElite"]


_ROUNDS = (1, 2, 3, 3, 3)
"""Children made of a particle in each round, until one of them was not visited before. From the third round on, each
round doubles the expected number of moves."""


@dataclass(frozen=True, kw_only=True)
class TwoDElite(Algorithm[EliteSwarm]):
    """Elite swarm that recombines its best subsets and learns which moves help; the smaller subset wins ties.

    Without repeats of the cross-validation there is one swarm. If there are few features (at most 34 with 6000
    evaluations), a floating forward search (`SFFS`) uses a share of the budget after the first batch. The swarm does
    not learn from it and does not evaluate its subsets again.

    With repeats (``repeats``, or a repeated splitter as ``cv``) there is one island for each repeat. An island scores
    its children on its own repeat only. Shortly before the budget ends, the features are ranked by the number of the
    islands' best subsets that contain them. Prefixes of this ranking are scored on all repeats, and the largest one
    that is not much worse than the best is selected. A feature that only one repeat favours by chance is voted out.

    If the objective is cross-fitted (the default of `SwarmSelector`), each island leaves out a block of rows. A part of
    its particles starts from features that a guide ranks high on the other rows; how many, is learnt from which of them
    do well. At the end, prefixes of the ranking by votes and of the guides' rankings, and the islands' best subsets of
    several sizes, are scored on the left-out rows.

    Parameters
    ----------
    particles : int, default=30
        Number of particles of each island.
    recombination : float, default=1
        A child takes each feature's state from the other parent with a probability drawn from U[0, recombination].
    strength : float, default=0.5
        Average number of features added, and removed, by a move; learning shifts it to one side or the other.
    radius : int, default=1
        Neighbours on either side of an island's ring. The other parent of a child is one of them at first, and more
        and more often one of the best of the island towards the end.
    memory : float, default=0.99
        Share of what was learnt that is kept from step to step.
    clan_memory : float, default=0.97
        The same for several islands, each of which has fewer steps.
    caution : float, default=5
        Number of tries of a move that weigh as much as the mean of all moves.
    refresh_gap : int or None, default=30
        Steps without a better subset after which a particle starts again at random, except the best of its island.
    opening : float, default=0.1
        Share of the budget that the floating forward search may use. It does not run if that is not enough for a plain
        forward search (n (n + 1) / 2 evaluations, fewer with ``max_features``), if the cross-validation is repeated,
        if the number of evaluations is not limited, or if ``min_features`` is more than 1.
    agreement : int, default=20
        Number of best subsets of each island that vote.
    agreement_sizes : int, default=25
        Number of prefixes of the ranking that are tried.
    tolerance : float, default=0.02
        How much worse the selected prefix may be than the best one, as a share of the difference between the best and
        the worst prefix.
    guides : tuple of str, default=("relieff", "anova-f")
        Rankings that guide a search on a cross-fitted objective. A ranking that the data do not allow is left out.
    n_partitions : int or None
        Number of repeats of the cross-validation; filled in by the search.
    min_features, max_features, fixed_features, feature_sizes, initial_subsets
        See `subswarm.algorithms.Algorithm`.
    """

    source: ClassVar[str] = "this package; after Hafiz, Swain, Patel, Naik, Pattern Recognition 76 (2018) 416-433"
    parsimonious = True
    uses_single_partitions: ClassVar[bool] = True

    particles: int = 30
    recombination: float = 1.0
    strength: float = 0.5
    memory: float = 0.99
    clan_memory: float = 0.97
    caution: float = 5.0
    refresh_gap: int | None = 30
    radius: int = 1
    opening: float = 0.1
    agreement: int = 20
    agreement_sizes: int = 25
    tolerance: float = 0.02
    guides: tuple[str, ...] = ("relieff", "anova-f")
    n_partitions: int | None = None
    cross_fit: CrossFit | None = field(default=None, repr=False, metadata={"derived": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("particles", self.particles, low=1)
        check_real("recombination", self.recombination, low=0, high=1)
        check_real("strength", self.strength, above=0)
        check_int("radius", self.radius, low=1)
        check_real("memory", self.memory, low=0, high=1)
        check_real("clan_memory", self.clan_memory, low=0, high=1)
        check_real("caution", self.caution, above=0)
        check_int("refresh_gap", self.refresh_gap, low=1, optional=True)
        check_real("opening", self.opening, low=0, high=1)
        check_int("agreement", self.agreement, low=1)
        check_int("agreement_sizes", self.agreement_sizes, low=1)
        check_real("tolerance", self.tolerance, low=0, high=1)
        check_int("n_partitions", self.n_partitions, low=1, optional=True)
        for guide in as_tuple("guides", self.guides, of="names of rankings"):
            check_choice("each of guides", guide, ("anova-f", "mrmr", "mutual-information", "relieff"))
        object.__setattr__(self, "guides", tuple(self.guides))
        if not isinstance(self.cross_fit, CrossFit | None):
            raise SettingError(
                f"cross_fit is filled in by the search, so it must be None; got {shown(self.cross_fit)}."
            )

    def bind(self, problem: Problem) -> Self:
        """Return the algorithm with one island for each repeat; on a cross-fitted objective, with its guides."""
        bound = super().bind(problem)
        if not problem.n_left_out or bound.cross_fit is not None:
            return bound
        return replace(bound, cross_fit=CrossFit.of(self.guides, problem))

    def with_partitions(self, n_partitions: int) -> Self:
        """Return the algorithm with one island for each repeat."""
        if self.n_partitions is None:
            return replace(self, n_partitions=n_partitions)
        if self.n_partitions > n_partitions:
            raise SettingError(
                f"TwoDElite has n_partitions={self.n_partitions}, but the search has {n_partitions}; leave "
                "n_partitions at None. Inside a race it is always 1."
            )
        return self

    def begin(self, n_features: int, rng: Generator) -> EliteSwarm:
        islands = self.n_partitions or 1
        count = islands * self.particles
        places = places_of(self.cross_fit.orders if self.cross_fit else (), islands, n_features)
        guide = np.zeros(count, dtype=np.intp)
        if self.cross_fit is None:
            masks = self._first(count, n_features, rng)
        else:
            guide = first_guides(count, len(places))
            masks = draw_guided(places, guide, np.repeat(np.arange(islands), self.particles), rng)
            given = self.initial_masks(n_features, room=count)
            masks[: len(given)] = given
            masks = self.rules(n_features).legalize(masks, rng)
        return EliteSwarm(
            masks=masks,
            partitions=np.repeat(np.arange(islands), self.particles),
            elite=masks.copy(),
            fitness=np.full(count, np.inf),
            stagnation=np.zeros(count, dtype=np.intp),
            moves=Moves.unknown(islands, n_features),
            words=rng.integers(0, 2**64, size=n_features + islands, dtype=np.uint64),
            visited=np.empty(0, dtype=np.uint64),
            spent=0,
            walk=opening_search(self).begin(n_features, rng) if islands == 1 else Walk.ended(n_features),
            walking=False,
            agreeing=False,
            agreed=np.empty((0, n_features), dtype=bool),
            agreed_fitness=np.empty(0),
            guide=guide,
            places=places,
            left_out=np.empty((0, islands)),
            searched=np.empty((0, islands)),
        )

    def step(self, state: EliteSwarm, fitness: FloatArray, progress: float, rng: Generator) -> EliteSwarm:
        """Learn from the losses, then ask for candidates of the walk, the agreed subsets or children of the elite."""
        islands = state.island_count
        if state.agreeing and state.partitions is not None:
            left_out, searched = (each.reshape(islands, -1).T.copy() for each in np.split(fitness, 2))
            spent = state.spent + len(fitness)
            best = best_within_sizes(state.cardinality, state.ranking()).ravel()
            masks = np.concatenate([self._prefixes(state, rng), state.elite[best]])
            return replace(state, left_out=left_out, searched=searched, masks=masks, partitions=None, spent=spent)
        if state.agreeing:
            swarm = replace(state, agreed=state.masks, agreed_fitness=fitness, agreeing=False)
        elif state.walking:
            swarm = self._walked(state, fitness, progress, rng)
        else:
            swarm = self._learnt(state, fitness)
        swarm = replace(swarm, spent=state.spent + len(fitness) * (islands if state.agreeing else 1))
        if swarm.island_count == 1 and opening_step_fits(self, swarm.walk, swarm.spent, progress, self.opening):
            return replace(swarm, masks=swarm.walk.masks, partitions=_first_partition(swarm.walk), walking=True)
        if self.cross_fit is not None and not len(swarm.agreed) and self._must_agree_now(swarm, progress):
            best = best_within_sizes(swarm.cardinality, swarm.ranking())
            masks = np.concatenate(
                [each for c in range(islands) for each in (self._prefixes(swarm, rng, c), swarm.elite[best[:, c]])]
            )
            owner = np.repeat(np.arange(islands), len(masks) // islands)
            both = np.concatenate([islands + owner, owner])  # the rows an island leaves out, then those it searched
            return replace(swarm, masks=np.concatenate([masks, masks]), partitions=both, agreeing=True)
        if islands > 1 and not len(swarm.agreed) and self._must_agree_now(swarm, progress):
            return replace(swarm, masks=self._agreed(swarm, rng), partitions=None, agreeing=True)
        swarm = self._refreshed(swarm, rng)
        return replace(swarm, masks=self._children(swarm, progress, rng), partitions=swarm.islands)

    def rivals(self, state: EliteSwarm) -> Masks | None:
        """Return the parent of each child; the candidates of the walk have none."""
        return None if state.walking or state.agreeing else state.elite

    def finalists(self, state: EliteSwarm) -> Finalists:
        """Return the agreed subsets with their losses on all repeats; before there are any, the islands' elite."""
        if len(state.agreed) and self.cross_fit is not None:
            return self._rank(state, self.cross_fit)
        if len(state.agreed):
            masks, fitness = state.agreed, state.agreed_fitness
            good = fitness <= fitness.min() + self.tolerance * np.ptp(fitness)
            order = np.lexsort((fitness, -masks.sum(axis=1), ~good))
            return Finalists(masks[order], fitness[order], islands=_best_of_islands(state, len(order)))
        order = np.lexsort((state.cardinality, state.fitness))[: int(np.isfinite(state.fitness).sum())]
        return Finalists(state.elite[order], state.fitness[order])

    def _rank(self, state: EliteSwarm, cross_fit: CrossFit) -> Finalists:
        """Return the candidates by their losses on the left-out rows and on those that were searched."""
        n_features, islands = state.agreed.shape[1], state.island_count
        sizes = len(nested_sizes(n_features, self.agreement_sizes))
        prefixes, elite = np.split(state.agreed, [len(state.agreed) - ELITE_SIZES * islands])
        elite = elite.reshape(ELITE_SIZES, islands, n_features)
        rng = np.random.default_rng(0)  # only draws where limits leave a choice
        of_islands = [np.concatenate([self._prefixes(state, rng, c), elite[:, c]]) for c in range(islands)]
        return rank_finalists(
            prefixes,
            elite,
            state.left_out,
            state.searched,
            state.agreed_fitness,
            sizes,
            cross_fit.n_rows,
            np.stack(of_islands, axis=1),
        )

    def _first(self, count: int, n_features: int, rng: Generator) -> Masks:
        """Return subsets to start from: the initial ones, then random ones with log-uniform sizes from 1 to n."""
        given = self.initial_masks(n_features, room=count)
        sizes = np.exp(rng.uniform(0.0, np.log(n_features + 1), size=(count, 1))).astype(np.intp)
        masks = rng.random((count, n_features)).argsort(axis=1).argsort(axis=1) < np.clip(sizes, 1, n_features)
        masks[: len(given)] = given
        return self.rules(n_features).legalize(masks, rng)

    def _walked(self, swarm: EliteSwarm, fitness: FloatArray, progress: float, rng: Generator) -> EliteSwarm:
        """Return the swarm after a step of the walk; it only remembers which subsets were visited."""
        walk = opening_search(self).step(swarm.walk, fitness, progress, rng)
        keys = _kernels().keys_of(swarm.masks, _first_partition(swarm.walk), swarm.words)
        return replace(
            swarm,
            walk=replace(swarm.walk, masks=swarm.walk.masks[:0]) if walk is None else walk,
            walking=False,
            visited=merge_keys(swarm.visited, keys),
        )

    def _learnt(self, swarm: EliteSwarm, fitness: FloatArray) -> EliteSwarm:
        """Return the swarm with its elite and its knowledge of moves updated by the children's losses."""
        children, sizes, before = swarm.masks, sizes_of(swarm.masks), swarm.cardinality
        level = fitness == swarm.fitness
        better = (fitness < swarm.fitness) | (level & (sizes < before))
        taken = better | (
            level & (sizes == before)
        )  # equal children replace their parents too, so that the elite drifts
        by_island = (swarm.island_count, -1, children.shape[1])
        begun = np.isinf(swarm.fitness)  # a new particle has not moved: it is its own first child
        return replace(
            swarm,
            elite=_with_rows(swarm.elite, taken, children),
            fitness=np.where(taken, fitness, swarm.fitness),
            stagnation=np.where(better, 0, swarm.stagnation + 1),
            moves=swarm.moves.after(
                _with_rows(swarm.elite, begun, children).reshape(by_island),
                children.reshape(by_island),
                better.reshape(by_island[:2]),
                self.memory if swarm.island_count == 1 else self.clan_memory,
            ),
            visited=merge_keys(swarm.visited, _kernels().keys_of(children, swarm.islands, swarm.words)),
        )

    def _refreshed(self, swarm: EliteSwarm, rng: Generator) -> EliteSwarm:
        """Return the swarm with its stagnant particles replaced by random subsets."""
        if self.refresh_gap is None:
            return swarm
        stale = swarm.stagnation >= self.refresh_gap
        if stale.any():
            stale[swarm.ranking()[:, 0]] = False
        if not stale.any():
            return swarm
        if self.cross_fit is not None:
            return self._restarted(swarm, np.flatnonzero(stale), rng)
        elite = swarm.elite.copy()
        elite[stale] = replace(self, initial_subsets=())._first(int(stale.sum()), elite.shape[1], rng)
        return replace(
            swarm,
            elite=elite,
            fitness=np.where(stale, np.inf, swarm.fitness),
            stagnation=np.where(stale, 0, swarm.stagnation),
        )

    def _restarted(self, swarm: EliteSwarm, stale: IntArray, rng: Generator) -> EliteSwarm:
        """Return the swarm with new guided particles; the guides of an island's better half are drawn more often."""
        guide, islands = swarm.guide.copy(), swarm.islands
        better = swarm.ranking()[:, : (self.particles + 1) // 2]
        for island in np.unique(islands[stale]):
            own = stale[islands[stale] == island]
            chances = weigh_guides(swarm.guide, better[island], len(swarm.places) + 1)
            guide[own] = rng.choice(len(chances), size=len(own), p=chances)
        elite, fitness, stagnation = swarm.elite.copy(), swarm.fitness.copy(), swarm.stagnation.copy()
        new = draw_guided(swarm.places, guide[stale], islands[stale], rng)
        elite[stale] = self.rules(elite.shape[1]).legalize(new, rng)
        fitness[stale], stagnation[stale] = np.inf, 0
        return replace(swarm, elite=elite, fitness=fitness, stagnation=stagnation, guide=guide)

    def _children(self, swarm: EliteSwarm, progress: float, rng: Generator) -> Masks:
        """Return one child of each particle, if possible one that was not visited before."""
        n_features = swarm.elite.shape[1]
        rules, islands = self.rules(n_features), swarm.islands
        order, likelihood = swarm.ranking().ravel(), swarm.moves.likelihood(self.caution)
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.arange(len(order))
        direction = self.strength * swarm.moves.direction()
        children, kernels = swarm.elite.copy(), _kernels()
        settled = self._is_first_child(swarm)
        open_to, taken = np.flatnonzero(~settled), kernels.keys_of(children[settled], islands[settled], swarm.words)
        for number, tries in enumerate(_ROUNDS):
            if not len(open_to):
                break
            parents = np.repeat(open_to, tries)
            expected = max(1, 2 ** (number - 1)) * direction
            mating = (order, place, parents, self.particles, self.radius, float(progress), float(self.recombination))
            if n_features > WIDE:
                made = breed_few(swarm.elite, *mating, likelihood, expected, rules.fixed, rng)
            else:
                draws = rng.random((len(parents), elite_numpy.CHOICES + n_features))
                made = kernels.bred(swarm.elite, *mating, likelihood, expected, rules.fixed, draws)
            made = rules.legalize(made, rng)
            keys = kernels.keys_of(made, islands[parents], swarm.words).reshape(-1, tries)
            chosen = kernels.first_unseen(keys, swarm.visited, taken)
            row, fresh = np.arange(len(open_to)), chosen >= 0
            children[open_to] = made.reshape(-1, tries, n_features)[
                row, chosen
            ]  # index -1, the last child, if all were visited
            taken = np.concatenate([taken, keys[row[fresh], chosen[fresh]]])
            open_to = open_to[~fresh]
        return children

    def _is_first_child(self, swarm: EliteSwarm) -> Mask:
        """Return which particles are their own first child: new ones that were not visited before."""
        settled = np.isinf(swarm.fitness)
        if settled.any():
            keys = _kernels().keys_of(swarm.elite, swarm.islands, swarm.words)
            settled &= _first_of_each(keys) & ~_contains(swarm.visited, keys)
        return settled

    def _must_agree_now(self, swarm: EliteSwarm, progress: float) -> bool:
        """Return whether another batch of children would leave too few evaluations for the agreed subsets."""
        if progress <= 0:
            return False
        left = swarm.spent * (1 - progress) / progress
        needed = self.agreement_sizes * swarm.island_count
        if self.cross_fit is not None:
            needed *= 3 * (len(swarm.places) + 1)
            needed += ELITE_SIZES * swarm.island_count * (swarm.island_count + 2)
        return left < len(swarm.elite) + needed

    def _prefixes(self, swarm: EliteSwarm, rng: Generator, island: int | None = None) -> Masks:
        """Return prefixes of the rankings of one island, or of all islands and rows, made legal, shape (K, n)."""
        n_features = swarm.elite.shape[1]
        voters = swarm.ranking()[slice(None) if island is None else [island], : self.agreement].ravel()
        sizes = nested_sizes(n_features, self.agreement_sizes)
        masks, scores = prefixes(
            swarm.elite[voters].mean(axis=0), swarm.places[:, -1 if island is None else island], sizes
        )
        return self.rules(n_features).legalize(masks, rng, preference=scores)

    def _agreed(self, swarm: EliteSwarm, rng: Generator) -> Masks:
        """Return prefixes of the ranking by votes, made legal, shape (A, n)."""
        voters = swarm.ranking()[:, : self.agreement].ravel()
        nested, votes = nested_by_agreement(swarm.elite[voters], self.agreement_sizes)
        rules = self.rules(nested.shape[1])
        legal = rules.legalize(nested, rng, preference=np.broadcast_to(votes, nested.shape))
        return np.unique(legal, axis=0)


def _with_rows(masks: Masks, rows: Mask, others: Masks) -> Masks:
    """Return the masks with these rows of others."""
    changed = masks.copy()
    changed[rows] = others[rows]
    return changed


def _best_of_islands(swarm: EliteSwarm, count: int) -> Masks | None:
    """Return the best subset of each island, shape (count, C, n): the same for all finalists; None for one island."""
    if swarm.island_count < 2:
        return None
    best = swarm.elite[swarm.ranking()[:, 0]]
    return np.broadcast_to(best, (count, *best.shape))


def _first_partition(walk: Walk) -> IntArray:
    return np.zeros(len(walk.masks), dtype=np.intp)


class _Kernels(Protocol):
    """What `elite.numpy` and `elite.numba` both provide."""

    @property
    def bred(self) -> Callable[..., Masks]: ...

    def keys_of(self, masks: Masks, islands: IntArray, words: WordArray, /) -> WordArray: ...

    def first_unseen(self, keys: WordArray, visited: WordArray, taken: WordArray, /) -> IntArray: ...


def _kernels() -> _Kernels:
    return cast(_Kernels, kernel_or(elite_numpy, "elite.numba"))


def _contains(ascending: WordArray, keys: WordArray) -> Mask:
    if not len(ascending):
        return np.zeros(len(keys), dtype=bool)
    place = np.minimum(np.searchsorted(ascending, keys), len(ascending) - 1)
    return np.asarray(ascending[place] == keys)


def _first_of_each(keys: WordArray) -> Mask:
    """Return which keys are the first of their value."""
    order = np.argsort(keys, kind="stable")
    ascending = keys[order]
    first = np.ones(len(keys), dtype=bool)
    first[order[1:]] = ascending[1:] != ascending[:-1]
    return first
