"""How much the selected subsets of several runs agree: Nogueira's measure, with its interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from subswarm.core.errors import SettingError

__all__ = ["Stability", "stability"]


@dataclass(frozen=True)
class Stability:
    """Nogueira's Φ: 1 where all subsets are equal, about 0 where they agree as by chance.

    Attributes
    ----------
    value : Φ; NaN where every subset is full or every one is empty
    low, high : limits of its interval
    """

    value: float
    low: float
    high: float


def stability(masks: ArrayLike, confidence: float = 0.95) -> Stability:
    """Nogueira, Sechidis and Brown's measure (JMLR 18, 2018) for M subsets of d features, M of at least 2.

    Examples
    --------
    >>> stability([[1, 0, 1, 0], [1, 0, 1, 0], [1, 0, 1, 0]]).value
    1.0
    """
    chosen = np.asarray(masks, dtype=np.float64)
    if chosen.ndim != 2 or len(chosen) < 2:
        raise SettingError(f"stability needs at least 2 subsets, one a row; got an array of shape {chosen.shape}.")
    count, d = chosen.shape
    frequency = chosen.mean(axis=0)
    size = chosen.sum(axis=1)
    mean_size = float(size.mean())
    chance = mean_size / d * (1.0 - mean_size / d)
    if chance <= 0:
        return Stability(float("nan"), float("nan"), float("nan"))
    spread = count / (count - 1) * frequency * (1.0 - frequency)
    value = float(1.0 - spread.mean() / chance)
    terms = (
        chosen @ frequency / d
        - size * mean_size / d**2
        + value / 2.0 * (2.0 * mean_size * size / d**2 - size / d - mean_size / d + 1.0)
    ) / chance
    deviation = float(np.sqrt(4.0 / count**2 * ((terms - terms.mean()) ** 2).sum()))
    reach = float(stats.norm.ppf(0.5 + confidence / 2.0)) * deviation
    return Stability(value, value - reach, value + reach)
