"""The corrected score: honest on new rows, never above the reported score, for every search and scorer."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from subswarm import SwarmSelector, make_objective
from subswarm._search.honest import Compared, _constant_loss, _draw_subsets, _exchange, compare, corrected_score
from subswarm._search.result import noise_width, smallest_not_worse


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


def test_the_default_search_of_pure_noise_is_at_chance():
    corrected = []
    for seed in range(4):
        X, y = falling(200, 50, seed, informative=0)
        selector = SwarmSelector(GaussianNB(), random_state=seed).fit(X, y)
        assert selector.best_score_ > 0.53
        assert selector.honest_interval_[0] < 0.5 < selector.honest_interval_[1]
        corrected.append(selector.honest_score_)
    assert np.mean(corrected) == pytest.approx(0.5, abs=0.04)
    assert corrected.count(pytest.approx(0.5)) >= 2  # nothing was found


@pytest.mark.parametrize(
    ("algorithm", "rows", "columns"),
    [("2d-upso", 200, 50), ("2d-upso", 200, 300), ("sffs", 200, 50), ("sffs", 200, 300), ("ga", 200, 300)],
)
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
    assert corrected == pytest.approx(true, rel=0.35)


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
    assert -0.5 < selector.honest_score_ < 0.01  # that of useless columns is below 0


def test_useless_columns_are_worse_than_a_constant_answer_by_how_much_their_predictions_vary():
    ratios, above = [], []
    for seed in range(101, 105):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(200, 200)), rng.normal(size=200)
        scoring = "neg_mean_squared_error"
        selector = SwarmSelector(Ridge(), "2d-upso", scoring=scoring, choose="best", random_state=seed).fit(X, y)
        true = 1 + np.sum(selector.estimator_.coef_**2) + selector.estimator_.intercept_**2  # on new rows
        ratios.append(-selector.honest_score_ / true)
        above.append(-selector.honest_score_ / y.var())
    assert np.mean(ratios) == pytest.approx(1, abs=0.15)
    assert np.mean(above) > 1.15


@pytest.mark.parametrize("size", [3, 12])
def test_predictions_of_noise_vary_by_one_part_in_the_rows_for_each_column(size):
    rng = np.random.default_rng(size)
    shares = []
    for _ in range(20):
        X, y = rng.normal(size=(120, 30)), rng.normal(size=120)
        objective = make_objective(Ridge(), X, y)
        shares.append(compare(objective, np.arange(30) < size, 600).predicted)
    assert np.mean(shares) == pytest.approx((size + 1) / 80, rel=0.35)


def test_the_mean_over_left_out_rows_is_the_corrected_score_of_a_cross_fitted_search():
    X, y = falling(150, 20, seed=2, informative=2)
    selector = SwarmSelector(KNeighborsClassifier(), random_state=0).fit(X, y)
    finalists, width = selector.result_.finalists, noise_width(150, 20)
    row = smallest_not_worse(finalists.masks, finalists.paired[:, None], width, finalists.fitness)
    assert np.array_equal(finalists.masks[row], selector.support_)
    own = finalists.left_out[row]
    unseen = []  # on each block, what the other blocks select
    for block in range(6):
        others, mean = np.delete(finalists.paired, block, axis=1)[:, None], finalists.without[:, block]
        unseen.append(finalists.left_out[smallest_not_worse(finalists.masks, others, width, mean), block])
    assert np.mean(unseen) >= own.mean()
    expected = 1 - (own.mean() + np.mean(unseen)) / 2
    assert selector.honest_score_ == pytest.approx(min(expected, selector.best_score_))


def test_nothing_to_choose_from_needs_no_correction():
    X, y = load_wine(return_X_y=True)
    objective = make_objective(GaussianNB(), X, y)
    found = corrected_score(objective, np.full(10, 0.125), np.ones(13, dtype=bool), None)
    assert found.score == 0.875


def correction(rows=200, columns=50, loss=0.2, size=5, scoring=None, **compared):
    X, y = falling(rows, columns, 0)
    objective = make_objective(GaussianNB(), X, y, scoring=scoring)
    support = np.arange(columns) < size
    losses = loss + np.tile([-0.1, 0.1], 5)
    found = corrected_score(objective, losses, support, None, compared=Compared(**compared))
    return 1 - loss - found.score


def test_more_columns_and_fewer_rows_need_more_correction():
    assert 0 < correction(columns=20) < correction(columns=200) < correction(100, columns=200)
    assert correction(loss=0.1) < correction(loss=0.3)


def test_the_loss_on_new_folds_is_a_lower_limit_of_the_corrected_one():
    assert correction(fresh=0.3) > 0.1
    assert correction(fresh=0.2) < correction(fresh=0.22)
    assert correction(fresh=0.15) == correction(fresh=0.2)


def test_what_random_subsets_reach_limits_the_correction():
    assert correction(loss=0.3, fresh=0.35, chance=0.36) == pytest.approx(0.06, abs=0.011)
    assert correction(loss=0.3, fresh=0.3, chance=0.29) == 0


def test_a_selection_that_loses_most_of_its_gain_with_a_few_columns_needs_more_correction():
    losses = [correction(fresh=0.2, chance=0.4, exchanged=exchanged) for exchanged in (0.22, 0.3, 0.38)]
    assert losses == sorted(losses)
    assert losses[0] < 0.5 * losses[2]


def test_a_gain_that_chance_explains_is_all_taken_back():
    assert correction(loss=0.37, fresh=0.38, chance=0.5) == pytest.approx(0.13)
    assert correction(loss=0.37, fresh=0.38, chance=0.44) < 0.07  # here any columns tell something


@pytest.mark.parametrize(("evaluations", "most"), [(6000, 48), (1000, 12), (300, 4), (200, 2)])
def test_comparisons_take_a_small_share_of_the_evaluations(evaluations, most):
    X, y = falling(100, 30, 0)
    objective = make_objective(GaussianNB(), X, y)
    found = compare(objective, np.arange(30) < 8, evaluations)
    assert objective.asked == most
    assert found.predicted is None  # classes
    assert 0 < found.fresh < 0.5
    assert found.fresh < found.exchanged < found.chance


def test_random_and_exchanged_subsets_have_the_size_of_the_selection():
    rng, support = np.random.default_rng(0), np.arange(30) % 3 == 0
    drawn = _draw_subsets(30, 10, 400, rng)
    assert np.array_equal(drawn.sum(axis=1), np.full(400, 10))
    assert np.abs(drawn.mean(axis=0) - 1 / 3).max() < 0.1
    exchanged = _exchange(support, 3, 400, rng)
    assert np.array_equal(exchanged[:, support].sum(axis=1), np.full(400, 7))
    assert np.array_equal(exchanged[:, ~support].sum(axis=1), np.full(400, 3))
    assert np.ptp(exchanged[:, ~support].mean(axis=0)) < 0.15


@pytest.mark.parametrize("model", [GaussianNB(), Ridge()])
def test_the_loss_of_a_constant_answer_is_that_of_a_dummy(model):
    X, y = falling(101, 9, 0)
    objective = make_objective(model, X, y)
    dummy = DummyClassifier() if isinstance(model, GaussianNB) else DummyRegressor()
    assert _constant_loss(objective) == pytest.approx(1 - dummy.fit(X, y).score(X, y))


def test_new_folds_check_the_settings_once_for_each_number_of_classes(monkeypatch):
    fits = []
    fit = GaussianNB.fit
    monkeypatch.setattr(GaussianNB, "fit", lambda self, *args: fits.append(len(args[1])) or fit(self, *args))
    make_objective(GaussianNB(), *falling(100, 10, 0))
    assert len(fits) == 1
    y = np.repeat([0, 1, 2], [48, 50, 2])  # the last class is missing in the training rows of some folds
    folds = [(np.arange(98), np.arange(98, 100)), (np.arange(1, 100), np.arange(1))]
    fits.clear()
    objective = make_objective(GaussianNB(priors=[0.3, 0.3, 0.4]), np.eye(100), y, cv=folds)
    assert objective.engine == "estimator"  # it fails on the first fold


def test_too_short_a_search_is_not_compared_and_every_column_has_no_alternative():
    X, y = falling(100, 10, 0)
    objective = make_objective(GaussianNB(), X, y)
    assert compare(objective, np.arange(10) < 2, 199) == Compared()
    everything = compare(objective, np.ones(10, dtype=bool), 6000)
    assert everything.chance is everything.exchanged is None
    one = compare(objective, np.arange(10) < 1, 6000)
    assert one.exchanged is None
    assert one.chance > 0


def test_a_scorer_of_your_own_is_corrected_by_random_subsets():
    found = [
        correction(loss=0.2, scoring=make_scorer(f1_score), **compared)
        for compared in ({}, {"fresh": 0.25, "chance": 0.4}, {"fresh": 0.25, "chance": 0.26})
    ]
    assert all(0 <= each < 0.2 for each in found)
    assert 0.05 < found[2] < 0.061 < found[1]


def test_new_folds_are_drawn_once():
    objective = make_objective(GaussianNB(), *load_wine(return_X_y=True))
    assert objective.on_new_folds(2) is objective.on_new_folds(2)
    assert objective.on_new_folds(2) is not objective.on_new_folds(1)


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
