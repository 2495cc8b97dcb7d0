"""`NormalCDFBayes` is a scikit-learn classifier, and its engine gives the same losses."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from engine_oracle import UCI, fast, folded, masks_of_all_sizes, true_losses
from subswarm.engines.normal_cdf.model import NormalCDFBayes


@parametrize_with_checks([NormalCDFBayes()])
def test_it_is_a_scikit_learn_classifier(estimator, check):
    check(estimator)


def test_scores_are_priors_times_cumulative_probabilities():
    X, y = np.array([[0.0], [2.0], [4.0], [10.0]]), np.array([0, 0, 1, 1])
    model = NormalCDFBayes().fit(X, y)
    assert np.exp(model.predict_joint_log_proba([[1.0], [7.0]])).round(6).tolist() == [
        [0.25, 0.011375],
        [0.5, 0.25],
    ]


def test_a_column_without_spread_is_a_step_and_equal_scores_go_to_the_lowest_class():
    X, y = np.array([[0.1], [0.1], [0.3], [0.3]]), np.array([0, 0, 1, 1])
    model = NormalCDFBayes().fit(X, y)
    assert model.predict([[0.1], [0.3], [0.0]]).tolist() == [0, 0, 0]
    assert model.predict_proba([[0.1], [0.3], [0.0]]).tolist() == [[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize("name", UCI)
def test_the_fast_path_answers_as_the_classifier_does(uci, name):
    table = uci(name, "published")
    data = folded(NormalCDFBayes(), table.X, table.y)
    masks = masks_of_all_sizes(data.n_features)
    assert np.array_equal(fast(NormalCDFBayes(), data).fold_losses(masks), true_losses(NormalCDFBayes(), data, masks))


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler()])
@pytest.mark.parametrize("scoring", ["accuracy", "f1_macro"])
@pytest.mark.parametrize("max_bytes", [1, 1 << 30])
def test_scalers_scorers_and_memory_change_nothing(scaler, scoring, max_bytes):
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(scaler, NormalCDFBayes())
    data = folded(model, X, y, cv=4, scoring=scoring)
    masks = masks_of_all_sizes(13)
    engine = fast(model, data, max_bytes=max_bytes, n_jobs=2)
    assert np.array_equal(engine.fold_losses(masks), true_losses(model, data, masks))
