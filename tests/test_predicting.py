"""A fitted selector predicts with the model of the selected columns, and own parts are named by import path."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context, set_config
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_diabetes, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from subswarm import SwarmSelector
from subswarm._models import make_model
from subswarm.algorithms import get_algorithm
from subswarm.errors import DataError, SettingError, SubswarmWarning
from subswarm.study import read_study, run_study
from subswarm.study.analysis.results import read_results

X, y = load_wine(return_X_y=True, as_frame=True)


def selector(model, **settings):
    return SwarmSelector(model, **{"cv": 3, "repeats": 1, "max_evaluations": 40, "random_state": 0, **settings})


def test_the_model_is_fitted_on_the_selected_columns():
    fitted = selector(GaussianNB()).fit(X, y)
    again = GaussianNB().fit(X.to_numpy()[:, fitted.support_], y)
    chosen = X.to_numpy()[:, fitted.support_]
    assert fitted.predict(X).tolist() == again.predict(chosen).tolist()
    assert np.array_equal(fitted.predict_proba(X), again.predict_proba(chosen))
    assert fitted.score(X, y) == again.score(chosen, y)
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert not hasattr(fitted, "decision_function")
    with pytest.raises(NotFittedError):
        selector(GaussianNB()).predict(X)
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(X.rename(columns={"ash": "oak"}))


def test_methods_that_the_model_lacks_are_hidden():
    svm = selector(make_pipeline(StandardScaler(), SVC()), max_evaluations=10)
    assert hasattr(svm, "decision_function")
    assert not hasattr(svm, "predict_proba")
    assert not hasattr(svm, "classes_")
    svm.fit(X, y)
    assert svm.decision_function(X).shape == (178, 3)
    ridge = selector(Ridge(), max_evaluations=10).fit(*load_diabetes(return_X_y=True))
    assert is_regressor(ridge)
    assert not is_classifier(ridge)
    assert is_classifier(svm)
    assert not hasattr(ridge, "classes_")


def test_the_score_is_that_of_the_scoring():
    fitted = selector(GaussianNB(), scoring="balanced_accuracy").fit(X, y)
    assert fitted.score(X, y) == balanced_accuracy_score(y, fitted.predict(X))
    with pytest.warns(SubswarmWarning, match="one|each class against the rest"):
        fitted = selector(GaussianNB(), scoring="roc_auc").fit(X, y)
    assert fitted.score(X, y) == pytest.approx(roc_auc_score(y, fitted.predict_proba(X), multi_class="ovr"))


def test_weights_reach_the_final_model_with_and_without_routing():
    weights = np.random.default_rng(0).uniform(0.1, 2, len(y))
    fitted = selector(GaussianNB()).fit(X, y, sample_weight=weights)
    again = GaussianNB().fit(X.to_numpy()[:, fitted.support_], y, sample_weight=weights)
    assert np.array_equal(fitted.estimator_.theta_, again.theta_)
    with config_context(enable_metadata_routing=True):
        model = GaussianNB().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        routed = selector(model).fit(X, y, sample_weight=weights)
    again = GaussianNB().fit(X.to_numpy()[:, routed.support_], y, sample_weight=weights)
    assert np.array_equal(routed.estimator_.theta_, again.theta_)


def test_a_selector_is_scored_as_a_model_of_its_own():
    scores = cross_val_score(selector(GaussianNB()), X, y, cv=2)
    assert scores.min() > 0.8
    set_config(transform_output="pandas")
    try:
        fitted = selector(GaussianNB()).fit(X, y)
        assert list(fitted.transform(X).columns) == list(fitted.get_feature_names_out())
        assert fitted.predict(X).shape == (178,)
    finally:
        set_config(transform_output="default")
    assert clone(fitted).get_params()["verbose"] == 0


@pytest.mark.parametrize("repeats", [1, 2])
def test_cv_results_hold_the_front(repeats):
    fitted = selector(GaussianNB(), repeats=repeats, max_evaluations=300).fit(X, y)
    found, front = fitted.cv_results_, fitted.result_.front
    assert found["n_features"].tolist() == front.cardinality.tolist() == found["support"].sum(axis=1).tolist()
    for row, mask in enumerate(found["support"]):
        chosen = X.to_numpy()[:, mask]
        scores = cross_val_score(GaussianNB(), chosen, y, cv=fitted.folds_)
        ours = np.array([found[f"split{fold}_test_score"][row] for fold in range(3 * repeats)])
        known = ~np.isnan(ours)
        assert known.all() or repeats > 1
        assert ours[known] == pytest.approx(scores[known], abs=1e-12)
        if known.all():
            assert found["mean_test_score"][row] == pytest.approx(scores.mean(), abs=1e-12)
            assert found["std_test_score"][row] == pytest.approx(scores.std(), abs=1e-12)


@pytest.mark.parametrize(
    ("model", "params", "words"),
    [
        (
            make_pipeline(StandardScaler(), LogisticRegression()),
            {"sample_weight": y},
            "logisticregression__sample_weight",
        ),
        (make_model("knn"), {"sample_weight": y}, "Pipeline cannot use sample_weight"),
        (make_model("knn-raw"), {"sample_weight": y}, "KNeighborsClassifier cannot use sample_weight"),
    ],
)
def test_weights_that_the_model_cannot_use_are_refused(model, params, words):
    with pytest.raises(SettingError, match=words):
        selector(model).fit(X, y, **params)


OWN = """
from dataclasses import dataclass
from sklearn.naive_bayes import GaussianNB
from subswarm.algorithms import RandomSearch

