"""The default search leaves out rows, and chooses the number of features there."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from subswarm import SwarmSelector, make_objective
from subswarm._search.result import smallest_not_worse
from subswarm.algorithms import TwoDElite
from subswarm.algorithms.base import Problem
from subswarm.algorithms.elite.cross_fit import CrossFit, rank_finalists
from subswarm.errors import CheckpointError, DataError, SettingError
from subswarm.objective.filters import ranking_scores
from subswarm.objective.folds import cross_fit_folds, sample_rows

KNN = make_pipeline(StandardScaler(), KNeighborsClassifier(5))


def falling(rows, columns, seed, informative=6):
    """Two classes that differ in the first columns, by less and less; the other columns are noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    X = rng.normal(size=(rows, columns))
    X[:, :informative] += np.outer(y, 1.6 * 0.8 ** np.arange(informative))
    return X, y


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


def test_a_repeat_never_uses_the_rows_it_leaves_out(wine):
    _, y = wine
    folds, left_out = cross_fit_folds(None, y, estimator=GaussianNB(), random_state=3, repeats=4)
    assert len(folds) == 40
    assert np.array_equal(np.sort(np.concatenate([fold.test for fold in left_out])), np.arange(len(y)))
    for number, outside in enumerate(left_out):
        own = folds[number * 10 : (number + 1) * 10]
        assert np.array_equal(np.sort(np.concatenate([fold.test for fold in own])), np.sort(outside.train))
        assert not any(np.isin(np.concatenate([fold.train, fold.test]), outside.test).any() for fold in own)
        assert set(np.unique(y[outside.test])) == set(np.unique(y))


@pytest.mark.parametrize("cv", [StratifiedKFold(5), [(np.arange(100), np.arange(100, 178))]])
def test_a_splitter_or_a_list_of_splits_is_not_cross_fitted(wine, cv):
    assert cross_fit_folds(cv, wine[1], estimator=GaussianNB(), repeats=3) is None


def test_too_few_rows_are_not_cross_fitted(wine):
    X, y = wine
    assert cross_fit_folds(None, y[:7], estimator=GaussianNB(), repeats=4) is None
    few = np.concatenate([np.flatnonzero(y == label)[:4] for label in (0, 1)])
    objective = make_objective(GaussianNB(), X[few], y[few], cv=3, repeats=6, cross_fit=True)
    assert objective.n_left_out == 0
    assert objective.n_partitions == 6


@pytest.mark.parametrize("model", [GaussianNB(), KNN, LinearRegression()], ids=["nb", "knn", "linear"])
@pytest.mark.parametrize("engine", ["auto", "estimator"])
def test_the_loss_on_left_out_rows_is_that_of_a_model_fitted_on_the_others(wine, model, engine):
    X, y = load_diabetes(return_X_y=True) if isinstance(model, LinearRegression) else wine
    objective = make_objective(model, X, y, cv=5, repeats=3, cross_fit=True, random_state=1, engine=engine)
    _, left_out = cross_fit_folds(5, y, estimator=model, random_state=1, repeats=3, least_test_rows=2)
    rng = np.random.default_rng(0)
    masks = rng.random((6, X.shape[1])) < 0.5
    masks[:, 0] = True
    partitions = np.array([3, 0, 4, 5, 2, 3])
    losses = objective(masks, partitions)
    for mask, partition, loss in zip(masks, partitions, losses, strict=True):
        if partition >= 3:
            fold = left_out[partition - 3]
            fitted = model.fit(X[fold.train][:, mask], y[fold.train])
            assert loss == pytest.approx(1 - fitted.score(X[fold.test][:, mask], y[fold.test]), abs=1e-12)
        else:
            assert loss == objective.fold_losses(mask, [partition]).mean()
    assert objective.asked == 6 + 2
    assert objective.computed == 6
    with pytest.raises(DataError, match="from 0 to 5"):
        objective(masks, np.full(6, 6))


