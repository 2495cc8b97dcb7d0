"""The linear engine against scikit-learn: equal classes, and numbers that agree to rounding."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from engine_oracle import UCI, fast, folded, masks_of_all_sizes, true_losses
from subswarm.engines.base import engine_for
from subswarm.engines.fast import column_lists
from subswarm.engines.linear.engine import LinearEngine
from subswarm.engines.linear.numpy import solve as solve_in_numpy
from subswarm.engines.linear.tables import Scores
from subswarm.testing import check_engine

SCALERS = [None, StandardScaler(), MinMaxScaler(), RobustScaler()]
REGRESSORS = [
    LinearRegression(),
    LinearRegression(fit_intercept=False),
    Ridge(),
    Ridge(alpha=1e-3, fit_intercept=False),
    Ridge(alpha=10, solver="svd"),
    Ridge(alpha=0),
]
CLASSIFIERS = [
    RidgeClassifier(),
    RidgeClassifier(alpha=0.1, fit_intercept=False),
    RidgeClassifier(class_weight="balanced", solver="cholesky"),
    RidgeClassifier(class_weight={0: 1, 1: 2, 2: 0.5}),
    LinearDiscriminantAnalysis(),
    LinearDiscriminantAnalysis(priors=[0.2, 0.5, 0.3]),
    LinearDiscriminantAnalysis(solver="lsqr"),
    LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.3),
    LinearDiscriminantAnalysis(solver="eigen", priors=[0.2, 0.5, 0.3]),
    LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.01),
]


def behind(scaler, model):
    return model if scaler is None else make_pipeline(scaler, model)


def name_of(value):
    return "bare" if value is None else "".join(str(value).split())


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return np.hstack([X, X[:, :4] * X[:, 6:], 10 + 1e2 * X[:, 2:4] ** 2]), y


def with_weights(data, name="sample_weight", seed=0):
    weights = np.random.default_rng(seed).exponential(size=len(data.X))
    weights[::7] = 0.0
    return type(data)(X=data.X, y=data.y, folds=data.folds, scoring=data.scoring, params={name: weights})


@pytest.mark.parametrize("scaler", SCALERS, ids=name_of)
@pytest.mark.parametrize("model", REGRESSORS, ids=name_of)
def test_regression_agrees_with_scikit_learn(model, scaler):
    X, y = diabetes()
    estimator = behind(scaler, model)
    for scoring in ("r2", "neg_mean_squared_error", "neg_median_absolute_error"):
        data = folded(estimator, X, y, cv=4, scoring=scoring)
        masks = masks_of_all_sizes(data.n_features)
        engine = fast(estimator, data)
        assert engine.name == "linear"
        assert np.allclose(engine.fold_losses(masks), true_losses(estimator, data, masks), rtol=1e-9, atol=1e-11)
        assert engine.facts["rechecked"] == 0


@pytest.mark.parametrize("scaler", SCALERS, ids=name_of)
@pytest.mark.parametrize("model", CLASSIFIERS, ids=name_of)
def test_classification_equals_scikit_learn(model, scaler):
    X, y = load_wine(return_X_y=True)
    estimator = behind(scaler, model)
    for scoring in ("accuracy", "f1_macro"):
        data = folded(estimator, X, y, cv=4, scoring=scoring)
        masks = masks_of_all_sizes(data.n_features)
        engine = fast(estimator, data)
        assert np.array_equal(engine.fold_losses(masks), true_losses(estimator, data, masks))
        assert engine.facts["rechecked"] <= 2


@pytest.mark.parametrize("name", UCI)
@pytest.mark.parametrize("model", [RidgeClassifier(), LinearDiscriminantAnalysis()], ids=name_of)
def test_classes_of_the_papers_tables_equal_scikit_learn(uci, name, model):
    table = uci(name)
    data = folded(model, table.X, table.y, cv=3)
    masks = masks_of_all_sizes(min(data.n_features, 40))
    masks = np.pad(masks, ((0, 0), (0, data.n_features - masks.shape[1])))
    assert np.array_equal(fast(model, data).fold_losses(masks), true_losses(model, data, masks))


@pytest.mark.parametrize("model", [LinearRegression(), Ridge(fit_intercept=False), RidgeClassifier()], ids=name_of)
@pytest.mark.parametrize("scaled", [False, True])
def test_sample_weights_count(model, scaled):
    X, y = load_wine(return_X_y=True) if isinstance(model, RidgeClassifier) else diabetes()
    estimator = make_pipeline(StandardScaler(), model) if scaled else model
    name = f"{type(model).__name__.lower()}__sample_weight" if scaled else "sample_weight"
    plain = folded(estimator, X, y, cv=4)
    data = with_weights(plain, name)
    masks = masks_of_all_sizes(data.n_features)
    losses, expected = fast(estimator, data).fold_losses(masks), true_losses(estimator, data, masks)
    assert np.allclose(losses, expected, rtol=1e-9, atol=1e-11)
    assert not np.allclose(losses, fast(estimator, plain).fold_losses(masks))


@pytest.mark.parametrize(
    ("model", "params"),
    [
        (LinearRegression(positive=True), {}),
        (Ridge(solver="lsqr"), {}),
        (Ridge(alpha=np.ones(1)), {}),
        (Ridge(), {"sample_weight": -np.ones(442)}),
        (Ridge(), {"other": np.ones(442)}),
        (make_pipeline(StandardScaler(), Ridge()), {"sample_weight": np.ones(442)}),
    ],
    ids=name_of,
)
def test_other_settings_are_left_to_scikit_learn(model, params):
    X, y = load_diabetes(return_X_y=True)
    data = folded(model, X, y, cv=3)
    data = type(data)(X=data.X, y=data.y, folds=data.folds, scoring=data.scoring, params=params)
    assert engine_for(model, data).name == "estimator"


@pytest.mark.parametrize(
    "model",
    [
        LinearDiscriminantAnalysis(shrinkage=0.1),
        LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        LinearDiscriminantAnalysis(priors=[0.5, 0.5]),
        LinearDiscriminantAnalysis(n_components=1),
    ],
    ids=name_of,
)
def test_other_discriminants_are_left_to_scikit_learn(model):
    X, y = load_wine(return_X_y=True)
    assert engine_for(model, folded(model, X, y, cv=3)).name == "estimator"


@pytest.mark.parametrize("model", [RidgeClassifier(), LinearDiscriminantAnalysis()], ids=name_of)
def test_the_engine_keeps_the_contract(model):
    X, y = load_wine(return_X_y=True)
    check_engine(LinearEngine, model, X, y, cv=3)


@pytest.mark.parametrize("scoring", ["r2", "neg_mean_squared_error"])
def test_neither_memory_nor_workers_nor_the_batch_change_a_loss(scoring):
    X, y = diabetes()
    data = folded(Ridge(), X, y, cv=4, scoring=scoring)
    masks = np.random.default_rng(0).random((40, X.shape[1])) < 0.5
    masks[:, 0] |= ~masks.any(axis=1)
    losses = fast(Ridge(), data).fold_losses(masks)
    assert np.array_equal(fast(Ridge(), data, n_jobs=2).fold_losses(masks), losses)
    assert np.array_equal(fast(Ridge(), data, max_bytes=5000).fold_losses(masks), losses)
    assert np.array_equal(np.concatenate([fast(Ridge(), data).fold_losses(mask[None]) for mask in masks]), losses)
    assert np.allclose(fast(Ridge(), data, max_bytes=1).fold_losses(masks), losses, rtol=1e-9)


def collinear_table(seed, rows, columns, scale, n_classes):
    """A table with a duplicate, a constant, a sum of two columns, integers and a column of another scale."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, max(columns, 7)))
    X[:, 1] = X[:, 0]
    X[:, 2] = 0.1
    X[:, 3] = X[:, 0] + X[:, 4]
    X[:, 5] = rng.integers(0, 3, size=rows)
    X[:, 6] *= scale
    y = rng.integers(0, n_classes, size=rows)
    y[:n_classes] = np.arange(n_classes)
    y[n_classes : 2 * n_classes] = np.arange(n_classes)
    return X + 0.5 * y[:, None] * (np.arange(X.shape[1]) % 3 == 0), y


