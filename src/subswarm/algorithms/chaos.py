"""Chaotic maps of the unit interval onto itself, as a deterministic stand-in for chance."""

from __future__ import annotations

__all__ = ["CHAOTIC_MAPS", "chaotic", "logistic", "tent"]

CHAOTIC_MAPS = ("logistic", "tent")
TENT_TOP = 0.7


def logistic(value: float) -> float:
    """The logistic map 4 w (1 - w).

    Examples
    --------
    >>> round(logistic(0.48), 4), round(logistic(0.9984), 5)
    (0.9984, 0.00639)
    """
    return 4.0 * value * (1.0 - value)


def tent(value: float) -> float:
    """The tent map with its top at 0.7: up to 1 in a line, then down to 0 in another.

    Examples
    --------
    >>> round(tent(0.35), 4), round(tent(0.85), 4)
    (0.5, 0.5)
    """
    return value / TENT_TOP if value < TENT_TOP else (1.0 - value) / (1.0 - TENT_TOP)


def chaotic(name: str, value: float) -> float:
    """The next value of the map of this name."""
    return logistic(value) if name == "logistic" else tent(value)
