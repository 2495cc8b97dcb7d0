"""Parameter control: settings of a swarm that follow their success.

Each particle draws its own settings at every step, around the centres of a history. A step in which personal bests
improved replaces the oldest centre by the mean of the settings that improved them, weighted by how much. This is the
success history of SHADE (Tanabe and Fukunaga 2013).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from subswarm._checks import as_tuple, check_bool, check_choice
from subswarm._types import FloatArray, Mask
from subswarm.algorithms.layout import Layout, StatePart

__all__ = ["Control", "controlled_settings"]

HISTORY = 6
"""Centres that are remembered for each setting."""

_RANGES = {
    "inertia": (0.0, 1.2, 0.1),
    "cognitive": (0.0, 4.0, 0.3),
    "social": (0.0, 4.0, 0.3),
    "acceleration": (0.0, 4.0, 0.3),
    "unification": (0.0, 1.0, 0.1),
    "refresh_gap": (1.0, 20.0, 1.5),
}
"""Lowest and highest value of each setting, and the standard deviation of the draws around a centre."""


def controlled_settings(adaptive: bool, wanted: object, known: tuple[str, ...]) -> tuple[str, ...]:
    """Return the settings to control: none if not ``adaptive``, all known ones if None are wanted.

    Examples
    --------
    >>> controlled_settings(True, ["social"], ("inertia", "social"))
    ('social',)
    >>> controlled_settings(True, None, ("inertia", "social"))
    ('inertia', 'social')
    """
    check_bool("adaptive", adaptive)
    names = known if wanted is None else as_tuple("adaptive_settings", wanted, of="settings")
    for name in names:
        check_choice("each of adaptive_settings", name, known)
    return names if adaptive else ()


@dataclass(frozen=True, eq=False)
class Control(StatePart):
    """What a swarm of P particles knows about its K controlled settings.

    Attributes
    ----------
    centres : the history, shape (HISTORY, K)
    drawn : the settings of each particle in this step, shape (P, K)
    oldest : the centre that is replaced next
    """

    layout: ClassVar[Layout | None] = Layout(ranges={"oldest": (0, "centres")})

    centres: FloatArray
    drawn: FloatArray
    oldest: int

    @classmethod
    def begin(cls, published: tuple[float, ...], particles: int) -> Control:
        """Return the control before the first step: every centre and every particle has the published settings."""
        return cls(np.tile(published, (HISTORY, 1)), np.tile(published, (particles, 1)), 0)

    def after(self, better: Mask, gain: FloatArray) -> Control:
        """Return what is known after a step in which the ``better`` particles improved by ``gain``, shape (P,)."""
        known = better & np.isfinite(gain)
        if not known.any():
            return self
        weights, values = gain[known], self.drawn[known]
        largest = weights.max()
        weights = weights / largest if largest > 0 else np.ones_like(weights)
        centres = self.centres.copy()
        centres[self.oldest] = weights @ values / weights.sum()
        return Control(centres, self.drawn, (self.oldest + 1) % HISTORY)

    def redrawn(self, names: tuple[str, ...], rng: Generator) -> Control:
        """Return the control with new settings for each particle."""
        low, high, spread = np.array([_RANGES[name] for name in names]).T
        centre = self.centres[rng.integers(HISTORY, size=len(self.drawn))]
        drawn = np.clip(centre + spread * rng.standard_normal(centre.shape), low, high)
        return Control(self.centres, drawn, self.oldest)
