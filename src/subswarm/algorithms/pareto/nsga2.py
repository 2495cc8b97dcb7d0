"""NSGA-II: a genetic algorithm that keeps a whole front of subsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from subswarm._checks import check_bool, check_choice, check_int, check_real
from subswarm._types import FloatArray, IntArray, Mask, Masks
from subswarm.algorithms.base import State
from subswarm.algorithms.genetic import crossed, flipped
from subswarm.algorithms.pareto.indicators import survivors
from subswarm.algorithms.pareto.objectives import MultiObjective
from subswarm.algorithms.random_search import RandomSearch
from subswarm.algorithms.state import Layout

__all__ = ["NSGA2", "Generation"]

CROSSOVERS = ("uniform", "one-point")
_ATTEMPTS = 10
"""Rounds of new children, if they must be distinct, before equal ones are accepted."""


@dataclass(frozen=True, eq=False)
class Generation(State):
    """The state of NSGA-II with N subsets.

    Attributes
    ----------
    masks : the children to evaluate next, shape (N, n); at first the first generation
    parents : the survivors, shape (N, n)
    losses : their losses, shape (N,); infinite before the first generation was evaluated
    costs : their second objective, shape (N,)
    """

    layout: ClassVar[Layout | None] = Layout()

    masks: Masks
    parents: Masks
    losses: FloatArray
    costs: FloatArray


@dataclass(frozen=True, kw_only=True)
class NSGA2(MultiObjective[Generation]):
    """NSGA-II: non-dominated sorting, crowding, binary tournaments and elitist replacement.

    The objectives are the loss and the number of columns, the loss and the cost, or the losses by two scorers. A step
    evaluates ``population`` children; the best of parents and children together survive, by front and then by crowding
    distance.

    Parameters
    ----------
    population : int, default=100
        N.
    crossover : "uniform" or "one-point"
        How two parents are crossed: each bit is exchanged with probability ½, or all bits after one cut.
    crossover_probability : float, default=0.9
        Probability that a pair of parents is crossed.
    mutation : float or None, default=None
        Probability that a bit is flipped; None means 1/n.
    distinct : bool, default=False
        Whether children equal to each other or to a parent are replaced by others.
    sizes : "bernoulli" or "uniform"
        Sizes of the first generation: each feature with probability ½ (published), or every size equally likely, which
        is the stronger start where few features are enough.
    objectives : "size" or "scores"
        The second objective: the number of columns (or the cost), or the loss by a second scorer.
    feature_costs : tuple of float or None
        Price of each feature; None makes the number of columns the second objective.
    min_features, max_features, fixed_features, feature_sizes, initial_subsets
        See `subswarm.algorithms.Algorithm`.
    """

    source: ClassVar[str] = "Deb, Pratap, Agarwal, Meyarivan, IEEE Trans. Evolutionary Computation 6 (2002) 182-197"

    population: int = 100
    crossover: str = "uniform"
    crossover_probability: float = 0.9
    mutation: float | None = None
    distinct: bool = False
    sizes: str = "bernoulli"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("population", self.population, low=2)
        check_choice("crossover", self.crossover, CROSSOVERS)
        check_real("crossover_probability", self.crossover_probability, low=0, high=1)
        check_real("mutation", self.mutation, low=0, high=1, optional=True)
        check_bool("distinct", self.distinct)
        check_choice("sizes", self.sizes, ("bernoulli", "uniform"))

    def begin(self, n_features: int, rng: Generator) -> Generation:
        self.prices(n_features)  # a wrong number of prices is reported before anything is evaluated
        masks = self._first_generation(n_features, rng)
        return Generation(masks, masks.copy(), np.full(self.population, np.inf), self.known_costs(masks))

    def step(self, state: Generation, fitness: FloatArray, progress: float, rng: Generator) -> Generation:
        masks = state.masks
        losses, costs = self.objectives_of(masks, fitness)
        if np.isfinite(state.losses).all():
            masks = np.concatenate([state.parents, masks])
            losses, costs = np.concatenate([state.losses, losses]), np.concatenate([state.costs, costs])
        rows, ranks, crowding = survivors(np.column_stack([costs, losses]), self.population)
        parents = masks[rows]
        return Generation(self._children(parents, ranks, crowding, rng), parents, losses[rows], costs[rows])

    def _first_generation(self, n_features: int, rng: Generator) -> Masks:
        if self.sizes == "bernoulli":
            return self.first_masks(self.population, n_features, rng)
        random = RandomSearch(
            batch=self.population,
            min_features=self.min_features,
            max_features=self.max_features,
            fixed_features=self.fixed_features,
            feature_sizes=self.feature_sizes,
            initial_subsets=self.initial_subsets,
        )
        return random.begin(n_features, rng).masks

    def _children(self, parents: Masks, ranks: IntArray, crowding: FloatArray, rng: Generator) -> Masks:
        """Return N children; with ``distinct``, different from each other and from all parents where possible."""
        rules = self.rules(parents.shape[1])
        made = rules.legalize(self._bred(parents, ranks, crowding, rng), rng)
        if not self.distinct:
            return made
        for _ in range(_ATTEMPTS):
            repeated = _repeated(parents, made)
            if not repeated.any():
                break
            others = rules.legalize(self._bred(parents, ranks, crowding, rng), rng)
            made = np.where(repeated[:, None], others, made)
        return made

    def _bred(self, parents: Masks, ranks: IntArray, crowding: FloatArray, rng: Generator) -> Masks:
        count = self.population + self.population % 2
        winners = parents[tournament_winners(ranks, crowding, count, rng)]
        if self.crossover == "one-point":
            children = crossed(winners, self.crossover_probability, rng)
        else:
            children = uniformly_crossed(winners, self.crossover_probability, rng)
        mutation = 1 / parents.shape[1] if self.mutation is None else self.mutation
        return flipped(children[: self.population], mutation, rng)


def tournament_winners(ranks: IntArray, crowding: FloatArray, count: int, rng: Generator) -> IntArray:
    """Return the winners of ``count`` tournaments of two: the lower front, then the larger crowding distance."""
    one, two = rng.integers(len(ranks), size=(2, count))
    loses = (ranks[two] < ranks[one]) | ((ranks[two] == ranks[one]) & (crowding[two] > crowding[one]))
    return np.asarray(np.where(loses, two, one))


def uniformly_crossed(parents: Masks, probability: float, rng: Generator) -> Masks:
    """Return the children of parents 2k and 2k + 1; a pair that is crossed exchanges each bit with probability ½."""
    mothers, fathers = parents[0::2], parents[1::2]
    swap = (rng.random(mothers.shape) < 0.5) & (rng.random((len(mothers), 1)) < probability)
    children = np.empty_like(parents)
    children[0::2] = np.where(swap, fathers, mothers)
    children[1::2] = np.where(swap, mothers, fathers)
    return children


def _repeated(parents: Masks, children: Masks) -> Mask:
    """Return which children equal a parent or a child before them."""
    both = np.packbits(np.concatenate([parents, children]), axis=1)
    first = np.unique(both, axis=0, return_index=True)[1]
    return np.asarray(~np.isin(np.arange(len(both)), first)[len(parents) :])
