"""Nearest neighbours and their votes on a CUDA device, in fused Triton kernels that store no matrix of distances.

`compact` copies the selected columns of each subset, centred, as pairs of bfloat16 numbers. `shortlist` multiplies them
on the tensor cores (three products of halves, about 16 bits) and keeps, for every test row, the few smallest *lower
bounds* of a distance; where the bounds decide the vote it is cast. `settle` processes the remaining rows (or all rows)
in double precision and difference form, columns in order, exactly as the CPU kernels do.

Imported only if Triton is installed.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["compact", "settle", "shortlist", "weigh"]

_FAR = tl.constexpr(3.0e38)
"""The key of a row that must not be a neighbour: finite, because the low bits of a key hold a number."""
_NONE = tl.constexpr(2147483647)
_ULP = tl.constexpr(1.1920929e-07)


@triton.jit
def _counts(labels, chosen):
    """Count, for each chosen entry of a list, the chosen entries with its label, (BM, K); 0 for those not chosen."""
    same = (labels[:, None, :] == labels[:, :, None]) & chosen[:, None, :] & chosen[:, :, None]
    return tl.sum(same.to(tl.int32), axis=2)


@triton.jit
def _winner(labels, counts):
    """Return the label of the highest count, the lowest of several, (BM,)."""
    most = tl.max(counts, axis=1)
    return tl.min(tl.where(counts == most[:, None], labels, _NONE), axis=1)


@triton.jit
def compact(
    A,
    weights,
    columns,
    starts,
    blocks,
    rows,
    fold_of,
    high,
    low,
    norms,
    R,
    lda,
    WEIGHTED: tl.constexpr,
    BR: tl.constexpr,
    BK: tl.constexpr,
):
    """Copy the columns of subset p as two bfloat16 numbers each, (R, padded), and compute the rows' squared norms.

    With WEIGHTED the rows are those listed in ``rows``, times the weights of their folds, and no norms are taken.
    """
    p = tl.program_id(1)
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    inside = r < R
    start = tl.load(starts + p)
    stop = tl.load(starts + p + 1)
    block = tl.load(blocks + p)
    padded = (tl.load(blocks + p + 1) - block) * BK
    offset = block.to(tl.int64) * BK * R
    i = r
    f = r
    if WEIGHTED:
        i = tl.load(rows + r, mask=inside, other=0)
        f = tl.load(fold_of + r, mask=inside, other=0)
    total = tl.zeros([BR], dtype=tl.float32)
    for c in range(0, padded, BK):
        k = c + tl.arange(0, BK)
        there = start + k < stop
        j = tl.load(columns + start + k, mask=there, other=0)
        both = inside[:, None] & there[None, :]
        x = tl.load(A + i[:, None] * lda + j[None, :], mask=both, other=0.0)
        if WEIGHTED:
            x *= tl.load(weights + f[:, None] * lda + j[None, :], mask=both, other=0.0)
        upper = x.to(tl.bfloat16)
        place = offset + r[:, None].to(tl.int64) * padded + k[None, :]
        tl.store(high + place, upper, mask=inside[:, None])
        tl.store(low + place, (x - upper.to(tl.float32)).to(tl.bfloat16), mask=inside[:, None])
        total += tl.sum(x * x, axis=1)
    if not WEIGHTED:
        tl.store(norms + p * R + r, total, mask=inside)


@triton.jit
def weigh(A, weights, columns, starts, norms, N, lda, F, BR: tl.constexpr, BF: tl.constexpr, BK: tl.constexpr):
    """Compute the squared norms of all rows with each fold's weights, (P, F, N)."""
    p = tl.program_id(1)
    i = tl.program_id(0) * BR + tl.arange(0, BR)
    f = tl.program_id(2) * BF + tl.arange(0, BF)
    start = tl.load(starts + p)
    stop = tl.load(starts + p + 1)
    total = tl.zeros([BR, BF], dtype=tl.float32)
    for c in range(start, stop, BK):
        k = c + tl.arange(0, BK)
        there = k < stop
        j = tl.load(columns + k, mask=there, other=0)
        w = tl.load(weights + f[None, :] * lda + j[:, None], mask=there[:, None] & (f < F)[None, :], other=0.0)
        x = tl.load(A + i[:, None] * lda + j[None, :], mask=(i < N)[:, None] & there[None, :], other=0.0)
        total = tl.dot(x * x, w, total, input_precision="ieee")
    place = norms + (p * F + f[None, :]) * N + i[:, None]
    tl.store(place, total, mask=(i < N)[:, None] & (f < F)[None, :])


