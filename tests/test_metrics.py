"""Batch metrics are scikit-learn's, for any predictions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.metrics import make_scorer
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor

from subswarm.engines.data import Fold, FoldedData
from subswarm.engines.metrics import FixedPredictions, FixedValues, batch_metric
from subswarm.engines.metrics import base as metric_base
from subswarm.engines.metrics import numpy as metric_numpy
from subswarm.objective.scoring import resolve_scoring

AVERAGED = [
    make_scorer(function, average=average, zero_division=zero_division)
    for function in (sk.precision_score, sk.recall_score, sk.f1_score, sk.jaccard_score)
    for average, zero_division in (("macro", 0), ("micro", 1), ("weighted", 1))
]
LABELS = [
    None,
    "accuracy",
    "balanced_accuracy",
    "matthews_corrcoef",
    "f1_macro",
    "precision_weighted",
    "recall_micro",
    "jaccard_macro",
    make_scorer(sk.balanced_accuracy_score, adjusted=True),
    make_scorer(sk.cohen_kappa_score),
    make_scorer(sk.accuracy_score, greater_is_better=False),
    make_scorer(sk.fbeta_score, beta=2.5, average="macro"),
    make_scorer(sk.fbeta_score, beta=0.5, average="weighted", labels=[2, 0]),
    make_scorer(sk.f1_score, average="macro", labels=[1]),
    make_scorer(sk.recall_score, average="macro", zero_division=np.nan),
    make_scorer(sk.precision_score, average="weighted", zero_division=np.nan),
    *AVERAGED,
]
BINARY_LABELS = [
    "f1",
    "precision",
    "recall",
    "jaccard",
    make_scorer(sk.f1_score, pos_label=0, zero_division=1),
    make_scorer(sk.fbeta_score, beta=3),
    make_scorer(sk.recall_score, zero_division=np.nan),
]
MULTICLASS = [
    "roc_auc_ovr",
    "roc_auc_ovo",
    "roc_auc_ovr_weighted",
    "roc_auc_ovo_weighted",
    "neg_log_loss",
    "average_precision",
    make_scorer(sk.average_precision_score, average="weighted", response_method="predict_proba"),
    make_scorer(sk.top_k_accuracy_score, k=1, response_method="predict_proba"),
    make_scorer(sk.top_k_accuracy_score, k=2, response_method="predict_proba"),
]
BINARY = [
    *MULTICLASS,
    "roc_auc",
    "neg_brier_score",
    make_scorer(sk.average_precision_score, pos_label=0, response_method="predict_proba"),
    make_scorer(sk.brier_score_loss, pos_label=0, greater_is_better=False, response_method="predict_proba"),
]
VALUES = [
    None,
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
]


@pytest.fixture(params=["compiled", "numpy"])
def kernels(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(metric_base, "kernels_of", lambda prefix: metric_numpy)
    else:
        pytest.importorskip("numba")
    return request.param


@st.composite
def predicted_tables(draw):
    """A target with classes that some folds lack, and predictions with many ties, for a few subsets."""
    n_classes, rows, n_folds = draw(st.integers(2, 4)), draw(st.integers(12, 60)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    y = rng.integers(0, n_classes, size=rows) if draw(st.booleans()) else rng.permutation(np.arange(rows) % n_classes)
    folds = [np.sort(part) for part in np.array_split(rng.permutation(rows), n_folds)]
    data = tuple(Fold(np.setdiff1d(np.arange(rows), test), test) for test in folds)
    levels = draw(st.sampled_from([1, 2, 5, 1000]))
    return rng, y, data, levels


def data_of(y, folds, scoring, estimator):
    return FoldedData(np.zeros((len(y), 1)), y, folds, resolve_scoring(estimator, scoring))


def true_score(scorer, model, truth):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            score = float(scorer(model, np.zeros((len(truth), 1)), truth))
        except (ValueError, IndexError):  # scikit-learn 1.6 indexes columns that are missing
            return np.nan
    return score if np.isfinite(score) else np.nan


def check(metric, data, predictions, models):
    """Compare the scores of single folds, and of all folds at once, with the scorer's own."""
    expected = np.array(
        [
            [
                true_score(data.scoring.scorer, model, data.y[fold.test])
                for fold, model in zip(data.folds, row, strict=True)
            ]
            for row in models
        ]
    )
    for f, (own, truth) in enumerate(zip(predictions, expected.T, strict=True)):
        assert_equal(metric.score(f, own), truth)
    if len({own.shape[2:] for own in predictions}) == 1:
        assert_equal(metric.score_all(np.concatenate(predictions, axis=1), threads=2), expected)
    return expected