TABLES = {
    "seed": st.integers(0, 1000),
    "rows": st.integers(12, 60),
    "columns": st.integers(7, 40),
    "scale": st.sampled_from([1.0, 1e-9, 1e-3, 1e6, 1e12, 1e160]),
}


@settings(max_examples=25, deadline=None, derandomize=True)
@given(model=st.sampled_from([LinearRegression(), Ridge(), Ridge(alpha=1e-6), Ridge(fit_intercept=False)]), **TABLES)
@example(model=LinearRegression(), seed=0, rows=20, columns=40, scale=1.0)
def test_regression_agrees_on_hard_tables(model, seed, rows, columns, scale):
    X, y = collinear_table(seed, rows, columns, scale, 3)
    target = X[:, 0] + 0.3 * y + np.random.default_rng(seed).normal(size=rows)
    data = folded(model, X, target, cv=3)
    masks = masks_of_all_sizes(data.n_features, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        losses, expected = fast(model, data).fold_losses(masks), true_losses(model, data, masks)
    assert np.allclose(losses, expected, rtol=1e-7, atol=1e-9, equal_nan=True)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    model=st.sampled_from(
        [
            RidgeClassifier(),
            RidgeClassifier(alpha=1e-9),
            LinearDiscriminantAnalysis(),
            LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.5),
            LinearDiscriminantAnalysis(solver="eigen"),
            make_pipeline(StandardScaler(), LinearDiscriminantAnalysis()),
        ]
    ),
    n_classes=st.integers(2, 5),
    **TABLES,
)
def test_classes_are_equal_on_hard_tables(model, n_classes, seed, rows, columns, scale):
    X, y = collinear_table(seed, rows, columns, scale, n_classes)
    data = folded(model, X, y, cv=3)
    masks = masks_of_all_sizes(data.n_features, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        losses, expected = engine_for(model, data).fold_losses(masks), true_losses(model, data, masks)
    assert np.array_equal(losses, expected, equal_nan=True)


@pytest.mark.parametrize("engine", ["fast", "torch"])
@pytest.mark.parametrize("solver", ["lsqr", "eigen"])
@pytest.mark.parametrize("offset", [1e7, 1e9])
def test_a_large_offset_leaves_scikit_learns_own_rounding_to_it(solver, offset, engine):
    """These solvers do not centre the rows: their scores grow with the square of the offset, and so does rounding."""
    if engine == "torch":
        pytest.importorskip("torch", reason="torch (extra gpu) is not installed")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)) + np.array([offset, 0.0, 0.0]), rng.integers(0, 3, size=60)
    model = LinearDiscriminantAnalysis(solver=solver, shrinkage=0.1)
    data = folded(model, X, y, cv=4)
    ours = engine_for(model, data, engine=engine)
    masks = np.array([[True, False, False], [True, True, False], [False, True, True]])
    assert np.array_equal(ours.fold_losses(masks), true_losses(model, data, masks))
    assert ours.facts["rechecked"] == 8