@triton.jit
def _sieve(value, first, second, third):
    """Insert a value into each lane's three smallest, in order."""
    lesser = tl.minimum(first, value)
    value = tl.maximum(first, value)
    first = lesser
    lesser = tl.minimum(second, value)
    value = tl.maximum(second, value)
    return first, lesser, tl.minimum(third, value)


@triton.jit
def _numbered(key, number, NUMBERS: tl.constexpr):
    """Return the key with a number below NUMBERS, a power of two, in its lowest bits."""
    bits = (key.to(tl.int32, bitcast=True) & (-NUMBERS)) | number
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def shortlist(
    left_high,
    left_low,
    right_high,
    right_low,
    norms,
    starts,
    blocks,
    tests,
    fold_of,
    barred,
    labels,
    codes,
    work,
    count,
    N,
    T,
    F,
    n_neighbors,
    spare_looseness,
    spare_width,
    WEIGHTED: tl.constexpr,
    PARTITION: tl.constexpr,
    TWO_FOLDS: tl.constexpr,
    NUMBERS: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    K: tl.constexpr,
):
    """Set the codes (P, T) of the test rows whose vote the bounds decide; list the other rows in ``work``.

    With TWO_FOLDS no tile of test rows reaches into a third fold.
    ``barred`` says which rows may not be neighbours: (F, N), or with PARTITION the fold (N,) each row is tested in.
    """
    p = tl.program_id(1)
    if tl.load(starts + p) == tl.load(starts + p + 1):
        return
    t = tl.program_id(0) * BM + tl.arange(0, BM)
    inside = t < T
    i = tl.load(tests + t, mask=inside, other=0)
    f = tl.load(fold_of + t, mask=inside, other=0)
    block = tl.load(blocks + p)
    width = (tl.load(blocks + p + 1) - block) * BK
    offset = block.to(tl.int64) * BK * N
    selected = (tl.load(starts + p + 1) - tl.load(starts + p)).to(tl.float32)
    looseness = (2.5 * selected + 192.0 + 4 * NUMBERS) * _ULP + spare_looseness
    floor = (selected + 8.0) * 1e-36 + spare_width
    right_high += offset
    right_low += offset
    if WEIGHTED:
        left_high += block.to(tl.int64) * BK * T
        left_low += block.to(tl.int64) * BK * T
        left_row = tl.where(inside, t, 0)
        norms += p * F * N
        own_norms = norms + f * N
    else:
        left_high += offset
        left_low += offset
        left_row = i
        norms += p * N
        own_norms = norms + f * 0
    own = tl.load(own_norms + i)
    first_fold = tl.min(tl.where(inside, f, _NONE), axis=0)
    last_fold = tl.max(f, axis=0)
    first = tl.full([BM, BN], _FAR, dtype=tl.float32)
    second = tl.full([BM, BN], _FAR, dtype=tl.float32)
    third = tl.full([BM, BN], _FAR, dtype=tl.float32)
    k = tl.arange(0, BK)
    for tile in range(tl.cdiv(N, BN)):
        j = tile * BN + tl.arange(0, BN)
        there = j < N
        products = tl.zeros([BM, BN], dtype=tl.float32)
        left = left_row[:, None] * width + k[None, :]
        right = tl.where(there, j, 0)[None, :] * width + k[:, None]
        for _ in range(0, width, BK):
            x1 = tl.load(left_high + left)
            x2 = tl.load(left_low + left)
            y1 = tl.load(right_high + right)
            y2 = tl.load(right_low + right)
            products = tl.dot(x2, y1, products)
            products = tl.dot(x1, y2, products)
            products = tl.dot(x1, y1, products)
            left += BK
            right += BK
        if PARTITION:
            out = (tl.load(barred + j, mask=there, other=0)[None, :] == f[:, None]) | (there == 0)[None, :]
        else:
            out = tl.load(barred + f[:, None] * N + j[None, :], mask=there[None, :], other=1) != 0
        if WEIGHTED and TWO_FOLDS:
            one = tl.load(norms + first_fold * N + j, mask=there, other=0.0)
            other = tl.load(norms + last_fold * N + j, mask=there, other=0.0)
            height = tl.where((f == first_fold)[:, None], one[None, :], other[None, :]) * (1.0 - looseness)
            key = height - 2.0 * products
        elif WEIGHTED:
            height = tl.load(own_norms[:, None] + j[None, :], mask=there[None, :], other=0.0) * (1.0 - looseness)
            key = height - 2.0 * products
        else:
            height = tl.load(norms + j, mask=there, other=0.0) * (1.0 - looseness)
            key = height[None, :] - 2.0 * products
        key = tl.where(out, _FAR, key)
        first, second, third = _sieve(_numbered(key, tile, NUMBERS), first, second, third)
    lanes = tl.arange(0, BN)[None, :]
    slots = tl.arange(0, K)[None, :]
    keys = tl.full([BM, K], _FAR, dtype=tl.float32)
    rows = tl.full([BM, K], 0, dtype=tl.int32)
    hidden = tl.zeros([BM], dtype=tl.int32)
    for s in tl.static_range(K):
        low = tl.min(first, axis=1)
        lane = tl.min(tl.where(first == low[:, None], lanes, _NONE), axis=1)
        hit = lanes == lane[:, None]
        number = low.to(tl.int32, bitcast=True) & (NUMBERS - 1)
        keys = tl.where(slots == s, low[:, None], keys)
        rows = tl.where(slots == s, (number * BN + lane)[:, None], rows)
        first = tl.where(hit, second, first)
        second = tl.where(hit, third, second)
        third = tl.where(hit, -_FAR, third)
        hidden = tl.maximum(hidden, (low < -1e38).to(tl.int32))
    real = (keys < 1e38) & (rows < N) & (keys > -1e38)
    rows = tl.where(real, rows, 0)
    upper = keys + 2.0 * looseness * (tl.load(own_norms[:, None] + rows) + own[:, None]) + floor
    label = tl.load(labels + rows)
    rivals = tl.sum(((keys[:, None, :] <= upper[:, :, None]) & real[:, None, :]).to(tl.int32), axis=2) - 1
    certain = real & (rivals < n_neighbors)
    counts = _counts(label, certain)
    winner = _winner(label, counts)
    most = tl.max(counts, axis=1)
    next_most = tl.max(tl.where(label == winner[:, None], 0, counts), axis=1)
    open_seats = n_neighbors - tl.sum(certain.to(tl.int32), axis=1)
    sure = ((most > next_most + open_seats) | (open_seats == 0)) & (hidden == 0)
    tl.store(codes + p * T + t, winner.to(tl.int16), mask=inside & sure)
    doubtful = (inside & (sure == 0)).to(tl.int32)
    number = tl.sum(doubtful, axis=0)
    if number > 0:
        place = tl.atomic_add(count, number) + tl.cumsum(doubtful, axis=0) - 1
        tl.store(work + place, p * T + t, mask=doubtful > 0)


