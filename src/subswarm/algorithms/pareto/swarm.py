"""2D-Pareto: two-dimensional learning along the front of loss and size, of loss and cost, or of two losses.

The velocity of the paper has a row for the cardinality and a row for the features. Here the first row is the likelihood
that a subset of a cardinality improves something, the second the likelihood that adding or removing a feature does. A
wheel over the first row draws a cardinality, and the subset of the front nearest to it is the exemplar.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, cast

import numpy as np
from numpy.random import Generator

from subswarm._checks import check_int, check_real
from subswarm._compilation import kernel_or
from subswarm._types import FloatArray, IntArray, Mask, Masks, WordArray, non_dominated
from subswarm.algorithms.base import State
from subswarm.algorithms.elite import numpy as elite_numpy
from subswarm.algorithms.elite.state import ADD, REMOVE, Moves, merge_keys
from subswarm.algorithms.pareto.objectives import MultiObjective
from subswarm.algorithms.sequential import Walk, opening_search, opening_step_fits
from subswarm.algorithms.state import Layout
from subswarm.algorithms.two_d.learning import ranked_features, wheel_position

__all__ = ["ParetoSwarm", "TwoDPareto"]

_ROUNDS = (1, 2, 3, 3, 3)
"""Children made of a particle in each round, until one of them was not visited before. From the third round on, each
round doubles the expected number of moves."""

_NEIGHBOURS = np.array([0.06, 0.24, 0.4, 0.24, 0.06])
"""Weights with which a cardinality also learns from the two on either side of it."""

_LEAST = 1e-9
"""Keeps rates above zero if nothing has helped for very long."""

_KEPT = 100.0
"""More than log likelihoods and their noise differ by, so that features to keep are ranked before those to add."""


@dataclass(frozen=True, eq=False)
class ParetoSwarm(State):
    """The state of a swarm of P particles on n features.

    Attributes
    ----------
    masks : the subsets to evaluate next, shape (Q, n): children, or candidates of the walk
    elite : the best subset of each particle, shape (P, n)
    fitness : its loss, infinite before it was evaluated, shape (P,)
    costs : its second objective, shape (P,)
    stagnation : steps without a better one, shape (P,)
    origin : the subset that each child was made of, shape (P, n)
    archive : the non-dominated subsets found so far by ascending cost, shape (A, n)
    archive_losses, archive_costs : their losses and their second objective, shape (A,)
    moves : what was learnt about features
    tried, helped : how often a subset of each cardinality 1..n was evaluated, and improved something, shape (n,);
        recent ones weigh more
    words : a random word for each feature; the key of a subset is the sum of its words
    visited : the keys of all subsets visited, ascending
    spent : evaluations so far
    walk : the state of the floating forward search at the start; without masks once it has ended
    walking : whether the masks are candidates of the walk
    """

    layout: ClassVar[Layout | None] = Layout(
        varying={
            "masks": "children",
            "visited": "visited",
            "archive": "archive",
            "archive_losses": "archive",
            "archive_costs": "archive",
        },
        ranges={"stagnation": (0, None), "spent": (0, None)},
    )

    masks: Masks
    elite: Masks
    fitness: FloatArray
    costs: FloatArray
    stagnation: IntArray
    origin: Masks
    archive: Masks
    archive_losses: FloatArray
    archive_costs: FloatArray
    moves: Moves
    tried: FloatArray
    helped: FloatArray
    words: WordArray
    visited: WordArray
    spent: int
    walk: Walk
    walking: bool

    def is_consistent(self) -> bool:
        """Return whether the number of masks fits what they are evaluated for."""
        begun = bool(len(self.archive)) or bool(np.isinf(self.fitness).all())
        return begun and len(self.masks) == len(self.walk.masks if self.walking else self.elite)

    @property
    def cardinality_likelihood(self) -> FloatArray:
        """Probability of each cardinality 1..n on the wheel, shape (n,)."""
        wheel = self.wheel()
        return np.asarray(wheel / wheel.sum())

    def wheel(self, caution: float = 5.0) -> FloatArray:
        """Return the likelihood of each cardinality, shape (n,): 0 beyond one more than the largest of the front.

        It is the rate at which subsets of this cardinality and of those near it helped, shrunk towards the mean rate,
        which weighs as much as ``caution`` subsets.
        """
        tried, helped = (np.convolve(each, _NEIGHBOURS, mode="full")[2:-2] for each in (self.tried, self.helped))
        rate = (float(helped.sum()) + _LEAST) / (float(tried.sum()) + _LEAST)
        likelihood = (helped + caution * rate) / (tried + caution)
        if len(self.archive):
            likelihood[int(self.archive.sum(axis=1).max()) + 1 :] = 0.0
        return likelihood


@dataclass(frozen=True, kw_only=True)
class TwoDPareto(MultiObjective[ParetoSwarm]):
    """2-D swarm that learns a whole front: the loss against the number of columns, the cost, or a second loss.

    A particle is the best subset it has found. A step evaluates one child of each particle. Most children recombine the
    particle with another one, the others recombine a subset of the front with its neighbour or with the particle. A
    roulette wheel over the likelihoods of the cardinalities selects where on the front the exemplars are. Then a few
    features are added and removed, those that are likely to help. A child of the front gets exactly the cardinality
    that the wheel selected.

    Parameters
    ----------
    particles : int, default=30
    front_share : float, default=0.25
        Probability that a child is made of a subset of the front, recombined with the next one on the front or with the
        particle.
    strength : float, default=0.5
        Average number of features added, and removed, by a move; learning shifts it to one side or the other.
    radius : int, default=1
        Neighbours on either side of the ring of particles. A particle is recombined with one of them at first, and more
        and more often with an exemplar of the front towards the end.
    memory : float, default=0.99
        Share of what was learnt about features that is kept from step to step.
    wheel_memory : float, default=0.98
        The same for cardinalities.
    caution : float, default=5
        Number of tries of a feature or cardinality that weigh as much as the mean of all.
    refresh_gap : int or None, default=30
        Steps without a better subset after which a particle starts again at random, except the best one.
    opening : float, default=0.1
        Share of the budget that a floating forward search (`SFFS`) may use after the first batch. It does not run if
        that is not enough for a plain forward search, or if ``min_features`` is more than 1.
    archive_size : int, default=300
        Most subsets of the front that are kept as exemplars; those that add least to the hypervolume are dropped.
    objectives : "size" or "scores"
        The second objective: the number of columns (or the cost), or the loss by a second scorer.
    feature_costs : tuple of float or None
        Price of each feature; None makes the number of columns the second objective.
    min_features, max_features, fixed_features, feature_sizes, initial_subsets
        See `subswarm.algorithms.Algorithm`.
    """

    source: ClassVar[str] = "this package; after Hafiz, Swain, Patel, Naik, Pattern Recognition 76 (2018) 416-433"

    particles: int = 30
    front_share: float = 0.25
    strength: float = 0.5
    radius: int = 1
    memory: float = 0.99
    wheel_memory: float = 0.98
    caution: float = 5.0
    refresh_gap: int | None = 30
    opening: float = 0.1
    archive_size: int = 300

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("particles", self.particles, low=1)
        check_real("front_share", self.front_share, low=0, high=1)
        check_real("strength", self.strength, above=0)
        check_int("radius", self.radius, low=1)
        check_real("memory", self.memory, low=0, high=1)
        check_real("wheel_memory", self.wheel_memory, low=0, high=1)
        check_real("caution", self.caution, above=0)
        check_int("refresh_gap", self.refresh_gap, low=1, optional=True)
        check_real("opening", self.opening, low=0, high=1)
        check_int("archive_size", self.archive_size, low=2)

    def begin(self, n_features: int, rng: Generator) -> ParetoSwarm:
        self.prices(n_features)  # a wrong number of prices is reported before anything is evaluated
        masks = self._first(self.particles, n_features, rng)
        return ParetoSwarm(
            masks=masks,
            elite=masks.copy(),
            fitness=np.full(self.particles, np.inf),
            costs=self.known_costs(masks),
            stagnation=np.zeros(self.particles, dtype=np.intp),
            origin=masks.copy(),
            archive=np.empty((0, n_features), dtype=bool),
            archive_losses=np.empty(0),
            archive_costs=np.empty(0),
            moves=Moves.unknown(1, n_features),
            tried=np.zeros(n_features),
            helped=np.zeros(n_features),
            words=rng.integers(0, 2**64, size=n_features + 1, dtype=np.uint64),
            visited=np.empty(0, dtype=np.uint64),
            spent=0,
            walk=opening_search(self).begin(n_features, rng),
            walking=False,
        )

    def step(self, state: ParetoSwarm, fitness: FloatArray, progress: float, rng: Generator) -> ParetoSwarm:
        """Learn from the losses, then ask for candidates of the walk or for children."""
        losses, costs = self.objectives_of(state.masks, fitness)
        swarm = self._walked(state, losses, progress, rng) if state.walking else self._learnt(state, losses, costs)
        swarm = replace(
            self._archived(swarm, state.masks, losses, costs),
            spent=state.spent + len(fitness),
            visited=merge_keys(state.visited, self._keys(state.masks, state.words)),
        )
        if opening_step_fits(self, swarm.walk, swarm.spent, progress, self.opening):
            return replace(swarm, masks=swarm.walk.masks, walking=True)
        swarm = self._refreshed(swarm, rng)
        children, origin = self._children(swarm, progress, rng)
        return replace(swarm, masks=children, origin=origin, walking=False)

    def _first(self, count: int, n_features: int, rng: Generator) -> Masks:
        """Return subsets to start from: the initial ones, then random ones with log-uniform sizes from 1 to n."""
        given = self.initial_masks(n_features, room=count)
        sizes = np.exp(rng.uniform(0.0, np.log(n_features + 1), size=count)).astype(np.intp)
        masks = ranked_features(rng.random((count, n_features)), np.clip(sizes, 1, n_features))
        masks[: len(given)] = given
        return self.rules(n_features).legalize(masks, rng)

    def _walked(self, swarm: ParetoSwarm, fitness: FloatArray, progress: float, rng: Generator) -> ParetoSwarm:
        walk = opening_search(self).step(swarm.walk, fitness, progress, rng)
        return replace(swarm, walk=replace(swarm.walk, masks=swarm.walk.masks[:0]) if walk is None else walk)

    def _learnt(self, swarm: ParetoSwarm, fitness: FloatArray, costs: FloatArray) -> ParetoSwarm:
        """Return the swarm with its elite and its likelihoods updated by the children's losses and costs."""
        children, n_features = swarm.masks, swarm.masks.shape[1]
        level = fitness == swarm.fitness
        better = (fitness < swarm.fitness) | (level & (costs < swarm.costs))
        taken = better | (level & (costs == swarm.costs))  # equal children replace their parents too: the elite drifts
        helped = better | (fitness < _lowest_within(costs, swarm.archive_costs, swarm.archive_losses))
        begun = np.isinf(swarm.fitness)[:, None]  # a new particle has not moved: it is its own first child
        origin = np.where(begun, children, swarm.origin)
        sizes = children.sum(axis=1) - 1
        return replace(
            swarm,
            elite=np.where(taken[:, None], children, swarm.elite),
            fitness=np.where(taken, fitness, swarm.fitness),
            costs=np.where(taken, costs, swarm.costs),
            stagnation=np.where(better, 0, swarm.stagnation + 1),
            moves=swarm.moves.after(origin[None], children[None], helped[None], self.memory),
            tried=self.wheel_memory * swarm.tried + np.bincount(sizes, minlength=n_features),
            helped=self.wheel_memory * swarm.helped + np.bincount(sizes[helped], minlength=n_features),
        )

    def _archived(self, swarm: ParetoSwarm, masks: Masks, fitness: FloatArray, costs: FloatArray) -> ParetoSwarm:
        """Return the swarm with the non-dominated of these masks in its archive."""
        masks = np.concatenate([swarm.archive, masks])
        losses = np.concatenate([swarm.archive_losses, fitness])
        costs = np.concatenate([swarm.archive_costs, costs])
        kept = np.flatnonzero(non_dominated(costs, losses))
        kept = kept[np.argsort(costs[kept], kind="stable")]
        while len(kept) > self.archive_size:
            kept = np.delete(kept, 1 + int(np.argmin(contributions(costs[kept], losses[kept]))))
        return replace(swarm, archive=masks[kept], archive_losses=losses[kept], archive_costs=costs[kept])

    def _refreshed(self, swarm: ParetoSwarm, rng: Generator) -> ParetoSwarm:
        """Return the swarm with its stagnant particles replaced by random subsets."""
        if self.refresh_gap is None:
            return swarm
        stale = swarm.stagnation >= self.refresh_gap
        stale[self._order(swarm)[0]] = False
        if not stale.any():
            return swarm
        elite = swarm.elite.copy()
        elite[stale] = replace(self, initial_subsets=())._first(int(stale.sum()), elite.shape[1], rng)
        return replace(
            swarm,
            elite=elite,
            fitness=np.where(stale, np.inf, swarm.fitness),
            costs=np.where(stale, self.known_costs(elite), swarm.costs),
            stagnation=np.where(stale, 0, swarm.stagnation),
        )

    def _order(self, swarm: ParetoSwarm) -> IntArray:
        """Return the particles, best first."""
        return np.lexsort((swarm.costs, swarm.fitness))

    def _children(self, swarm: ParetoSwarm, progress: float, rng: Generator) -> tuple[Masks, Masks]:
        """Return one child of each particle, if possible one that was not visited before, and what each is made of."""
        rules, kernels = self.rules(swarm.elite.shape[1]), _kernels()
        children, origin = swarm.elite.copy(), swarm.elite.copy()
        settled = self._is_first_child(swarm)
        open_to, taken = np.flatnonzero(~settled), self._keys(children[settled], swarm.words)
        for number, tries in enumerate(_ROUNDS):
            if not len(open_to):
                break
            parents = np.repeat(open_to, tries)
            made, made_of = self._bred(swarm, parents, max(1, 2 ** (number - 1)), progress, rng)
            made = rules.legalize(made, rng)
            keys = self._keys(made, swarm.words).reshape(-1, tries)
            chosen = kernels.first_unseen(keys, swarm.visited, taken)
            row, fresh = np.arange(len(open_to)), chosen >= 0
            place = row * tries + chosen % tries  # the last child if all were visited
            children[open_to], origin[open_to] = made[place], made_of[place]
            taken = np.concatenate([taken, keys[row[fresh], chosen[fresh]]])
            open_to = open_to[~fresh]
        return children, origin

    def _bred(
        self, swarm: ParetoSwarm, parents: IntArray, pace: int, progress: float, rng: Generator
    ) -> tuple[Masks, Masks]:
        """Return a child for each of these particles (K, n), with ``pace`` times the moves, and what it is made of."""
        count, n_features = len(parents), swarm.elite.shape[1]
        drawn, near = self._near_the_wheel(swarm, count, rng)
        of_front = rng.random(count) < self.front_share
        beside = np.clip(near + np.where(rng.random(count) < 0.5, 1, -1), 0, len(swarm.archive) - 1)
        mate_is_exemplar = rng.random(count) < progress
        own = np.where(of_front[:, None], swarm.archive[near], swarm.elite[parents])
        mates = np.where(mate_is_exemplar[:, None], swarm.archive[near], swarm.elite[self._ring(swarm, parents, rng)])
        of_neighbour = of_front & (rng.random(count) < 0.5)
        mates = np.where(of_front[:, None], swarm.elite[parents], mates)
        mates = np.where(of_neighbour[:, None], swarm.archive[beside], mates)
        made = np.where(rng.random(own.shape) < rng.random((count, 1)), mates, own)
        likelihood = swarm.moves.likelihood(self.caution)[0]
        expected = self.strength * pace * swarm.moves.direction()[0]
        free = ~self.rules(n_features).fixed
        chance = _chances(np.where(made, 0.0, likelihood[ADD]), float(expected[ADD]))
        chance += _chances(np.where(made & free, likelihood[REMOVE], 0.0), float(expected[REMOVE]))
        made ^= rng.random(made.shape) < chance
        made[of_front] = _resized(made[of_front], drawn[of_front], likelihood, rng)
        return made, own

    def _near_the_wheel(self, swarm: ParetoSwarm, count: int, rng: Generator) -> tuple[IntArray, IntArray]:
        """Draw cardinalities on the wheel, shape (count,), and return the subset of the archive nearest to each."""
        low, high = self.rules(swarm.elite.shape[1]).cardinalities
        wheel = swarm.wheel(self.caution)[low - 1 : high]
        drawn = low + wheel_position(np.broadcast_to(wheel, (count, len(wheel))), 1.0 - rng.random(count))
        sizes = swarm.archive.sum(axis=1)
        return drawn, np.abs(sizes - drawn[:, None]).argmin(axis=1)

    def _ring(self, swarm: ParetoSwarm, parents: IntArray, rng: Generator) -> IntArray:
        """Return the better of two random neighbours of each particle on the ring."""
        place = np.empty(self.particles, dtype=np.intp)
        place[self._order(swarm)] = np.arange(self.particles)
        apart = rng.integers(1, self.radius + 1, size=(2, len(parents)))
        one, two = (parents + np.where(rng.random(apart.shape) < 0.5, apart, -apart)) % self.particles
        return np.asarray(np.where(place[one] <= place[two], one, two))

    def _is_first_child(self, swarm: ParetoSwarm) -> Mask:
        """Return which particles are their own first child: new ones that were not visited before."""
        settled = np.isinf(swarm.fitness)
        if settled.any():
            keys = self._keys(swarm.elite, swarm.words)
            first = np.isin(np.arange(len(keys)), np.unique(keys, return_index=True)[1])
            settled &= first & ~np.isin(keys, swarm.visited)
        return settled

    def _keys(self, masks: Masks, words: WordArray) -> WordArray:
        return _kernels().keys_of(masks, np.zeros(len(masks), dtype=np.intp), words)