@pytest.mark.parametrize("engine", ["fast", "torch"])
@pytest.mark.parametrize(
    "model",
    [
        Ridge(alpha=0.1, solver="svd"),
        RidgeClassifier(alpha=0.1, solver="svd"),
        LinearDiscriminantAnalysis(solver="lsqr"),
    ],
    ids=name_of,
)
def test_a_decomposition_that_loses_the_small_columns_beside_a_huge_one_is_scikit_learns(model, engine):
    """Its rounding goes with the largest value of the table, while the engine scales every column by itself."""
    if engine == "torch":
        pytest.importorskip("torch", reason="torch (extra gpu) is not installed")
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:, :6]
    X[5, 2] = 1e120
    data = folded(model, X, y.astype(float) if isinstance(model, Ridge) else y, cv=4)
    masks = masks_of_all_sizes(6)
    ours = engine_for(model, data, engine=engine)
    assert np.allclose(ours.fold_losses(masks), true_losses(model, data, masks), rtol=1e-9, atol=1e-11)
    rechecked = ours.facts["rechecked"]
    ours.fold_losses(masks[~masks[:, 2]])
    assert ours.facts["rechecked"] - rechecked < 4  # few rows are close to the border


def test_singular_values_that_ridge_regression_drops_are_dropped():
    X, y = load_wine(return_X_y=True)
    X, y = 1e-18 * StandardScaler().fit_transform(X[y < 2])[:, :4], y[y < 2]
    model = RidgeClassifier(alpha=1e-9, solver="svd", fit_intercept=False)
    data = folded(model, X, y, cv=3)
    masks = masks_of_all_sizes(4)
    assert np.array_equal(fast(model, data).fold_losses(masks), true_losses(model, data, masks))


def test_rows_between_two_classes_are_decided_by_scikit_learn():
    X = np.array([[-1.2, 0.0], [-0.8, 2.0], [0.8, 0.0], [1.2, 2.0]] * 6 + [[0.0, 1.0]] * 6)
    y = np.array([0, 0, 1, 1] * 6 + [0, 1] * 3)
    for model in (RidgeClassifier(), LinearDiscriminantAnalysis()):
        data = folded(model, X, y, cv=[(np.arange(24), np.arange(24, 30))])
        engine = fast(model, data)
        masks = np.array([[True, False], [True, True]])
        assert np.array_equal(engine.fold_losses(masks), true_losses(model, data, masks))
        assert engine.facts["rechecked"] == 2


