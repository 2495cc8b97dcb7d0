"""Gaussian log-likelihoods on a CUDA device, in one Triton kernel, in double precision.

Imported only if Triton is installed.
"""

from __future__ import annotations

import triton
import triton.language as tl

from subswarm.engines.naive_bayes.tables import EPS, SPARE_TERMS

__all__ = ["classify"]

_NONE = tl.constexpr(2147483647)
_EPS = tl.constexpr(EPS)
_SPARE_TERMS = tl.constexpr(float(SPARE_TERMS))


@triton.jit
def classify(
    columns,
    starts,
    sizes,
    rows,
    row_starts,
    fold_sizes,
    test_starts,
    n_classes,
    theta,
    log_prior,
    rank,
    slots,
    constant,
    half,
    swing,
    slack,
    slack_alone,
    codes,
    doubts,
    T,
    F,
    C,
    width,
    CP: tl.constexpr,
    BS: tl.constexpr,
    BK: tl.constexpr,
):
    """Predict the codes (P, T) of all test rows, and count the doubtful rows of each fold, (P, F).

    The sums and bounds are those of `tables`, whose `relative_error` and `error_terms` are repeated here. Tables have
    the classes last: ``theta`` (F, width, C), the others (slots, width, C). ``rank`` (F, width) orders a fold's columns
    by falling variance; ``slots`` (F, width) gives by rank where the tables for that widest column are.
    """
    p = tl.program_id(1)
    f = tl.program_id(0)
    start = tl.load(starts + p)
    stop = tl.load(starts + p + 1)
    if start == stop:
        return
    k = tl.load(sizes + p).to(tl.float64)
    widest = tl.full([BK], 2147483647, dtype=tl.int32)
    for c in range(start, stop, BK):
        place = c + tl.arange(0, BK)
        j = tl.load(columns + place, mask=place < stop, other=0)
        widest = tl.minimum(widest, tl.load(rank + f * width + j, mask=place < stop, other=2147483647))
    slot = tl.load(slots + f * width + tl.min(widest, axis=0)).to(tl.int64)
    constant += slot * width * C
    half += slot * width * C
    swing += slot * width * C
    theta += f * width * C
    cls = tl.arange(0, CP)
    known = cls < tl.load(n_classes + f)
    prior = tl.load(log_prior + f * C + cls, mask=known, other=0.0)
    total = tl.zeros([CP, BK], dtype=tl.float64)
    magnitude = tl.zeros([CP, BK], dtype=tl.float64)
    swings = tl.zeros([CP, BK], dtype=tl.float64)
    for c in range(start, stop, BK):
        place = c + tl.arange(0, BK)
        j = tl.load(columns + place, mask=place < stop, other=0)
        entry = j[None, :] * C + cls[:, None]
        there = known[:, None] & (place < stop)[None, :]
        term = tl.load(constant + entry, mask=there, other=0.0)
        total += term
        magnitude += tl.abs(term)
        swings += tl.load(swing + entry, mask=there, other=0.0)
    fixed = prior + tl.sum(total, axis=1)
    lone_swing = tl.where(k == 1.0, tl.sum(swings, axis=1), 0.0)
    relative = tl.where(k == 1.0, slack_alone, slack) + (k + _SPARE_TERMS) * _EPS
    share = relative + 2.0 * lone_swing * lone_swing
    base = share * (tl.abs(prior) + tl.sum(magnitude, axis=1) + k) + 2.0 * lone_swing
    rate = share + lone_swing
    size = tl.load(fold_sizes + f)
    rows += tl.load(row_starts + f)
    answers = codes + p.to(tl.int64) * T + tl.load(test_starts + f)
    doubt = tl.zeros([BS], dtype=tl.int32)
    for s0 in range(0, size, BS):
        s = s0 + tl.arange(0, BS)
        inside = s < size
        safe = tl.minimum(s, size - 1)
        squares = tl.zeros([CP, BS], dtype=tl.float64)
        for c in range(start, stop, 4):
            for u in tl.static_range(4):
                j = tl.load(columns + c + u)
                x = tl.load(rows + j * size + safe)
                gap = x[None, :] - tl.load(theta + j * C + cls, mask=known, other=0.0)[:, None]
                squares += tl.load(half + j * C + cls, mask=known, other=0.0)[:, None] * (gap * gap)
        highest = (fixed + base)[:, None] - (1.0 - rate)[:, None] * squares
        lowest = (fixed - base)[:, None] - (1.0 + rate)[:, None] * squares
        trace = tl.sum(tl.where(known[:, None], highest, 0.0), axis=0)
        highest = tl.where(known[:, None], highest, float("-inf"))
        lowest = tl.where(known[:, None], lowest, float("-inf"))
        top = tl.max(highest, axis=0)
        best = tl.min(tl.where(highest == top[None, :], cls[:, None], _NONE), axis=0)
        second = tl.max(tl.where(cls[:, None] == best[None, :], float("-inf"), highest), axis=0)
        sure = (tl.max(lowest, axis=0) > second) & (tl.abs(trace) < float("inf"))
        tl.store(answers + s, best.to(tl.int16), mask=inside)
        doubt += (inside & (sure == 0)).to(tl.int32)
    tl.store(doubts + p * F + f, tl.sum(doubt, axis=0))