def contributions(costs: FloatArray, losses: FloatArray) -> FloatArray:
    """Return what each inner subset of a front adds to its hypervolume; the front has ascending costs.

    Examples
    --------
    >>> contributions(np.array([1.0, 2.0, 4.0, 5.0]), np.array([5.0, 3.0, 2.0, 1.0])).tolist()
    [4.0, 1.0]
    """
    return np.asarray((costs[2:] - costs[1:-1]) * (losses[:-2] - losses[1:-1]))


def _lowest_within(costs: FloatArray, front_costs: FloatArray, front_losses: FloatArray) -> FloatArray:
    """Return the lowest loss of a front of ascending costs that costs no more than each of ``costs``."""
    lowest = np.concatenate([[np.inf], front_losses])
    return np.asarray(lowest[np.searchsorted(front_costs, costs, side="right")])


def _chances(weights: FloatArray, expected: float) -> FloatArray:
    """Return probabilities in proportion to the weights (K, n), clipped to 1, whose sum is ``expected``."""
    whole = weights.sum(axis=1, keepdims=True)
    scale = np.divide(expected, whole, out=np.zeros_like(whole), where=whole > 0)
    return np.asarray(np.minimum(1.0, weights * scale))


def _resized(masks: Masks, sizes: IntArray, likelihood: FloatArray, rng: Generator) -> Masks:
    """Return the masks with exactly ``sizes`` features, the likeliest to help added or removed, at random.

    The noise makes this a draw without replacement in proportion to the likelihoods.
    """
    noise = rng.gumbel(size=masks.shape)
    stays, enters = _KEPT - np.log(likelihood[REMOVE]) - noise, np.log(likelihood[ADD]) + noise
    return ranked_features(np.where(masks, stays, enters), sizes)


class _Kernels(Protocol):
    """What `elite.numpy` and `elite.numba` both provide."""

    def keys_of(self, masks: Masks, islands: IntArray, words: WordArray, /) -> WordArray: ...

    def first_unseen(self, keys: WordArray, visited: WordArray, taken: WordArray, /) -> IntArray: ...


def _kernels() -> _Kernels:
    return cast(_Kernels, kernel_or(elite_numpy, "elite.numba"))
