"""The genetic algorithm: parents by roulette, one cut, a few flipped bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from subswarm.algorithms.learning import wheel_position
from subswarm.algorithms.subset_settings import SubsetSettings
from subswarm.core.checks import check_choice, check_int, check_real
from subswarm.core.types import FloatArray, IntArray, Masks

__all__ = ["GeneticAlgorithm", "Population", "crossed", "flipped", "selection_weights"]

SCALINGS = ("raw", "window")


@dataclass(frozen=True, eq=False)
class Population:
    """One generation, shape (N, n)."""

    masks: Masks


@dataclass(frozen=True, kw_only=True)
class GeneticAlgorithm(SubsetSettings):
    """Genetic algorithm: parents by roulette, one-point crossover, flipped bits, no elitism.

    A step asks the whole generation, survivors included: ``population`` subsets.

    Parameters
    ----------
    population : int, default=80
        N.
    crossover : float, default=0.45
        Probability that a pair of parents is cut at one random point and crossed.
    mutation : float, default=0.01
        Probability that a bit is flipped.
    scaling : "raw" or "window"
        What a place on the roulette wheel is worth: 1 - J, or how far J is below the worst of the generation (the
        stronger rival).
    generation_gap : float, default=1
        Share of a generation replaced by offspring; the rest are survivors drawn at random (Grefenstette's setting
        with "window" is 0.9). There is no elitism: the best subset ever seen is kept by the search, not by the
        population.
    min_features, max_features, fixed_features, feature_sizes, initial_subsets
        See `subswarm.algorithms.SubsetSettings`.
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
    """How much of the roulette wheel each subset has, the largest being 1; all the same where none has any.

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
        scaled = fitness / max(float(np.abs(fitness).max()), np.finfo(np.float64).tiny)  # no difference overflows
        weights = scaled.max() - scaled
    largest = weights.max()
    return weights / largest if largest > 0 else np.ones_like(weights)


def selected(weights: FloatArray, count: int, rng: Generator) -> IntArray:
    """``count`` rows drawn by roulette, with replacement."""
    return wheel_position(np.broadcast_to(weights, (count, len(weights))), 1.0 - rng.random(count))


def crossed(parents: Masks, probability: float, rng: Generator) -> Masks:
    """The children of neighbouring parents (2k and 2k + 1): with this probability they swap all bits after one cut."""
    mothers, fathers = parents[0::2], parents[1::2]
    pairs, n = mothers.shape
    cut = rng.integers(1, max(n, 2), size=pairs)
    swap = (np.arange(n) >= cut[:, None]) & (rng.random((pairs, 1)) < probability)
    children = np.empty_like(parents)
    children[0::2] = np.where(swap, fathers, mothers)
    children[1::2] = np.where(swap, mothers, fathers)
    return children


def flipped(masks: Masks, probability: float, rng: Generator) -> Masks:
    """The masks with each bit flipped with this probability."""
    return masks ^ (rng.random(masks.shape) < probability)