@dataclass(frozen=True, kw_only=True)
class Mine(RandomSearch):
    spice: float = 1.0

def narrow():
    return GaussianNB(var_smoothing=1e-3)

number = 5
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "own_parts_of_a_test.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    return "own_parts_of_a_test"


def test_own_algorithms_and_models_are_named_by_import_path(own):
    mine = get_algorithm(f"{own}:Mine", spice=2.0)
    assert (type(mine).__name__, mine.spice) == ("Mine", 2.0)
    assert make_model(f"{own}:narrow").var_smoothing == 1e-3
    assert type(make_model("sklearn.naive_bayes:GaussianNB", "regression")) is GaussianNB
    fitted = selector(GaussianNB(), algorithm=f"{own}:Mine").fit(X, y)
    assert fitted.result_.algorithm == "Mine"


@pytest.mark.parametrize(
    ("make", "name", "words"),
    [
        (get_algorithm, "nowhere:Mine", "cannot be imported: No module named 'nowhere'.*import path"),
        (get_algorithm, "{own}:Absent", "cannot be imported: module .* has no attribute 'Absent'"),
        (get_algorithm, "{own}:narrow", "expected a dataclass derived from Algorithm"),
        (get_algorithm, ":", "cannot be imported"),
        (make_model, "{own}:number", "expected an estimator, its class or a function"),
        (make_model, "{own}:Mine", "expected an estimator with a fit method"),
        (make_model, "sklearn.model_selection:GridSearchCV", "cannot be called without arguments"),
    ],
)
def test_an_import_path_that_cannot_be_used_is_a_clear_error(own, make, name, words):
    with pytest.raises(SettingError, match=words):
        make(name.format(own=own))


def test_a_study_runs_own_parts(own, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(
        f'datasets = ["wine"]\nmodels = ["{own}:narrow"]\nruns = 1\nevaluations = 5\nfolds = 2\n'
        f'algorithms = [{{ label = "mine", algorithm = "{own}:Mine", spice = 3.0 }}, "random"]\n'
    )
    run_study(read_study(file), tmp_path / "own.db")
    results = read_results(tmp_path / "own.db")
    assert {"mine", "random"} <= {row.planned.algorithm for row in results.rows}


def test_numbers_and_targets_that_are_no_arrays_are_refused_in_one_sentence():
    X, y = load_wine(return_X_y=True)
    fitted = SwarmSelector(GaussianNB(), max_evaluations=10, cv=2, random_state=0).fit(X, y)
    with pytest.raises(DataError, match="too large for a float64"):
        fitted.predict([[10**400] * 13])
    with pytest.raises(DataError, match="y must have one entry for each row"):
        fitted.score(X[:2], [[0], [1, 2]])
