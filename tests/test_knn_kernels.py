"""The steps of the neighbour kernels compute what they promise, for any size and precision, with and without SIMD."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("numba")

from numba import njit

from subswarm.engines.neighbors import portable, simd
from subswarm.engines.neighbors import products_numba as products
from subswarm.engines.neighbors.simd import WIDTH


def blocks_of(rows):
    """Rows (multiple of a block, k) as the right side of a product."""
    return np.ascontiguousarray(rows.reshape(-1, WIDTH, rows.shape[1]).transpose(0, 2, 1))


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize(("n_blocks", "width"), [(1, 1), (3, 7), (9, 40), (20, 700)], ids=str)
def test_products_of_all_pairs_are_numpys_and_symmetric(precision, n_blocks, width):
    rows = np.random.default_rng(0).normal(size=(n_blocks * WIDTH, width)).astype(precision)
    found = np.empty(len(rows) ** 2, dtype=precision)
    products.all_products(blocks_of(rows), np.empty_like(rows), found)
    table = found.reshape(len(rows), len(rows))
    assert np.allclose(table, rows @ rows.T, rtol=1e-4, atol=1e-3)
    assert np.array_equal(table, table.T)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_a_band_of_products_is_numpys(precision):
    rng = np.random.default_rng(0)
    left, rows = rng.normal(size=(8, 300)).astype(precision), rng.normal(size=(400, 300)).astype(precision)
    found = np.empty(8 * 400, dtype=precision)
    products.band_products(left, blocks_of(rows), found)
    assert np.allclose(found.reshape(8, 400), left @ rows.T, rtol=1e-4, atol=1e-3)


def test_norms_are_sums_of_squares_with_and_without_weights():
    rng = np.random.default_rng(0)
    rows, weights = rng.normal(size=(48, 5)), rng.random((4, 5))
    A, plain, weighted = blocks_of(rows), np.empty(48), np.empty((4, 48))
    products.squared_norms(A, plain)
    products.weighted_norms(A, weights, np.empty_like(A), weighted)
    assert np.allclose(plain, (rows**2).sum(axis=1))
    assert np.allclose(weighted, weights @ (rows**2).T)


def test_selected_columns_keep_their_rows():
    rows = np.random.default_rng(0).normal(size=(32, 6))
    A, row = np.empty((2, 3, WIDTH), dtype=np.float32), np.empty((1, 3), dtype=np.float32)
    products.compact(blocks_of(rows), np.array([1, 4, 5]), 0.5, A)
    products.gather(A, 19, 0, row)
    assert np.array_equal(row[0], (rows[19, [1, 4, 5]] * 0.5).astype(np.float32))


def compiled(steps):
    """A function that calls every step of a module on the same arrays and returns all that they compute."""
    multiply_rows, bound_row, count_no_larger = steps.multiply_rows, steps.bound_row, steps.count_no_larger
    least_of_rank, hits_from = steps.least_of_rank, steps.hits_from
    lowest_bit, transpose_block = steps.lowest_bit, steps.transpose_block

    @njit
    def run(left, right, heights, rank):
        width = left.shape[0] // 4
        blocks = right.shape[0] // (width * 16)
        products = np.zeros(4 * blocks * 16, dtype=left.dtype)
        multiply_rows(left, 0, width, right, 0, blocks, products, 0, blocks * 16)
        bounds, minima = np.empty_like(heights), np.empty(32, dtype=left.dtype)
        bound_row(products, 3, heights, bounds, minima)
        ranks = np.empty(32, dtype=np.int32)
        for start in range(0, 32, 16):
            count_no_larger(minima, 29, start, ranks)
        least = min(least_of_rank(minima, 0, rank), least_of_rank(minima, 16, rank))
        word = hits_from(bounds, 0, least)
        turned = np.zeros(256, dtype=left.dtype)
        transpose_block(right, 5, 16, turned, 0, 16)
        return products, bounds, minima, ranks, least, word, lowest_bit(word), turned

    return run


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_portable_steps_give_the_results_of_the_intrinsics_bit_for_bit(precision):
    with_simd, without = compiled(simd), compiled(portable)
    rng = np.random.default_rng(0)
    for rank in (1, 3, 32):
        # Small integers: their products are exact, whether or not the processor fuses additions and multiplications.
        left, right = (rng.integers(-9, 10, size=size).astype(precision) for size in (4 * 7, 8 * 7 * 16))
        heights = rng.integers(0, 99, size=64).astype(precision)
        heights[40:] = np.inf
        for one, other in zip(with_simd(left, right, heights, rank), without(left, right, heights, rank), strict=True):
            assert np.array_equal(one, other)


SCRIPT = """
import numpy as np
from sklearn.datasets import load_wine
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from subswarm.engines.neighbors.lanes import USES_SIMD
from subswarm.objective.objective import make_objective

X, y = load_wine(return_X_y=True)
masks = np.random.default_rng(0).random((12, 13)) < 0.5
masks[:, 0] = True
for model in (
    KNeighborsClassifier(),
    make_pipeline(StandardScaler(), KNeighborsClassifier(40)),
    KNeighborsRegressor(3),
):
    objective = make_objective(model, np.round(X, 1), y.astype(float), cv=4, engine="fast")
    print([float(loss).hex() for loss in objective(masks)])
print(USES_SIMD)
"""


def losses_with_simd(setting):
    environment = {**os.environ, "SUBSWARM_SIMD": setting}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_the_engine_gives_the_same_losses_without_intrinsics():
    *with_simd, uses_simd = losses_with_simd("1")
    *without, still_uses_simd = losses_with_simd("0")
    assert (uses_simd, still_uses_simd) == ("True", "False")
    assert with_simd == without
