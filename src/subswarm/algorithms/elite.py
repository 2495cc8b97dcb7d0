"""2D-Elite: a swarm of elite subsets that learns which moves help, and whether growing or shrinking does.

The paper's particle is drawn anew at every step from what it has learnt. Here a particle *is* its personal best, and a
step asks for one child of each: recombined with another's, then moved by a few features. What is learnt, on both of the
paper's dimensions, is the likelihood that a move helps: for each feature, that adding (or removing) it does; for the
cardinality, that growing (or shrinking) does. Before that, a short floating forward walk finds what greed can find.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from subswarm.algorithms import elite_numpy
from subswarm.algorithms.agreement import nested_by_agreement
from subswarm.algorithms.compiled import kernel_or
from subswarm.algorithms.moves import Moves
from subswarm.algorithms.sequential import SFFS, Walk
from subswarm.algorithms.subset_settings import SubsetSettings
from subswarm.core.checks import check_int, check_real
from subswarm.core.types import FloatArray, IntArray, Mask, Masks

__all__ = ["EliteSwarm", "TwoDElite"]


_ROUNDS = (1, 2, 3, 3, 3)
"""How many children are made of a particle until one was never visited, round by round; from the third round on each
moves them twice as far."""


@dataclass(frozen=True, eq=False)
class EliteSwarm:
    """The state of a swarm of C clans of P particles on n features.

    Attributes
    ----------
    masks : the children to evaluate, or the subsets agreed on, shape (Q, n)
    partitions : the partition to score each child on, its clan's; None where all are meant
    elite : the best subset of each particle, shape (C * P, n)
    fitness : its fitness, infinite before it was evaluated, shape (C * P,)
    stagnation : steps without a better one, shape (C * P,)
    moves : what each clan has learnt
    words : a random word for each feature, then each clan; a subset's key is the sum of its words
    visited : the keys of all subsets visited, ascending
    spent : evaluations
    walk : where the walk at the beginning is; without masks once it has met its end
    walking : whether the masks are its candidates
    agreeing : whether the masks are what the clans agree on
    agreed, agreed_fitness : those subsets once they were evaluated, shape (A, n) and (A,); none before
    """

    masks: Masks
    partitions: IntArray | None
    elite: Masks
    fitness: FloatArray
    stagnation: IntArray
    moves: Moves
    words: NDArray[np.uint64]
    visited: NDArray[np.uint64]
    spent: int
    walk: Walk
    walking: bool
    agreeing: bool
    agreed: Masks
    agreed_fitness: FloatArray

    @property
    def clan_count(self) -> int:
        """C."""
        return len(self.moves.tried)

    @property
    def clans(self) -> IntArray:
        """The clan of each particle, shape (C * P,)."""
        return np.repeat(np.arange(self.clan_count), len(self.elite) // self.clan_count)

    @property
    def cardinality(self) -> IntArray:
        """The size of each elite subset, shape (C * P,)."""
        return np.asarray(self.elite.sum(axis=1))

    @property
    def cardinality_likelihood(self) -> FloatArray:
        """Share of the elite that has each cardinality 1..n, shape (n,)."""
        return np.bincount(self.cardinality, minlength=self.elite.shape[1] + 1)[1:] / len(self.elite)

    def ranking(self) -> IntArray:
        """The particles of each clan, best first and the smaller where equally good, shape (C, P)."""
        order = np.lexsort((self.cardinality, self.fitness, self.clans))
        return np.asarray(order.reshape(self.clan_count, -1))


@dataclass(frozen=True, kw_only=True)
class TwoDElite(SubsetSettings):
    """Our own: an elite that recombines and learns its moves; it starts from all sizes, and the smaller wins ties.

    On one partition it is one swarm. Where the features are few (at most 34 with 6000 evaluations), a floating forward
    search (`SFFS`) takes a share of the budget after its first batch: what greed can find is found, and the swarm,
    which learns nothing of it, looks elsewhere.

    On several partitions (``repeats``, or a repeated splitter as ``cv``) it is a clan for each, which scores its
    children on its own partition only. Shortly before the budget ends the features are ranked by how many of the clans'
    best subsets have them, and some of the first of this ranking, scored on all partitions, are the answer: the largest
    such subset that is hardly worse than the best. What one partition alone would have favoured by luck is voted out,
    and a feature that many vote for is left out only where that pays.

    Parameters
    ----------
    particles : int, default=30
        Of each clan.
    recombination : float, default=1
        A child takes each feature's state from the other parent with a probability drawn from U[0, this].
    strength : float, default=0.5
        Features added, and features removed, on average; what is learnt shifts it to one side or the other.
    radius : int, default=1
        Neighbours on either side of a clan's ring. A child's other parent is one of them at first and one of the best
        of the clan more and more often towards the end.
    memory : float, default=0.99
        Share of what was learnt that is kept from step to step.
    clan_memory : float, default=0.97
        The same where there are several clans, each of which has fewer steps.
    caution : float, default=5
        Tries of a move that count as much as the mean of all moves.
    refresh_gap : int or None, default=30
        Steps without a better subset after which a particle begins anew, the best of its clan excepted.
    opening : float, default=0.1
        Share of the budget that the walk at the beginning may take. There is none where that would not do for a plain
        forward search to its end (n (n + 1) / 2 evaluations, fewer with ``max_features``), on several partitions, where
        the budget has no end that is known, and where a subset must have more than one feature.
    agreement : int, default=20
        Best subsets of each clan that have a vote.
    agreement_sizes : int, default=25
        How many sizes of the agreed ranking are tried.
    tolerance : float, default=0.02
        By how much the answer may be worse than the best of the agreed ranking, as a share of the distance between the
        best and the worst of it.
    n_partitions : int or None
        Partitions of the objective, filled in by the search.
    min_features, max_features, fixed_features, feature_sizes, initial_subsets
        See `subswarm.algorithms.SubsetSettings`.
    """

    source: ClassVar[str] = "this package; after Hafiz, Swain, Patel, Naik, Pattern Recognition 76 (2018) 416-433"
    parsimonious: ClassVar[bool] = True

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
    n_partitions: int | None = None

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

    def begin(self, n_features: int, rng: Generator) -> EliteSwarm:
        clans = self.n_partitions or 1
        count = clans * self.particles
        masks = self._first(count, n_features, rng)
        return EliteSwarm(
            masks=masks,
            partitions=np.repeat(np.arange(clans), self.particles),
            elite=masks.copy(),
            fitness=np.full(count, np.inf),
            stagnation=np.zeros(count, dtype=np.intp),
            moves=Moves.unknown(clans, n_features),
            words=rng.integers(0, 2**64, size=n_features + clans, dtype=np.uint64),
            visited=np.empty(0, dtype=np.uint64),
            spent=0,
            walk=self._floating.begin(n_features, rng),
            walking=False,
            agreeing=False,
            agreed=np.empty((0, n_features), dtype=bool),
            agreed_fitness=np.empty(0),
        )

    def step(self, state: EliteSwarm, fitness: FloatArray, progress: float, rng: Generator) -> EliteSwarm:
        """Take in the fitness; then the walk's next step, what the clans agree on, or children of the elite."""
        clans = state.clan_count
        if state.agreeing:
            swarm = replace(state, agreed=state.masks, agreed_fitness=fitness, agreeing=False)
        elif state.walking:
            swarm = self._walked(state, fitness, progress, rng)
        else:
            swarm = self._learnt(state, fitness)
        swarm = replace(swarm, spent=state.spent + len(fitness) * (clans if state.agreeing else 1))
        if self._may_walk(swarm, progress):
            return replace(swarm, masks=swarm.walk.masks, partitions=_first_partition(swarm.walk), walking=True)
        if clans > 1 and not len(swarm.agreed) and self._is_time(swarm, progress):
            return replace(swarm, masks=self._agreed(swarm, rng), partitions=None, agreeing=True)
        swarm = self._refreshed(swarm, rng)
        return replace(swarm, masks=self._children(swarm, progress, rng), partitions=swarm.clans)

    def answers(self, state: EliteSwarm) -> tuple[Masks, FloatArray]:
        """What the clans agree on with its loss on all partitions, the chosen one first; before, the clans' best."""
        if len(state.agreed):
            masks, fitness = state.agreed, state.agreed_fitness
            good = fitness <= fitness.min() + self.tolerance * np.ptp(fitness)
            order = np.lexsort((fitness, -masks.sum(axis=1), ~good))
            return masks[order], fitness[order]
        order = np.lexsort((state.cardinality, state.fitness))[: int(np.isfinite(state.fitness).sum())]
        return state.elite[order], state.fitness[order]

    def _first(self, count: int, n_features: int, rng: Generator) -> Masks:
        """Subsets to start from: the initial ones, then random ones of sizes log-uniform in 1..n."""
        given = self.initial_masks(n_features, room=count)
        sizes = np.exp(rng.uniform(0.0, np.log(n_features + 1), size=(count, 1))).astype(np.intp)
        masks = rng.random((count, n_features)).argsort(axis=1).argsort(axis=1) < np.clip(sizes, 1, n_features)
        masks[: len(given)] = given
        return self.rules(n_features).legalize(masks, rng)

    @property
    def _floating(self) -> SFFS:
        """The walk at the beginning, which obeys the same rules."""
        shared = {field.name: getattr(self, field.name) for field in fields(SubsetSettings)}
        return SFFS(**shared | {"initial_subsets": ()})

    def _may_walk(self, swarm: EliteSwarm, progress: float) -> bool:
        """Whether the walk could come all the way on its share of the budget, and its next step still fits in."""
        if swarm.clan_count > 1 or self.min_features > 1 or progress <= 0 or not len(swarm.walk.masks):
            return False
        share = self.opening * swarm.spent / progress
        n_features = swarm.elite.shape[1]
        steps = min(n_features, self.max_features or n_features)
        forward = steps * n_features - steps * (steps - 1) // 2  # the candidates of so many steps, none of them back
        return forward <= share and swarm.spent + len(swarm.walk.masks) <= share

    def _walked(self, swarm: EliteSwarm, fitness: FloatArray, progress: float, rng: Generator) -> EliteSwarm:
        """The swarm after a step of the walk, which only tells it where not to go."""
        walk = self._floating.step(swarm.walk, fitness, progress, rng)
        keys = _rules().keys_of(swarm.masks, _first_partition(swarm.walk), swarm.words)
        return replace(
            swarm,
            walk=replace(swarm.walk, masks=swarm.walk.masks[:0]) if walk is None else walk,
            walking=False,
            visited=_with(swarm.visited, keys),
        )

    def _learnt(self, swarm: EliteSwarm, fitness: FloatArray) -> EliteSwarm:
        """The elite, and what is known of moves, after the children were evaluated."""
        children, sizes, before = swarm.masks, swarm.masks.sum(axis=1), swarm.cardinality
        level = fitness == swarm.fitness
        better = (fitness < swarm.fitness) | (level & (sizes < before))
        taken = better | (level & (sizes == before))  # an equal one is taken too, so that the elite drifts
        by_clan = (swarm.clan_count, -1, children.shape[1])
        begun = np.isinf(swarm.fitness)[:, None]  # has not moved: it is its own first child
        return replace(
            swarm,
            elite=np.where(taken[:, None], children, swarm.elite),
            fitness=np.where(taken, fitness, swarm.fitness),
            stagnation=np.where(better, 0, swarm.stagnation + 1),
            moves=swarm.moves.after(
                np.where(begun, children, swarm.elite).reshape(by_clan),
                children.reshape(by_clan),
                better.reshape(by_clan[:2]),
                self.memory if swarm.clan_count == 1 else self.clan_memory,
            ),
            visited=_with(swarm.visited, _rules().keys_of(children, swarm.clans, swarm.words)),
        )

    def _refreshed(self, swarm: EliteSwarm, rng: Generator) -> EliteSwarm:
        """The swarm with its stagnant particles begun anew."""
        if self.refresh_gap is None:
            return swarm
        stale = swarm.stagnation >= self.refresh_gap
        if stale.any():
            stale[swarm.ranking()[:, 0]] = False
        if not stale.any():
            return swarm
        elite = swarm.elite.copy()
        elite[stale] = replace(self, initial_subsets=())._first(int(stale.sum()), elite.shape[1], rng)
        return replace(
            swarm,
            elite=elite,
            fitness=np.where(stale, np.inf, swarm.fitness),
            stagnation=np.where(stale, 0, swarm.stagnation),
        )

    def _children(self, swarm: EliteSwarm, progress: float, rng: Generator) -> Masks:
        """One child of each particle, none visited before if that can be had; one begun anew is its own first child."""
        n_features = swarm.elite.shape[1]
        rules, clans = self.rules(n_features), swarm.clans
        order, likelihood = swarm.ranking().ravel(), swarm.moves.likelihood(self.caution)
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.arange(len(order))
        direction = self.strength * swarm.moves.direction()
        children, compiled = swarm.elite.copy(), _rules()
        settled = self._settled(swarm)
        open_to, taken = np.flatnonzero(~settled), compiled.keys_of(children[settled], clans[settled], swarm.words)
        for number, tries in enumerate(_ROUNDS):
            if not len(open_to):
                break
            parents = np.repeat(open_to, tries)
            draws = rng.random((len(parents), elite_numpy.CHOICES + n_features))
            expected = max(1, 2 ** (number - 1)) * direction
            mating = (order, place, parents, self.particles, self.radius, float(progress), float(self.recombination))
            made = compiled.bred(swarm.elite, *mating, likelihood, expected, rules.fixed, draws)
            made = rules.legalize(made, rng)
            keys = compiled.keys_of(made, clans[parents], swarm.words).reshape(-1, tries)
            chosen = compiled.first_unseen(keys, swarm.visited, taken)
            row, fresh = np.arange(len(open_to)), chosen >= 0
            children[open_to] = made.reshape(-1, tries, n_features)[row, chosen]  # the last one, where all were visited
            taken = np.concatenate([taken, keys[row[fresh], chosen[fresh]]])
            open_to = open_to[~fresh]
        return children

    def _settled(self, swarm: EliteSwarm) -> Mask:
        """Which particles are their own first child: those begun anew where no one has been."""
        settled = np.isinf(swarm.fitness)
        if settled.any():
            keys = _rules().keys_of(swarm.elite, swarm.clans, swarm.words)
            settled &= _first_of_each(keys) & ~_contains(swarm.visited, keys)
        return settled

    def _is_time(self, swarm: EliteSwarm, progress: float) -> bool:
        """Whether one more batch of children would leave too little of the budget to try what the clans agree on."""
        if progress <= 0:
            return False
        left = swarm.spent * (1 - progress) / progress
        return left < len(swarm.elite) + self.agreement_sizes * swarm.clan_count

    def _agreed(self, swarm: EliteSwarm, rng: Generator) -> Masks:
        """The subsets to try: the first few features of the ranking by votes, for some sizes, shape (A, n)."""
        electors = swarm.ranking()[:, : self.agreement].ravel()
        nested, votes = nested_by_agreement(swarm.elite[electors], self.agreement_sizes)
        rules = self.rules(nested.shape[1])
        legal = rules.legalize(nested, rng, preference=np.broadcast_to(votes, nested.shape))
        return np.unique(legal, axis=0)


def _first_partition(walk: Walk) -> IntArray:
    return np.zeros(len(walk.masks), dtype=np.intp)


def _rules() -> Any:
    return kernel_or(elite_numpy, "elite_kernel")


def _contains(ascending: NDArray[np.uint64], keys: NDArray[np.uint64]) -> Mask:
    if not len(ascending):
        return np.zeros(len(keys), dtype=bool)
    place = np.minimum(np.searchsorted(ascending, keys), len(ascending) - 1)
    return np.asarray(ascending[place] == keys)


def _with(ascending: NDArray[np.uint64], keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The ascending keys with these among them, each once."""
    if not len(keys):
        return ascending
    both = np.concatenate([ascending, keys])
    both.sort(kind="stable")  # two runs in order, or nearly so: quick
    return np.asarray(both[np.append(True, both[1:] != both[:-1])])


def _first_of_each(keys: NDArray[np.uint64]) -> Mask:
    """Which keys are the first of their value."""
    order = np.argsort(keys, kind="stable")
    ascending = keys[order]
    first = np.ones(len(keys), dtype=bool)
    first[order[1:]] = ascending[1:] != ascending[:-1]
    return first
