"""2D-GPSO, 2D-LPSO, 2D-CLPSO and 2D-UPSO: one step, four ways to be pulled."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from subswarm.algorithms import learning
from subswarm.algorithms.bests import Bests, first_bests, improved, updated
from subswarm.algorithms.comprehensive import comprehensive_teachers
from subswarm.algorithms.learning import CARDINALITY, FEATURE
from subswarm.algorithms.neighborhood import ring_best
from subswarm.algorithms.schedules import INERTIA_SCHEDULES, UNIFICATION_SCHEDULES, inertia_at, unification_at
from subswarm.algorithms.subset_settings import SubsetSettings
from subswarm.core.checks import check_choice, check_int, check_real
from subswarm.core.errors import SettingError
from subswarm.core.types import FloatArray, IntArray, Masks

__all__ = ["Exemplars", "Pull", "Swarm", "TwoD", "TwoDCLPSO", "TwoDGPSO", "TwoDLPSO", "TwoDUPSO"]


@dataclass(frozen=True, eq=False)
class Pull:
    """What a velocity is drawn towards.

    Attributes
    ----------
    exemplar : the subset to learn from, one for each particle (P, n) or one for all (1, n)
    weight : how strongly, shape (P, 1, 1), (P, 2, 1) or (P, 2, n)
    """

    exemplar: Masks
    weight: FloatArray


@dataclass(frozen=True, eq=False)
class Swarm:
    """The state of a 2-D swarm of P particles on n features.

    Attributes
    ----------
    masks : positions, shape (P, n)
    velocity : likelihoods of cardinalities and of features, shape (P, 2, n)
    bests : personal bests and the leader
    previous : fitness a step ago, shape (P,); infinite before the first step
    stagnation : steps without a better personal best, shape (P,)
    steps : steps taken
    memory : whatever else a variant remembers (a dataclass of arrays), or None
    """

    masks: Masks
    velocity: FloatArray
    bests: Bests
    previous: FloatArray
    stagnation: IntArray
    steps: int
    memory: Any = None

    @property
    def cardinality_likelihood(self) -> FloatArray:
        """Probability of each cardinality 1..n on the swarm's wheels, mean over the particles, shape (n,)."""
        wheel = np.maximum(self.velocity[:, CARDINALITY], 0.0)
        whole = wheel.sum(axis=1, keepdims=True)
        even = np.full_like(wheel, 1 / wheel.shape[1])
        return np.asarray(np.divide(wheel, whole, out=even, where=whole > 0).mean(axis=0))


