"""Every linear model scores every metric and option as scikit-learn does, with and without weights."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import sklearn.metrics as sk
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import make_scorer
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from engine_oracle import fast, folded, true_losses
from subswarm.engines.base import engine_for


def own_f1(truth, predicted):
    return sk.f1_score(truth, predicted, average="macro") / 2


def own_loss(truth, shares):
    return float(np.abs(shares).max() + len(truth))


def averaged(name):
    return [f"{name}_{average}" for average in ("macro", "micro", "weighted")]


LABELS = [
    "accuracy",
    "balanced_accuracy",
    "matthews_corrcoef",
    *averaged("precision"),
    *averaged("recall"),
    *averaged("f1"),
    *averaged("jaccard"),
    make_scorer(sk.balanced_accuracy_score, adjusted=True),
    make_scorer(sk.cohen_kappa_score),
    make_scorer(sk.fbeta_score, beta=0.5, average="macro", zero_division=1),
    make_scorer(sk.precision_score, average="weighted", zero_division=0),
    make_scorer(sk.recall_score, average="micro", labels=[0, 1]),
    make_scorer(own_f1),
]
ORDER = ["roc_auc", "average_precision", make_scorer(sk.average_precision_score, response_method="decision_function")]
BINARY = [
    "f1",
    "precision",
    "recall",
    "jaccard",
    make_scorer(sk.f1_score, pos_label=0, zero_division=1),
    make_scorer(sk.recall_score, pos_label=0),
]
SHARES = [
    "roc_auc_ovr",
    "roc_auc_ovo",
    "roc_auc_ovr_weighted",
    "roc_auc_ovo_weighted",
    "neg_log_loss",
    make_scorer(sk.average_precision_score, response_method="predict_proba"),
    make_scorer(sk.top_k_accuracy_score, k=2, response_method="predict_proba"),
    make_scorer(sk.top_k_accuracy_score, k=1, response_method="predict_proba"),
]
TWO_SHARES = [
    "neg_brier_score",
    "neg_log_loss",
    make_scorer(sk.roc_auc_score, response_method="predict_proba"),
    make_scorer(sk.log_loss, greater_is_better=False, response_method="predict_proba", labels=[0, 1]),
]
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
    "neg_root_mean_squared_log_error",
    make_scorer(sk.mean_pinball_loss, alpha=0.3, greater_is_better=False),
]
CLASSIFIERS = {
    "ridge": RidgeClassifier(),
    "ridge without intercept": RidgeClassifier(alpha=3.0, fit_intercept=False, class_weight="balanced"),
    "lda": LinearDiscriminantAnalysis(),
    "lda lsqr": make_pipeline(StandardScaler(), LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.2)),
    "lda eigen": LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.1),
    "qda": make_pipeline(StandardScaler(), QuadraticDiscriminantAnalysis(reg_param=0.1)),
    "centroids": make_pipeline(StandardScaler(), NearestCentroid()),
}
TIGHT = {"solver": "newton-cholesky", "tol": 1e-11, "max_iter": 1000}
"""With these settings scikit-learn computes the optimum, as the engine does."""
LOGISTIC = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(**TIGHT)),
    "logistic without intercept": LogisticRegression(fit_intercept=False, class_weight="balanced", **TIGHT),
}


def tables():
    X, y = load_wine(return_X_y=True)
    yield (X + np.random.default_rng(0).normal(size=X.shape) * X.std(axis=0))[::2], y[::2]
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X[:, :9])
    yield (X + np.random.default_rng(0).normal(size=X.shape))[::4], y[::4]


def compare(model, X, y, scoring, tolerance, weights=None):
    data = folded(model, X, y, cv=3, scoring=scoring)
    if weights is not None:
        data = replace(data, params=weights)
    masks = np.random.default_rng(1).random((2, X.shape[1])) < 0.5
    masks[1] = np.arange(X.shape[1]) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        losses, expected = fast(model, data).fold_losses(masks), true_losses(model, data, masks)
    assert np.allclose(losses, expected, rtol=tolerance, atol=tolerance, equal_nan=True), (scoring, losses, expected)


@pytest.mark.parametrize("name", [*CLASSIFIERS, *LOGISTIC])
def test_every_metric_of_classes(name):
    model = CLASSIFIERS.get(name) or LOGISTIC[name]
    tolerance = 1e-6 if name in LOGISTIC else 1e-10
    (X, y), (X2, y2) = tables()
    if name == "logistic without intercept":
        X = StandardScaler().fit_transform(X)
    for scoring in LABELS:
        compare(model, X, y, scoring, tolerance)
    for scoring in BINARY + ORDER:
        compare(model, X2, y2, scoring, tolerance)
    if hasattr(model, "predict_proba"):
        for scoring in SHARES:
            compare(model, X, y, scoring, tolerance)
        for scoring in TWO_SHARES:
            compare(model, X2, y2, scoring, tolerance)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", [LinearRegression, Ridge])
def test_every_metric_of_numbers(kind, intercept):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[::2], y[::2]
    model = kind(fit_intercept=intercept)
    for scoring in VALUES:
        positive = "log_error" in str(scoring)  # which takes no predictions below zero
        compare(model, X + 5.0 if positive else X, y + 100 if positive else y, scoring, 1e-8)
    weights = np.random.default_rng(0).exponential(size=len(X))
    compare(
        make_pipeline(StandardScaler(), model), X, y, "r2", 1e-8, {f"{kind.__name__.lower()}__sample_weight": weights}
    )


@pytest.mark.parametrize(
    "model",
    [
        RidgeClassifier(),
        RidgeClassifier(class_weight="balanced", fit_intercept=False),
        RidgeClassifier(class_weight={0: 1.0, 1: 3.0, 2: 0.5}),
        LogisticRegression(**TIGHT),
        LogisticRegression(C=0.1, fit_intercept=False, **TIGHT),
        LogisticRegression(C=np.inf, **TIGHT),
    ],
    ids=str,
)
def test_weights_of_rows_and_classes(model):
    for X, y in tables():
        X = StandardScaler().fit_transform(X)
        if isinstance(getattr(model, "class_weight", None), dict) and y.max() < 2:
            continue
        weights = np.random.default_rng(0).exponential(size=len(X)) + 0.1
        for scoring in ("accuracy", "f1_macro") if isinstance(model, RidgeClassifier) else ("accuracy", "neg_log_loss"):
            compare(model, X[:, :5], y, scoring, 1e-5, {"sample_weight": weights})


def test_functions_of_labels_and_values_are_called_on_the_engines_predictions():
    X, y = load_wine(return_X_y=True)
    for model in (*CLASSIFIERS.values(), *LOGISTIC.values()):
        assert engine_for(model, folded(model, X, y, cv=3, scoring=make_scorer(own_f1))).name != "estimator"
    scorer = make_scorer(own_loss, response_method="predict_proba")
    model = LinearDiscriminantAnalysis()
    assert engine_for(model, folded(model, X, y, cv=3, scoring=scorer)).name == "estimator"
    assert (
        engine_for(Ridge(), folded(Ridge(), X, y * 1.0, cv=3, scoring=make_scorer(sk.mean_pinball_loss))).name
        == "linear"
    )
