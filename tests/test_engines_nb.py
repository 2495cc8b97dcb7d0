"""The naive Bayes engine predicts every row as scikit-learn does."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import RepeatedStratifiedKFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from engine_oracle import UCI, fast, folded, masks_of_all_sizes, true_losses
from subswarm.engines.base import engine_for
from subswarm.engines.naive_bayes import engine as gaussian_nb
from subswarm.engines.naive_bayes import numpy as gaussian_numpy
from subswarm.engines.naive_bayes import tables as gaussian_tables
from subswarm.errors import SubswarmWarning
from subswarm.objective.objective import make_objective


@pytest.mark.parametrize("name", UCI)
@pytest.mark.parametrize("scaled", [False, True], ids=["raw", "standardised"])
def test_losses_equal_scikit_learns_on_every_data_set(uci, name, scaled):
    table = uci(name)
    model = make_pipeline(StandardScaler(), GaussianNB()) if scaled else GaussianNB()
    data = folded(model, table.X, table.y)
    masks = masks_of_all_sizes(data.n_features)
    assert np.array_equal(fast(model, data).fold_losses(masks), true_losses(model, data, masks))


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), RobustScaler(), MinMaxScaler(clip=True)])
@pytest.mark.parametrize(
    "scoring", ["accuracy", "balanced_accuracy", "f1_macro", "f1_weighted", "matthews_corrcoef", "roc_auc_ovr"]
)
def test_scalers_and_scorers_are_scikit_learns(scaler, scoring):
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(scaler, GaussianNB())
    data = folded(model, X, y, cv=4, scoring=scoring)
    masks = masks_of_all_sizes(13)
    assert np.abs(fast(model, data).fold_losses(masks) - true_losses(model, data, masks)).max() <= 1e-12


@pytest.mark.parametrize("scoring", ["f1", "roc_auc", "neg_log_loss"])
def test_binary_scorers_are_scikit_learns(scoring):
    X, y = load_breast_cancer(return_X_y=True)
    data = folded(GaussianNB(), X, y, cv=4, scoring=scoring)
    masks = masks_of_all_sizes(30)
    losses = fast(GaussianNB(), data).fold_losses(masks)
    assert np.abs(losses - true_losses(GaussianNB(), data, masks)).max() <= 1e-12


@pytest.mark.parametrize(
    "model",
    [GaussianNB(priors=[0.2, 0.5, 0.3]), GaussianNB(var_smoothing=0.1), GaussianNB(var_smoothing=0.0)],
    ids=["priors", "smooth", "not smooth"],
)
@pytest.mark.parametrize(
    "cv",
    [5, RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0), ShuffleSplit(4, random_state=0)],
    ids=["partition", "repeated", "overlapping"],
)
def test_settings_and_folds_of_any_kind(model, cv):
    X, y = load_wine(return_X_y=True)
    data = folded(model, X, y, cv=cv)
    masks = masks_of_all_sizes(13)
    assert np.array_equal(fast(model, data).fold_losses(masks), true_losses(model, data, masks))


def test_the_smoothing_follows_the_subset():
    X, y = load_breast_cancer(return_X_y=True)
    data = folded(GaussianNB(), X, y)
    masks = np.random.default_rng(0).random((40, 30)) < 0.5
    masks[:, 0] = True
    assert np.array_equal(fast(GaussianNB(), data).fold_losses(masks), true_losses(GaussianNB(), data, masks))


def test_the_number_of_threads_and_the_memory_change_nothing():
    X, y = load_breast_cancer(return_X_y=True)
    data = folded(GaussianNB(), np.tile(X, (1, 8)), y)
    masks = np.random.default_rng(0).random((60, 240)) < 0.5
    alone = fast(GaussianNB(), data, n_jobs=1).fold_losses(masks)
    assert np.array_equal(alone, fast(GaussianNB(), data, n_jobs=2).fold_losses(masks))
    assert np.array_equal(alone, fast(GaussianNB(), data, n_jobs=3, max_bytes=1).fold_losses(masks))


def test_a_class_that_no_training_row_has_is_never_right():
    X = np.random.default_rng(0).normal(size=(12, 3))
    y = np.array([0] * 5 + [1] * 5 + [2] * 2)
    splits = [
        (np.arange(10), np.arange(10, 12)),
        (np.r_[0:5, 10:12], np.arange(5, 10)),
        (np.arange(5), np.arange(5, 12)),
    ]
    data = folded(GaussianNB(), X, y, cv=splits)
    masks = masks_of_all_sizes(3)
    assert np.array_equal(fast(GaussianNB(), data).fold_losses(masks), true_losses(GaussianNB(), data, masks))


@pytest.mark.parametrize(
    "model", [GaussianNB(priors=[0.5, 0.5]), GaussianNB(var_smoothing=-1.0)], ids=["priors", "negative"]
)
def test_settings_that_scikit_learn_refuses_are_left_to_it(model):
    X, y = load_wine(return_X_y=True)
    assert engine_for(model, folded(model, X, y)).name == "estimator"


def test_a_subclass_or_an_unknown_scorer_is_left_to_scikit_learn():
    class Own(GaussianNB):
        pass

    def accuracy(model, X, y):
        return 0.5

    X, y = load_wine(return_X_y=True)
    assert make_objective(Own(), X, y).engine == "estimator"
    assert make_objective(GaussianNB(), X, y, scoring=accuracy).engine == "estimator"
    assert make_objective(GaussianNB(), X, y, params={"sample_weight": np.ones(len(y))}).engine == "estimator"
    assert make_objective(GaussianNB(), X, y).engine == "gaussian_nb"


@st.composite
def small_tables(draw):
    """Few rows with duplicates, constant columns, tiny classes and scales from 1e-150 to 1e150."""
    rows, columns = draw(st.integers(8, 24)), draw(st.integers(1, 5))
    seed, levels = draw(st.integers(0, 2**32 - 1)), draw(st.integers(1, 4))
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels + 1, size=(rows, columns)).astype(float)
    if draw(st.booleans()):
        X += rng.normal(size=X.shape) * rng.integers(0, 2, size=columns)
    X = X * 10.0 ** rng.integers(*draw(st.sampled_from([(0, 1), (-3, 4), (-150, 151)])), size=columns)
    if draw(st.booleans()):
        X += rng.choice([0.0, 0.1, 1e6], size=columns)
    y = rng.integers(0, draw(st.integers(2, 4)), size=rows)
    y[:2] = [0, 1]
    return X, y, draw(st.integers(2, 4))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(small_tables(), st.sampled_from([None, StandardScaler(), RobustScaler()]))
def test_small_odd_tables_score_as_scikit_learn_scores_them(table, scaler):
    X, y, n_splits = table
    model = GaussianNB() if scaler is None else make_pipeline(scaler, GaussianNB())
    splits = [
        (np.flatnonzero(np.arange(len(y)) % n_splits != f), np.arange(f, len(y), n_splits)) for f in range(n_splits)
    ]
    data = folded(model, X, y, cv=splits)
    masks = masks_of_all_sizes(X.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = true_losses(model, data, masks)
    assert np.array_equal(engine_for(model, data).fold_losses(masks), expected, equal_nan=True)


@pytest.mark.parametrize("model", [GaussianNB(), make_pipeline(StandardScaler(), GaussianNB(var_smoothing=1e-3))])
@pytest.mark.parametrize("columns", [2, 9, 40, 300])
def test_what_is_too_close_to_call_is_summed_in_scikit_learns_order(model, columns):
    rng = np.random.default_rng(columns)
    X = rng.normal(size=(120, columns)) * 10.0 ** rng.uniform(-3, 3, columns)
    engine = fast(model, folded(model, X, rng.integers(0, 5, 120), cv=3))
    for _ in range(20):
        chosen = np.flatnonzero((rng.random(columns) < rng.random()) | (np.arange(columns) < 2))
        fitted, rows = engine.assemble(chosen, 1)
        ours = engine._tables.joint_log_likelihood(chosen, 1)
        assert np.array_equal(ours.T, fitted.predict_joint_log_proba(rows))


def test_lone_columns_that_are_too_close_to_call_are_decided_as_scikit_learn_does():
    rng = np.random.default_rng(0)
    rechecked = 0
    for seed in range(20):
        scale, digits = 10 ** rng.uniform(-3, 3), int(rng.integers(0, 2))
        X = np.round(rng.normal(size=(150, 8)) * scale, digits)  # few different values, so that many rows tie
        X[:, 7] = 3.0  # constant
        y = rng.integers(0, 3, 150)
        objective = make_objective(GaussianNB(), X, y, cv=5, random_state=seed)
        slow = make_objective(GaussianNB(), X, y, cv=5, random_state=seed, engine="estimator")
        assert np.array_equal(objective.fold_losses(np.eye(8)), slow.fold_losses(np.eye(8)))
        rechecked += objective.engine_facts["rechecked"]
    assert rechecked > 50


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "numpy"])
@pytest.mark.parametrize("name", ["wine", "libras", "lsvt", "arrhythmia"])
def test_tables_are_made_once_they_pay_off_and_change_no_loss(uci, name, compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr(gaussian_tables, "gaussian_kernels", lambda: gaussian_numpy)
        monkeypatch.setattr(gaussian_nb, "gaussian_kernels", lambda: gaussian_numpy)
    data = folded(GaussianNB(), uci(name).X, uci(name).y, cv=3)
    n = data.n_features
    rng = np.random.default_rng(1)
    masks = np.zeros((6, n), dtype=bool)
    for size, mask in enumerate(masks, start=1):
        mask[rng.permutation(n)[:size]] = True
    engine, expected = fast(GaussianNB(), data), true_losses(GaussianNB(), data, masks)
    tables = engine._tables
    widest, made = tables.widest_and_slots(masks)[0], []
    while tables.slot[np.arange(3), widest].min() < 0:
        assert np.array_equal(engine.fold_losses(masks), expected)
        made.append(tables.used)
        assert len(made) <= n
    assert made[0] == 0 or n <= masks.sum()  # a single batch cannot have paid for a wide table
    assert (
        tables.lacked.max() <= n + masks.sum()
    )  # no more was computed without a table than a table costs, and one batch
    assert np.array_equal(engine.fold_losses(masks), expected)
    assert tables.used == len(np.unique(np.arange(3) * n + widest))


def test_tables_for_which_there_is_little_room_are_made_and_forgotten(uci):
    data = folded(GaussianNB(), uci("lsvt").X, uci("lsvt").y, cv=3)
    masks = np.random.default_rng(0).random((40, data.n_features)) < 0.02
    masks[:, 0] |= ~masks.any(axis=1)
    engine, expected = fast(GaussianNB(), data, max_bytes=1), true_losses(GaussianNB(), data, masks)
    for _ in range(60):
        losses = engine.fold_losses(masks)
    assert np.array_equal(losses, expected)
    assert engine._tables.used <= engine._tables.capacity


@pytest.mark.parametrize("engine", ["fast", "torch"])
@pytest.mark.parametrize("scoring", ["accuracy", "f1_macro"])
def test_a_subset_whose_scaled_values_overflow_scores_as_in_the_reference_engine(engine, scoring):
    if engine == "torch":
        pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 4)), rng.integers(0, 2, size=40)
    X[:, 1] *= 1e200  # the variance overflows, so the scaler returns NaN, which GaussianNB refuses
    model = make_pipeline(StandardScaler(), GaussianNB())
    masks = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]], dtype=bool)
    losses = []
    for kind in (engine, "estimator"):
        objective = make_objective(model, X, y, cv=4, scoring=scoring, engine=kind)
        with pytest.warns(SubswarmWarning, match="a subset failed with ValueError: Input X contains NaN"):
            losses.append(objective.fold_losses(masks))
    assert np.array_equal(*losses)
    assert losses[0][1:3].min() == 1.0


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "numpy"])
@pytest.mark.parametrize("model", [GaussianNB(), make_pipeline(StandardScaler(), GaussianNB(var_smoothing=1e-3))])
def test_columns_of_a_wide_table_are_measured_when_a_subset_has_them(model, compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr(gaussian_nb, "gaussian_kernels", lambda: gaussian_numpy)
    monkeypatch.setattr(gaussian_nb, "_MOST_MEASURED", 50)
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(90, 60)) * 10.0 ** rng.uniform(-3, 3, 60), 3)
    X[:, 7], X[:, 8:11] = 1.0, X[:, 11:14]  # constant, and equal to others
    data = folded(model, X, rng.integers(0, 3, 90), cv=3)
    engine = fast(model, data)
    assert (engine._tables.place < 0).all()
    for size in (1, 1, 2, 5, 12, 12):
        masks = np.zeros((4, 60), dtype=bool)
        for mask in masks:
            mask[rng.choice(59, size, replace=False)] = True
        masks[1, -1] = True
        assert np.array_equal(engine.fold_losses(masks), true_losses(model, data, masks))
        assert (engine._tables.place[masks.any(axis=0)] >= 0).all()
    known = np.flatnonzero(engine._tables.place >= 0)
    places = engine._tables.place[known]
    assert 12 < len(known) < 60
    monkeypatch.undo()
    at_once = fast(model, data)._tables
    for name in ("theta", "class_variance", "mean_error", "variance"):
        ours, wanted = getattr(engine._tables, name)[:, places], getattr(at_once, name)[:, known]
        assert np.array_equal(ours, wanted, equal_nan=True)


def test_large_subsets_of_a_wide_table_are_summed_by_tables(monkeypatch):
    monkeypatch.setattr(gaussian_nb, "_MOST_MEASURED", 50)
    rng = np.random.default_rng(0)
    data = folded(GaussianNB(), rng.normal(size=(60, 80)), rng.integers(0, 2, 60), cv=3)
    engine = fast(GaussianNB(), data)
    few = rng.random((30, 80)) < 0.03
    few[:, 3] = True
    engine.fold_losses(few)
    engine.fold_losses(np.ones((1, 80), dtype=bool))
    assert engine._is_wide
    half = rng.random((30, 80)) < 0.5
    assert np.array_equal(engine.fold_losses(half), true_losses(GaussianNB(), data, half))
    assert not engine._is_wide
    assert engine._tables.order.shape == (3, 80)


def test_alike_variances_are_represented_by_the_first_of_them():
    close = 1 - gaussian_tables.SAME_SMOOTHING / 3
    chain = 2.0 * close ** np.arange(9)  # each is like the one before, but not like the first
    variance = np.concatenate([[5.0, 3.0, 3.0], chain, [1.0, 0.0, 0.0, np.nan, np.nan]])
    expected, stands = [], -1
    for place, value in enumerate(variance):
        if stands < 0 or not value >= variance[stands] * (1 - gaussian_tables.SAME_SMOOTHING):
            stands = place
        expected.append(stands)
    assert gaussian_tables._first_alike(variance).tolist() == expected
    assert 3 < len(set(expected)) < len(expected) - 4
