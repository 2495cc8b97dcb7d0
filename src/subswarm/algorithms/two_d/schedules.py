"""Schedules of settings that change over a run; ``progress`` goes from 0 to 1."""

from __future__ import annotations

import math

__all__ = ["INERTIA_SCHEDULES", "UNIFICATION_SCHEDULES", "inertia_at", "linear", "unification_at"]

INERTIA_SCHEDULES = ("constant", "linear", "printed")
UNIFICATION_SCHEDULES = ("linear", "modular", "exponential", "sigmoid")
SIGMOID_STEEPNESS = 10.0


def linear(start: float, end: float, progress: float) -> float:
    """Interpolate linearly from ``start`` to ``end``.

    Examples
    --------
    >>> linear(0.9, 0.4, 0.5)
    0.65
    """
    return start + (end - start) * progress


def inertia_at(schedule: str, start: float, end: float, progress: float) -> float:
    """Return ω: constant, linear, or as printed in the paper, (ω0 - ωf) t / T, which grows from 0 (D1)."""
    if schedule == "constant":
        return start
    return linear(start, end, progress) if schedule == "linear" else (start - end) * progress


def unification_at(schedule: str, start: float, end: float, period: int, step: int, progress: float) -> float:
    """Return u: linear from ``start`` to ``end``, mod(t, q)/q, 2^(t/T) - 1, or a sigmoid in t/T."""
    if schedule == "linear":
        return linear(start, end, progress)
    if schedule == "modular":
        return step % period / period
    if schedule == "exponential":
        return math.exp(progress * math.log(2)) - 1
    return 1 / (1 + math.exp(-SIGMOID_STEEPNESS * (progress - 0.5)))