@dataclass(frozen=True, kw_only=True)
class TwoD(SubsetSettings):
    """A swarm that learns how many features as well as which; a variant says where its `pulls` come from.

    Parameters
    ----------
    particles : int, default=30
    inertia, final_inertia : float
        ω; with ``inertia_schedule="constant"`` only the first is used.
    inertia_schedule : "constant", "linear" or "printed"
        "printed" is the paper's formula, (ω0 - ωf) t / T (D1).
    refresh_gap : int or None, default=3
        RG: steps without a better personal best after which a velocity is drawn anew; None never does.
    cardinality_rule : "roulette", "raw-roulette" or "greedy"
        How ξ is picked from its likelihoods (D2).
    draws : "particle", "row" or "entry"
        Whether a random factor is drawn for each particle, each row of its velocity, or each entry (D3).
    stagnation_rule : "cumulative" or "consecutive"
        Whether the count of steps without improvement returns to zero only at a refresh, or at any improvement (D6).
    parsimonious : bool, default=False
        Whether an equally good but smaller subset becomes a best (D7).
    whole_exemplar : bool, default=False
        Whether features a particle already has are learnt from an exemplar too (D11).
    feature_likelihoods : tuple of float or None, default=None
        How likely each feature is beforehand, each from 0 to 1. Where the paper draws a feature's likelihood from
        U[0, 1], at the start and at every refresh, it is then drawn from U[0, this]. None is the paper's rule.
    min_features, max_features, fixed_features, feature_sizes, initial_subsets
        See `subswarm.algorithms.SubsetSettings`.
    """

    source: ClassVar[str] = "Hafiz, Swain, Patel, Naik, Pattern Recognition 76 (2018) 416-433"

    particles: int = 30
    inertia: float = 0.729
    final_inertia: float = 0.4
    inertia_schedule: str = "constant"
    refresh_gap: int | None = 3
    cardinality_rule: str = "roulette"
    draws: str = "particle"
    stagnation_rule: str = "cumulative"
    parsimonious: bool = False
    whole_exemplar: bool = False
    feature_likelihoods: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("particles", self.particles, low=1)
        check_real("inertia", self.inertia, low=0)
        check_real("final_inertia", self.final_inertia, low=0)
        check_choice("inertia_schedule", self.inertia_schedule, INERTIA_SCHEDULES)
        check_int("refresh_gap", self.refresh_gap, low=1, optional=True)
        check_choice("cardinality_rule", self.cardinality_rule, ("roulette", "raw-roulette", "greedy"))
        check_choice("draws", self.draws, ("particle", "row", "entry"))
        check_choice("stagnation_rule", self.stagnation_rule, ("cumulative", "consecutive"))
        for likelihood in self.feature_likelihoods or ():
            check_real("each of feature_likelihoods", likelihood, low=0, high=1)

    @abstractmethod
    def pulls(self, swarm: Swarm, progress: float, rng: Generator) -> list[Pull]:
        """Where this variant's velocities are drawn: the one thing that varies."""

    def remember(self, swarm: Swarm, better: NDArray[np.bool_], rng: Generator) -> Any:
        """The swarm's memory for this step; ``better`` tells who has just improved. Most variants need none."""
        return None

    def begin(self, n_features: int, rng: Generator) -> Swarm:
        """Random positions, and velocities from U[0, 1]."""
        masks = self.first_masks(self.particles, n_features, rng)
        swarm = Swarm(
            masks=masks,
            velocity=learning.fresh_velocity(self.particles, n_features, rng, self._prior(n_features)),
            bests=first_bests(masks),
            previous=np.full(self.particles, np.inf),
            stagnation=np.zeros(self.particles, dtype=np.intp),
            steps=0,
        )
        return replace(swarm, memory=self.remember(swarm, np.zeros(self.particles, dtype=bool), rng))

    def step(self, state: Swarm, fitness: FloatArray, progress: float, rng: Generator) -> Swarm:
        """Take in the fitness, then move: bests and counts, refreshed velocities, velocities, positions."""
        swarm = self._remembered(state, fitness, rng)
        stagnant = swarm.stagnation >= (np.inf if self.refresh_gap is None else self.refresh_gap)
        velocity = self._velocity(swarm, stagnant, fitness, progress, rng)
        return replace(
            swarm,
            masks=self._position(velocity, rng),
            velocity=velocity,
            previous=fitness,
            stagnation=np.where(stagnant, 0, swarm.stagnation),
            steps=state.steps + 1,
        )

    def draw(self, swarm: Swarm, rng: Generator) -> FloatArray:
        """One random factor r ~ U[0, 1] of a pull, of the shape that ``draws`` asks for (D3)."""
        particles, rows, n = swarm.velocity.shape
        shape = {"particle": (particles, 1, 1), "row": (particles, rows, 1), "entry": (particles, rows, n)}[self.draws]
        return rng.random(shape)

    def _prior(self, n_features: int) -> FloatArray | None:
        """Up to where fresh likelihoods are drawn: a limit for each entry of a velocity, shape (2, n); None for 1."""
        if self.feature_likelihoods is None:
            return None
        if len(self.feature_likelihoods) != n_features:
            raise SettingError(
                f"feature_likelihoods must have one entry for each of {n_features} features; "
                f"got {len(self.feature_likelihoods)}."
            )
        return np.stack([np.ones(n_features), np.array(self.feature_likelihoods)])

    def _remembered(self, state: Swarm, fitness: FloatArray, rng: Generator) -> Swarm:
        better = improved(state.bests, state.masks, fitness, parsimonious=self.parsimonious)
        reset = 0 if self.stagnation_rule == "consecutive" else state.stagnation
        swarm = replace(
            state,
            bests=updated(state.bests, state.masks, fitness, better, parsimonious=self.parsimonious),
            stagnation=np.where(better, reset, state.stagnation + 1),
        )
        memory = self.remember(swarm, better, rng)
        return swarm if memory is swarm.memory else replace(swarm, memory=memory)

    def _velocity(
        self, swarm: Swarm, stagnant: NDArray[np.bool_], fitness: FloatArray, progress: float, rng: Generator
    ) -> FloatArray:
        """Eq. velprop: inertia, the pulls, and the particle's influence on itself. No bounds."""
        inertia = inertia_at(self.inertia_schedule, self.inertia, self.final_inertia, progress)
        moved = learning.carried(swarm.velocity, inertia, stagnant, rng, self._prior(swarm.masks.shape[1]))
        for pull in self.pulls(swarm, progress, rng):
            learning.add_pull(moved, pull.exemplar, swarm.masks, pull.weight, whole_exemplar=self.whole_exemplar)
        learning.add_influence(moved, swarm.masks, learning.self_influence(fitness, swarm.previous))
        return moved

    def _position(self, velocity: FloatArray, rng: Generator) -> Masks:
        rules = self.rules(velocity.shape[2])
        likelihood = velocity[:, CARDINALITY]
        if self.cardinality_rule == "greedy":
            cardinality = learning.greedy_cardinality(likelihood, limits=rules.cardinalities)
        else:
            raw = self.cardinality_rule == "raw-roulette"
            cardinality = learning.roulette_cardinality(likelihood, rng, limits=rules.cardinalities, raw=raw)
        features = velocity[:, FEATURE]
        if self.fixed_features:
            features = np.where(rules.fixed, np.inf, features)
        return rules.legalize(learning.ranked_features(features, cardinality), rng, preference=features)


