"""The torch engines give the losses of the CPU engines: plain torch on the CPU, and the Triton kernels on a GPU."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.model_selection import ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from engine_oracle import UCI, fast, folded, masks_of_all_sizes, true_losses
from subswarm import SwarmSelector
from subswarm.engines.base import engine_for
from subswarm.engines.normal_cdf.model import NormalCDFBayes
from subswarm.errors import MissingExtraError, SettingError
from subswarm.objective.objective import make_objective

torch = pytest.importorskip("torch", reason="torch (extra gpu) is not installed")
SMALL = [name for name in UCI if name not in ("ozone", "secom", "german", "vehicle", "arrhythmia", "musk-1")]


def on_torch(model, data, **settings):
    return engine_for(model, data, engine="torch", **settings)


each_model = pytest.mark.parametrize(
    "model",
    [
        GaussianNB(),
        NormalCDFBayes(),
        KNeighborsClassifier(),
        make_pipeline(StandardScaler(), KNeighborsClassifier()),
    ],
    ids=["nb", "normal-cdf", "knn", "standardised knn"],
)


@pytest.mark.parametrize("name", SMALL)
@each_model
def test_losses_are_the_cpu_engines_on_every_data_set(uci, name, model):
    table = uci(name)
    data = folded(model, table.X, table.y)
    masks = masks_of_all_sizes(data.n_features)
    assert np.array_equal(on_torch(model, data).fold_losses(masks), fast(model, data).fold_losses(masks))


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), RobustScaler()])
@pytest.mark.parametrize("model", [GaussianNB(), KNeighborsClassifier(3), NormalCDFBayes()])
@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy", "f1_macro"])
def test_scalers_and_scorers_give_the_same_losses(scaler, model, scoring):
    X, y = load_wine(return_X_y=True)
    estimator = make_pipeline(scaler, model)
    data = folded(estimator, X, y, cv=4, scoring=scoring)
    masks = masks_of_all_sizes(13)
    assert np.array_equal(on_torch(estimator, data).fold_losses(masks), fast(estimator, data).fold_losses(masks))


@pytest.mark.parametrize("model", [GaussianNB(), KNeighborsClassifier(), NormalCDFBayes()])
def test_folds_that_overlap_give_the_same_losses(model):
    X, y = load_wine(return_X_y=True)
    data = folded(model, X, y, cv=ShuffleSplit(4, random_state=0))
    masks = masks_of_all_sizes(13)
    assert np.array_equal(on_torch(model, data).fold_losses(masks), fast(model, data).fold_losses(masks))


@pytest.mark.parametrize("scoring", ["accuracy", "f1_macro"])
def test_a_test_row_whose_squares_overflow_gives_the_same_losses(scoring):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(24, 3)), np.arange(24) % 3
    X[5, 1], X[6, 2] = 1e180, -1e180
    model = make_pipeline(RobustScaler(), GaussianNB(var_smoothing=1e-3))
    data = folded(model, X, y, cv=4, scoring=scoring)
    masks = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 1], [0, 0, 1]], dtype=bool)
    assert np.array_equal(on_torch(model, data).fold_losses(masks), true_losses(model, data, masks))


def test_rows_at_the_same_distance_go_by_number_on_torch_too():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, size=(80, 6)).astype(float), rng.integers(0, 3, size=80)
    model = KNeighborsClassifier(4)
    data = folded(model, X, y, cv=5)
    masks = masks_of_all_sizes(6)
    ours = on_torch(model, data)
    assert np.array_equal(ours.fold_losses(masks), fast(model, data).fold_losses(masks))
    settled, asked = ours.facts["settled"], ours.facts["asked"]
    assert 0 < settled <= asked == 80 * len(masks)


@pytest.mark.parametrize("model", [GaussianNB(), KNeighborsClassifier(), NormalCDFBayes()])
def test_little_memory_means_small_batches_and_the_same_losses(model):
    X, y = load_wine(return_X_y=True)
    data = folded(model, X, y, cv=4)
    masks = masks_of_all_sizes(13)
    assert np.array_equal(on_torch(model, data, max_bytes=1).fold_losses(masks), fast(model, data).fold_losses(masks))


LINEAR = [
    RidgeClassifier(),
    RidgeClassifier(alpha=0.1, fit_intercept=False, class_weight="balanced"),
    LinearDiscriminantAnalysis(),
    LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.2),
    QuadraticDiscriminantAnalysis(reg_param=0.1),
    make_pipeline(StandardScaler(), QuadraticDiscriminantAnalysis()),
    NearestCentroid(),
    NearestCentroid(priors="empirical"),
]


def hard_table(n_classes):
    """Columns with duplicates, a constant, a sum of two and other scales."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 16))
    X[:, 1], X[:, 2], X[:, 3], X[:, 5] = X[:, 0], 0.1, X[:, 0] + X[:, 4], 1e9 * X[:, 5]
    y = np.arange(90) % n_classes
    return X + 0.5 * y[:, None] * (np.arange(16) % 3 == 0), y


