"""How much the subsets that several runs select agree: Nogueira's measure with its confidence interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from subswarm.errors import SettingError
from subswarm.study.analysis.results import ABSENT, Cell, Results
from subswarm.study.analysis.text_table import Grid

__all__ = ["Stability", "stability", "stability_tables"]


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


def stability_tables(results: Results) -> list[Grid]:
    """Return the stability of the selected subsets over runs, and over runs and outer folds if there are any."""
    grids = []
    for model in results.models:
        rows: list[tuple[str, ...]] = []
        for dataset in results.datasets:
            for label, cell_of in (("runs", results.cell), ("runs and folds", results.outer_cell)):
                cells = [cell_of(dataset, model, algorithm) for algorithm in results.algorithms]
                if any(cell is not None and len(cell.rows) > 1 for cell in cells):
                    rows.append((dataset, label, *map(_format_stability, cells)))
        if rows:
            grids.append(
                Grid(
                    f"Stability of the selection (Nogueira's Φ with its 95 % interval), {model}",
                    ("data set", "over", *results.algorithms),
                    tuple(rows),
                    ("1: all subsets are equal; 0: no more agreement than by chance.", results.note()),
                )
            )
    return grids


def _format_stability(cell: Cell | None) -> str:
    if cell is None or len(cell.rows) < 2:
        return ABSENT
    found = stability(cell.masks)
    if not np.isfinite(found.value):
        return ABSENT
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"
