"""Lists of selected columns, written on the device. Imported only where Triton is installed."""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["list_columns"]


@triton.jit
def list_columns(masks, starts, sizes, columns, n, BN: tl.constexpr):
    """The columns that mask p (of masks (P, n)) selects, in order, from starts[p] on, filled up with n."""
    p = tl.program_id(0)
    start = tl.load(starts + p)
    stop = tl.load(starts + p + 1)
    if start == stop:
        return
    j = tl.arange(0, BN)
    chosen = tl.load(masks + p * n + j, mask=j < n, other=0).to(tl.int32)
    tl.store(columns + start + tl.cumsum(chosen, axis=0) - 1, j, mask=chosen > 0)
    tl.store(columns + start + j, n, mask=(j >= tl.load(sizes + p)) & (start + j < stop))
