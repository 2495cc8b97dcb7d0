"""Quadratic discriminant analysis and nearest centroids: equal classes, and probabilities equal up to rounding."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.fixes import parse_version

from engine_oracle import UCI, fast, folded, masks_of_all_sizes, true_losses
from subswarm.engines.base import engine_for
from subswarm.engines.linear.centroids import CentroidEngine
from subswarm.engines.linear.quadratic import QuadraticEngine
from subswarm.testing import check_engine

OLD_LOG_LOSS = parse_version(sklearn.__version__) < parse_version("1.8")
HAS_SOLVERS = "solver" in inspect.signature(QuadraticDiscriminantAnalysis).parameters
PRIORS = [0.2, 0.5, 0.3]
QUADRATIC = [
    QuadraticDiscriminantAnalysis(),
    QuadraticDiscriminantAnalysis(reg_param=0.1),
    QuadraticDiscriminantAnalysis(reg_param=1.0),
    QuadraticDiscriminantAnalysis(reg_param=0.01, priors=PRIORS, tol=0.0),
]
if HAS_SOLVERS:
    QUADRATIC += [
        QuadraticDiscriminantAnalysis(solver="eigen"),
        QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.2),
    ]
CENTROIDS = [
    NearestCentroid(),
    NearestCentroid(metric="manhattan"),
    NearestCentroid(priors="empirical"),
    NearestCentroid(priors=PRIORS),
]
MODELS = QUADRATIC + CENTROIDS


def name_of(value):
    return "bare" if value is None else "".join(str(value).split())


def behind(scaler, model):
    return model if scaler is None else make_pipeline(scaler, model)


def assert_equal(estimator, data, masks):
    """The losses are scikit-learn's: to the bit for classes, up to rounding for probabilities."""
    engine = fast(estimator, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        losses, expected = engine.fold_losses(masks), true_losses(estimator, data, masks)
    if data.scoring.name in ("accuracy", "f1_macro"):
        assert np.array_equal(losses, expected, equal_nan=True)
    else:
        # older releases take 1 - p as the probability of the other class, which loses the digits of a small one
        room = 1e-5 if data.scoring.name == "neg_log_loss" and OLD_LOG_LOSS else 1e-11
        assert np.allclose(losses, expected, rtol=1e-9, atol=room, equal_nan=True)
    return engine


@pytest.mark.parametrize("place", range(len(MODELS)))
def test_three_classes_equal_scikit_learn(place):
    X, y = load_wine(return_X_y=True)
    model, scaler = MODELS[place], [None, StandardScaler(), MinMaxScaler(), RobustScaler()][place % 4]
    estimator = behind(scaler, model)
    few = isinstance(model, NearestCentroid) and model.metric == "manhattan"
    for scoring in ("accuracy", "f1_macro") if few else ("accuracy", "neg_log_loss", "roc_auc_ovr"):
        data = folded(estimator, X, y, cv=3, scoring=scoring)
        engine = assert_equal(estimator, data, masks_of_all_sizes(X.shape[1]))
        assert engine.name == ("centroids" if isinstance(model, NearestCentroid) else "quadratic")
        assert engine.facts["rechecked"] <= 6


@pytest.mark.parametrize(
    "scoring", ["roc_auc", "average_precision", "f1", "neg_log_loss", "neg_brier_score", "by probability"]
)
@pytest.mark.parametrize(
    "model", [QUADRATIC[1], NearestCentroid(), make_pipeline(StandardScaler(), QUADRATIC[0])], ids=name_of
)
@pytest.mark.parametrize("rounded", [False, True], ids=["real", "integers"])
def test_metrics_of_two_classes_equal_scikit_learn(model, scoring, rounded):
    X, y = load_breast_cancer(return_X_y=True)
    X = X[::3, :10]
    if rounded:  # few different values: many scores that tie, exactly or but for rounding
        X = np.round(2 * (X - X.mean(axis=0)) / X.std(axis=0))
    scorer = make_scorer(roc_auc_score, response_method="predict_proba") if scoring == "by probability" else scoring
    data = folded(model, X, y[::3], cv=4, scoring=scorer)
    assert_equal(model, data, masks_of_all_sizes(data.n_features))


@pytest.mark.parametrize("name", UCI[::2])
@pytest.mark.parametrize(
    "model",
    [make_pipeline(StandardScaler(), QuadraticDiscriminantAnalysis(reg_param=0.1)), NearestCentroid()],
    ids=name_of,
)
def test_classes_of_the_papers_tables_equal_scikit_learn(uci, name, model):
    table = uci(name)
    data = folded(model, table.X, table.y, cv=3)
    masks = masks_of_all_sizes(min(data.n_features, 20))
    assert_equal(model, data, np.pad(masks, ((0, 0), (0, data.n_features - masks.shape[1]))))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    model=st.sampled_from(
        [*QUADRATIC[:3], make_pipeline(StandardScaler(), QUADRATIC[1]), *QUADRATIC[4:], *CENTROIDS[:3]]
    ),
    scoring=st.sampled_from(["accuracy", "neg_log_loss"]),
    n_classes=st.integers(2, 4),
    seed=st.integers(0, 1000),
    rows=st.integers(12, 60),
    columns=st.integers(7, 40),
    scale=st.sampled_from([1.0, 1e-9, 1e-3, 1e6, 1e12, 1e160]),
    centre=st.sampled_from([0.0, 1e4]),
)
def test_hard_tables(model, scoring, n_classes, seed, rows, columns, scale, centre):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    X[:, 1], X[:, 2], X[:, 3] = X[:, 0], 0.1, X[:, 0] + X[:, 4]
    X[:, 5] = rng.integers(0, 3, size=rows)
    X[:, 6] *= scale
    y = np.concatenate([np.tile(np.arange(n_classes), 2), rng.integers(0, n_classes, rows - 2 * n_classes)])
    X += centre + 0.5 * y[:, None] * (np.arange(columns) % 3 == 0)
    if isinstance(model, NearestCentroid) and model.metric == "manhattan":
        scoring = "accuracy"
    data = folded(model, X, y, cv=3, scoring=scoring)
    assert_equal(model, data, masks_of_all_sizes(columns, seed))


