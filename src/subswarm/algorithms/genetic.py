"""The genetic algorithm: roulette selection, one-point crossover and mutation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from subswarm._checks import check_choice, check_int, check_real
from subswarm._types import FloatArray, IntArray, Masks
from subswarm.algorithms.base import Algorithm, State
from subswarm.algorithms.state import Layout
from subswarm.algorithms.two_d.learning import wheel_position

__all__ = ["GeneticAlgorithm", "Population", "crossed", "flipped", "selection_weights"]

SCALINGS = ("raw", "window")


@dataclass(frozen=True, eq=False)
class Population(State):
    """One generation, shape (N, n)."""

    layout: ClassVar[Layout | None] = Layout()

    masks: Masks


@dataclass(frozen=True, kw_only=True)
class GeneticAlgorithm(Algorithm[Population]):
    """Genetic algorithm: roulette selection, one-point crossover, mutation, no elitism.

    A step evaluates a whole generation of ``population`` subsets, including survivors.

    Parameters
    ----------
    population : int, default=80
        N, the size of a generation.
    crossover : float, default=0.45
        Probability that a pair of parents is crossed at one random point.
    mutation : float, default=0.01
        Probability that a bit is flipped.
    scaling : "raw" or "window"
        Weight on the roulette wheel: 1 - J, or the difference between J and the worst of the generation, which is the
        stronger choice.
    generation_gap : float, default=1
        Share of a generation that is replaced by offspring; the rest are random survivors (Grefenstette uses 0.9 with
        "window"). There is no elitism: the search keeps the best subset, the population does not.
    min_features, max_features, fixed_features, feature_sizes, initial_subsets
        See `subswarm.algorithms.Algorithm`.
    """

    source: ClassVar[str] = (
        "Siedlecki, Sklansky, Pattern Recognition Letters 10 (1989) 335-347; settings: Grefenstette, IEEE Trans. "
        "Systems, Man and Cybernetics 16 (1986) 122-128"
    )

    population: int = 80
    crossover: float = 0.45
    mutation: float = 0.01
    scaling: str = "raw"
    generation_gap: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("population", self.population, low=2)
        check_real("crossover", self.crossover, low=0, high=1)
        check_real("mutation", self.mutation, low=0, high=1)
        check_choice("scaling", self.scaling, SCALINGS)
        check_real("generation_gap", self.generation_gap, above=0, high=1)

    def begin(self, n_features: int, rng: Generator) -> Population:
        return Population(self.first_masks(self.population, n_features, rng))

    def step(self, state: Population, fitness: FloatArray, progress: float, rng: Generator) -> Population:
        count = max(1, round(self.generation_gap * self.population))
        parents = state.masks[selected(selection_weights(fitness, self.scaling), count + count % 2, rng)]
        children = flipped(crossed(parents, self.crossover, rng), self.mutation, rng)[:count]
        if count < self.population:
            survivors = rng.choice(self.population, size=self.population - count, replace=False)
            children = np.concatenate([state.masks[survivors], children])
        return Population(self.rules(children.shape[1]).legalize(children, rng))


def selection_weights(fitness: FloatArray, scaling: str) -> FloatArray:
    """Return the weight of each subset on the roulette wheel, the largest being 1; all are equal if all are 0.

    Examples
    --------
    >>> selection_weights(np.array([0.2, 0.6, 1.0]), "raw").tolist()
    [1.0, 0.5, 0.0]
    >>> selection_weights(np.array([0.2, 0.3, 0.4]), "window").round(6).tolist()
    [1.0, 0.5, 0.0]
    """
    if scaling == "raw":
        weights = np.maximum(1.0 - fitness, 0.0)
    else:
        scaled = fitness / max(
            float(np.abs(fitness).max()), np.finfo(np.float64).tiny
        )  # so that no difference overflows
        weights = scaled.max() - scaled
    largest = weights.max()
    return weights / largest if largest > 0 else np.ones_like(weights)


def selected(weights: FloatArray, count: int, rng: Generator) -> IntArray:
    """Draw ``count`` rows by roulette, with replacement."""
    return wheel_position(np.broadcast_to(weights, (count, len(weights))), 1.0 - rng.random(count))


def crossed(parents: Masks, probability: float, rng: Generator) -> Masks:
    """Return the children of parents 2k and 2k + 1, which swap all bits after one cut with this probability."""
    mothers, fathers = parents[0::2], parents[1::2]
    pairs, n = mothers.shape
    cut = rng.integers(1, max(n, 2), size=pairs)
    swap = (np.arange(n) >= cut[:, None]) & (rng.random((pairs, 1)) < probability)
    children = np.empty_like(parents)
    children[0::2] = np.where(swap, fathers, mothers)
    children[1::2] = np.where(swap, mothers, fathers)
    return children


def flipped(masks: Masks, probability: float, rng: Generator) -> Masks:
    """Return the masks with each bit flipped with this probability."""
    return masks ^ (rng.random(masks.shape) < probability)
