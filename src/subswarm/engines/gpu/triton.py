"""Column lists and counts of correct codes, computed on the device. Imported only if Triton is installed."""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["list_columns", "tally"]


@triton.jit
def list_columns(masks, starts, sizes, columns, n, BN: tl.constexpr):
    """List the columns that mask p (of masks (P, n)) selects, in order, from starts[p] on, padded with n."""
    p = tl.program_id(0)
    start = tl.load(starts + p)
    stop = tl.load(starts + p + 1)
    if start == stop:
        return
    j = tl.arange(0, BN)
    chosen = tl.load(masks + p * n + j, mask=j < n, other=0).to(tl.int32)
    tl.store(columns + start + tl.cumsum(chosen, axis=0) - 1, j, mask=chosen > 0)
    tl.store(columns + start + j, n, mask=(j >= tl.load(sizes + p)) & (start + j < stop))


@triton.jit
def tally(codes, truth, test_starts, counts, T, F, BT: tl.constexpr):
    """Count the correct codes of each fold, (P, F)."""
    f = tl.program_id(0)
    p = tl.program_id(1)
    first = tl.load(test_starts + f)
    last = tl.load(test_starts + f + 1)
    total = tl.zeros([BT], dtype=tl.int32)
    for t0 in range(first, last, BT):
        t = t0 + tl.arange(0, BT)
        code = tl.load(codes + p * T + t, mask=t < last, other=-2)
        total += (code == tl.load(truth + t, mask=t < last, other=-1)).to(tl.int32)
    tl.store(counts + p * F + f, tl.sum(total, axis=0))