def test_rows_between_two_classes_are_decided_by_scikit_learn():
    X = np.array([[-1.2, 0.0], [-0.8, 2.0], [0.8, 0.0], [1.2, 2.0]] * 6 + [[0.0, 1.0]] * 6)
    y = np.array([0, 0, 1, 1] * 6 + [0, 1] * 3)
    for model in (QuadraticDiscriminantAnalysis(reg_param=0.1), NearestCentroid(), NearestCentroid(metric="manhattan")):
        data = folded(model, X, y, cv=[(np.arange(24), np.arange(24, 30))])
        engine = assert_equal(model, data, np.array([[True, False], [True, True]]))
        assert engine.facts["rechecked"] == 2


@pytest.mark.parametrize(
    ("model", "scoring"),
    [
        (QuadraticDiscriminantAnalysis(reg_param=2.0), "accuracy"),
        (QuadraticDiscriminantAnalysis(priors=[0.5, 0.5]), "accuracy"),
        (NearestCentroid(shrink_threshold=0.1), "accuracy"),
        (NearestCentroid(metric="cosine"), "accuracy"),
        (NearestCentroid(metric="manhattan", priors=PRIORS), "accuracy"),
        (NearestCentroid(metric="manhattan"), "neg_log_loss"),
    ],
    ids=name_of,
)
def test_other_settings_are_left_to_scikit_learn(model, scoring):
    X, y = load_wine(return_X_y=True)
    assert engine_for(model, folded(model, X, y, cv=3, scoring=scoring)).name == "estimator"


@pytest.mark.skipif(not HAS_SOLVERS, reason="this release of scikit-learn has one solver")
@pytest.mark.parametrize(
    "changes", [{"shrinkage": 0.1}, {"solver": "eigen", "shrinkage": "auto"}, {"solver": "other"}], ids=name_of
)
def test_other_solvers_are_left_to_scikit_learn(changes):
    X, y = load_wine(return_X_y=True)
    model = QuadraticDiscriminantAnalysis(**changes)
    assert engine_for(model, folded(model, X, y, cv=3)).name == "estimator"


@pytest.mark.parametrize(
    ("engine", "model"),
    [(QuadraticEngine, QUADRATIC[1]), (CentroidEngine, NearestCentroid()), (CentroidEngine, CENTROIDS[1])],
    ids=name_of,
)
def test_the_engines_keep_the_contract(engine, model):
    X, y = load_wine(return_X_y=True)
    check_engine(engine, model, X, y, cv=3)


@pytest.mark.parametrize("model", [QUADRATIC[1], NearestCentroid()], ids=name_of)
def test_neither_memory_nor_workers_nor_the_batch_change_a_loss(model):
    X, y = load_wine(return_X_y=True)
    data = folded(model, X, y, cv=4, scoring="neg_log_loss")
    masks = np.random.default_rng(0).random((40, X.shape[1])) < 0.5
    masks[:, 0] |= ~masks.any(axis=1)
    losses = fast(model, data).fold_losses(masks)
    assert np.array_equal(fast(model, data, n_jobs=2).fold_losses(masks), losses)
    assert np.array_equal(fast(model, data, max_bytes=6000).fold_losses(masks), losses)
    assert np.array_equal(np.concatenate([fast(model, data).fold_losses(mask[None]) for mask in masks]), losses)
    assert np.allclose(fast(model, data, max_bytes=1).fold_losses(masks[:4]), losses[:4], rtol=1e-9)


def test_classes_of_one_row_are_left_to_scikit_learn():
    X, y = load_wine(return_X_y=True)
    rows = np.flatnonzero(y < 2)[:100]
    X, y = X[rows], y[rows].copy()
    y[:3] = 2
    model = QuadraticDiscriminantAnalysis(reg_param=0.1)
    data = folded(model, X, y, cv=[(np.arange(2, 90), np.arange(90, 100)), (np.arange(80), np.arange(80, 100))])
    engine = fast(model, data)
    assert np.isnan(engine.fold_losses(np.ones((1, X.shape[1]), dtype=bool))).all()
    assert "1 sample" in str(engine.error)