def assert_equal(ours, expected):
    """A score that is NaN here is left to scikit-learn, so it may differ; one that is NaN there must be NaN here."""
    known = ~np.isnan(ours)
    assert not (known & np.isnan(expected)).any()
    assert np.allclose(ours[known], expected[known], rtol=1e-12, atol=1e-12)


ODD = {"max_examples": 10, "deadline": None, "derandomize": True}
SKIPPED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


@settings(**ODD, suppress_health_check=SKIPPED)
@given(predicted_tables())
def test_metrics_of_labels_are_scikit_learns(kernels, table):
    rng, y, folds, _ = table
    n_classes = len(np.unique(y))
    for scoring in LABELS + BINARY_LABELS * (n_classes == 2):
        if getattr(scoring, "_kwargs", {}).get("labels") and n_classes < 3:
            continue
        data = data_of(y, folds, scoring, GaussianNB())
        metric = batch_metric(data.scoring, GaussianNB(), data)
        assert metric.needs == "labels"
        predictions, models = [], [[] for _ in range(3)]
        for fold in folds:
            known = np.unique(y[fold.train])
            codes = rng.integers(0, len(known), size=(3, len(fold.test))).astype(np.int16)
            codes[0] = 0
            predictions.append(codes)
            for row, own in zip(models, codes, strict=True):
                row.append(FixedPredictions(known, known[own]))
        expected = check(metric, data, predictions, models)
        everything = np.concatenate([metric.score(f, own) for f, own in enumerate(predictions)])
        if n_classes == 2 or not isinstance(scoring, str) or "nan" not in repr(scoring):
            assert np.isnan(everything).sum() <= np.isnan(expected).sum()


@settings(**ODD, suppress_health_check=SKIPPED)
@given(predicted_tables())
def test_metrics_of_probabilities_are_scikit_learns(kernels, table):
    rng, y, folds, levels = table
    n_classes = len(np.unique(y))
    for scoring in BINARY if n_classes == 2 else MULTICLASS:
        data = data_of(y, folds, scoring, GaussianNB())
        metric = batch_metric(data.scoring, GaussianNB(), data)
        assert metric is not None
        predictions, models, is_regular = [], [[] for _ in range(3)], []
        for fold in folds:
            known = np.unique(y[fold.train])
            shares = rng.integers(0, levels + 1, size=(3, len(fold.test), len(known))) + 1e-3
            shares /= shares.sum(axis=2, keepdims=True)
            shares[0, : len(fold.test) // 2] = np.eye(len(known))[0]  # certain, and often wrong
            predictions.append(shares[:, :, -1] if metric.needs == "scores" else shares)
            is_regular.append(len(known) == n_classes == len(np.unique(y[fold.test])))
            for row, own in zip(models, shares, strict=True):
                row.append(FixedPredictions(known, known[own.argmax(axis=1)], own))
        if metric.needs == "probabilities" and len({own.shape[2] for own in predictions}) > 1:
            width = max(own.shape[2] for own in predictions)
            predictions = [np.pad(own, ((0, 0), (0, 0), (0, width - own.shape[2]))) for own in predictions]
        check(metric, data, predictions, models)
        scores = np.array([metric.score(f, own) for f, own in enumerate(predictions)])
        assert not np.isnan(scores[is_regular]).any()


@settings(**ODD, suppress_health_check=SKIPPED)
@given(predicted_tables(), st.sampled_from([0.0, 1.0, 1e6]), st.booleans())
def test_metrics_of_values_are_scikit_learns(kernels, table, shift, constant):
    rng, y, folds, levels = table
    target = np.full(len(y), 0.1) if constant else y + rng.integers(0, levels, size=len(y)) / levels + shift
    for scoring in VALUES:
        data = data_of(target, folds, scoring, KNeighborsRegressor())
        metric = batch_metric(data.scoring, KNeighborsRegressor(), data)
        assert metric.needs == "values"
        predictions, models = [], [[] for _ in range(3)]
        for fold in folds:
            values = target[fold.test] + np.array([0.0, 0.5, -2.0])[:, None] * rng.normal(size=(3, len(fold.test)))
            predictions.append(values)
            for row, own in zip(models, values, strict=True):
                row.append(FixedValues(own))
        expected = check(metric, data, predictions, models)
        ours = np.array([metric.score(f, own) for f, own in enumerate(predictions)]).T
        assert np.array_equal(np.isnan(ours), np.isnan(expected))


def test_decision_values_are_ranked_whatever_their_scale(kernels):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=60)
    data = data_of(y, (Fold(np.arange(30), np.arange(30, 60)),), "roc_auc", GaussianNB())
    scores = rng.normal(size=(4, 30)) * 1e200
    ours = batch_metric(data.scoring, GaussianNB(), data).score(0, scores)
    assert np.allclose(ours, [sk.roc_auc_score(y[30:], row) for row in scores], rtol=1e-13)


