"""2D-GPSO, 2D-LPSO, 2D-CLPSO and 2D-UPSO: they share one step and differ in what a particle learns from."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from subswarm._checks import as_tuple, check_bool, check_choice, check_int, check_real
from subswarm._types import FloatArray, IntArray, Mask, Masks
from subswarm.algorithms.base import Algorithm, State
from subswarm.algorithms.particles import Bests, Control, controlled_settings, first_bests, improved, updated
from subswarm.algorithms.state import Layout, StatePart
from subswarm.algorithms.two_d import learning
from subswarm.algorithms.two_d.learning import (
    CARDINALITY,
    FEATURE,
    INERTIA_SCHEDULES,
    UNIFICATION_SCHEDULES,
    comprehensive_teachers,
    inertia_at,
    ring_best,
    unification_at,
)
from subswarm.errors import SettingError

__all__ = ["Exemplars", "Pull", "Swarm", "TwoD", "TwoDCLPSO", "TwoDGPSO", "TwoDLPSO", "TwoDUPSO"]


@dataclass(frozen=True, eq=False)
class Pull:
    """One exemplar that a velocity is pulled towards.

    Attributes
    ----------
    exemplar : the subset to learn from, one for each particle (P, n) or one for all particles (1, n)
    weight : the strength of the pull, shape (P, 1, 1), (P, 2, 1) or (P, 2, n)
    """

    exemplar: Masks
    weight: FloatArray


@dataclass(frozen=True, eq=False)
class Swarm(State):
    """The state of a 2-D swarm of P particles on n features.

    Attributes
    ----------
    masks : positions, shape (P, n)
    velocity : likelihoods of cardinalities and of features, shape (P, 2, n)
    bests : personal bests and the leader
    previous : fitness a step ago, shape (P,); infinite before the first step
    stagnation : steps without a better personal best, shape (P,)
    steps : steps taken
    memory : what else a variant remembers (a dataclass of arrays), or None
    control : the settings of each particle with ``adaptive``, or None
    """

    layout: ClassVar[Layout | None] = Layout(ranges={"stagnation": (0, None), "steps": (0, None)}, free=("memory",))

    masks: Masks
    velocity: FloatArray
    bests: Bests
    previous: FloatArray
    stagnation: IntArray
    steps: int
    memory: StatePart | None = None
    control: Control | None = None

    @property
    def cardinality_likelihood(self) -> FloatArray:
        """Probability of each cardinality 1..n on the roulette wheels, mean over the particles, shape (n,)."""
        wheel = np.maximum(self.velocity[:, CARDINALITY], 0.0)
        whole = wheel.sum(axis=1, keepdims=True)
        even = np.full_like(wheel, 1 / wheel.shape[1])
        return np.asarray(np.divide(wheel, whole, out=even, where=whole > 0).mean(axis=0))


@dataclass(frozen=True, kw_only=True)
class TwoD(Algorithm[Swarm]):
    """A swarm that learns how many features to select as well as which ones; a variant defines its `pulls`.

    Parameters
    ----------
    particles : int, default=30
    inertia, final_inertia : float
        ω at the start and at the end; a constant inertia uses only the first.
    inertia_schedule : "constant", "linear" or "printed"
        "printed" is the paper's formula, (ω0 - ωf) t / T (D1).
    refresh_gap : int or None, default=3
        RG: steps without a better personal best after which a velocity is drawn again; None disables this.
    cardinality_rule : "roulette", "raw-roulette" or "greedy"
        How ξ is selected from its likelihoods (D2).
    draws : "particle", "row" or "entry"
        Whether a random factor is drawn for each particle, each row of its velocity, or each entry (D3).
    stagnation_rule : "cumulative" or "consecutive"
        Whether the count of steps without improvement is reset only by a refresh, or by any improvement (D6).
    parsimonious : bool, default=False
        Whether an equally good but smaller subset becomes a best (D7).
    whole_exemplar : bool, default=False
        Whether features a particle already has are learnt from an exemplar too (D11).
    feature_likelihoods : tuple of float or None, default=None
        Prior likelihood of each feature, from 0 to 1. At the start and at every refresh, the likelihood of a feature is
        then drawn from U[0, prior] instead of U[0, 1]. None is the rule of the paper.
    adaptive : bool, default=False
        Whether settings follow their success: each particle draws its own, around those that improved personal bests.
    adaptive_settings : tuple of str or None, default=None
        With ``adaptive``, the settings that follow their success; None means all that the variant can control.
    min_features, max_features, fixed_features, feature_sizes, initial_subsets
        See `subswarm.algorithms.Algorithm`.
    """

    source: ClassVar[str] = "Hafiz, Swain, Patel, Naik, Pattern Recognition 76 (2018) 416-433"
    controls: ClassVar[tuple[str, ...]] = ("inertia", "refresh_gap")
    """The settings that ``adaptive`` can control."""

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
    adaptive: bool = False
    adaptive_settings: tuple[str, ...] | None = None

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
        check_bool("parsimonious", self.parsimonious)
        check_bool("whole_exemplar", self.whole_exemplar)
        controlled_settings(self.adaptive, self.adaptive_settings, self.controls)
        if self.adaptive_settings is not None:
            object.__setattr__(self, "adaptive_settings", tuple(self.adaptive_settings))
        if self.feature_likelihoods is not None:
            for likelihood in as_tuple("feature_likelihoods", self.feature_likelihoods, of="numbers from 0 to 1"):
                check_real("each of feature_likelihoods", likelihood, low=0, high=1)

    @abstractmethod
    def pulls(self, swarm: Swarm, progress: float, rng: Generator) -> list[Pull]:
        """Return what this variant's velocities are pulled towards."""

    def remember(self, swarm: Swarm, better: Mask, rng: Generator) -> StatePart | None:
        """Return the memory for this step; ``better`` tells which particles have just improved. The default is None."""
        return None

    def begin(self, n_features: int, rng: Generator) -> Swarm:
        """Draw random positions, and velocities from U[0, 1]."""
        masks = self.first_masks(self.particles, n_features, rng)
        swarm = Swarm(
            masks=masks,
            velocity=learning.fresh_velocity(self.particles, n_features, rng, self._prior(n_features)),
            bests=first_bests(masks),
            previous=np.full(self.particles, np.inf),
            stagnation=np.zeros(self.particles, dtype=np.intp),
            steps=0,
            control=Control.begin(tuple(map(self._published, names)), self.particles)
            if (names := self._names)
            else None,
        )
        return replace(swarm, memory=self.remember(swarm, np.zeros(self.particles, dtype=bool), rng))

    def rivals(self, state: Swarm) -> Masks:
        return state.bests.masks

    def step(self, state: Swarm, fitness: FloatArray, progress: float, rng: Generator) -> Swarm:
        """Update bests and counts, then velocities (refreshed if stagnant), then positions."""
        swarm = self._remembered(state, fitness, rng)
        if swarm.control is not None:
            swarm = replace(swarm, control=swarm.control.redrawn(self._names, rng))
        gap = np.inf if self.refresh_gap is None else self.value_of("refresh_gap", self.refresh_gap, swarm)
        if isinstance(gap, np.ndarray):
            gap = gap.round().ravel()
        stagnant = swarm.stagnation >= gap
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
        """Draw a random factor r ~ U[0, 1] of a pull, in the shape that ``draws`` selects (D3)."""
        particles, rows, n = swarm.velocity.shape
        shape = {"particle": (particles, 1, 1), "row": (particles, rows, 1), "entry": (particles, rows, n)}[self.draws]
        return rng.random(shape)

    def value_of(self, name: str, published: float, swarm: Swarm) -> float | FloatArray:
        """Return a setting: the published value, or that of each particle, shape (P, 1, 1), if it is controlled."""
        if swarm.control is None or name not in self._names:
            return published
        return np.asarray(swarm.control.drawn[:, self._names.index(name), None, None])

    @property
    def _names(self) -> tuple[str, ...]:
        """The controlled settings."""
        names = controlled_settings(self.adaptive, self.adaptive_settings, self.controls)
        return tuple(name for name in names if getattr(self, name) is not None)

    def _published(self, name: str) -> float:
        """Return the value that a controlled setting starts from."""
        return float(getattr(self, name))

    def _prior(self, n_features: int) -> FloatArray | None:
        """Return the upper limits of new likelihoods, shape (2, n); None for 1."""
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
        control = state.control
        if control is not None:
            control = control.after(better, state.bests.fitness - fitness)
        swarm = replace(
            state,
            control=control,
            bests=updated(state.bests, state.masks, fitness, better, parsimonious=self.parsimonious),
            stagnation=np.where(better, reset, state.stagnation + 1),
        )
        memory = self.remember(swarm, better, rng)
        return swarm if memory is swarm.memory else replace(swarm, memory=memory)

    def _velocity(
        self, swarm: Swarm, stagnant: Mask, fitness: FloatArray, progress: float, rng: Generator
    ) -> FloatArray:
        """Return the velocity (eq. velprop): inertia, pulls and self-influence, without bounds."""
        scheduled = inertia_at(self.inertia_schedule, self.inertia, self.final_inertia, progress)
        inertia = self.value_of("inertia", scheduled, swarm)
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
    """Global swarm: a particle learns from its personal best and the global best.

    Parameters
    ----------
    cognitive, social : float, default=1.49
        c₁ and c₂.
    """

    controls: ClassVar[tuple[str, ...]] = (*TwoD.controls, "cognitive", "social")

    cognitive: float = 1.49
    social: float = 1.49

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("cognitive", self.cognitive, low=0)
        check_real("social", self.social, low=0)

    def pulls(self, swarm: Swarm, progress: float, rng: Generator) -> list[Pull]:
        cognitive, social = self.accelerations(swarm)
        return [
            Pull(swarm.bests.masks, cognitive * self.draw(swarm, rng)),
            Pull(swarm.bests.global_best[None], social * self.draw(swarm, rng)),
        ]

    def accelerations(self, swarm: Swarm) -> tuple[float | FloatArray, float | FloatArray]:
        """Return c₁ and c₂."""
        return self.value_of("cognitive", self.cognitive, swarm), self.value_of("social", self.social, swarm)


