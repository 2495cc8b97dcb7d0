"""Binary swarms: the sigmoid of a velocity is the probability that the feature is selected."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from scipy.special import expit

from subswarm._checks import check_choice, check_int, check_real
from subswarm._types import FloatArray, IntArray, Masks
from subswarm.algorithms.base import Algorithm, State
from subswarm.algorithms.particles import Bests, Control, controlled_settings, first_bests, improved, updated
from subswarm.algorithms.state import Layout
from subswarm.errors import SettingError

__all__ = [
    "CHAOTIC_MAPS",
    "BinaryPSO",
    "BinarySwarm",
    "CatfishPSO",
    "ChaoticPSO",
    "bit_velocity",
    "chaotic",
    "logistic",
    "tent",
]


@dataclass(frozen=True, eq=False)
class BinarySwarm(State):
    """The state of a binary swarm of P particles on n features.

    Attributes
    ----------
    masks : positions, shape (P, n)
    velocity : shape (P, n); its sigmoid is the probability that the feature is selected
    bests : personal bests and the leader
    inertia : ω of the next step
    stalled : consecutive steps without a better global best
    control : the settings of each particle with ``adaptive``, or None
    """

    layout: ClassVar[Layout | None] = Layout(ranges={"stalled": (0, None)})

    masks: Masks
    velocity: FloatArray
    bests: Bests
    inertia: float
    stalled: int
    control: Control | None = None


@dataclass(frozen=True, kw_only=True)
class BinaryPSO(Algorithm[BinarySwarm]):
    """BPSO: each bit is drawn with a probability that depends on the personal best and the global best.

    A step evaluates ``particles`` subsets.

    Parameters
    ----------
    particles : int, default=30
    inertia : float, default=1
        ω.
    cognitive, social : float, default=2
        c₁ and c₂.
    max_velocity : float, default=6
        Velocities are clipped to ± this value, so that every bit keeps a chance to change.
    adaptive : bool, default=False
        Whether settings follow their success: each particle draws its own, around those that improved personal bests.
    adaptive_settings : tuple of str or None, default=None
        With ``adaptive``, the settings that follow their success; None means all that the variant can control.
    min_features, max_features, fixed_features, feature_sizes, initial_subsets
        See `subswarm.algorithms.Algorithm`.
    """

    source: ClassVar[str] = "Kennedy, Eberhart, IEEE Int. Conf. Systems, Man and Cybernetics (1997) 4104-4108"

    controls: ClassVar[tuple[str, ...]] = ("inertia", "cognitive", "social")
    """The settings that ``adaptive`` can control."""

    particles: int = 30
    inertia: float = 1.0
    cognitive: float = 2.0
    social: float = 2.0
    max_velocity: float = 6.0
    adaptive: bool = False
    adaptive_settings: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("particles", self.particles, low=1)
        check_real("inertia", self.inertia, low=0)
        check_real("cognitive", self.cognitive, low=0)
        check_real("social", self.social, low=0)
        check_real("max_velocity", self.max_velocity, above=0)
        controlled_settings(self.adaptive, self.adaptive_settings, self.controls)
        if self.adaptive_settings is not None:
            object.__setattr__(self, "adaptive_settings", tuple(self.adaptive_settings))

    def begin(self, n_features: int, rng: Generator) -> BinarySwarm:
        """Draw random positions, and velocities from U[-max, max]."""
        masks = self.first_masks(self.particles, n_features, rng)
        velocity = rng.uniform(-self.max_velocity, self.max_velocity, size=masks.shape)
        control = None
        if names := self._names:
            control = Control.begin(tuple(float(getattr(self, name)) for name in names), self.particles)
        return BinarySwarm(masks, velocity, first_bests(masks), self.inertia, 0, control)

    def rivals(self, state: BinarySwarm) -> Masks:
        return state.bests.masks

    def step(self, state: BinarySwarm, fitness: FloatArray, progress: float, rng: Generator) -> BinarySwarm:
        """Update the bests, disturb the swarm if the variant does, and move."""
        better = improved(state.bests, state.masks, fitness)
        bests = updated(state.bests, state.masks, fitness, better)
        stalled = 0 if bests.global_fitness < state.bests.global_fitness else state.stalled + 1
        control = state.control
        if control is not None:
            control = control.after(better, state.bests.fitness - fitness).redrawn(self._names, rng)
        swarm = self.disturbed(replace(state, bests=bests, stalled=stalled, control=control), fitness, rng)
        velocity = self._velocity(swarm, rng)
        drawn = rng.random(velocity.shape) < expit(velocity)
        masks = self.rules(drawn.shape[1]).legalize(drawn, rng, preference=velocity)
        return replace(swarm, masks=masks, velocity=velocity)

    def disturbed(self, swarm: BinarySwarm, fitness: FloatArray, rng: Generator) -> BinarySwarm:
        """Return the swarm as it is before it moves; variants override this."""
        return swarm

    def _velocity(self, swarm: BinarySwarm, rng: Generator) -> FloatArray:
        inertia = self._value_of("inertia", swarm.inertia, swarm)
        cognitive = self._value_of("cognitive", self.cognitive, swarm)
        social = self._value_of("social", self.social, swarm)
        own, leading = (weight * rng.random(swarm.masks.shape) for weight in (cognitive, social))
        moved = bit_velocity(swarm.velocity, swarm.masks, swarm.bests, inertia, own, leading)
        return np.clip(moved, -self.max_velocity, self.max_velocity)

    def _value_of(self, name: str, published: float, swarm: BinarySwarm) -> float | FloatArray:
        """Return a setting: the published value, or that of each particle, shape (P, 1), if it is controlled."""
        if swarm.control is None or name not in self._names:
            return published
        return np.asarray(swarm.control.drawn[:, self._names.index(name), None])

    @property
    def _names(self) -> tuple[str, ...]:
        """The controlled settings."""
        return controlled_settings(self.adaptive, self.adaptive_settings, self.controls)


def bit_velocity(
    velocity: FloatArray,
    masks: Masks,
    bests: Bests,
    inertia: float | FloatArray,
    own: FloatArray | float,
    leading: FloatArray | float,
) -> FloatArray:
    """Return ω v + own (pbest - x) + leading (gbest - x), with bits as 0 and 1.

    Examples
    --------
    >>> bests = Bests(np.array([[True, False, True]]), np.array([0.1]), 0)
    >>> bit_velocity(np.ones((1, 3)), np.array([[False, False, True]]), bests, 1.0, 0.5, 2.0)
    array([[3.5, 1. , 1. ]])
    """
    moved = inertia * velocity
    moved += own * (bests.masks.astype(np.int8) - masks)
    moved += leading * (bests.global_best.astype(np.int8) - masks)
    return np.asarray(moved)


@dataclass(frozen=True, kw_only=True)
class CatfishPSO(BinaryPSO):
    """Catfish BPSO: if the swarm stalls, its worst particles move to the corners of the space.

    Parameters
    ----------
    patience : int, default=3
        Consecutive steps without a better global best after which the catfish are used.
    catfish : float, default=0.1
        Share of the particles, the worst, that are replaced (at least one) by all features or none, at random. They
        keep their velocities, and move before they are evaluated.
    """

    source: ClassVar[str] = "Chuang, Tsai, Yang, Expert Systems with Applications 38 (2011) 12699-12707"

    patience: int = 3
    catfish: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("patience", self.patience, low=1)
        check_real("catfish", self.catfish, low=0, high=1)

    def disturbed(self, swarm: BinarySwarm, fitness: FloatArray, rng: Generator) -> BinarySwarm:
        if swarm.stalled < self.patience:
            return swarm
        worst = worst_rows(fitness, max(1, round(self.catfish * self.particles)))
        masks = swarm.masks.copy()
        masks[worst] = (rng.random(len(worst)) > 0.5)[:, None]
        return replace(swarm, masks=masks, stalled=0)


def worst_rows(fitness: FloatArray, count: int) -> IntArray:
    """Return the ``count`` rows with the highest loss; of equal rows the later ones.

    Examples
    --------
    >>> worst_rows(np.array([0.3, 0.1, 0.3, 0.2]), 2).tolist()
    [0, 2]
    """
    return np.argsort(fitness, kind="stable")[-count:]


@dataclass(frozen=True, kw_only=True)
class ChaoticPSO(BinaryPSO):
    """Chaotic BPSO: the inertia follows a chaotic map.

    Parameters
    ----------
    inertia : float, default=0.48
        Start of the map; the first step uses the value after it.
    chaotic_map : "logistic" or "tent"
    """

    source: ClassVar[str] = "Chuang, Yang, Li, Applied Soft Computing 11 (2011) 239-248"

    controls: ClassVar[tuple[str, ...]] = ("cognitive", "social")

    inertia: float = 0.48
    chaotic_map: str = "logistic"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("chaotic_map", self.chaotic_map, CHAOTIC_MAPS)
        check_real("inertia", self.inertia, low=0, high=1)
        second = chaotic(self.chaotic_map, chaotic(self.chaotic_map, self.inertia))
        third = chaotic(self.chaotic_map, second)
        if third in (0.0, second):
            raise SettingError(
                f"inertia={self.inertia} leads to a fixed point of the {self.chaotic_map} map; use another value "
                "between 0 and 1, such as 0.48."
            )

    def disturbed(self, swarm: BinarySwarm, fitness: FloatArray, rng: Generator) -> BinarySwarm:
        return replace(swarm, inertia=chaotic(self.chaotic_map, swarm.inertia))


CHAOTIC_MAPS = ("logistic", "tent")


TENT_TOP = 0.7


def logistic(value: float) -> float:
    """Return the next value of the logistic map, 4 w (1 - w).

    Examples
    --------
    >>> round(logistic(0.48), 4), round(logistic(0.9984), 5)
    (0.9984, 0.00639)
    """
    return 4.0 * value * (1.0 - value)


def tent(value: float) -> float:
    """Return the next value of the tent map with its top at 0.7.

    Examples
    --------
    >>> round(tent(0.35), 4), round(tent(0.85), 4)
    (0.5, 0.5)
    """
    return value / TENT_TOP if value < TENT_TOP else (1.0 - value) / (1.0 - TENT_TOP)


def chaotic(name: str, value: float) -> float:
    """Return the next value of the map of this name."""
    return logistic(value) if name == "logistic" else tent(value)