TABLES = [lambda: load_wine(return_X_y=True), lambda: hard_table(2), lambda: hard_table(9)]


@pytest.mark.parametrize("model", LINEAR, ids=lambda model: "".join(str(model).split()))
@pytest.mark.parametrize("table", TABLES)
def test_linear_models_give_the_cpu_engines_losses(model, table):
    X, y = table()
    for scoring in ("accuracy", "roc_auc" if y.max() == 1 else "f1_macro", "neg_log_loss"):
        if scoring == "neg_log_loss" and not hasattr(model, "predict_proba"):
            continue
        data = folded(model, X, y, cv=3, scoring=scoring)
        masks = masks_of_all_sizes(X.shape[1])
        ours, cpu = on_torch(model, data), fast(model, data)
        assert ours.name.endswith("-torch")
        losses, expected = ours.fold_losses(masks), cpu.fold_losses(masks)
        if scoring == "neg_log_loss":
            assert np.allclose(losses, expected, rtol=1e-9, atol=1e-11, equal_nan=True)
        else:
            assert np.array_equal(losses, expected, equal_nan=True)
        leaves_singular = getattr(model, "solver", "") == "svd" and table is not TABLES[0]
        assert leaves_singular or ours.facts["rechecked"] <= cpu.facts["rechecked"] + 3


@pytest.mark.parametrize("model", [LinearRegression(), Ridge(), Ridge(fit_intercept=False)])
def test_regression_agrees_with_the_cpu_engine(model):
    X, y = load_diabetes(return_X_y=True)
    X = np.hstack([X, X[:, :2], np.ones((len(X), 1))])
    data = folded(model, X, y, cv=4)
    masks = masks_of_all_sizes(X.shape[1])
    assert np.allclose(on_torch(model, data).fold_losses(masks), fast(model, data).fold_losses(masks), rtol=1e-9)


@pytest.mark.parametrize("model", [LinearRegression(), RidgeClassifier(), LINEAR[4], NearestCentroid()])
def test_linear_models_in_little_memory(model, monkeypatch):
    X, y = load_wine(return_X_y=True)
    data = folded(model, X, y * 1.0 if isinstance(model, LinearRegression) else y, cv=3)
    masks = masks_of_all_sizes(13)
    expected = fast(model, data).fold_losses(masks)
    for settings in ({"max_bytes": 1}, {"max_bytes": 60_000}):
        assert np.allclose(on_torch(model, data, **settings).fold_losses(masks), expected, rtol=1e-9)

    def refuse(*_, **__):
        raise torch.OutOfMemoryError("refused")

    ours = on_torch(model, data)
    monkeypatch.setattr(torch, "as_tensor", refuse)
    assert np.allclose(ours.fold_losses(masks), expected, rtol=1e-9)


