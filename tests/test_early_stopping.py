"""Early stopping: the rows that decide when to stop are training rows, and never test rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from subswarm import SwarmSelector, held_out
from subswarm.engines.boosters import Booster, stopped_early
from subswarm.errors import SettingError
from subswarm.objective.objective import make_objective

lightgbm = pytest.importorskip("lightgbm")

pytestmark = pytest.mark.usefixtures("one_thread")

SEEN: list[tuple[set[int], set[int], int]] = []
"""Of each fit of `Recorder`: the rows it trains on, the rows it stops by, and the number of columns of these."""


class Recorder(lightgbm.LGBMClassifier):
    """LightGBM that records which rows of a frame it gets."""

    def fit(self, X, y, **params):
        held = params["eval_X"][0] if "eval_X" in params else params["eval_set"][0][0]
        SEEN.append((set(X.index), set(held.index), held.shape[1]))
        return super().fit(X, y, **params)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 4)), columns=list("abcd"))
    return X, np.array(["no", "yes"])[(X["a"] + rng.normal(size=120) > 0).astype(int)]


def booster(library="lightgbm", trees=400):
    if library == "lightgbm":
        return lightgbm.LGBMClassifier(n_estimators=trees, min_child_samples=5, verbose=-1, n_jobs=1)
    if library == "xgboost":
        return pytest.importorskip("xgboost").XGBClassifier(n_estimators=trees, n_jobs=1)
    catboost = pytest.importorskip("catboost")
    return catboost.CatBoostClassifier(iterations=trees, thread_count=1, verbose=False, allow_writing_files=False)


def trees_of(model):
    for name in ("best_iteration_", "best_iteration", "n_iter_"):
        if getattr(model, name, None) is not None:
            return getattr(model, name)
    raise AssertionError


def test_the_rows_that_stop_the_model_are_training_rows_of_the_fold(data):
    X, y = data
    model = Recorder(n_estimators=50, min_child_samples=5, verbose=-1, n_jobs=1)
    SEEN.clear()
    objective = make_objective(stopped_early(model, 3), X, y, cv=3)
    objective(np.array([[True, False, True, True]]))
    assert len(SEEN) == 3
    for (train, test), (fitted, stopped_by, columns) in zip(objective.folds, SEEN, strict=True):
        assert fitted | stopped_by == set(train.tolist())
        assert not fitted & stopped_by
        assert not (fitted | stopped_by) & set(test.tolist())
        assert 5 < len(stopped_by) < 15
        assert columns == 3


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost"])
def test_each_library_stops_early_and_predicts_the_classes(data, library):
    X, y = data
    fitted = stopped_early(booster(library), 5).fit(X, y)
    assert isinstance(fitted, Booster)
    assert 0 < trees_of(fitted.estimator_) < 300
    assert set(fitted.predict(X)) == {"no", "yes"}
    assert fitted.predict_proba(X).shape == (120, 2)
    assert fitted.score(X, y) > 0.6
    assert clone(fitted).get_params()["early_stopping"] == 5


def test_xgboost_without_early_stopping_predicts_text_classes(data):
    X, y = data
    assert set(Booster(booster("xgboost", trees=3)).fit(X, y).predict(X)) == {"no", "yes"}


def test_histogram_boosting_uses_its_own_early_stopping(data):
    X, y = data
    model = make_pipeline(StandardScaler(), HistGradientBoostingClassifier(max_iter=300, min_samples_leaf=5))
    stopping = stopped_early(model, 4)
    assert stopping[-1].early_stopping is True
    assert stopping[-1].n_iter_no_change == 4
    assert model[-1].early_stopping == "auto"
    assert trees_of(clone(stopping).fit(X, y)[-1]) < 300


def test_each_class_keeps_training_rows(data):
    X, _ = data
    y = np.repeat([0, 1, 2], [116, 3, 1])
    fitted = stopped_early(booster(trees=5), 2).fit(X, y)
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert sorted(y[fitted.validation_rows_].tolist()) == [0] * 12 + [1]


def test_weights_follow_the_rows(data):
    X, y = data
    weights = np.where(y == "yes", 1.0, 0.0)
    fitted = stopped_early(booster(trees=20), 3).fit(X, y, sample_weight=weights)
    assert (fitted.predict_proba(X)[:, 1] > 0.5).all()


def test_a_selector_stops_its_models_early(data):
    X, y = data
    settings = {"max_evaluations": 8, "cv": 2, "random_state": 0, "early_stopping": 3}
    selector = SwarmSelector(booster(), **settings).fit(X, y)
    assert trees_of(selector.estimator_.estimator_) < 100
    assert set(selector.predict(X)) <= {"no", "yes"}
    assert selector.classes_.tolist() == ["no", "yes"]
    nested = held_out(SwarmSelector(booster(trees=30), **settings), X, y, folds=2)
    assert np.isfinite(nested.scores).all()
    assert np.isfinite(nested.baseline_scores).all()


def test_other_models_and_a_fixed_eval_set_are_refused(data):
    X, y = data
    with pytest.raises(SettingError, match="early_stopping=5 needs a model of LightGBM"):
        SwarmSelector(GaussianNB(), early_stopping=5).fit(X, y)
    with pytest.raises(SettingError, match="early_stopping must be"):
        SwarmSelector(booster(), early_stopping=0).fit(X, y)
    with pytest.raises(SettingError, match="use early_stopping=50"):
        SwarmSelector(booster()).fit(X, y, eval_set=[(X, y)])