@dataclass(frozen=True, kw_only=True)
class TwoDLPSO(TwoDGPSO):
    """Local swarm: a particle learns from its personal best and the best of its ring neighbourhood.

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
        cognitive, social = self.accelerations(swarm)
        return [
            Pull(swarm.bests.masks, cognitive * self.draw(swarm, rng)),
            Pull(ring_best(swarm.bests, self.radius), social * self.draw(swarm, rng)),
        ]


@dataclass(frozen=True, kw_only=True)
class TwoDUPSO(TwoDLPSO):
    """Unified swarm: the velocity is u times the global plus 1 - u times the local velocity.

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

    controls: ClassVar[tuple[str, ...]] = (*TwoDLPSO.controls, "unification")

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
        check_bool("independent_draws", self.independent_draws)

    def pulls(self, swarm: Swarm, progress: float, rng: Generator) -> list[Pull]:
        # u v_g + (1 - u) v_l is linear in the pulls, so inertia and self-influence, which both share, are unchanged.
        u = self.value_of("unification", self._scheduled(swarm.steps, progress), swarm)
        cognitive, social = self.accelerations(swarm)
        towards_own, towards_all = self.draw(swarm, rng), self.draw(swarm, rng)
        towards_ring = towards_all
        if self.independent_draws:
            towards_own = u * towards_own + (1 - u) * self.draw(swarm, rng)
            towards_ring = self.draw(swarm, rng)
        return [
            Pull(swarm.bests.masks, cognitive * towards_own),
            Pull(swarm.bests.global_best[None], u * social * towards_all),
            Pull(ring_best(swarm.bests, self.radius), (1 - u) * social * towards_ring),
        ]

    def _scheduled(self, step: int, progress: float) -> float:
        """Return u of the schedule."""
        return unification_at(
            self.unification_schedule,
            self.unification,
            self.final_unification,
            self.unification_period,
            step,
            progress,
        )


