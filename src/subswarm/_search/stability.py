"""How much the subsets that several runs select agree: Nogueira's measure with its confidence interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from subswarm._search.result import SearchResult
from subswarm._types import FloatArray, Mask
from subswarm.errors import SettingError

__all__ = ["Stability", "island_stability", "stability"]


@dataclass(frozen=True)
class Stability:
    """Nogueira's Φ: 1 if all subsets are equal, about 0 if they agree no more than by chance.

    Attributes
    ----------
    value : Φ; NaN if every subset is full or every subset is empty
    low, high : limits of its confidence interval
    """

    value: float
    low: float
    high: float


def stability(masks: ArrayLike, confidence: float = 0.95) -> Stability:
    """Compute the measure of Nogueira, Sechidis and Brown (JMLR 18, 2018) for at least 2 subsets, one per row.

    Examples
    --------
    >>> stability([[1, 0, 1, 0], [1, 0, 1, 0], [1, 0, 1, 0]]).value
    1.0
    """
    chosen = np.asarray(masks, dtype=np.float64)
    if chosen.ndim != 2 or len(chosen) < 2:
        raise SettingError(f"stability needs at least 2 subsets, one per row; got an array of shape {chosen.shape}.")
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


def island_stability(result: SearchResult, support: Mask) -> tuple[Stability | None, FloatArray | None]:
    """Return how much the islands of a search agree, and the share of them that select each column.

    The subsets are those of each island that correspond to the selected one. Both are None without islands.
    """
    finalists = result.finalists
    if finalists is None or finalists.islands is None or finalists.islands.shape[1] < 2:
        return None, None
    same = np.flatnonzero((finalists.masks == support).all(axis=1))
    masks = finalists.islands[same[0] if len(same) else 0]
    return stability(masks), np.asarray(masks.mean(axis=0))
