"""Products of masks and tables decide most rows of naive Bayes; the other rows are left to exact sums."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from engine_oracle import UCI, fast, folded, true_losses
from subswarm.engines.naive_bayes.products import GaussianProducts

pytest.importorskip("numba")
ENOUGH = 1_000_000
"""Selected columns that make any table worth making."""


def random_masks(n: int, share: float, count: int = 8, seed: int = 0):
    masks = np.random.default_rng(seed).random((count, n)) < share
    masks[:, :2] |= masks.sum(axis=1, keepdims=True) < 2
    return masks


def with_tables(model, data, *, max_bytes=1 << 30):
    """The engine, with tables whether they pay or not."""
    engine = fast(model, data, max_bytes=max_bytes)
    engine._worth_tables, engine._products = 0, GaussianProducts(engine._tables, max_bytes // 4)
    return engine


def make_tables(engine, masks):
    """Where in the store the tables for these masks are, which are made even if they do not pay."""
    with np.errstate(all="ignore"):
        return engine._products.starts_of(engine._tables.widest_and_slots(masks)[0], np.full(len(masks), ENOUGH))[0]


def assert_answers_are_scikit_learns(model, data, masks, **options):
    engine = with_tables(model, data, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = true_losses(model, data, masks)
    make_tables(engine, masks)
    for _ in range(3):
        assert np.array_equal(engine.fold_losses(masks), expected, equal_nan=True)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        without_tables = fast(model, data, max_bytes=1)
        assert np.array_equal(engine._codes(masks)[0], without_tables._codes(masks)[0])
    return engine


@pytest.mark.parametrize("name", UCI)
@pytest.mark.parametrize("scaled", [False, True], ids=["raw", "standardised"])
def test_losses_of_swarms_equal_scikit_learns_on_every_data_set(uci, name, scaled):
    table = uci(name)
    X = StandardScaler().fit_transform(table.X) if scaled else table.X
    data = folded(GaussianNB(), X, table.y)
    masks = np.concatenate([random_masks(data.n_features, share) for share in (0.5, 0.1)])
    engine = assert_answers_are_scikit_learns(GaussianNB(), data, masks)
    assert engine._products.used > 0


def test_products_decide_nearly_every_row_alone(uci):
    table = uci("sonar")
    data = folded(GaussianNB(), StandardScaler().fit_transform(table.X), table.y)
    engine, masks = with_tables(GaussianNB(), data), random_masks(data.n_features, 0.5, 30)
    assert (make_tables(engine, masks) >= 0).all()
    engine._tables.rows[:] = np.nan  # the rows themselves are no longer looked at but where a product cannot tell
    codes = np.zeros((30, len(data.y)), dtype=np.int16)
    doubts = np.zeros((30, data.n_folds), dtype=np.int64)
    engine._classify(masks, codes, doubts)
    assert doubts.sum() <= 0.001 * codes.size


@pytest.mark.parametrize("nudge", [0.0, 1e-16, 1e-13, 1e-10, 1e-7, 1e-5, 1e-3])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_between_two_classes_are_called_as_scikit_learn_calls_them(nudge, n_classes):
    """Classes mirrored at zero, and test rows a nudge away from it: rounding decides."""
    rng = np.random.default_rng(0)
    half = rng.normal(1.0, 1.0, size=(40, 30))
    rest = rng.normal(9.0, 1.0, size=(40 * (n_classes - 2), 30))
    close = nudge * rng.normal(size=(60, 30))
    X = np.concatenate([half, -half, rest, close])
    y = np.concatenate([np.repeat(np.arange(n_classes), 40), rng.integers(0, 2, 60)])
    train = np.arange(40 * n_classes)
    splits = [(train, np.arange(len(train), len(X))), (train[::-1], np.arange(0, len(X), 2))]
    data = folded(GaussianNB(), X, y, cv=splits)
    assert_answers_are_scikit_learns(GaussianNB(), data, random_masks(30, 0.5, 20))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("var_smoothing", [0.0, 1e-9, 1e-3])
def test_columns_that_do_not_vary_within_a_class_are_judged_as_scikit_learn_does(n_classes, var_smoothing):
    """Their variance is the smoothing itself, so their squares are nothing or immense and follow the subset."""
    rng = np.random.default_rng(1)
    y = np.arange(120) % n_classes
    X = rng.normal(y[:, None], 1.0, size=(120, 24)) * np.linspace(0.9, 1.1, 24)
    X[:, :8] = rng.random((120, 8)) < 0.1 * (y[:, None] != np.arange(8) % n_classes)
    X[:, 8:10] = rng.normal(size=2)
    X[:, 10] = y * 1e-5
    model = GaussianNB(var_smoothing=var_smoothing)
    for scaled in (X, StandardScaler().fit_transform(X)):
        assert_answers_are_scikit_learns(model, folded(model, scaled, y), random_masks(24, 0.5, 20))


@pytest.mark.parametrize("decades", [6, 30, 150])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_columns_of_all_scales_are_judged_as_scikit_learn_does(decades, n_classes):
    rng = np.random.default_rng(2)
    y = np.arange(120) % n_classes
    X = rng.normal(y[:, None], 1.0, size=(120, 16)) * 10.0 ** np.linspace(-decades, decades, 16)
    for share in (0.2, 0.5):
        assert_answers_are_scikit_learns(GaussianNB(), folded(GaussianNB(), X, y), random_masks(16, share, 20))


@pytest.mark.parametrize("max_bytes", [1, 200_000, 2_000_000])
def test_little_memory_changes_no_answer(uci, max_bytes):
    table = uci("wine")
    data = folded(GaussianNB(), table.X, table.y)
    masks = random_masks(data.n_features, 0.3, 40)
    engine = assert_answers_are_scikit_learns(GaussianNB(), data, masks, max_bytes=max_bytes)
    assert engine._products.store.nbytes <= max_bytes // 4


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_folds_of_any_number_on_threads_of_any_number(uci, n_jobs):
    table = uci("libras")
    data = folded(GaussianNB(), table.X, table.y, cv=3)
    masks = random_masks(data.n_features, 0.6, 100)
    expected = fast(GaussianNB(), data, max_bytes=1).fold_losses(masks)
    engine = fast(GaussianNB(), data, n_jobs=n_jobs)
    for _ in range(3):
        assert np.array_equal(engine.fold_losses(masks), expected)


@st.composite
def odd_tables(draw):
    """Duplicates, constants, tiny classes and scales of many decades, with enough columns for tables."""
    rows, columns = draw(st.integers(10, 30)), draw(st.integers(3, 14))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.integers(0, draw(st.integers(1, 4)) + 1, size=(rows, columns)).astype(float)
    X += rng.normal(size=X.shape) * rng.integers(0, 2, size=columns)
    X = X * 10.0 ** rng.integers(*draw(st.sampled_from([(0, 1), (-3, 4), (-20, 21), (-150, 151)])), size=columns)
    X += rng.choice([0.0, 0.1, 1e6], size=columns) * draw(st.booleans())
    y = rng.integers(0, draw(st.integers(2, 4)), size=rows)
    y[:2] = [0, 1]
    return X, y, draw(st.integers(2, 4)), draw(st.sampled_from([0.2, 0.5, 0.9]))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(odd_tables(), st.sampled_from([None, StandardScaler()]), st.sampled_from([1e-9, 0.0, 1e-2]))
def test_odd_tables_score_as_scikit_learn_scores_them(table, scaler, var_smoothing):
    X, y, n_splits, share = table
    model = GaussianNB(var_smoothing=var_smoothing)
    model = model if scaler is None else make_pipeline(scaler, model)
    parts = np.arange(len(y)) % n_splits
    data = folded(model, X, y, cv=[(np.flatnonzero(parts != f), np.flatnonzero(parts == f)) for f in range(n_splits)])
    assert_answers_are_scikit_learns(model, data, random_masks(X.shape[1], share, 6))
