"""Gaussian log-likelihoods of a swarm, compiled. Imported only where numba is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["classify", "widest_columns"]

_EPS = 2.0**-52


@njit(nogil=True, cache=True)
def widest_columns(columns: Any, starts: Any, spread: Any, widest: Any) -> None:
    """The selected column of largest ``spread`` (n_folds, n) for each mask and fold, into ``widest`` (P, n_folds)."""
    for p in range(widest.shape[0]):
        for f in range(widest.shape[1]):
            best = columns[starts[p]]
            for i in range(starts[p] + 1, starts[p + 1]):
                if spread[f, columns[i]] > spread[f, best]:
                    best = columns[i]
            widest[p, f] = best


@njit(nogil=True, cache=True, fastmath={"contract"})
def classify(
    first: int,
    last: int,
    columns: Any,
    starts: Any,
    slots: Any,
    rows: Any,
    row_starts: Any,
    sizes: Any,
    n_classes: Any,
    theta: Any,
    log_prior: Any,
    constant: Any,
    half_precision: Any,
    risk: Any,
    slack: float,
    slack_alone: float,
    codes: Any,
    doubts: Any,
) -> None:
    """Classes of all test rows for masks ``first`` to ``last``, and how many rows of a fold are too close to call.

    A row is too close to call where the two best classes are nearer than the rounding that scikit-learn's own order of
    sums may differ by: of order ``slack`` times the sums themselves. scikit-learn sums the moments of a lone column in
    another order too, so there what a rounding error in the means can do is added (``slack_alone``, ``risk``).
    """
    most_classes, widest = theta.shape[1], sizes.max()
    quadratic: NDArray[np.float64] = np.empty((most_classes, widest))
    fixed: NDArray[np.float64] = np.empty(most_classes)
    base: NDArray[np.float64] = np.empty(most_classes)
    rate: NDArray[np.float64] = np.empty(most_classes)
    best: NDArray[np.float64] = np.empty(widest)
    first_high: NDArray[np.float64] = np.empty(widest)
    second_high: NDArray[np.float64] = np.empty(widest)
    floor: NDArray[np.float64] = np.empty(widest)
    trace: NDArray[np.float64] = np.empty(widest)
    for p in range(first, last):
        start, stop = starts[p], starts[p + 1]
        k = stop - start
        answer = 0
        for f in range(sizes.shape[0]):
            size, offset, slot, C = sizes[f], row_starts[f], slots[p, f], n_classes[f]
            for c in range(C):
                total, magnitude, danger = log_prior[f, c], abs(log_prior[f, c]), 0.0
                for i in range(start, stop):
                    j = columns[i]
                    total += constant[slot, c, j]
                    magnitude += abs(constant[slot, c, j])
                    danger += risk[slot, c, j]
                fixed[c] = total
                danger = danger if k == 1 else 0.0
                relative = (slack_alone if k == 1 else slack) + (k + 16) * _EPS + danger
                swing = np.sqrt(danger / (k + 1.0))
                base[c] = relative * (magnitude + k) + swing * (k + 1.0)
                rate[c] = relative + swing
                quadratic[c, :size] = 0.0
            i = start
            while i + 1 < stop:
                j, j2 = columns[i], columns[i + 1]
                x = rows[offset + j * size : offset + (j + 1) * size]
                x2 = rows[offset + j2 * size : offset + (j2 + 1) * size]
                for c in range(C):
                    mean, weight = theta[f, c, j], half_precision[slot, c, j]
                    mean2, weight2 = theta[f, c, j2], half_precision[slot, c, j2]
                    sums = quadratic[c]
                    for s in range(size):
                        gap, gap2 = x[s] - mean, x2[s] - mean2
                        sums[s] += weight * (gap * gap) + weight2 * (gap2 * gap2)
                i += 2
            if i < stop:
                j = columns[i]
                x = rows[offset + j * size : offset + (j + 1) * size]
                for c in range(C):
                    mean, weight = theta[f, c, j], half_precision[slot, c, j]
                    sums = quadratic[c]
                    for s in range(size):
                        gap = x[s] - mean
                        sums[s] += weight * (gap * gap)
            doubt = 0
            if C == 2:
                low, high = quadratic[0], quadratic[1]
                lead = fixed[1] - fixed[0]
                both, rate0, rate1 = base[0] + base[1], rate[0], rate[1]
                for s in range(size):
                    margin = lead + (low[s] - high[s])
                    sure = abs(margin) > both + rate0 * low[s] + rate1 * high[s]
                    codes[p, answer + s] = margin > 0.0
                    doubt += not sure
            else:
                best[:size], first_high[:size], second_high[:size] = 0.0, -np.inf, -np.inf
                floor[:size], trace[:size] = -np.inf, 0.0
                for c in range(C):
                    sums, middle, low_rate, high_rate = quadratic[c], fixed[c], 1.0 + rate[c], 1.0 - rate[c]
                    down, up = middle - base[c], middle + base[c]
                    for s in range(size):
                        lowest, highest = down - low_rate * sums[s], up - high_rate * sums[s]
                        lesser = highest if highest < first_high[s] else first_high[s]
                        best[s] = c if highest > first_high[s] else best[s]
                        second_high[s] = lesser if lesser > second_high[s] else second_high[s]
                        first_high[s] = highest if highest > first_high[s] else first_high[s]
                        floor[s] = lowest if lowest > floor[s] else floor[s]
                        trace[s] += highest
                for s in range(size):
                    codes[p, answer + s] = int(best[s])
                    doubt += not (floor[s] > second_high[s] and abs(trace[s]) < np.inf)
            doubts[p, f] = doubt
            answer += size
