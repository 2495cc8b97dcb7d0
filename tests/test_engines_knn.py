"""The neighbours engine predicts as scikit-learn does, except where distances tie."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.model_selection import LeaveOneOut, RepeatedStratifiedKFold, ShuffleSplit
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from engine_oracle import UCI, fast, folded, masks_of_all_sizes, true_losses, true_predictions, undecided_rows
from subswarm.engines.base import engine_for
from subswarm.objective.objective import make_objective


def differing_rows(model, data, mask):
    """Count the test rows that scikit-learn predicts differently; fails if one of them is not a tie."""
    differ = fast(model, data).predictions(mask) != true_predictions(model, data, mask)
    assert not (differ & ~undecided_rows(model, data, mask)).any()
    return int(differ.sum())


@pytest.mark.parametrize("name", UCI)
@pytest.mark.parametrize("scaled", [False, True], ids=["raw", "standardised"])
@pytest.mark.slow
def test_predictions_equal_scikit_learns_on_every_data_set_but_at_ties(uci, name, scaled, record_property):
    table = uci(name)
    model = KNeighborsClassifier()
    if scaled:
        model = make_pipeline(StandardScaler(), model)
    data = folded(model, table.X, table.y)
    engine = fast(model, data)
    masks = masks_of_all_sizes(data.n_features)
    asked = excused = 0
    for mask in masks:
        answers, truth = engine.predictions(mask), true_predictions(model, data, mask)
        asked += len(answers)
        differ = answers != truth
        if differ.any():
            assert not (differ & ~undecided_rows(model, data, mask)).any()
            excused += int(differ.sum())
    record_property("rows_asked", asked)
    record_property("rows_that_differ_at_a_tie", excused)
    print(f"\n{name}: {excused} of {asked} rows differ, all at ties")


@pytest.mark.parametrize("scaled", [False, True], ids=["raw", "standardised"])
def test_losses_equal_scikit_learns_where_nothing_ties(scaled):
    X, y = load_breast_cancer(return_X_y=True)
    X = X + np.random.default_rng(0).normal(size=X.shape) * X.std(axis=0) * 1e-6
    model = make_pipeline(StandardScaler(), KNeighborsClassifier()) if scaled else KNeighborsClassifier()
    data = folded(model, X, y)
    masks = masks_of_all_sizes(30)
    assert np.array_equal(fast(model, data).fold_losses(masks), true_losses(model, data, masks))


def continuous_wine():
    X, y = load_wine(return_X_y=True)
    return X + np.random.default_rng(0).normal(size=X.shape) * X.std(axis=0) * 1e-3, y


@pytest.mark.parametrize(
    "scaler", [None, StandardScaler(), MinMaxScaler(), RobustScaler(), StandardScaler(with_mean=False)]
)
@pytest.mark.parametrize(
    "model",
    [
        KNeighborsClassifier(1),
        KNeighborsClassifier(12, weights="distance"),
        KNeighborsClassifier(40),
        KNeighborsClassifier(metric="manhattan"),
        KNeighborsClassifier(3, p=1, weights="distance"),
        KNeighborsClassifier(7, algorithm="ball_tree"),
        KNeighborsClassifier(7, algorithm="brute", metric="euclidean"),
    ],
    ids=repr,
)
def test_settings_of_the_model_and_the_scaler(scaler, model):
    X, y = continuous_wine()
    model = model if scaler is None else make_pipeline(scaler, model)
    data = folded(model, X, y, cv=5)
    masks = masks_of_all_sizes(13)
    assert np.array_equal(fast(model, data).fold_losses(masks), true_losses(model, data, masks))


@pytest.mark.parametrize(
    "cv",
    [RepeatedStratifiedKFold(n_splits=4, n_repeats=3, random_state=0), ShuffleSplit(4, random_state=0), LeaveOneOut()],
    ids=["repeated", "overlapping", "leave one out"],
)
@pytest.mark.parametrize("scaled", [False, True], ids=["raw", "standardised"])
def test_folds_of_any_kind(cv, scaled):
    X, y = continuous_wine()
    model = make_pipeline(StandardScaler(), KNeighborsClassifier()) if scaled else KNeighborsClassifier()
    data = folded(model, X[::2], y[::2], cv=cv)
    masks = masks_of_all_sizes(13)[:4]
    assert np.array_equal(fast(model, data).fold_losses(masks), true_losses(model, data, masks))


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "f1_macro", "roc_auc_ovr"])
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_scorers_are_scikit_learns(scoring, weights):
    X, y = continuous_wine()
    model = KNeighborsClassifier(weights=weights)
    data = folded(model, X, y, cv=4, scoring=scoring)
    masks = masks_of_all_sizes(13)
    assert np.abs(fast(model, data).fold_losses(masks) - true_losses(model, data, masks)).max() <= 1e-12


@pytest.mark.parametrize(
    "scoring", ["r2", "neg_mean_squared_error", "neg_root_mean_squared_error", "neg_mean_absolute_error"]
)
@pytest.mark.parametrize("scaled", [False, True], ids=["raw", "standardised"])
def test_regression_is_scikit_learns(scoring, scaled):
    X, y = load_diabetes(return_X_y=True)
    X = X + np.random.default_rng(0).normal(size=X.shape) * 1e-4
    model = make_pipeline(StandardScaler(), KNeighborsRegressor()) if scaled else KNeighborsRegressor()
    data = folded(model, X, y, cv=5, scoring=scoring)
    masks = masks_of_all_sizes(10)
    assert np.array_equal(fast(model, data).fold_losses(masks), true_losses(model, data, masks))


def test_equal_distances_go_to_the_lowest_row_and_equal_votes_to_the_lowest_class():
    X = np.array([[0.0], [1.0], [-1.0], [1.0], [-1.0], [5.0]])
    y = np.array([0, 2, 1, 1, 2, 0])
    splits = [(np.arange(1, 6), np.array([0]))]
    one = folded(KNeighborsClassifier(1), X, y, cv=splits)
    two = folded(KNeighborsClassifier(2), X, y, cv=splits)
    every = np.ones(1, dtype=bool)
    assert fast(KNeighborsClassifier(1), one).predictions(every).tolist() == [2]
    assert fast(KNeighborsClassifier(2), two).predictions(every).tolist() == [1]
    assert fast(KNeighborsClassifier(3), two)._finder.in_order(np.array([0]))[0].tolist() == [[1, 2, 3]]


def test_a_column_in_the_thousands_does_not_drown_the_others():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 12)), rng.integers(0, 2, size=300)
    X[:, 0] = 1e9 + 5e8 * y + rng.normal(size=300)
    data = folded(KNeighborsClassifier(algorithm="kd_tree"), X, y)
    model = KNeighborsClassifier(algorithm="kd_tree")
    for mask in masks_of_all_sizes(12):
        assert differing_rows(model, data, mask) == 0


def test_the_number_of_threads_and_the_batch_change_nothing():
    X, y = load_breast_cancer(return_X_y=True)
    X = np.round(X, 1)
    data = folded(KNeighborsClassifier(), X, y)
    masks = np.random.default_rng(0).random((25, 30)) < 0.3
    masks[:, 0] |= ~masks.any(axis=1)
    alone = fast(KNeighborsClassifier(), data, n_jobs=1).fold_losses(masks)
    assert np.array_equal(alone, fast(KNeighborsClassifier(), data, n_jobs=2).fold_losses(masks))
    engine = fast(KNeighborsClassifier(), data, n_jobs=3, max_bytes=1)
    assert np.array_equal(alone, np.concatenate([engine.fold_losses(mask[None]) for mask in masks]))


@pytest.mark.parametrize("scaled", [False, True], ids=["raw", "standardised"])
@pytest.mark.slow
def test_twenty_thousand_rows_stay_within_the_memory_bound(scaled):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 100)), rng.integers(0, 2, size=20_000)
    model = make_pipeline(StandardScaler(), KNeighborsClassifier()) if scaled else KNeighborsClassifier()
    data = folded(model, X, y, cv=10)
    bound = 128 << 20
    engine = fast(model, data, n_jobs=2, max_bytes=bound)
    masks = np.zeros((2, 100), dtype=bool)
    masks[:, ::10] = True
    masks[1, 1] = True
    tracemalloc.start()
    losses = engine.fold_losses(masks)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert losses.shape == (2, 10)
    assert peak < bound


def test_what_scikit_learn_refuses_or_we_do_not_know_is_left_to_it():
    X, y = load_wine(return_X_y=True)
    for model in (
        KNeighborsClassifier(170),
        KNeighborsClassifier(p=3),
        KNeighborsClassifier(metric="chebyshev"),
        KNeighborsClassifier(weights=lambda distances: np.ones_like(distances)),
        make_pipeline(MinMaxScaler(clip=True), KNeighborsClassifier()),
        make_pipeline(StandardScaler(), StandardScaler(), KNeighborsClassifier()),
        make_pipeline(StandardScaler(), KNeighborsClassifier(), memory="cache"),
    ):
        assert engine_for(model, folded(model, X, y)).name == "estimator"
    assert make_objective(KNeighborsClassifier(), X, y).engine == "knn"


SCALERS = [None, StandardScaler(), MinMaxScaler(), RobustScaler()]


def scaled(scaler, model):
    return model if scaler is None else make_pipeline(scaler, model)


@pytest.mark.parametrize("scaler", SCALERS, ids=["raw", "standard", "minmax", "robust"])
@pytest.mark.parametrize("rows", [7, 16, 33, 40, 48])
def test_small_tables_whose_test_rows_outnumber_the_table_have_scikit_learns_losses(rows, scaler):
    rng = np.random.default_rng(rows)
    X, y = rng.normal(size=(rows, 3)), rng.integers(0, 2, size=rows)
    y[:2] = [0, 1]
    model = scaled(scaler, KNeighborsClassifier(3))
    data = folded(model, X, y, cv=ShuffleSplit(10, test_size=0.3, random_state=0))
    masks = masks_of_all_sizes(3)
    assert np.array_equal(fast(model, data).fold_losses(masks), true_losses(model, data, masks))


@pytest.mark.parametrize("scale", [1e-150, 1e-200, 1e-309, 5e-324], ids=str)
@pytest.mark.parametrize("scaler", SCALERS, ids=["raw", "standard", "minmax", "robust"])
@pytest.mark.parametrize(
    "model",
    [KNeighborsClassifier(3), KNeighborsClassifier(3, weights="distance"), KNeighborsRegressor(3)],
    ids=["uniform", "distance", "regressor"],
)
def test_columns_whose_squares_underflow_are_left_to_scikit_learn(model, scaler, scale):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 4)), rng.integers(0, 2, size=40)
    X[:, :2] *= 1000 * scale
    model = scaled(scaler, model)
    data = folded(model, X, y, cv=5)
    masks = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]], dtype=bool)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        assert np.array_equal(make_objective(model, X, y, cv=5).fold_losses(masks), true_losses(model, data, masks))


def test_more_classes_than_the_codes_tell_apart_are_left_to_scikit_learn():
    y = np.tile(np.arange(2**15 + 8), 3)
    X = np.random.default_rng(0).normal(size=(len(y), 1))
    splits = [(np.arange(8, len(y)), np.arange(8))]
    model = KNeighborsClassifier(1)
    assert engine_for(model, folded(model, X, y, cv=splits)).name == "estimator"


@st.composite
def tables_with_ties(draw):
    """Few rows with duplicates, constant columns and scales from 1e-60 to 1e60."""
    rows, columns = draw(st.integers(10, 30)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.integers(0, draw(st.integers(1, 5)) + 1, size=(rows, columns)).astype(float)
    if draw(st.booleans()):
        X += rng.normal(size=X.shape) * rng.integers(0, 2, size=columns)
    X = X * 10.0 ** rng.integers(*draw(st.sampled_from([(0, 1), (-3, 4), (-60, 61), (-140, -120)])), size=columns)
    if draw(st.booleans()):
        X += rng.choice([0.0, 0.1, 1e6], size=columns)
    y = rng.integers(0, draw(st.integers(2, 4)), size=rows)
    y[:2] = [0, 1]
    return X, y


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(
    tables_with_ties(),
    st.sampled_from([None, StandardScaler(), MinMaxScaler(), RobustScaler()]),
    st.integers(1, 5),
    st.sampled_from([1, 2]),
)
def test_small_odd_tables_differ_from_scikit_learn_at_ties_only(table, scaler, k, p):
    X, y = table
    model = KNeighborsClassifier(k, p=p)
    model = model if scaler is None else make_pipeline(scaler, model)
    splits = [(np.flatnonzero(np.arange(len(y)) % 3 != f), np.arange(f, len(y), 3)) for f in range(3)]
    data = folded(model, X, y, cv=splits)
    engine = fast(model, data)
    for mask in masks_of_all_sizes(X.shape[1]):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            answers, truth = engine.predictions(mask), true_predictions(model, data, mask)
            tied = undecided_rows(model, data, mask)
        assert not ((answers != truth) & ~tied).any()


def rule_losses(model, data, masks):
    """The losses of the documented rule: distances of scikit-learn's scaled values, columns in order, ties by row."""
    losses = np.empty((len(masks), data.n_folds))
    for p, mask in enumerate(masks):
        for f, fold in enumerate(data.folds):
            train = np.sort(fold.train)
            scaler = clone(model.steps[0][1]).fit(data.X[fold.train])
            rows, tests = (scaler.transform(data.X[part])[:, mask] for part in (train, fold.test))
            distances = np.zeros((len(tests), len(rows)))
            for own, other in zip(tests.T, rows.T, strict=True):
                distances += (own[:, None] - other) ** 2
            nearest = np.argsort(distances, axis=1, kind="stable")[:, : model.steps[1][1].n_neighbors]
            votes = (data.y[train][nearest][:, :, None] == np.arange(data.y.max() + 1)).sum(axis=1)
            losses[p, f] = 1 - (votes.argmax(axis=1) == data.y[fold.test]).mean()
    return losses