@dataclass(frozen=True, kw_only=True)
class TwoDGPSO(TwoD):
    """Global swarm: learn from yourself and from the best of all.

    Parameters
    ----------
    cognitive, social : float, default=1.49
        c₁ and c₂.
    """

    cognitive: float = 1.49
    social: float = 1.49

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("cognitive", self.cognitive, low=0)
        check_real("social", self.social, low=0)

    def pulls(self, swarm: Swarm, progress: float, rng: Generator) -> list[Pull]:
        return [
            Pull(swarm.bests.masks, self.cognitive * self.draw(swarm, rng)),
            Pull(swarm.bests.global_best[None], self.social * self.draw(swarm, rng)),
        ]


@dataclass(frozen=True, kw_only=True)
class TwoDLPSO(TwoDGPSO):
    """Local swarm: learn from yourself and from the best of your ring.

    Parameters
    ----------
    radius : int, default=1
        Neighbours on either side of the ring (D5).
    """

    radius: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("radius", self.radius, low=1)

    def pulls(self, swarm: Swarm, progress: float, rng: Generator) -> list[Pull]:
        return [
            Pull(swarm.bests.masks, self.cognitive * self.draw(swarm, rng)),
            Pull(ring_best(swarm.bests, self.radius), self.social * self.draw(swarm, rng)),
        ]