def test_labels_of_text_and_classes_named_by_the_scorer(kernels):
    rng = np.random.default_rng(0)
    y = np.array(["no", "yes"])[rng.integers(0, 2, size=40)]
    scoring = make_scorer(sk.f1_score, pos_label="no")
    data = data_of(y, (Fold(np.arange(20), np.arange(20, 40)),), scoring, GaussianNB())
    codes = rng.integers(0, 2, size=(5, 20)).astype(np.int16)
    ours = batch_metric(data.scoring, GaussianNB(), data).score(0, codes)
    assert np.allclose(ours, [sk.f1_score(y[20:], np.array(["no", "yes"])[row], pos_label="no") for row in codes])


def own_metric(truth, predicted):
    return 0.5


@pytest.mark.parametrize(
    "scoring",
    [
        make_scorer(own_metric),
        lambda model, X, y: 0.5,
        make_scorer(sk.f1_score, pos_label="yes"),
        make_scorer(sk.f1_score, average="samples"),
        make_scorer(sk.roc_auc_score, max_fpr=0.5, response_method="predict_proba"),
        make_scorer(sk.roc_auc_score),
        make_scorer(sk.accuracy_score, normalize=False),
        "adjusted_rand_score",
        "r2",
    ],
)
def test_a_scorer_or_setting_that_is_not_known_is_not_recognised(scoring):
    y = np.arange(20) % 2
    data = data_of(y, (Fold(np.arange(10), np.arange(10, 20)),), scoring, GaussianNB())
    assert batch_metric(data.scoring, GaussianNB(), data) is None


def test_an_estimator_with_its_own_score_is_not_recognised():
    class Own(KNeighborsRegressor):
        def score(self, X, y, sample_weight=None):
            return 0.0

    y = np.arange(20.0)
    folds = (Fold(np.arange(10), np.arange(10, 20)),)
    for model, known in ((KNeighborsRegressor(), True), (Own(), False)):
        data = data_of(y, folds, None, model)
        assert (batch_metric(data.scoring, model, data) is not None) == known


@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision"])
@pytest.mark.parametrize(("n_rows", "share"), [(40, 0.5), (400, 0.1), (1500, 0.5), (1500, 0.2)])
@pytest.mark.parametrize("digits", [1, 12])
def test_orders_of_few_and_of_many_rows_are_scored_as_by_scikit_learn(scoring, n_rows, share, digits):
    rng = np.random.default_rng(n_rows)
    y = (rng.random(n_rows) < share).astype(int)
    y[:4] = 0, 1, 0, 1
    shares = np.round(rng.random((3, n_rows)) / 2 + y / 4, digits)
    everything = np.arange(n_rows)
    data = FoldedData(np.zeros((n_rows, 1)), y, (Fold(everything, everything),), resolve_scoring(GaussianNB(), scoring))
    metric = batch_metric(data.scoring, GaussianNB(), data)
    function = sk.roc_auc_score if scoring == "roc_auc" else sk.average_precision_score
    expected = [[function(y, own)] for own in shares]
    found = metric.score_all(np.stack([1 - shares, shares], axis=2) if metric.needs == "probabilities" else shares)
    assert np.abs(found - expected).max() <= 1e-12
