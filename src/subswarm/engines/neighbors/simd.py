"""The steps of the neighbour kernels that the compiler does not turn into vector instructions by itself.

Each is written as LLVM operations on blocks of `WIDTH` numbers, which LLVM maps to the instructions of any processor.
Arrays must be contiguous, float32 or float64, and as long as whole blocks need. `portable` has the same functions in
plain numba; `lanes` chooses between the two. The intrinsics are about ten times as fast: 5-NN on half-full subsets
takes 53, 107 and 1136 µs a subset on Sonar, Ionosphere and German, against 691, 1321 and 12215 µs (one thread, ten
folds).

Imported only if numba is installed.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils as untyped_cgutils
from numba.extending import intrinsic as numba_intrinsic

from subswarm._njit import njit

__all__ = [
    "ROWS",
    "WIDTH",
    "bound_row",
    "count_no_larger",
    "hits_from",
    "least_of_rank",
    "lowest_bit",
    "multiply_rows",
    "transpose_block",
    "try_all",
]

IR: TypeAlias = Any
"""A value, type or builder of llvmlite or numba, which have no type annotations."""

intrinsic: IR = numba_intrinsic
cgutils: IR = untyped_cgutils

WIDTH = 16
ROWS = 4
_INDEX = ir.IntType(64)
_STEP = ir.Constant(_INDEX, WIDTH)


class _Blocks:
    """An array, as the code generator sees it."""

    def __init__(self, context: IR, builder: IR, kind: IR, value: IR) -> None:
        array = context.make_array(kind)(context, builder, value)
        self._builder, self._data = builder, array.data
        self._bytes = 4 if kind.dtype == types.float32 else 8
        self.length = cgutils.unpack_tuple(builder, array.shape)[0]
        self.block = ir.VectorType(ir.FloatType() if self._bytes == 4 else ir.DoubleType(), WIDTH)

    def _at(self, start: IR) -> IR:
        place = self._builder.gep(self._data, [start])
        return self._builder.bitcast(place, self.block.as_pointer())

    def load(self, start: IR) -> IR:
        return self._builder.load(self._at(start), align=self._bytes)

    def store(self, start: IR, block: IR) -> None:
        self._builder.store(block, self._at(start), align=self._bytes)

    def load_one(self, place: IR) -> IR:
        return self._builder.load(self._builder.gep(self._data, [place]))


def _splat(builder: IR, number: IR, block: IR) -> IR:
    first = builder.insert_element(ir.Constant(block, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, ir.Constant(block, ir.Undefined), _places([0] * WIDTH))


def _smaller(builder: IR, one: IR, other: IR) -> IR:
    return builder.select(builder.fcmp_ordered("<", one, other), one, other)


def _no_larger(builder: IR, keys: _Blocks, length: IR, mine: IR) -> IR:
    """Count, for each number of a block, how many of the first keys are no larger."""
    counts = ir.VectorType(ir.IntType(32), WIDTH)
    total = cgutils.alloca_once(builder, counts)
    builder.store(ir.Constant(counts, [0] * WIDTH), total)
    with cgutils.for_range(builder, length, intp=_INDEX) as loop:
        other = _splat(builder, keys.load_one(loop.index), keys.block)
        is_hit = builder.sext(builder.fcmp_ordered("<=", other, mine), counts)  # a hit is -1
        builder.store(builder.sub(builder.load(total), is_hit), total)
    return builder.load(total)


def _places(places: list[int]) -> IR:
    return ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)


@intrinsic  # type: ignore[untyped-decorator]
def multiply_rows(
    context: IR,
    left: IR,
    row: IR,
    width: IR,
    right: IR,
    begin: IR,
    end: IR,
    target: IR,
    place: IR,
    stride: IR,
) -> IR:
    """Multiply `ROWS` rows of the left side (rows, width), from ``row`` on, by blocks of the right side.

    The right side is (blocks, width, `WIDTH`), of which blocks ``begin`` to ``end`` are used. The products go to the
    target's rows, which are ``stride`` apart and the first of which starts at ``place``. All arrays are flat.
    """

    def generate(context: IR, builder: IR, signature: IR, arguments: IR) -> IR:
        kinds = signature.args
        left, right, target = (_Blocks(context, builder, kinds[a], arguments[a]) for a in (0, 3, 6))
        _, row, width, _, begin, end, _, place, stride = arguments
        numbers = [ir.Constant(_INDEX, r) for r in range(ROWS)]
        sums = [cgutils.alloca_once(builder, left.block) for _ in numbers]
        origins = [builder.mul(builder.add(row, number), width) for number in numbers]
        goals = [builder.add(place, builder.mul(number, stride)) for number in numbers]
        with cgutils.for_range_slice(builder, begin, end, ir.Constant(_INDEX, 1)) as (block, _):
            start = builder.mul(builder.mul(block, width), _STEP)
            for total in sums:
                builder.store(ir.Constant(left.block, [0.0] * WIDTH), total)
            with cgutils.for_range(builder, width, intp=_INDEX) as loop:
                factors = right.load(builder.add(start, builder.mul(loop.index, _STEP)))
                for origin, total in zip(origins, sums, strict=True):
                    number = left.load_one(builder.add(origin, loop.index))
                    term = builder.fmul(_splat(builder, number, left.block), factors, flags=("contract",))
                    builder.store(builder.fadd(builder.load(total), term, flags=("contract",)), total)
            for goal, total in zip(goals, sums, strict=True):
                target.store(builder.add(goal, builder.mul(block, _STEP)), builder.load(total))
        return context.get_dummy_value()

    index = types.int64
    return types.void(left, index, index, right, index, index, target, index, index), generate


@intrinsic  # type: ignore[untyped-decorator]
def bound_row(context: IR, G: IR, first: IR, heights: IR, bounds: IR, minima: IR) -> IR:
    """Set ``bounds = heights - 2 G[first:]``, and each of ``minima`` to the least of every len(minima)-th bound."""

    def generate(context: IR, builder: IR, signature: IR, arguments: IR) -> IR:
        kinds, values = signature.args, arguments
        G, heights, bounds, minima = (_Blocks(context, builder, kinds[a], values[a]) for a in (0, 2, 3, 4))
        infinite = ir.Constant(G.block, [float("inf")] * WIDTH)
        with cgutils.for_range_slice(builder, ir.Constant(_INDEX, 0), minima.length, _STEP) as (lane, _):
            least = cgutils.alloca_once(builder, G.block)
            builder.store(infinite, least)
            with cgutils.for_range_slice(builder, lane, heights.length, minima.length) as (start, _):
                product = G.load(builder.add(values[1], start))
                bound = builder.fsub(heights.load(start), builder.fadd(product, product))
                bounds.store(start, bound)
                builder.store(_smaller(builder, bound, builder.load(least)), least)
            minima.store(lane, builder.load(least))
        return context.get_dummy_value()

    return types.void(G, types.int64, heights, bounds, minima), generate


@intrinsic  # type: ignore[untyped-decorator]
def count_no_larger(context: IR, keys: IR, length: IR, start: IR, ranks: IR) -> IR:
    """Count, for each of the `WIDTH` keys from ``start`` on, how many of the first ``length`` are no larger."""

    def generate(context: IR, builder: IR, signature: IR, arguments: IR) -> IR:
        keys = _Blocks(context, builder, signature.args[0], arguments[0])
        counts = _no_larger(builder, keys, arguments[1], keys.load(arguments[2]))
        ranks = context.make_array(signature.args[3])(context, builder, arguments[3])
        place = builder.bitcast(builder.gep(ranks.data, [arguments[2]]), counts.type.as_pointer())
        builder.store(counts, place, align=4)
        return context.get_dummy_value()

    return types.void(keys, types.int64, types.int64, ranks), generate


@intrinsic  # type: ignore[untyped-decorator]
def least_of_rank(context: IR, keys: IR, start: IR, rank: IR) -> IR:
    """Return the least of the `WIDTH` keys from ``start`` on that is no smaller than ``rank`` keys, or infinity."""

    def generate(context: IR, builder: IR, signature: IR, arguments: IR) -> IR:
        keys = _Blocks(context, builder, signature.args[0], arguments[0])
        mine = keys.load(arguments[1])
        counts = _no_larger(builder, keys, keys.length, mine)
        wanted = _splat(builder, builder.trunc(arguments[2], ir.IntType(32)), counts.type)
        infinite = ir.Constant(keys.block, [float("inf")] * WIDTH)
        least = builder.select(builder.icmp_signed(">=", counts, wanted), mine, infinite)
        apart = WIDTH // 2
        while apart:
            other = builder.shuffle_vector(least, least, _places([(s + apart) % WIDTH for s in range(WIDTH)]))
            least, apart = _smaller(builder, other, least), apart // 2
        return builder.extract_element(least, ir.Constant(ir.IntType(32), 0))

    return keys.dtype(keys, types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def hits_from(context: IR, bounds: IR, start: IR, ceiling: IR) -> IR:
    """Return which of the four blocks of bounds from ``start`` on are at most the ceiling, as bits of one number."""

    def generate(context: IR, builder: IR, signature: IR, arguments: IR) -> IR:
        bounds = _Blocks(context, builder, signature.args[0], arguments[0])
        limit = _splat(builder, arguments[2], bounds.block)
        word = ir.Constant(_INDEX, 0)
        for part in range(4):
            start = builder.add(arguments[1], ir.Constant(_INDEX, part * WIDTH))
            hits = builder.fcmp_ordered("<=", bounds.load(start), limit)
            bits = builder.zext(builder.bitcast(hits, ir.IntType(WIDTH)), _INDEX)
            word = builder.or_(word, builder.shl(bits, ir.Constant(_INDEX, part * WIDTH)))
        return word

    return types.uint64(bounds, types.int64, bounds.dtype), generate


@intrinsic  # type: ignore[untyped-decorator]
def lowest_bit(context: IR, word: IR) -> IR:
    """Return the position of the lowest set bit of a number that is not 0."""

    def generate(context: IR, builder: IR, signature: IR, arguments: IR) -> IR:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def transpose_block(context: IR, source: IR, start: IR, stride: IR, target: IR, place: IR, step: IR) -> IR:
    """Copy `WIDTH` rows of a flat array, ``stride`` apart, as columns of another, whose rows are ``step`` apart."""

    def generate(context: IR, builder: IR, signature: IR, arguments: IR) -> IR:
        source = _Blocks(context, builder, signature.args[0], arguments[0])
        target = _Blocks(context, builder, signature.args[3], arguments[3])
        _, start, stride, _, place, step = arguments

        def row(first: IR, apart: IR, number: int) -> IR:
            return builder.add(first, builder.mul(apart, ir.Constant(_INDEX, number)))

        rows = [source.load(row(start, stride, number)) for number in range(WIDTH)]
        half = 1
        while half < WIDTH:
            low = [s for s in range(WIDTH) if not s & half]
            keep = _places([s if not s & half else s - half + WIDTH for s in range(WIDTH)])
            swap = _places([s + half if not s & half else s + WIDTH for s in range(WIDTH)])
            for s in low:
                above, below = rows[s], rows[s + half]
                rows[s] = builder.shuffle_vector(above, below, keep)
                rows[s + half] = builder.shuffle_vector(above, below, swap)
            half *= 2
        for number, block in enumerate(rows):
            target.store(row(place, step, number), block)
        return context.get_dummy_value()

    return types.void(source, types.int64, types.int64, target, types.int64, types.int64), generate


@njit(nogil=True, cache=True)
def try_all() -> float:
    """Call every intrinsic once, which compiles it; an exception means that this machine cannot use them."""
    values = np.arange(ROWS * WIDTH * WIDTH, dtype=np.float32)
    target, ranks = np.empty_like(values), np.empty(WIDTH, dtype=np.int32)
    multiply_rows(values, 0, 1, values, 0, 1, target, 0, WIDTH)
    transpose_block(values, 0, WIDTH, target, 0, WIDTH)
    bound_row(values, 0, values[:WIDTH], target[:WIDTH], target[WIDTH : 2 * WIDTH])
    count_no_larger(values, WIDTH, 0, ranks)
    found: float = least_of_rank(values, 0, 1) + lowest_bit(hits_from(values, 0, values[1])) + ranks[0]
    return found