@dataclass(frozen=True, kw_only=True)
class TwoDUPSO(TwoDLPSO):
    """Unified swarm: a mixture of the global and the local velocity, ``u`` of the one and ``1 - u`` of the other.

    Parameters
    ----------
    unification, final_unification : float, default=0.2 and 0.4
        u at the start and at the end of a run.
    unification_schedule : "linear", "modular", "exponential" or "sigmoid"
    unification_period : int, default=10
        q, the steps of one period of the modular schedule.
    independent_draws : bool, default=False
        Whether the global and the local velocity draw their own random factors (D4).
    """

    unification: float = 0.2
    final_unification: float = 0.4
    unification_schedule: str = "linear"
    unification_period: int = 10
    independent_draws: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("unification", self.unification, low=0, high=1)
        check_real("final_unification", self.final_unification, low=0, high=1)
        check_choice("unification_schedule", self.unification_schedule, UNIFICATION_SCHEDULES)
        check_int("unification_period", self.unification_period, low=1)

    def pulls(self, swarm: Swarm, progress: float, rng: Generator) -> list[Pull]:
        # u v_g + (1 - u) v_l is linear in the pulls: what both velocities share (inertia, self-influence) is unchanged.
        u = unification_at(
            self.unification_schedule,
            self.unification,
            self.final_unification,
            self.unification_period,
            swarm.steps,
            progress,
        )
        towards_own, towards_all = self.draw(swarm, rng), self.draw(swarm, rng)
        towards_ring = towards_all
        if self.independent_draws:
            towards_own = u * towards_own + (1 - u) * self.draw(swarm, rng)
            towards_ring = self.draw(swarm, rng)
        return [
            Pull(swarm.bests.masks, self.cognitive * towards_own),
            Pull(swarm.bests.global_best[None], u * self.social * towards_all),
            Pull(ring_best(swarm.bests, self.radius), (1 - u) * self.social * towards_ring),
        ]


@dataclass(frozen=True, eq=False)
class Exemplars:
    """Whose personal best each particle learns each feature from (P, n), and for how many steps in vain (P,)."""

    teachers: IntArray
    stagnation: IntArray


@dataclass(frozen=True, kw_only=True)
class TwoDCLPSO(TwoD):
    """Comprehensive learning: one exemplar, put together feature by feature from many personal bests.

    Parameters
    ----------
    acceleration : float, default=1.49445
        c.
    renewal_gap : int, default=7
        m, the steps without improvement after which a particle's exemplar is put together anew.
    inertia, final_inertia, inertia_schedule
        0.9 falling in a line to 0.4, as in Liang et al. (2006).
    """

    source: ClassVar[str] = (
        "Hafiz et al. (2018); comprehensive learning: Liang, Qin, Suganthan, Baskar, IEEE TEC 10 (2006) 281-295"
    )

    inertia: float = 0.9
    final_inertia: float = 0.4
    inertia_schedule: str = "linear"
    acceleration: float = 1.49445
    renewal_gap: int = 7

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("acceleration", self.acceleration, low=0)
        check_int("renewal_gap", self.renewal_gap, low=1)
        if self.particles < 2:
            raise SettingError(
                f"particles must be at least 2, so that one can learn from another; got {self.particles}."
            )

    def pulls(self, swarm: Swarm, progress: float, rng: Generator) -> list[Pull]:
        composite = np.take_along_axis(swarm.bests.masks, swarm.memory.teachers, axis=0)
        return [Pull(composite, self.acceleration * self.draw(swarm, rng))]

    def remember(self, swarm: Swarm, better: NDArray[np.bool_], rng: Generator) -> Exemplars:
        """Keep the exemplars, and put together anew those that have not helped for ``renewal_gap`` steps."""
        if swarm.memory is None:
            everyone = np.ones(self.particles, dtype=bool)
            start = Exemplars(np.zeros(swarm.masks.shape, dtype=np.intp), np.zeros(self.particles, dtype=np.intp))
            return self._renewed(start, everyone, swarm.bests.fitness, rng)
        waited = np.where(better, 0, swarm.memory.stagnation + 1)
        exemplars = Exemplars(swarm.memory.teachers, waited)
        return self._renewed(exemplars, waited >= self.renewal_gap, swarm.bests.fitness, rng)

    def _renewed(self, exemplars: Exemplars, who: NDArray[np.bool_], fitness: FloatArray, rng: Generator) -> Exemplars:
        rows = np.flatnonzero(who)
        if not len(rows):
            return exemplars
        teachers = exemplars.teachers.copy()
        teachers[rows] = comprehensive_teachers(rows, teachers.shape[1], fitness, rng)
        return Exemplars(teachers, np.where(who, 0, exemplars.stagnation))