@dataclass(frozen=True, eq=False)
class Exemplars(StatePart):
    """The particle each feature is learnt from (P, n), and the steps without improvement since then (P,)."""

    layout: ClassVar[Layout | None] = Layout(ranges={"teachers": (0, "stagnation"), "stagnation": (0, None)})

    teachers: IntArray
    stagnation: IntArray


@dataclass(frozen=True, kw_only=True)
class TwoDCLPSO(TwoD):
    """Comprehensive learning: each particle has one exemplar, composed feature by feature of many personal bests.

    Parameters
    ----------
    acceleration : float, default=1.49445
        c.
    renewal_gap : int, default=7
        m, the steps without improvement after which an exemplar is composed again.
    inertia, final_inertia, inertia_schedule
        Linear from 0.9 to 0.4, as in Liang et al. (2006).
    """

    source: ClassVar[str] = (
        "Hafiz et al. (2018); comprehensive learning: Liang, Qin, Suganthan, Baskar, IEEE TEC 10 (2006) 281-295"
    )

    controls: ClassVar[tuple[str, ...]] = (*TwoD.controls, "acceleration")

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
                f"particles must be at least 2, because particles learn from each other; got {self.particles}."
            )

    def pulls(self, swarm: Swarm, progress: float, rng: Generator) -> list[Pull]:
        assert isinstance(swarm.memory, Exemplars)
        composite = np.take_along_axis(swarm.bests.masks, swarm.memory.teachers, axis=0)
        return [Pull(composite, self.value_of("acceleration", self.acceleration, swarm) * self.draw(swarm, rng))]

    def remember(self, swarm: Swarm, better: Mask, rng: Generator) -> Exemplars:
        """Return the exemplars, those that have not helped for ``renewal_gap`` steps composed again."""
        if not isinstance(swarm.memory, Exemplars):
            everyone = np.ones(self.particles, dtype=bool)
            start = Exemplars(np.zeros(swarm.masks.shape, dtype=np.intp), np.zeros(self.particles, dtype=np.intp))
            return self._renewed(start, everyone, swarm.bests.fitness, rng)
        waited = np.where(better, 0, swarm.memory.stagnation + 1)
        exemplars = Exemplars(swarm.memory.teachers, waited)
        return self._renewed(exemplars, waited >= self.renewal_gap, swarm.bests.fitness, rng)

    def _renewed(self, exemplars: Exemplars, who: Mask, fitness: FloatArray, rng: Generator) -> Exemplars:
        rows = np.flatnonzero(who)
        if not len(rows):
            return exemplars
        teachers = exemplars.teachers.copy()
        teachers[rows] = comprehensive_teachers(rows, teachers.shape[1], fitness, rng)
        return Exemplars(teachers, np.where(who, 0, exemplars.stagnation))