def test_many_rows_are_searched_and_left_out_in_part():
    _, y = falling(900, 6, seed=1)
    y[:40] = 2
    folds, left_out = cross_fit_folds(5, y, estimator=GaussianNB(), random_state=3, repeats=4, max_rows=200)
    searched = []
    for number, outside in enumerate(left_out):
        rows = np.concatenate([fold.test for fold in folds[number * 5 : (number + 1) * 5]])
        assert (len(outside.train), len(outside.test)) == (675, pytest.approx(200, abs=3))
        assert not np.isin(outside.test, outside.train).any()
        assert np.isin(rows, outside.train).all()
        assert len(np.unique(rows)) == len(rows)
        counts, every = np.bincount(y[rows]), np.bincount(y[outside.train])
        assert counts[2] == 20
        assert counts[:2] == pytest.approx(every[:2] * 200 / len(outside.train), abs=1)
        searched.append(set(rows.tolist()))
    assert len(set.union(*searched)) > 400
    _, fewer = cross_fit_folds(5, y, estimator=GaussianNB(), random_state=3, repeats=4, max_rows=100)
    for whole, part in zip(left_out, fewer, strict=True):
        assert len(part.train) == pytest.approx(400, abs=15)
        assert np.isin(part.train, whole.train).all()
    everything = cross_fit_folds(5, y, estimator=GaussianNB(), random_state=3, repeats=4)
    enough = cross_fit_folds(5, y, estimator=GaussianNB(), random_state=3, repeats=4, max_rows=900)
    assert all(np.array_equal(a.train, b.train) for a, b in zip(everything[0], enough[0], strict=True))


@pytest.mark.parametrize("as_frame", [False, True])
def test_an_engine_sees_only_the_rows_that_its_folds_use(as_frame):
    X, y = falling(3000, 8, seed=2)
    X[0, 0] = 1e6  # in the block of one repeat at most
    table = pytest.importorskip("pandas").DataFrame(X, columns=list("abcdefgh")) if as_frame else X
    settings = {"cv": 4, "repeats": 3, "cross_fit": True, "max_rows": 300, "random_state": 0}
    objective = make_objective(KNN, table, y, **settings)
    slow = make_objective(KNN, table, y, **settings, engine="estimator")
    masks = np.random.default_rng(0).random((6, 8)) < 0.5
    masks[:, 2] = True
    for partitions in (None, np.arange(6)):
        assert np.array_equal(objective(masks, partitions), slow(masks, partitions))
    assert all(300 <= len(objective._engines[number]._data.y) <= 310 for number in range(3))
    assert objective.data.on_used_rows().folds[0].train.max() < 950
    weighted = make_objective(GaussianNB(), X, y, **settings, params={"sample_weight": np.ones(3000)})
    assert len(weighted._engines[0]._data.y) == 3000


def test_a_sample_of_a_continuous_target_spans_its_range():
    y = np.random.default_rng(0).normal(size=3000)
    rows = sample_rows(y, 100, False, 0)
    assert len(rows) == len(np.unique(rows)) == 100
    assert {y.argmin(), y.argmax()} <= set(rows.tolist())
    assert np.quantile(y[rows], [0.25, 0.5, 0.75]) == pytest.approx(np.quantile(y, [0.25, 0.5, 0.75]), abs=0.03)
    assert np.array_equal(sample_rows(y[:50], 100, False, 0), np.arange(50))


def test_the_scores_of_a_search_on_part_of_the_rows_are_those_of_all_rows():
    X, y = falling(1500, 12, seed=4)
    selector = SwarmSelector(GaussianNB(), max_rows=300, max_evaluations=4000, random_state=0).fit(X, y)
    assert selector.support_[:3].all()
    assert sorted(np.concatenate([test for _, test in selector.folds_]).tolist()) == list(range(1500))
    scores = cross_val_score(GaussianNB(), X[:, selector.support_], y, cv=selector.folds_)
    assert np.array_equal(selector.fold_scores_, scores)
    every = SwarmSelector(GaussianNB(), max_rows=None, max_evaluations=4000, random_state=0).fit(X, y)
    auto = SwarmSelector(GaussianNB(), max_evaluations=4000, random_state=0).fit(X, y)
    assert np.array_equal(every.result_.finalists.paired, auto.result_.finalists.paired)
    assert every.result_.best.fitness != selector.result_.best.fitness


def test_a_search_on_part_of_the_rows_resumes(tmp_path):
    X, y = falling(700, 10, seed=4)
    settings = {"max_rows": 200, "max_evaluations": 4000, "random_state": 0}
    whole = SwarmSelector(GaussianNB(), **settings).fit(X, y)
    path = tmp_path / "search.ckpt"
    SwarmSelector(GaussianNB(), checkpoint=path, callbacks=[lambda s: s.evaluations >= 1000], **settings).fit(X, y)
    with pytest.raises(CheckpointError, match="folds"):
        SwarmSelector(GaussianNB(), checkpoint=path, **settings | {"max_rows": 300}).fit(X, y)
    resumed = SwarmSelector(GaussianNB(), checkpoint=path, **settings).fit(X, y)
    assert np.array_equal(whole.result_.finalists.paired, resumed.result_.finalists.paired)
    assert np.array_equal(whole.support_, resumed.support_)


@pytest.mark.parametrize("value", [99, 0, "all", 200.5, True])
def test_an_invalid_number_of_rows_is_refused(wine, value):
    with pytest.raises(SettingError, match="max_rows"):
        SwarmSelector(GaussianNB(), max_rows=value).fit(*wine)