WITHOUT_NUMBA = """
import sys
if "hide" in sys.argv:
    sys.modules["numba"] = None
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.neighbors import NearestCentroid
from subswarm.objective.objective import make_objective

for model, table in (
    (LinearRegression(), load_diabetes),
    (Ridge(), load_diabetes),
    (RidgeClassifier(), load_wine),
    (LinearDiscriminantAnalysis(), load_wine),
    (LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1), load_wine),
    (QuadraticDiscriminantAnalysis(reg_param=0.1), load_wine),
    (NearestCentroid(), load_wine),
):
    X, y = table(return_X_y=True)
    X = np.hstack([X, np.zeros((len(X), 1))])
    masks = np.random.default_rng(0).random((12, X.shape[1])) < 0.4
    masks[:, 0] |= ~masks.any(axis=1)
    objective = make_objective(model, X, y, cv=4, engine="fast")
    print(objective.engine, objective.engine_facts, [f"{loss:.10f}" for loss in objective(masks)])
print("numba" in sys.modules and sys.modules["numba"] is not None)
"""


def test_without_numba_the_losses_are_the_same():
    outputs = []
    for arguments in ([], ["hide"]):
        command = [sys.executable, "-c", WITHOUT_NUMBA, *arguments]
        outputs.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())
    (*answers, there), (*others, hidden) = outputs
    assert (there, hidden) == ("True", "False")
    assert answers == others


