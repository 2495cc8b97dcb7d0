"""Naive Bayes and nearest neighbours score every metric as scikit-learn does."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import make_scorer
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from engine_oracle import fast, folded, true_losses
from subswarm.engines.base import engine_for
from subswarm.engines.naive_bayes import engine as naive_bayes
from subswarm.engines.naive_bayes import numpy as naive_bayes_numpy
from subswarm.engines.naive_bayes import tables as naive_bayes_tables


def own_f1(truth, predicted):
    return sk.f1_score(truth, predicted, average="macro") / 2


def own_loss(truth, shares):
    return float(np.abs(shares).max() + len(truth))


LABELS = [
    "accuracy",
    "balanced_accuracy",
    "matthews_corrcoef",
    *(f"{name}_{average}" for name in ("f1", "precision", "recall", "jaccard") for average in ("macro", "micro")),
    "f1_weighted",
    make_scorer(sk.cohen_kappa_score),
    make_scorer(sk.fbeta_score, beta=2.0, average="weighted", zero_division=1),
    make_scorer(own_f1),
]
SHARES = [
    "roc_auc_ovr",
    "roc_auc_ovo",
    "roc_auc_ovr_weighted",
    "roc_auc_ovo_weighted",
    "neg_log_loss",
    "average_precision",
    make_scorer(sk.top_k_accuracy_score, k=2, response_method="predict_proba"),
    make_scorer(own_loss, response_method="predict_proba"),
]
BINARY = ["roc_auc", "f1", "precision", "recall", "jaccard", "neg_brier_score", make_scorer(sk.f1_score, pos_label=0)]
VALUES = [
    "r2",
    "explained_variance",
    "neg_mean_squared_error",
    "neg_root_mean_squared_error",
    "neg_mean_absolute_error",
    "neg_mean_absolute_percentage_error",
    "neg_median_absolute_error",
    "neg_max_error",
    "neg_mean_squared_log_error",
]
CLASSIFIERS = [
    GaussianNB(),
    make_pipeline(StandardScaler(), GaussianNB()),
    KNeighborsClassifier(3),
    make_pipeline(StandardScaler(), KNeighborsClassifier(4, weights="distance")),
    KNeighborsClassifier(metric="manhattan"),
]
REGRESSORS = [
    KNeighborsRegressor(),
    make_pipeline(StandardScaler(), KNeighborsRegressor(4, weights="distance")),
    KNeighborsRegressor(3, metric="manhattan"),
]


def check(model, X, y, scoring, splits, masks):
    """Compare the losses; where scikit-learn fails, ours must be its own, which are NaN."""
    data = folded(model, X, y, cv=splits, scoring=scoring)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = true_losses(model, data, masks)
    assert np.allclose(fast(model, data).fold_losses(masks), expected, rtol=1e-11, atol=1e-11, equal_nan=True)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=["nb", "scaled nb", "knn", "scaled distance", "manhattan"])
def test_every_metric_of_classes_is_scikit_learns(model):
    rng = np.random.default_rng(0)
    for (X, y), scorings in (
        (load_wine(return_X_y=True), LABELS + SHARES),
        (load_breast_cancer(return_X_y=True), BINARY + SHARES[:2] + SHARES[4:6]),
    ):
        X = (X + rng.normal(size=X.shape) * X.std(axis=0) * 1e-3)[::2]  # distances do not tie
        masks = rng.random((2, X.shape[1])) < 0.5
        masks[1] = np.arange(X.shape[1]) == 3
        for scoring in scorings:
            check(model, X, y[::2], scoring, 3, masks)


@pytest.mark.parametrize("model", REGRESSORS, ids=["uniform", "scaled distance", "manhattan"])
def test_every_metric_of_numbers_is_scikit_learns(model):
    X, y = load_diabetes(return_X_y=True)
    rng = np.random.default_rng(0)
    X = (X + rng.normal(size=X.shape) * 1e-4)[::2]
    masks = rng.random((3, X.shape[1])) < 0.5
    for scoring in [*VALUES, make_scorer(sk.mean_pinball_loss, greater_is_better=False)]:
        check(model, X, y[::2], scoring, 3, masks)


@pytest.mark.parametrize("model", [GaussianNB(), KNeighborsClassifier(3), LinearDiscriminantAnalysis()])
@pytest.mark.parametrize("average", ["macro", "micro", "weighted"])
def test_a_positive_class_that_a_fold_does_not_know_is_scikit_learns_error(model, average):
    """``make_scorer`` passes on ``pos_label=1``, whatever the average."""
    X, y = load_breast_cancer(return_X_y=True)
    X, masks = X[:120, :3], np.array([[True, True, False]])
    check(model, X, np.array(["a", "b"])[y[:120]], make_scorer(sk.f1_score, average=average), 3, masks)
    codes = np.where(np.arange(120) < 60, 2 * y[:120], np.arange(120) % 3)
    splits = [(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))]
    check(model, X, codes, make_scorer(sk.jaccard_score, average=average), splits, masks)
    check(model, X, codes, f"jaccard_{average}", splits, masks)


@st.composite
def odd_tables(draw):
    """Few rows with duplicates, constant columns and far outliers; classes that some folds lack."""
    rows, columns, n_classes = draw(st.integers(12, 30)), draw(st.integers(1, 4)), draw(st.integers(2, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.integers(0, draw(st.integers(1, 5)) + 1, size=(rows, columns)).astype(float)
    if draw(st.booleans()):
        X += rng.normal(size=X.shape) * rng.integers(0, 2, size=columns)
    if draw(st.booleans()):
        X[rng.integers(0, rows, size=2)] *= 1e3  # probabilities of 0 and 1
    y = np.arange(rows) % n_classes if draw(st.booleans()) else rng.integers(0, n_classes, size=rows)
    y[:2] = [0, 1]
    n_splits = draw(st.integers(2, 3))
    order = rng.permutation(rows)
    splits = [(np.sort(np.setdiff1d(order, order[f::n_splits])), np.sort(order[f::n_splits])) for f in range(n_splits)]
    return X, y, splits, rng


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(odd_tables(), st.sampled_from(LABELS + SHARES + BINARY), st.booleans())
def test_naive_bayes_on_odd_tables_scores_as_scikit_learn_does(table, scoring, is_scaled):
    X, y, splits, rng = table
    masks = rng.random((3, X.shape[1])) < 0.6
    masks[~masks.any(axis=1), 0] = True
    check(CLASSIFIERS[int(is_scaled)], X, y, scoring, splits, masks)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(odd_tables(), st.sampled_from(LABELS + SHARES + BINARY), st.sampled_from(CLASSIFIERS[2:]))
def test_neighbours_on_tables_without_tied_distances_score_as_scikit_learn_does(table, scoring, model):
    X, y, splits, rng = table
    X = X + rng.normal(size=X.shape)
    masks = rng.random((3, X.shape[1])) < 0.6
    masks[~masks.any(axis=1), 0] = True
    check(model, X, y, scoring, splits, masks)


def test_probabilities_that_are_zero_or_one_tie_as_in_scikit_learn():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=200)
    X = rng.normal(size=(200, 12)) + 6.0 * y[:, None] * (rng.random((200, 1)) < 0.8)
    data = folded(GaussianNB(), X, y, cv=4, scoring="roc_auc")
    masks = rng.random((6, 12)) < 0.7
    expected = true_losses(GaussianNB(), data, masks)
    shares = fast(GaussianNB(), data)._probabilities(masks)[0]
    assert (shares == 1.0).mean() > 0.1
    assert np.abs(fast(GaussianNB(), data).fold_losses(masks) - expected).max() <= 1e-12  # a tie is a share of a pair


@pytest.mark.parametrize("columns", [1, 5, 9, 131, 300])
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "numpy"])
def test_probabilities_of_naive_bayes_equal_scikit_learns_to_the_last_bit(columns, compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr(naive_bayes_tables, "gaussian_kernels", lambda: naive_bayes_numpy)
        monkeypatch.setattr(naive_bayes, "gaussian_kernels", lambda: naive_bayes_numpy)
    rng = np.random.default_rng(columns)
    X = rng.normal(size=(90, columns))
    X[:, columns // 2] = np.round(X[:, columns // 2], 1)
    X *= 10.0 ** rng.uniform(-3, 3, columns)
    y = rng.integers(0, 3, size=90)
    data = folded(GaussianNB(), X, y, cv=3, scoring="neg_log_loss")
    masks = rng.random((4, columns)) < [[0.3], [0.5], [0.9], [1.0]]
    masks[~masks.any(axis=1), 0] = True
    engine = fast(GaussianNB(), data)
    shares, failed = engine._probabilities(masks)
    assert not failed.any()
    for own, mask in zip(shares, masks, strict=True):
        found = [
            GaussianNB().fit(X[:, mask][fold.train], y[fold.train]).predict_proba(X[:, mask][fold.test])
            for fold in data.folds
        ]
        assert np.array_equal(own, np.concatenate(found))


def test_threads_blocks_and_batches_change_no_score():
    X, y = load_breast_cancer(return_X_y=True)
    masks = np.random.default_rng(0).random((25, 30)) < 0.4
    for model in (GaussianNB(), KNeighborsClassifier(weights="distance")):
        data = folded(model, X, y, cv=5, scoring="roc_auc")
        alone = fast(model, data, n_jobs=1).fold_losses(masks)
        assert np.array_equal(alone, fast(model, data, n_jobs=2).fold_losses(masks))
        engine = fast(model, data, n_jobs=3, max_bytes=1)
        assert np.array_equal(alone[:3], np.concatenate([engine.fold_losses(mask[None]) for mask in masks[:3]]))


def test_a_plain_function_as_scorer_is_left_to_scikit_learn():
    def accuracy(model, X, y):
        return float((model.predict(X) == y).mean())

    X, y = load_wine(return_X_y=True)
    for model in (GaussianNB(), KNeighborsClassifier()):
        assert engine_for(model, folded(model, X, y, scoring=accuracy)).name == "estimator"
        assert engine_for(model, folded(model, X, y, scoring=make_scorer(own_f1))).name != "estimator"


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_own_normalisation_of_naive_bayes_has_the_bits_of_scikit_learns(n_classes, monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, size=120)
    X = rng.normal(size=(120, 8)) * 10.0 ** rng.uniform(-2, 2, 8) + 3.0 * y[:, None] * (rng.random((120, 1)) < 0.8)
    data = folded(GaussianNB(), X, y, cv=3, scoring="neg_log_loss")
    masks = rng.random((5, 8)) < 0.6
    masks[:, 0] = True
    own = fast(GaussianNB(), data)._probabilities(masks)[0].copy()
    monkeypatch.setattr(naive_bayes, "_normalises_alike", lambda: False)
    assert np.array_equal(own, fast(GaussianNB(), data)._probabilities(masks)[0])