def test_guides_rank_the_rows_of_a_repeat_only(wine):
    X, y = wine
    objective = make_objective(GaussianNB(), X, y, repeats=3, cross_fit=True, random_state=0)
    _, left_out = cross_fit_folds(None, y, estimator=GaussianNB(), random_state=0, repeats=3)
    rows = left_out[1].train
    assert np.array_equal(objective.ranking("anova-f", 1), ranking_scores("anova-f", X[rows], y[rows]))
    assert np.array_equal(objective.ranking("anova-f", 3), ranking_scores("anova-f", X, y))
    assert np.array_equal(objective.ranking("anova-f"), ranking_scores("anova-f", X, y))


@pytest.mark.parametrize(("model", "rows", "columns", "most_noise"), [("nb", 1000, 30, 1), ("knn", 200, 60, 2)])
def test_noise_columns_are_left_out(model, rows, columns, most_noise):
    X, y = falling(rows, columns, seed=5)
    selector = SwarmSelector({"nb": GaussianNB(), "knn": KNN}[model], random_state=0).fit(X, y)
    before = SwarmSelector({"nb": GaussianNB(), "knn": KNN}[model], random_state=0, repeats=6, choose="best").fit(X, y)
    assert selector.support_[6:].sum() <= most_noise < before.support_[6:].sum()
    assert selector.support_[:2].all()


def test_a_wide_table_is_guided():
    X, y = falling(150, 800, seed=2)
    selector = SwarmSelector(GaussianNB(), random_state=0).fit(X, y)
    assert selector.n_features_ <= 20
    new, classes = falling(5000, 800, seed=3)
    support = selector.support_
    score = GaussianNB().fit(X[:, support], y).score(new[:, support], classes)
    assert score > GaussianNB().fit(X, y).score(new, classes) + 0.05
    assert selector.honest_score_ == pytest.approx(score, abs=0.08)


def test_pure_noise_is_reported_as_chance():
    found = []
    for seed in range(5):
        X, y = np.random.default_rng(seed).normal(size=(200, 40)), np.arange(200) % 2
        found.append(SwarmSelector(GaussianNB(), random_state=0).fit(X, y))
    before = SwarmSelector(GaussianNB(), random_state=0, repeats=6, choose="best").fit(X, y)
    assert before.best_score_ > 0.6
    assert np.mean([each.honest_score_ for each in found]) == pytest.approx(0.5, abs=0.06)
    assert np.mean([each.n_features_ for each in found]) < min(4, before.n_features_)
    warned = ["nothing found" in {finding.kind for finding in each.findings_} for each in found]
    assert sum(warned) >= 2


def test_the_result_depends_on_neither_the_workers_nor_an_interruption(wine, tmp_path):
    X, y = wine
    settings = {"max_evaluations": 4000, "random_state": 4}
    whole = SwarmSelector(KNN, n_jobs=2, **settings).fit(X, y)
    path = tmp_path / "search.ckpt"
    for stop in (300, 2900, 3300, 3700):
        SwarmSelector(KNN, checkpoint=path, callbacks=[lambda s, at=stop: s.evaluations >= at], **settings).fit(X, y)
    resumed = SwarmSelector(KNN, checkpoint=path, **settings).fit(X, y)
    assert np.array_equal(whole.support_, resumed.support_)
    assert whole.honest_score_ == resumed.honest_score_
    assert np.array_equal(whole.result_.finalists.paired, resumed.result_.finalists.paired)
    assert whole.result_.evaluations == resumed.result_.evaluations <= 4000


def test_limits_groups_and_fixed_features_hold_for_every_finalist(wine):
    X, y = wine
    selector = SwarmSelector(
        GaussianNB(),
        max_evaluations=4000,
        min_features=3,
        max_features=6,
        fixed_features=[4],
        feature_groups=[[0, 1], [7, 8]],
        random_state=0,
    ).fit(X, y)
    masks = selector.result_.finalists.masks
    assert masks[:, 4].all()
    assert set(masks.sum(axis=1)) <= {3, 4, 5, 6}
    assert np.array_equal(masks[:, 0], masks[:, 1])
    assert np.array_equal(masks[:, 7], masks[:, 8])
    assert selector.support_[4]


def test_the_rules_select_fewer_and_fewer_columns():
    X, y = falling(1000, 30, seed=8)
    sizes = [
        SwarmSelector(GaussianNB(), random_state=0, choose=choose).fit(X, y).n_features_
        for choose in ("best", "smallest")
    ]
    assert sizes[1] < sizes[0]


