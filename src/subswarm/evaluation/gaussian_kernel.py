"""Gaussian log-likelihoods of a swarm, compiled. Imported only where numba is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from subswarm.evaluation.gaussian_tables import Gaussians

__all__ = ["add_constants", "classify", "judge_fold", "judge_row", "widest_columns"]

_EPS = 2.0**-52


@njit(nogil=True, cache=True)
def widest_columns(masks: Any, order: Any, alike: Any, slot: Any, widest: Any, slots: Any) -> bool:
    """The first selected column in each fold's ``order`` (n_folds, n), or that ``alike`` it, for each mask.

    It goes into ``widest`` (P, n_folds), its slot into ``slots``; returns whether all of them have one.
    """
    known = True
    for p in range(widest.shape[0]):
        for f in range(widest.shape[1]):
            for j in order[f]:
                if masks[p, j]:
                    widest[p, f] = alike[f, j]
                    slots[p, f] = slot[f, alike[f, j]]
                    known &= slots[p, f] >= 0
                    break
    return known


@njit(nogil=True, cache=True)
def classify(
    first: int, last: int, columns: Any, starts: Any, widest: Any, slots: Any, g: Any, codes: Any, doubts: Any
) -> None:
    """Classes of all test rows for masks ``first`` to ``last``, and how many rows of a fold are too close to call.

    Where a widest column has no tables (a slot of -1), what the chosen columns need of them is reckoned here.
    """
    terms: NDArray[np.float64] = np.empty((4, g.theta.shape[2]))
    sums: NDArray[np.float64] = np.empty((g.theta.shape[2] + 5, g.sizes.max()))
    own = _with_room_for_one(g)
    for p in range(first, last):
        chosen = columns[starts[p] : starts[p + 1]]
        answer = 0
        for f in range(g.sizes.shape[0]):
            answers = codes[p, answer : answer + g.sizes[f]]
            if slots[p, f] >= 0:
                add_constants(chosen, f, slots[p, f], g, terms)
                doubts[p, f] = judge_fold(chosen, f, slots[p, f], g, terms, sums, answers)
            else:
                doubts[p, f] = _judge_without(chosen, f, widest[p, f], own, terms, sums, answers)
            answer += g.sizes[f]


@njit(nogil=True, cache=True)
def _with_room_for_one(g: Any) -> Any:
    """The same rows and moments, with empty tables for one widest column."""
    n, C = g.theta.shape[1:]
    tables: NDArray[np.float64] = np.empty((3, 1, n, C))
    magnitude: NDArray[np.float64] = np.empty((1, C))
    return Gaussians(
        g.rows,
        g.row_starts,
        g.sizes,
        g.n_classes,
        g.theta,
        g.class_variance,
        g.variance,
        g.mean_error,
        g.log_prior,
        tables[0],
        tables[1],
        tables[2],
        magnitude,
        g.slack,
        g.slack_alone,
        g.var_smoothing,
        g.too_small,
    )


@njit(nogil=True, cache=True)
def _judge_without(chosen: Any, f: int, widest: int, own: Any, terms: Any, sums: Any, answers: Any) -> int:
    """As `judge_fold`, but what the chosen columns need of tables is reckoned first, into those of ``own``."""
    smoothing = own.var_smoothing * own.variance[f, widest]
    own.magnitude[:] = 0.0
    for j in chosen:
        for c in range(own.n_classes[f]):
            v = own.class_variance[f, j, c] + smoothing
            constant = -0.5 * np.log(2.0 * np.pi * v) if v > own.too_small else np.nan
            own.constant[0, j, c] = constant
            own.half_precision[0, j, c] = 0.5 / v if v != 0.0 else np.inf
            own.risk[0, j, c] = own.mean_error[f, j, c] ** 2 / v if v != 0.0 else np.nan
            own.magnitude[0, c] += abs(constant) if abs(constant) < np.inf else 0.0
    only: Any = np.int64(0)  # not a literal, for which `judge_fold` would be compiled once more
    add_constants(chosen, f, only, own, terms)
    return judge_fold(chosen, f, only, own, terms, sums, answers)


@njit(nogil=True, cache=True, inline="always")
def add_constants(chosen: Any, f: int, slot: int, g: Any, terms: Any) -> None:
    """What all rows of a fold share: each class's constant, and its rounding, as ``terms[1] + terms[2] * quadratic``.

    The rounding is that by which scikit-learn's own order of sums may differ: of order ``slack`` times the sums
    themselves. scikit-learn sums the moments of a lone column in another order too, so there what a rounding error in
    the means can do is added (``slack_alone``, ``risk``). It is inlined: passing all of ``g`` took as long as the sums.
    """
    k, C = len(chosen), g.n_classes[f]
    c = 0
    while c + 4 <= C:  # a few classes at a time, in registers
        w, x, y, z = g.log_prior[f, c], g.log_prior[f, c + 1], g.log_prior[f, c + 2], g.log_prior[f, c + 3]
        for i in range(k):
            j = chosen[i]
            w += g.constant[slot, j, c]
            x += g.constant[slot, j, c + 1]
            y += g.constant[slot, j, c + 2]
            z += g.constant[slot, j, c + 3]
        terms[0, c], terms[0, c + 1], terms[0, c + 2], terms[0, c + 3] = w, x, y, z
        c += 4
    while c + 2 <= C:
        w, x = g.log_prior[f, c], g.log_prior[f, c + 1]
        for i in range(k):
            j = chosen[i]
            w += g.constant[slot, j, c]
            x += g.constant[slot, j, c + 1]
        terms[0, c], terms[0, c + 1] = w, x
        c += 2
    if c < C:
        w = g.log_prior[f, c]
        for i in range(k):
            w += g.constant[slot, chosen[i], c]
        terms[0, c] = w
    relative = (g.slack_alone if k == 1 else g.slack) + (k + 16) * _EPS
    for c in range(C):
        size = g.magnitude[slot, c] + abs(g.log_prior[f, c]) + k
        terms[1, c], terms[2, c] = relative * size, relative
        if k == 1:
            danger = g.risk[slot, chosen[0], c]
            swing = np.sqrt(danger / 2.0)
            terms[1, c] += danger * size + 2.0 * swing
            terms[2, c] += danger + swing
        if not abs(terms[0, c]) < np.inf:
            terms[1, c] = np.inf


@njit(nogil=True, cache=True, fastmath={"contract"})
def judge_fold(chosen: Any, f: int, slot: int, g: Any, terms: Any, sums: Any, answers: Any) -> int:
    """Classes of a fold's test rows, into ``answers``; returns how many are too close to call."""
    size, offset, C, k = g.sizes[f], g.row_starts[f], g.n_classes[f], len(chosen)
    fixed, base, rate = terms[0], terms[1], terms[2]
    for c in range(C):
        sums[c, :size] = 0.0
    i = 0
    while i + 1 < k:
        j, j2 = chosen[i], chosen[i + 1]
        x = g.rows[offset + j * size : offset + (j + 1) * size]
        x2 = g.rows[offset + j2 * size : offset + (j2 + 1) * size]
        for c in range(C):
            mean, weight = g.theta[f, j, c], g.half_precision[slot, j, c]
            mean2, weight2 = g.theta[f, j2, c], g.half_precision[slot, j2, c]
            quadratic = sums[c]
            for s in range(size):
                gap, gap2 = x[s] - mean, x2[s] - mean2
                quadratic[s] += weight * (gap * gap) + weight2 * (gap2 * gap2)
        i += 2
    if i < k:
        j = chosen[i]
        x = g.rows[offset + j * size : offset + (j + 1) * size]
        for c in range(C):
            mean, weight = g.theta[f, j, c], g.half_precision[slot, j, c]
            quadratic = sums[c]
            for s in range(size):
                gap = x[s] - mean
                quadratic[s] += weight * (gap * gap)
    doubt = 0
    if C == 2:
        low, high = sums[0], sums[1]
        lead, both, rate0, rate1 = fixed[1] - fixed[0], base[0] + base[1], rate[0], rate[1]
        for s in range(size):
            margin = lead + (low[s] - high[s])
            sure = abs(margin) > both + rate0 * low[s] + rate1 * high[s]
            answers[s] = margin > 0.0
            doubt += not sure
        return doubt
    best, first_high, second_high, floor, trace = sums[C], sums[C + 1], sums[C + 2], sums[C + 3], sums[C + 4]
    best[:size], first_high[:size], second_high[:size] = 0.0, -np.inf, -np.inf
    floor[:size], trace[:size] = -np.inf, 0.0
    for c in range(C):
        quadratic, low_rate, high_rate = sums[c], 1.0 + rate[c], 1.0 - rate[c]
        down, up = fixed[c] - base[c], fixed[c] + base[c]
        for s in range(size):
            lowest, highest = down - low_rate * quadratic[s], up - high_rate * quadratic[s]
            lesser = highest if highest < first_high[s] else first_high[s]
            best[s] = c if highest > first_high[s] else best[s]
            second_high[s] = lesser if lesser > second_high[s] else second_high[s]
            first_high[s] = highest if highest > first_high[s] else first_high[s]
            floor[s] = lowest if lowest > floor[s] else floor[s]
            trace[s] += highest
    for s in range(size):
        answers[s] = int(best[s])
        doubt += not (floor[s] > second_high[s] and abs(trace[s]) < np.inf)
    return doubt


@njit(nogil=True, cache=True, fastmath={"contract"})
def judge_row(chosen: Any, f: int, s: int, slot: int, g: Any, terms: Any, answers: Any) -> bool:
    """The class of one test row, into ``answers[s]``; returns whether it is too close to call."""
    size, offset, C = g.sizes[f], g.row_starts[f], g.n_classes[f]
    fixed, base, rate, quadratic = terms[0], terms[1], terms[2], terms[3]
    quadratic[:C] = 0.0
    for j in chosen:
        x = g.rows[offset + j * size + s]
        for c in range(C):
            gap = x - g.theta[f, j, c]
            quadratic[c] += g.half_precision[slot, j, c] * (gap * gap)
    best = 0
    for c in range(1, C):
        if fixed[c] - quadratic[c] > fixed[best] - quadratic[best]:
            best = c
    answers[s] = best
    floor = fixed[best] - base[best] - (1.0 + rate[best]) * quadratic[best]
    for c in range(C):
        highest = fixed[c] + base[c] - (1.0 - rate[c]) * quadratic[c]
        if c != best and not (floor > highest and abs(highest) < np.inf):
            return True
    return False
