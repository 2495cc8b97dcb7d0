"""The corrected score: honest on new rows, never above the reported score, for every search and scorer."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model import Ridge
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from subswarm import SwarmSelector, make_objective
from subswarm._search.honest import corrected_score


def falling(rows, columns, seed, informative=8):
    """Two classes that differ in the first columns, by less and less; the other columns are noise."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(rows) % 2)
    X = rng.normal(size=(rows, columns))
    X[:, :informative] += np.outer(y, 1.6 * 0.8 ** np.arange(informative))
    return X, y


def error_on_new_rows(selector, draw):
    X, y = draw
    return 1 - selector.score(X, y)


@pytest.mark.parametrize("algorithm", ["2d-elite", "2d-upso", "bpso", "sffs"])
def test_pure_noise_is_at_chance_for_every_algorithm(algorithm):
    found = []
    for seed in range(2):
        X, y = falling(200, 50, seed, informative=0)
        selector = SwarmSelector(GaussianNB(), algorithm, repeats=1, max_evaluations=1500, random_state=seed).fit(X, y)
        assert selector.best_score_ > 0.56
        low, high = selector.honest_interval_
        assert low <= 0.5 <= high
        found.append(selector.honest_score_)
    assert np.mean(found) == pytest.approx(0.5, abs=0.04)


@pytest.mark.parametrize("algorithm", ["2d-upso", "sffs"])
@pytest.mark.parametrize(("rows", "columns"), [(200, 50), (200, 300)])
def test_the_correction_is_about_the_optimism(algorithm, rows, columns):
    reported, corrected, true = [], [], []
    for seed in range(3):
        X, y = falling(rows, columns, seed)
        selector = SwarmSelector(GaussianNB(), algorithm, max_evaluations=1500, random_state=seed).fit(X, y)
        reported.append(1 - selector.best_score_)
        corrected.append(1 - selector.honest_score_)
        true.append(error_on_new_rows(selector, falling(4000, columns, 100 + seed)))
    reported, corrected, true = np.mean(reported), np.mean(corrected), np.mean(true)
    assert reported < 0.8 * true
    assert corrected == pytest.approx(true, rel=0.5)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"algorithm": "2d-upso"},
        {"algorithm": "2d-upso", "choose": "best"},
        {"algorithm": "bpso", "scoring": "roc_auc"},
        {"algorithm": "bpso", "scoring": "balanced_accuracy"},
        {"algorithm": "bpso", "scoring": "f1"},
        {"algorithm": "bpso", "scoring": "neg_log_loss"},
        {"algorithm": "bpso", "scoring": "matthews_corrcoef"},
        {"algorithm": "bpso", "scoring": make_scorer(f1_score)},
        {"cv": TimeSeriesSplit(4)},
        {"repeats": 3, "race": True, "algorithm": "2d-upso"},
        {"cv": [(np.arange(400), np.arange(400, 569))], "algorithm": "bpso"},
        {"choose": "knee"},
    ],
    ids=str,
)
def test_every_search_has_a_corrected_score_that_is_not_above_the_reported_one(settings):
    X, y = load_breast_cancer(return_X_y=True)
    selector = SwarmSelector(GaussianNB(), max_evaluations=600 if settings else 6000, random_state=0)
    selector.set_params(**settings).fit(X, y)
    low, high = selector.honest_interval_
    assert low <= selector.honest_score_ <= high
    assert low < high
    assert selector.honest_score_ <= selector.best_score_
    assert selector.honest_score_ > selector.best_score_ - 0.2
    if selector.scoring != "neg_log_loss" and selector.scoring != "matthews_corrcoef":
        assert 0 <= low <= high <= 1 or callable(selector.scoring)


@pytest.mark.parametrize("scoring", [None, "neg_mean_squared_error", "neg_mean_absolute_error"])
def test_regressions_are_corrected(scoring):
    X, y = load_diabetes(return_X_y=True)
    X = np.hstack([X, np.random.default_rng(0).normal(size=(len(X), 30))])
    selector = SwarmSelector(Ridge(alpha=0.01), "bpso", scoring=scoring, max_evaluations=900, random_state=0).fit(X, y)
    gain = selector.best_score_ - selector.honest_score_
    assert 0 < gain < 0.25 * (1 if scoring is None else abs(selector.best_score_))


def test_a_target_that_nothing_explains_gives_no_better_score_than_a_constant():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 60)), rng.normal(size=60)
    selector = SwarmSelector(Ridge(), "sffs", cv=5, max_evaluations=900, random_state=0).fit(X, y)
    assert selector.best_score_ > 0.1
    assert selector.honest_score_ == pytest.approx(0, abs=0.01)