@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision", "f1", "neg_log_loss", "neg_brier_score"])
@pytest.mark.parametrize(
    "model",
    [
        RidgeClassifier(),
        LinearDiscriminantAnalysis(),
        make_pipeline(StandardScaler(), LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.1)),
    ],
    ids=name_of,
)
@pytest.mark.parametrize("rounded", [False, True], ids=["real", "integers"])
def test_metrics_of_two_classes_equal_scikit_learn(model, scoring, rounded):
    X, y = load_breast_cancer(return_X_y=True)
    X = X[::3, :10]
    if rounded:  # few different values: many scores that tie, exactly or but for rounding
        X = np.round(2 * (X - X.mean(axis=0)) / X.std(axis=0))
    if scoring.startswith("neg") and isinstance(model, RidgeClassifier):
        return
    data = folded(model, X, y[::3], cv=4, scoring=scoring)
    masks = masks_of_all_sizes(data.n_features)
    losses, expected = fast(model, data).fold_losses(masks), true_losses(model, data, masks)
    assert np.allclose(losses, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scoring", ["roc_auc_ovr", "roc_auc_ovo_weighted", "neg_log_loss", "balanced_accuracy"])
def test_metrics_of_three_classes_equal_scikit_learn(scoring):
    X, y = load_wine(return_X_y=True)
    for model in (LinearDiscriminantAnalysis(), LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.2)):
        data = folded(model, np.round(X), y, cv=4, scoring=scoring)
        masks = masks_of_all_sizes(data.n_features)
        losses, expected = fast(model, data).fold_losses(masks), true_losses(model, data, masks)
        assert np.allclose(losses, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("model", [RidgeClassifier(), LinearDiscriminantAnalysis()], ids=name_of)
def test_average_precision_of_scores_that_tie_but_for_rounding_is_scikit_learns(model):
    """Rows of one class that tie are one threshold of the average precision; rounding makes them two."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, size=(80, 4)).astype(float)
    y = (X.sum(axis=1) + rng.normal(size=80) > 11).astype(int)
    X, y = np.vstack([X, X[:, ::-1]]), np.tile(y, 2)  # equal weights, so rows tie with their mirror images
    data = folded(
        model,
        X,
        y,
        cv=[(np.r_[:60, 80:140], np.r_[60:80, 140:160]), (np.r_[20:80, 100:160], np.r_[:20, 80:100])],
        scoring="average_precision",
    )
    masks = masks_of_all_sizes(4)
    assert np.allclose(fast(model, data).fold_losses(masks), true_losses(model, data, masks), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("priors", [[10**400, 1], "empirical", "flat"])
def test_priors_that_are_no_floats_are_left_to_scikit_learn(priors):
    X, y = load_breast_cancer(return_X_y=True)
    data = folded(LinearDiscriminantAnalysis(priors=priors), X, y, cv=2)
    assert engine_for(LinearDiscriminantAnalysis(priors=priors), data).name == "estimator"


@pytest.mark.parametrize("n_classes", [2, 3])
def test_more_columns_than_rows_need_no_fit_of_discriminant_analysis(n_classes):
    rng = np.random.default_rng(n_classes)
    y = np.arange(30) % n_classes
    X = rng.normal(size=(30, 60)) + 0.5 * y[:, None] * (np.arange(60) < 10)
    X[:, 59] = X[:, 0] - X[:, 1]
    model = LinearDiscriminantAnalysis()
    data = folded(model, X, y, cv=5)
    masks = np.stack([rng.random(60) < share for share in (0.7, 0.8, 0.9, 1.0)])
    engine = fast(model, data)
    assert np.array_equal(engine.fold_losses(masks), true_losses(model, data, masks))
    assert engine.facts["rechecked"] == 0


def test_directions_near_the_limit_are_left_to_scikit_learn():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 6)), np.arange(80) % 2
    X[:, 5] = X[:, 0] + 1e-4 * X[:, 1] + 1e-4 * rng.normal(size=80)  # a singular value of about the tolerance
    model = LinearDiscriminantAnalysis()
    data = folded(model, X, y, cv=5)
    masks = np.ones((1, 6), dtype=bool)
    engine = fast(model, data)
    assert np.array_equal(engine.fold_losses(masks), true_losses(model, data, masks))
    assert engine.facts["rechecked"] == 5


@pytest.mark.parametrize("seed", [2, 3])
def test_scores_that_are_rounding_of_the_intercept_are_left_to_ridge_classification(seed):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, 1, 2], [1, 22, 10]))
    X = rng.normal(size=(33, 3)) * 1e-200  # so that a score is the intercept
    rows = np.roll(np.arange(33), -int(np.flatnonzero(y == 0)[0]))
    folds = [(np.setdiff1d(rows, test), test) for test in np.array_split(rows, 4)]
    model = RidgeClassifier(alpha=10.0, class_weight="balanced")
    data = folded(model, X, y, cv=folds)  # the first fold trains on two classes, whose weighted mean rounds to zero
    masks = np.ones((1, 3), dtype=bool)
    assert np.array_equal(fast(model, data).fold_losses(masks), true_losses(model, data, masks))


def test_columns_that_are_constant_in_a_fold_need_no_fit_of_ridge_classification():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), np.arange(60) % 3
    X[:, 4] = 0.1
    X[7, 4] = 0.7  # the other rows are all that some fold trains on, and their mean is not 0.1 but for rounding
    X[:, :2] += y[:, None]
    model = RidgeClassifier()
    data = folded(model, X, y, cv=5)
    masks = np.ones((1, 5), dtype=bool)
    engine = fast(model, data)
    assert np.array_equal(engine.fold_losses(masks), true_losses(model, data, masks))
    assert engine.facts["rechecked"] == 0


@pytest.mark.parametrize(
    "model",
    [LinearRegression(), Ridge(1e-3), Ridge(fit_intercept=False), RidgeClassifier(), LinearDiscriminantAnalysis()],
    ids=name_of,
)
def test_bounds_for_all_subsets_are_not_below_the_sharp_ones(model):
    solve = pytest.importorskip("subswarm.engines.linear.numba").solve
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 31))
    X[:, 20:] = X[:, 9:20] + 0.1 * rng.normal(size=(120, 11))
    y = rng.integers(0, 3, 120) if is_classifier(model) else X @ rng.normal(size=31)
    engine = fast(model, folded(model, X, y, cv=3))
    _, _, systems, _ = next(engine._blocks())
    masks = masks_of_all_sizes(31)
    columns, starts = column_lists(masks)
    sharp, quick, unbounded = (Scores.room(len(masks), len(columns), 3, systems.target.shape[2]) for _ in range(3))
    solve_in_numpy(0, len(masks), columns, starts, systems, sharp)
    solve(0, len(masks), columns, starts, systems._replace(small_error=1.0), quick)
    solve(0, len(masks), columns, starts, systems._replace(small_error=0.0), unbounded)
    assert np.isfinite(sharp.rate).all()
    for found in (quick, unbounded):
        assert np.allclose(found.weights, sharp.weights, rtol=1e-7, atol=1e-9)
        assert np.allclose(found.constant, sharp.constant, rtol=1e-7, atol=1e-9)
    assert (quick.rate > 0.99 * sharp.rate).all()
    assert (quick.rate > 1.5 * sharp.rate).any()  # the bounds for all subsets were used
    assert np.allclose(unbounded.rate, sharp.rate, rtol=1e-4)