def test_a_batch_that_memory_refuses_is_halved_until_it_fits():
    from subswarm.engines.gpu.device import in_pieces

    done = []

    def work(first, last):
        if last - first > 3:
            raise torch.OutOfMemoryError("refused")
        done.extend(range(first, last))

    assert in_pieces(work, 0, 20, most=16) == []
    assert done == list(range(20))


def test_a_subset_that_memory_refuses_even_alone_is_named():
    from subswarm.engines.gpu.device import in_pieces

    done = []

    def work(first, last):
        if first <= 5 < last:
            raise torch.OutOfMemoryError("refused")
        done.extend(range(first, last))

    assert in_pieces(work, 0, 9, most=4) == [5]
    assert done == [0, 1, 2, 3, 4, 6, 7, 8]


@pytest.mark.parametrize("model", [GaussianNB(), KNeighborsClassifier(), NormalCDFBayes()])
def test_a_search_outlives_a_device_without_memory(model, monkeypatch):
    X, y = load_wine(return_X_y=True)
    data = folded(model, X, y, cv=4)
    masks = masks_of_all_sizes(13)
    ours = on_torch(model, data)

    def refuse(*_):
        raise torch.OutOfMemoryError("refused")

    for name in ("_right", "_counts", "_device_codes", "_plain_codes"):
        if hasattr(ours, name):
            monkeypatch.setattr(ours, name, refuse)
    assert np.array_equal(ours.fold_losses(masks), fast(model, data).fold_losses(masks))


def test_column_lists_are_sorted_by_size_and_filled_with_the_column_of_zeros():
    from subswarm.engines.gpu.device import ColumnLists

    lists = ColumnLists(np.array([[1, 0, 0], [1, 0, 1], [1, 1, 1]], dtype=bool))
    assert lists.order.tolist() == [2, 1, 0]
    assert lists.table().tolist() == [[0, 1, 2], [0, 2, 3], [0, 3, 3]]
    assert lists.starts.tolist() == [0, 4, 8, 12]


def test_what_torch_cannot_score_is_refused_by_name_and_left_to_the_cpu_otherwise():
    X, y = load_wine(return_X_y=True)
    for model in (RandomForestClassifier(), KNeighborsClassifier(weights="distance"), KNeighborsClassifier(p=1)):
        with pytest.raises(SettingError, match="engine='torch' has no exact fast path"):
            make_objective(model, X, y, engine="torch")
    with pytest.raises(SettingError, match="engine='torch'"):
        make_objective(KNeighborsRegressor(), X, y.astype(float), engine="torch")


def test_no_gpu_is_said_in_one_sentence():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    X, y = load_wine(return_X_y=True)
    with pytest.raises(SettingError, match="torch finds none that it can use here; use device='cpu'"):
        make_objective(GaussianNB(), X, y, device="cuda")


def test_no_torch_is_said_in_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    X, y = load_wine(return_X_y=True)
    with pytest.raises(MissingExtraError, match=r"pip install 'subswarm\[gpu\]'"):
        make_objective(GaussianNB(), X, y, engine="torch")


def test_a_selector_finds_the_same_features_with_torch():
    X, y = load_breast_cancer(return_X_y=True)
    ours, cpu = (
        SwarmSelector(GaussianNB(), engine=engine, max_evaluations=300, random_state=0, verbose=0).fit(X, y)
        for engine in ("torch", "fast")
    )
    assert np.array_equal(ours.get_support(), cpu.get_support())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("name", UCI)
@each_model
def test_losses_on_a_gpu_are_the_cpu_engines(uci, name, model):
    table = uci(name)
    data = folded(model, table.X, table.y)
    rng = np.random.default_rng(0)
    masks = np.concatenate([masks_of_all_sizes(data.n_features), rng.random((60, data.n_features)) < 0.5])
    masks = masks[masks.any(axis=1)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = engine_for(model, data, engine="torch", device="cuda")
    assert np.array_equal(ours.fold_losses(masks), fast(model, data, n_jobs=-1).fold_losses(masks))
