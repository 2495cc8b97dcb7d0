"""The pieces of the neighbour kernels do what their names say, for any size and precision."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

from subswarm.evaluation import knn_products as products
from subswarm.evaluation.knn_vectors import WIDTH


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