def test_the_mean_over_left_out_rows_is_the_corrected_score_of_a_cross_fitted_search():
    X, y = falling(150, 20, seed=2, informative=2)
    selector = SwarmSelector(KNeighborsClassifier(), random_state=0).fit(X, y)
    finalists = selector.result_.finalists
    means = 1 - finalists.left_out.mean(axis=1)
    own = means[(finalists.masks == selector.support_).all(axis=1)]
    assert np.isclose(np.minimum(own, selector.best_score_), selector.honest_score_).any()


def test_nothing_to_choose_from_needs_no_correction():
    X, y = load_wine(return_X_y=True)
    objective = make_objective(GaussianNB(), X, y)
    found = corrected_score(objective, np.full(10, 0.125), np.ones(13, dtype=bool), None)
    assert found.score == 0.875


def test_more_columns_and_fewer_rows_need_more_correction():
    def correction(rows, columns, loss=0.2, size=5):
        X, y = falling(rows, columns, 0)
        objective = make_objective(GaussianNB(), X, y)
        support = np.arange(columns) < size
        return 1 - loss - corrected_score(objective, np.full(10, loss), support, None).score

    assert correction(200, 20) < correction(200, 200) < correction(100, 200)
    assert correction(200, 50, loss=0.1) < correction(200, 50, loss=0.3)


def test_perfect_losses_still_have_an_interval():
    X, y = load_wine(return_X_y=True)
    objective = make_objective(GaussianNB(), X, y, cross_fit=True, repeats=4).on_all_rows()
    found = corrected_score(objective, np.zeros(10), np.arange(13) < 4, np.zeros(4))
    assert found.score == 1
    assert 0.95 < found.low < 0.995
    assert found.high == 1


def test_a_scorer_of_your_own_with_one_fold_is_not_corrected():
    X, y = load_breast_cancer(return_X_y=True)
    splits = [(np.arange(400), np.arange(400, 569))]
    selector = SwarmSelector(
        GaussianNB(), "bpso", cv=splits, scoring=make_scorer(f1_score), max_evaluations=60, random_state=0
    ).fit(X, y)
    assert selector.honest_score_ is None
    assert selector.honest_interval_ is None


def test_a_resumed_search_has_the_same_corrected_score(tmp_path):
    X, y = load_wine(return_X_y=True)
    settings = {"max_evaluations": 600, "random_state": 4, "algorithm": "bpso"}
    whole = SwarmSelector(GaussianNB(), **settings).fit(X, y)
    path = tmp_path / "search.ckpt"
    SwarmSelector(GaussianNB(), checkpoint=path, callbacks=[lambda s: s.evaluations >= 200], **settings).fit(X, y)
    resumed = SwarmSelector(GaussianNB(), checkpoint=path, **settings).fit(X, y)
    assert whole.honest_score_ == resumed.honest_score_
    assert whole.honest_interval_ == resumed.honest_interval_


def test_the_islands_agree_on_informative_columns_and_not_on_noise():
    X, y = falling(300, 30, seed=1, informative=3)
    found = SwarmSelector(GaussianNB(), random_state=0).fit(X, y)
    assert found.stability_.low <= found.stability_.value <= found.stability_.high
    assert found.stability_.value > 0.6
    assert found.island_shares_.shape == (30,)
    assert found.island_shares_[:2].tolist() == [1, 1]
    assert set(np.round(found.island_shares_ * 6, 9)) <= set(range(7))
    noise = SwarmSelector(GaussianNB(), random_state=0, choose="best").fit(*falling(200, 30, seed=1, informative=0))
    assert noise.stability_.value < 0.6


def test_islands_without_left_out_rows_agree_too_and_one_island_does_not():
    X, y = load_wine(return_X_y=True)
    settings = {"max_evaluations": 900, "random_state": 0}
    found = SwarmSelector(GaussianNB(), repeats=3, **settings).fit(X, y)
    assert set(np.round(found.island_shares_ * 3, 9)) <= set(range(4))
    assert found.stability_.value > 0
    alone = SwarmSelector(GaussianNB(), "2d-upso", **settings).fit(X, y)
    assert alone.stability_ is None
    assert alone.island_shares_ is None


def test_the_islands_of_groups_select_whole_groups():
    X, y = load_wine(return_X_y=True)
    found = SwarmSelector(
        GaussianNB(), max_evaluations=4000, feature_groups=[[0, 1], [7, 8]], fixed_features=[4], random_state=0
    ).fit(X, y)
    assert found.island_shares_[4] == 1
    assert found.island_shares_[0] == found.island_shares_[1]
    assert found.island_shares_[7] == found.island_shares_[8]