def test_another_algorithm_compares_its_front_on_new_folds():
    X, y = falling(300, 30, seed=8)
    found = {
        choose: SwarmSelector(GaussianNB(), "bpso", choose=choose, max_evaluations=1500, random_state=0).fit(X, y)
        for choose in ("best", "smallest")
    }
    assert found["smallest"].n_features_ < found["best"].n_features_
    assert found["smallest"].result_.finalists is None
    front = found["smallest"].result_.front
    assert any(np.array_equal(mask, found["smallest"].support_) for mask in front.masks)


def test_regression_is_guided_by_the_ranking_that_allows_it():
    X, y = load_diabetes(return_X_y=True)
    objective = make_objective(LinearRegression(), X, y, cv=3, repeats=4, cross_fit=True)
    problem = Problem(X.shape[1], 4, 4, len(X), ranking=objective.ranking)
    (orders,) = CrossFit.of(("relieff", "anova-f"), problem).orders
    expected = np.argsort(-ranking_scores("anova-f", X, y, classification=False), kind="stable")
    assert len(orders) == 5
    assert list(orders[4]) == expected.tolist()


def test_small_budgets_use_all_rows(wine):
    X, y = wine
    selector = SwarmSelector(GaussianNB(), max_evaluations=3000, random_state=0).fit(X, y)
    assert selector.result_.finalists.left_out is None
    assert selector.result_.n_partitions == 3


def test_an_unknown_guide_is_refused():
    with pytest.raises(Exception, match="guides"):
        TwoDElite(guides=("anova",))


def test_weak_but_real_columns_are_found():
    X, y = falling(300, 20, seed=6, informative=3)
    selector = SwarmSelector(GaussianNB(), max_evaluations=4000, random_state=0).fit(X, y)
    assert "nothing found" not in {finding.kind for finding in selector.findings_}
    assert selector.support_[:2].all()


def test_a_variance_that_is_small_by_chance_does_not_count_alone():
    masks = np.tri(4, dtype=bool)
    losses = np.array([[0.4, 0.5, 0.3, 0.4], [0.16, 0.2, 0.13, 0.22], [0.12, 0.12, 0.12, 0.12], [0.1, 0.1, 0.1, 0.1]])
    assert smallest_not_worse(masks, losses[:, None], width=2.0) == 2  # its differences to the best do not vary at all
    assert smallest_not_worse(masks, losses[:, None], width=0.5) == 3


def test_smallest_not_worse_compares_in_pairs():
    masks = np.tri(4, dtype=bool)
    noise = np.array([0.1, -0.1, 0.05, -0.05])
    losses = np.array([0.3, 0.11, 0.1, 0.1])[:, None, None] + noise  # the same noise for all: differences have none
    assert smallest_not_worse(masks, losses) == 2
    losses[1, 0] += [0.02, -0.04, 0.03, -0.02]
    assert smallest_not_worse(masks, losses) == 1
    assert smallest_not_worse(masks, losses, width=0.0) in (1, 2)


def test_the_estimate_of_a_loss_adds_an_ascending_bias_to_the_loss_that_was_searched():
    prefixes, elite = np.tri(3, dtype=bool), np.tri(3, dtype=bool)[None, 1:].repeat(2, axis=0)
    searched = np.array([[0.3, 0.3], [0.2, 0.2], [0.1, 0.1], [0.2, 0.1], [0.1, 0.1]])
    left_out = searched + np.array([[0.02, 0.0], [0.2, 0.0], [0.0, 0.1], [0.1, 0.3], [0.1, 0.3]])
    within = np.array([0.28, 0.19, 0.12, 0.3, 0.15, 0.16, 0.3])
    found = rank_finalists(prefixes, elite, left_out, searched, within, 3, 1000, np.zeros((5, 2, 3), dtype=bool))
    bias = np.array([0.01, 0.075, 0.075, 0.2, 0.2])  # 0.1 before 0.05 becomes the mean of both
    smooth = left_out.copy()
    smooth[:3] = [left_out[[0, 0, 1]].mean(axis=0), left_out[:3].mean(axis=0), left_out[[1, 2, 2]].mean(axis=0)]
    expected = 0.6 * (np.array([0.28, 0.19, 0.12, 0.15, 0.16]) + bias) + 0.4 * smooth.mean(axis=1)
    order = np.argsort(expected)
    assert found.fitness == pytest.approx(expected[order])
    assert np.array_equal(found.masks, np.concatenate([prefixes, elite[[0, 1], [1, 0]]])[order])
    assert found.left_out == pytest.approx(smooth[order])
    bias = [0.0, 0.0, 0.1, 0.3, 0.3]  # without the first part
    assert found.without[:, 0] == pytest.approx((0.6 * (searched[:, 0] + bias) + 0.4 * smooth[:, 1])[order])
