"""Sums of table rows on a CUDA device, in one Triton kernel, in double precision.

Imported only if Triton is installed.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["add_up"]

_NONE = tl.constexpr(2147483647)


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
    """Set the codes (P, T): the class of the largest sum of ``table`` (width, C, T) over the columns in order."""
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
