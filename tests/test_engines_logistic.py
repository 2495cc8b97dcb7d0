"""The logistic engine computes the weights of least loss, as scikit-learn does with a tolerance near zero."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import RepeatedStratifiedKFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from engine_oracle import fast, folded, masks_of_all_sizes, true_losses
from subswarm.engines.base import engine_for
from subswarm.engines.linear.logistic_numpy import fit_logistic as fit_in_numpy
from subswarm.engines.linear.tables import Scores


def name_of(value):
    return "".join(str(value).split())


def solved_tightly(estimator):
    """The same estimator with a solver that goes on until the gradient is zero but for rounding."""
    copy = clone(estimator)
    model = copy if isinstance(copy, LogisticRegression) else copy.steps[-1][1]
    model.set_params(solver="newton-cholesky", tol=1e-11, max_iter=1000)
    return copy


def two_classes():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X[::3, :12]), y[::3]


def three_classes():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X) * np.linspace(0.5, 3, 13), y


@pytest.mark.parametrize(("rows", "columns", "n_classes"), [(150, 110, 2), (240, 60, 6), (300, 62, 17)])
def test_many_weights_are_those_of_the_optimum(rows, columns, n_classes):
    pytest.importorskip("numba")
    rng = np.random.default_rng(columns)
    y = rng.permutation(np.arange(rows) % n_classes)
    X = rng.normal(size=(rows, columns)) * rng.uniform(0.5, 2, columns) + rng.normal(size=(n_classes, columns))[y]
    estimator = LogisticRegression(C=0.3)
    data = folded(estimator, X, y, cv=3, scoring="neg_log_loss")
    masks = np.ones((1, columns), dtype=bool)
    engine = fast(estimator, data)
    tight = clone(estimator).set_params(tol=1e-9, max_iter=10_000)
    assert np.allclose(engine.fold_losses(masks), true_losses(tight, data, masks), rtol=1e-5)
    assert engine.facts["rechecked"] == 0


@pytest.mark.parametrize("table", [two_classes, three_classes])
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        LogisticRegression(C=0.01, class_weight="balanced"),
        LogisticRegression(fit_intercept=False, class_weight={0: 2, 1: 1, 2: 0.5}),
        make_pipeline(StandardScaler(), LogisticRegression(C=3)),
        make_pipeline(MinMaxScaler((-1, 2)), LogisticRegression()),
        make_pipeline(RobustScaler(), LogisticRegression(C=0.5, solver="saga")),
    ],
    ids=name_of,
)
def test_losses_are_those_of_the_optimum(table, estimator):
    X, y = table()
    for scoring in ("accuracy", "neg_log_loss", "roc_auc_ovr" if y.max() > 1 else "roc_auc"):
        data = folded(estimator, X, y, cv=4, scoring=scoring)
        masks = masks_of_all_sizes(data.n_features)
        engine = fast(estimator, data)
        assert engine.name == "logistic"
        expected = true_losses(solved_tightly(estimator), data, masks)
        assert np.allclose(engine.fold_losses(masks), expected, rtol=1e-5, atol=1e-7)
        assert engine.facts["rechecked"] == 0


def test_without_a_penalty_too():
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :3] + np.random.default_rng(0).normal(size=(len(X), 3)) * X[:, :3].std(axis=0)
    estimator = LogisticRegression(C=np.inf)
    data = folded(estimator, X, y, cv=4, scoring="neg_log_loss")
    masks = masks_of_all_sizes(3)
    engine = fast(estimator, data)
    expected = true_losses(solved_tightly(estimator), data, masks)
    assert np.allclose(engine.fold_losses(masks), expected, rtol=1e-5)
    assert engine.facts["rechecked"] == 0


@pytest.mark.parametrize("scaled", [False, True])
def test_sample_weights_count(scaled):
    X, y = three_classes()
    estimator = make_pipeline(StandardScaler(), LogisticRegression()) if scaled else LogisticRegression()
    plain = folded(estimator, X, y, cv=4, scoring="neg_log_loss")
    weights = np.random.default_rng(0).exponential(size=len(X))
    name = "logisticregression__sample_weight" if scaled else "sample_weight"
    data = type(plain)(X=X, y=y, folds=plain.folds, scoring=plain.scoring, params={name: weights})
    masks = masks_of_all_sizes(data.n_features)
    losses = fast(estimator, data).fold_losses(masks)
    assert np.allclose(losses, true_losses(solved_tightly(estimator), data, masks), rtol=1e-5, atol=1e-7)
    assert not np.allclose(losses, fast(estimator, plain).fold_losses(masks))


def test_a_class_without_weight_in_a_fold_is_left_to_scikit_learn():
    """The intercept has no penalty, so there is no optimum: the loss is that of the step at which a solver stops."""
    X, y = two_classes()
    folds = folded(LogisticRegression(), X, y, cv=4, scoring="neg_log_loss")
    weights = np.ones(len(X))
    weights[folds.folds[2].train[y[folds.folds[2].train] == 1]] = 0.0
    data = type(folds)(X=X, y=y, folds=folds.folds, scoring=folds.scoring, params={"sample_weight": weights})
    assert engine_for(LogisticRegression(), data).name == "estimator"
    assert engine_for(LogisticRegression(), folds).name == "logistic"


def test_what_scikit_learn_stops_at_is_close():
    X, y = two_classes()
    estimator = LogisticRegression()
    data = folded(estimator, X, y, cv=5, scoring="neg_log_loss")
    masks = masks_of_all_sizes(data.n_features)
    losses = fast(estimator, data).fold_losses(masks)
    assert np.allclose(losses, true_losses(estimator, data, masks), atol=2e-3)
    labels = folded(estimator, X, y, cv=5)
    assert np.abs(fast(estimator, labels).fold_losses(masks) - true_losses(estimator, labels, masks)).max() <= 1 / 37


def test_repeated_folds_and_workers():
    X, y = three_classes()
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    estimator = LogisticRegression()
    data = folded(estimator, X, y, cv=cv, scoring="neg_log_loss")
    masks = masks_of_all_sizes(data.n_features)
    losses = fast(estimator, data).fold_losses(masks)
    assert np.allclose(losses, true_losses(solved_tightly(estimator), data, masks), rtol=1e-5, atol=1e-7)
    assert np.array_equal(fast(estimator, data, n_jobs=2).fold_losses(masks), losses)
    assert np.array_equal(np.concatenate([fast(estimator, data).fold_losses(mask[None]) for mask in masks]), losses)


@pytest.mark.parametrize(
    ("estimator", "cv"),
    [
        (LogisticRegression(solver="liblinear"), 3),
        (LogisticRegression(l1_ratio=0.5, solver="saga"), 3),
        (LogisticRegression(warm_start=True), 3),
        (make_pipeline(StandardScaler(), LogisticRegression(fit_intercept=False)), 3),
        (LogisticRegression(), TimeSeriesSplit(3)),
    ],
    ids=name_of,
)
def test_other_settings_are_left_to_scikit_learn(estimator, cv):
    X, y = two_classes()
    assert engine_for(estimator, folded(estimator, X, y, cv=cv)).name == "estimator"


def test_subsets_of_separated_classes_without_a_penalty_are_left_to_scikit_learn():
    X = np.arange(40.0)[:, None] + np.array([[0.0, 0.5]])
    y = np.repeat([0, 1], 20)
    estimator = LogisticRegression(C=np.inf)
    data = folded(estimator, X, y, cv=4)
    engine = fast(estimator, data)
    masks = np.array([[True, False]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.array_equal(engine.fold_losses(masks), true_losses(estimator, data, masks))
    assert engine.facts["rechecked"] == 4


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    rows=st.integers(20, 60),
    columns=st.integers(6, 30),
    n_classes=st.integers(2, 4),
    scale=st.sampled_from([1.0, 1e-9, 1e6, 1e100]),
)
def test_losses_on_hard_tables(seed, rows, columns, n_classes, scale):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    X[:, 1], X[:, 2], X[:, 3] = X[:, 0], 0.1, X[:, 0] + X[:, 4]
    X[:, 5] *= scale
    y = np.concatenate([np.tile(np.arange(n_classes), 3), rng.integers(0, n_classes, rows - 3 * n_classes)])
    estimator = make_pipeline(StandardScaler(), LogisticRegression())
    data = folded(estimator, X, y, cv=3, scoring="neg_log_loss")
    masks = masks_of_all_sizes(columns, seed)
    losses = fast(estimator, data).fold_losses(masks)
    assert np.allclose(losses, true_losses(solved_tightly(estimator), data, masks), rtol=1e-4, atol=1e-6)


def test_numpy_gives_the_same_weights():
    for X, y in (two_classes(), three_classes()):
        estimator = make_pipeline(StandardScaler(), LogisticRegression())
        engine = fast(estimator, folded(estimator, X, y, cv=3))
        rows, _ = engine._rows()
        mask = np.arange(X.shape[1]) % 2 == 0
        columns, starts = np.flatnonzero(mask), np.array([0, mask.sum()])
        K = len(rows.targets)
        ours, theirs = (Scores.room(1, len(columns), 3, K) for _ in range(2))
        fit_in_numpy(0, 1, columns, starts, rows, ours)
        pytest.importorskip("numba")
        from subswarm.engines.linear.logistic_numba import fit_logistic

        fit_logistic(0, 1, columns, starts, rows, theirs)
        assert np.allclose(ours.weights, theirs.weights, atol=1e-5)
        assert np.allclose(ours.constant, theirs.constant, atol=1e-5)
        assert not ours.rate.any()
        assert not theirs.rate.any()


def test_the_scores_reported_are_scikit_learns():
    from subswarm import SwarmSelector

    X, y = two_classes()
    estimator = LogisticRegression()
    selector = SwarmSelector(estimator, "2d-upso", cv=3, max_evaluations=60, scoring="roc_auc", random_state=0)
    selector.fit(X, y)
    assert selector.result_.engine == "logistic"
    chosen = X[:, selector.support_]
    scores = [
        get_scorer("roc_auc")(clone(estimator).fit(chosen[train], y[train]), chosen[test], y[test])
        for train, test in selector.folds_
    ]
    assert selector.fold_scores_.tolist() == scores