@pytest.mark.parametrize("engine", ["float32", "float64", "torch"])
@pytest.mark.parametrize(
    ("scaler", "scale", "outlier"),
    [
        (MinMaxScaler(feature_range=(5, 1e6)), 1e-21, 1.0),
        (MinMaxScaler(feature_range=(5, 1e6)), 1.0, 1e20),
        (StandardScaler(), 1.0, 1e15),
        (StandardScaler(), 1.0, 1e18),
    ],
    ids=["tiny", "outlier", "some ties", "all tie"],
)
def test_values_that_scaling_rounds_to_equal_tie_and_go_by_row_number(scaler, scale, outlier, engine):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)) * scale, rng.integers(0, 3, size=60)
    X[0] *= outlier
    model = make_pipeline(scaler, KNeighborsClassifier(4))
    data = folded(model, X, y, cv=3)
    masks = masks_of_all_sizes(3)
    if engine == "torch":
        pytest.importorskip("torch")
        ours = engine_for(model, data, engine="torch")
    else:
        ours = fast(model, data)
        ours._finder.precision = engine
    is_left_to_scikit_learn = (masks & ours._layout.unsure).any(axis=1)
    expected = np.where(
        is_left_to_scikit_learn[:, None], true_losses(model, data, masks), rule_losses(model, data, masks)
    )
    assert np.array_equal(ours.fold_losses(masks), expected)
    assert is_left_to_scikit_learn.any() == (scale < 1)


def test_votes_and_means_are_the_same_without_numba():
    pytest.importorskip("numba")
    from subswarm.engines.neighbors import numba as compiled
    from subswarm.engines.neighbors import numpy as plain

    rng = np.random.default_rng(0)
    for k in (1, 3, 9, 20):
        nearest = rng.permuted(np.tile(np.arange(50), (40, 1)), axis=1)[:, :k].copy()
        labels, values = rng.integers(0, 4, size=50), rng.normal(size=50)
        votes, means = np.empty((2, 40, 4)), np.empty((2, 40))
        for number, kernels in enumerate((compiled, plain)):
            kernels.count_votes(nearest, labels, votes[number])
            kernels.mean_values(nearest, values, means[number])
        assert np.array_equal(votes[0], votes[1])
        assert np.array_equal(means[0], means[1])


def test_targets_with_a_large_offset_are_added_up_as_in_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = 1e15 + rng.normal(size=60) * 3.0
    model = KNeighborsRegressor(7)
    data = folded(model, X, y, cv=3, scoring="r2")
    masks = np.array([[True, True, True], [True, False, True]])
    assert np.abs(fast(model, data).fold_losses(masks) - true_losses(model, data, masks)).max() <= 1e-12