@triton.jit
def settle(
    X,
    fold_stride,
    columns,
    starts,
    tests,
    fold_of,
    barred,
    labels,
    codes,
    work,
    count,
    N,
    T,
    n_neighbors,
    BN: tl.constexpr,
    K: tl.constexpr,
):
    """Set the codes of the ``count`` rows listed in ``work``, one after another in each program.

    A row's distances are summed over the columns in order in double precision; equal ones go by row number.
    """
    lane = tl.arange(0, K)
    for item in range(tl.program_id(0), tl.load(count), tl.num_programs(0)):
        place = tl.load(work + item)
        p = place // T
        t = place % T
        i = tl.load(tests + t)
        f = tl.load(fold_of + t)
        start = tl.load(starts + p)
        stop = tl.load(starts + p + 1)
        base = X + f.to(tl.int64) * fold_stride
        keys = tl.full([K], float("inf"), dtype=tl.float64)
        rows = N + lane
        for j0 in range(0, N, BN):
            j = j0 + tl.arange(0, BN)
            safe = tl.minimum(j, N - 1)
            total = tl.zeros([BN], dtype=tl.float64)
            for c in range(start, stop, 4):
                for u in tl.static_range(4):
                    column = base + tl.load(columns + c + u).to(tl.int64) * N
                    gap = tl.load(column + i) - tl.load(column + safe)
                    total += gap * gap
            out = tl.load(barred + f * N + j, mask=j < N, other=1)
            total = tl.where(out == 0, total, float("inf"))
            worst = tl.max(keys, axis=0)
            low = tl.min(total, axis=0)
            while low < worst:
                row = tl.min(tl.where(total == low, j, _NONE), axis=0)
                leaving = tl.max(tl.where(keys == worst, rows, -1), axis=0)
                keys = tl.where(rows == leaving, low, keys)
                rows = tl.where(rows == leaving, row, rows)
                total = tl.where(j == row, float("inf"), total)
                worst = tl.max(keys, axis=0)
                low = tl.min(total, axis=0)
        ahead = (keys[None, :] < keys[:, None]) | ((keys[None, :] == keys[:, None]) & (rows[None, :] < rows[:, None]))
        chosen = (tl.sum(ahead.to(tl.int32), axis=1) < n_neighbors) & (rows < N)
        label = tl.load(labels + rows, mask=rows < N, other=-1)
        tl.store(
            codes + place,
            tl.max(_winner(label[None, :], _counts(label[None, :], chosen[None, :])), axis=0).to(tl.int16),
        )
