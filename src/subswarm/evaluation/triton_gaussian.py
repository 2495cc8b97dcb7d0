"""Gaussian log-likelihoods and sums of tables on a CUDA device, one Triton kernel each, in double precision.

Imported only where Triton is installed.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["add_up", "classify"]

_NONE = tl.constexpr(2147483647)
_EPS = tl.constexpr(2.220446049250313e-16)


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
    risk,
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
    """Codes (P, T) of all test rows, and how many rows of each fold are too close to call, (P, F).

    The same sums and bounds as `gaussian_kernel.classify`. Tables have the classes last: ``theta`` (F, width, C), the
    others (slots, width, C). ``rank`` (F, width) orders a fold's columns by falling variance; ``slots`` (F, width)
    says by rank where the tables for that widest column are.
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
    risk += slot * width * C
    theta += f * width * C
    cls = tl.arange(0, CP)
    known = cls < tl.load(n_classes + f)
    prior = tl.load(log_prior + f * C + cls, mask=known, other=0.0)
    total = tl.zeros([CP, BK], dtype=tl.float64)
    magnitude = tl.zeros([CP, BK], dtype=tl.float64)
    danger = tl.zeros([CP, BK], dtype=tl.float64)
    for c in range(start, stop, BK):
        place = c + tl.arange(0, BK)
        j = tl.load(columns + place, mask=place < stop, other=0)
        entry = j[None, :] * C + cls[:, None]
        there = known[:, None] & (place < stop)[None, :]
        term = tl.load(constant + entry, mask=there, other=0.0)
        total += term
        magnitude += tl.abs(term)
        danger += tl.load(risk + entry, mask=there, other=0.0)
    fixed = prior + tl.sum(total, axis=1)
    peril = tl.where(k == 1.0, tl.sum(danger, axis=1), 0.0)
    relative = tl.where(k == 1.0, slack_alone, slack) + (k + 16.0) * _EPS + peril
    swing = tl.sqrt(peril / (k + 1.0))
    base = relative * (tl.abs(prior) + tl.sum(magnitude, axis=1) + k) + swing * (k + 1.0)
    rate = relative + swing
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


@triton.jit
def add_up(
    columns,
    starts,
    table,
    log_prior,
    codes,
    T,
    C,
    BS: tl.constexpr,
    CP: tl.constexpr,
):
    """Codes (P, T): the class of the largest sum of ``table`` (width, C, T) over the columns, added in their order."""
    p = tl.program_id(1)
    t = tl.program_id(0) * BS + tl.arange(0, BS)
    inside = t < T
    safe = tl.minimum(t, T - 1)
    cls = tl.arange(0, CP)
    known = cls < C
    entry = tl.where(known, cls, 0)[:, None] * T + safe[None, :]
    total = tl.load(log_prior + entry)
    for c in range(tl.load(starts + p), tl.load(starts + p + 1), 4):
        for u in tl.static_range(4):
            total += tl.load(table + tl.load(columns + c + u).to(tl.int64) * C * T + entry)
    total = tl.where(known[:, None], total, float("-inf"))
    top = tl.max(total, axis=0)
    best = tl.min(tl.where((total == top[None, :]) & known[:, None], cls[:, None], _NONE), axis=0)
    tl.store(codes + p.to(tl.int64) * T + t, best.to(tl.int16), mask=inside)
