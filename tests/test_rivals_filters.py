"""Rankings from the data, the searches that follow them, and filters and wrappers together."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_classification, make_regression
from sklearn.feature_selection import f_classif, mutual_info_classif
from sklearn.linear_model import Ridge
from sklearn.metrics import mutual_info_score
from sklearn.naive_bayes import GaussianNB
from typer.testing import CliRunner

from subswarm import SwarmSelector, make_objective, search
from subswarm._search.ask_tell import Search
from subswarm.algorithms import MRMR, Problem, RankingSearch, TwoDUPSO, get_algorithm
from subswarm.cli import app
from subswarm.errors import DataError, SettingError
from subswarm.objective.constraints import ColumnsView, make_space
from subswarm.objective.filters import (
    RANKINGS,
    discretized,
    mrmr_order,
    mutual_information_table,
    ranking_scores,
    relieff_weights,
)


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


def test_mutual_information_and_anova_are_scikit_learns(wine):
    X, y = wine
    np.testing.assert_array_equal(ranking_scores("mutual-information", X, y), mutual_info_classif(X, y, random_state=0))
    np.testing.assert_allclose(ranking_scores("anova-f", X, y), f_classif(X, y)[0])


def test_a_constant_column_ranks_last_by_anova_and_a_perfect_one_first():
    X = np.array([[1.0, 0.0, 0.3], [1.0, 0.0, 0.5], [1.0, 1.0, 0.6], [1.0, 1.0, 0.4]])
    scores = ranking_scores("anova-f", X, [0, 0, 1, 1])
    assert np.isfinite(scores).all()
    assert np.argsort(-scores).tolist()[0] == 1
    assert scores[0] == scores.min()


def test_relieff_by_hand():
    # One feature in ranges 0..1: rows a = 0, b = 0.2 of class 0 (share 1/2), c = 0.6 of class 1, d = 1 of class 2.
    X, classes = np.array([[0.0], [0.2], [0.6], [1.0]]), np.array([0, 0, 1, 2])
    # hits: a-b 0.2, b-a 0.2, none for c and d; misses weighted by P(C) / (1 - P(own)):
    # a: (c 0.6 + d 1.0) / 2, b: (0.4 + 0.8) / 2, c: (2 * b 0.4 + d 0.4) / 3, d: (2 * b 0.8 + c 0.4) / 3
    wanted = (-0.2 - 0.2 + 0.8 + 0.6 + 1.2 / 3 + 2.0 / 3) / 4
    assert relieff_weights(X, classes, neighbours=1) == pytest.approx([wanted])


def test_relieff_averages_over_as_many_neighbours_as_there_are():
    X, classes = np.array([[0.0], [0.4], [1.0]]), np.array([0, 0, 1])
    # a: hit 0.4, miss 1.0; b: hit 0.4, miss 0.6; c: no hit, misses (1.0 + 0.6) / 2
    assert relieff_weights(X, classes, neighbours=10) == pytest.approx([(-0.4 - 0.4 + 1.0 + 0.6 + 0.8) / 3])


def test_relieff_in_pieces_is_relieff_at_once(monkeypatch, wine):
    X, y = wine
    whole = relieff_weights(X, y)
    monkeypatch.setattr("subswarm.objective.filters._CHUNK", 1)
    np.testing.assert_allclose(relieff_weights(X, y), whole)


def test_relieff_sees_features_that_matter_only_together():
    rng = np.random.default_rng(0)
    X = rng.random((300, 6))
    y = (X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)
    relieff, anova = (ranking_scores(name, X, y) for name in ("relieff", "anova-f"))
    assert set(np.argsort(-relieff)[:2].tolist()) == {0, 1}
    assert relieff[:2].min() > 3 * relieff[2:].max()
    assert set(np.argsort(-anova)[:2].tolist()) != {0, 1}


def test_equally_filled_bins():
    assert discretized(np.arange(10.0)[:, None], bins=5).ravel().tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert discretized(np.array([[7.0], [7.0], [2.0]])).ravel().tolist() == [1, 1, 0]


def test_mutual_information_of_codes_is_scikit_learns():
    rng = np.random.default_rng(0)
    codes, target = rng.integers(0, 4, size=(80, 6)), rng.integers(0, 3, size=80)
    wanted = [mutual_info_score(column, target) for column in codes.T]
    np.testing.assert_allclose(mutual_information_table(codes, target), wanted, atol=1e-12)


def test_mrmr_by_hand():
    # y = (a, b); the first column is a, the second a again, the third b with one row wrong.
    a, b = np.array([0, 0, 0, 0, 1, 1, 1, 1]), np.array([0, 0, 1, 1, 0, 0, 1, 1])
    third = b.copy()
    third[0] = 1
    codes, target = np.stack([a, a, third], axis=1), 2 * a + b
    # I(a; y) = ln 2 = 0.693, twice; I(third; y) = 0.662 - 0.173 = 0.488. After the first column, the second is worth
    # 0.693 - 0.693 = 0, the third 0.488 - I(third; a) = 0.454.
    relevance = mutual_information_table(codes, target)
    assert relevance == pytest.approx([np.log(2), np.log(2), mutual_info_score(third, target)])
    assert mrmr_order(codes, target).tolist() == [0, 2, 1]


def test_mrmr_of_a_table_is_its_definition(wine):
    X, y = wine
    codes = discretized(X)
    relevance = [mutual_info_score(column, y) for column in codes.T]
    order: list[int] = []
    while len(order) < X.shape[1]:
        value = [
            -np.inf
            if feature in order
            else relevance[feature]
            - np.mean([mutual_info_score(codes[:, feature], codes[:, k]) for k in order] or [0.0])
            for feature in range(X.shape[1])
        ]
        order.append(int(np.argmax(value)))
    assert np.argsort(-ranking_scores("mrmr", X, y)).tolist() == order


@pytest.mark.parametrize("name", ["mutual-information", "anova-f", "mrmr"])
def test_rankings_for_a_continuous_target_put_the_informative_columns_first(name):
    X, y = make_regression(200, 8, n_informative=2, random_state=3)
    scores = ranking_scores(name, X, y, classification=False)
    best = int(np.argmax(np.abs([np.corrcoef(column, y)[0, 1] for column in X.T])))
    assert int(np.argmax(scores)) == best


def test_relieff_says_that_it_needs_classes():
    with pytest.raises(DataError, match="ReliefF ranks features for classes"):
        ranking_scores("relieff", [[0.0], [1.0], [2.0]], [0.1, 0.2, 0.3], classification=False)


@pytest.mark.parametrize("name", RANKINGS)
def test_a_ranking_scores_one_column_too(name):
    assert ranking_scores(name, [[0.0], [0.1], [0.9], [1.0]] * 3, [0, 0, 1, 1] * 3).shape == (1,)


def test_a_filter_evaluates_the_prefixes_of_its_ranking_in_batches():
    algorithm = RankingSearch(scores=(0.1, 0.9, 0.5, 0.7), batch=3)
    course = Search(algorithm, 4, 0)
    first = course.ask()
    assert first.astype(int).tolist() == [[0, 1, 0, 0], [0, 1, 0, 1], [0, 1, 1, 1]]
    course.tell([0.3, 0.1, 0.2])
    assert course.ask().all(axis=1).tolist() == [True]
    course.tell([0.4])
    assert course.finished
    assert course.best.features.tolist() == [1, 3]


def test_a_filter_keeps_to_limits_fixed_features_and_whole_groups():
    def lengths(**limits):
        return Search(RankingSearch(scores=(0.1, 0.9, 0.5, 0.7), **limits), 4, 0).ask().astype(int).tolist()

    assert lengths(min_features=2, max_features=3) == [[0, 1, 0, 1], [0, 1, 1, 1]]
    assert lengths(fixed_features=(0,), max_features=2) == [[1, 0, 0, 0], [1, 1, 0, 0]]
    assert lengths(feature_sizes=(1, 2, 1, 2), max_features=4) == [[0, 1, 0, 0], [0, 1, 0, 1]]
    # prefixes have 5, 7, 8 and 10 columns: none has 3, so the best-ranked groups that fit are taken
    assert lengths(feature_sizes=(2, 5, 1, 2), min_features=3, max_features=3) == [[0, 0, 1, 1]]


def bound(algorithm, X, y):
    """The algorithm, bound to the problem of these data."""
    objective = make_objective(GaussianNB(), X, y)
    return algorithm.bind(Problem(objective.n_features, ranking=objective.ranking))


def kept(ranking, X, y, keep):
    """The columns that a preselection keeps."""
    space = make_space(np.shape(X)[1])
    return set(np.flatnonzero(space.among_best(ranking_scores(ranking, X, y), keep).owner >= 0).tolist())


def test_a_filter_without_scores_says_where_they_come_from():
    with pytest.raises(
        SettingError,
        match=r"MRMR ranks the features by the data and has no scores yet; search .*make_objective",
    ):
        search(MRMR(), lambda masks: masks.mean(axis=1), n_features=4)
    with pytest.raises(SettingError, match="one entry for each of 4 features; got 2"):
        search(MRMR(scores=(1.0, 2.0)), lambda masks: masks.mean(axis=1), n_features=4)
    with pytest.raises(SettingError, match="has no ranking of its own"):
        bound(RankingSearch(), [[0.0], [1.0]] * 20, [0, 1] * 20)


def test_scores_are_filled_in_only_where_they_are_missing(wine):
    mine = MRMR(scores=(1.0, 2.0))
    assert bound(mine, *wine) is mine
    swarm = TwoDUPSO()
    assert bound(swarm, *wine) is swarm
    filled = bound(get_algorithm("anova-f", max_features=3), *wine)
    np.testing.assert_allclose(filled.scores, f_classif(*wine)[0])
    assert filled.max_features == 3


def test_a_group_scores_as_its_best_column(wine):
    X, y = wine
    space = make_space(13, feature_groups=[[0, 6, 12]])
    view = ColumnsView(make_objective(GaussianNB(), X, y), space)
    filled = get_algorithm("anova-f").bind(Problem(11, ranking=view.ranking))
    columns = f_classif(X, y)[0]
    assert len(filled.scores) == 11
    assert filled.scores[0] == pytest.approx(columns[[0, 6, 12]].max())
    assert filled.scores[1:] == pytest.approx(np.delete(columns, [0, 6, 12]))


def test_preselection_keeps_the_best_ranked(wine):
    assert kept("anova-f", *wine, keep=3) == set(np.argsort(-f_classif(*wine)[0])[:3].tolist())
    assert kept("mrmr", *wine, keep=99) == set(range(13))


@pytest.mark.parametrize("name", RANKINGS)
def test_the_selector_takes_a_filter_by_name(wine, name):
    X, y = wine
    selector = SwarmSelector(GaussianNB(), name, cv=5, random_state=0, verbose=0).fit(X, y)
    assert selector.result_.evaluations == 13
    assert selector.result_.stop_reason == "finished"
    order = np.argsort(-np.array(selector.result_.settings["scores"]), kind="stable")
    assert set(np.flatnonzero(selector.support_)) == set(order[: selector.n_features_].tolist())


def test_the_selector_searches_among_preselected_columns_and_answers_on_all(wine):
    X, y = wine
    chosen = kept("mrmr", X, y, keep=5)
    selector = SwarmSelector(
        GaussianNB(), cv=5, preselect=("mrmr", 5), fixed_features=[4], max_evaluations=300, random_state=0, verbose=0
    ).fit(X, y)
    assert selector.support_.shape == (13,)
    assert set(np.flatnonzero(selector.support_)) <= {*chosen, 4}
    assert selector.support_[4]
    assert selector.transform(X).shape == (178, selector.n_features_)


def test_a_preselected_space_keeps_groups_fixed_features_and_what_is_left_of_initial_subsets():
    space = make_space(6, feature_groups=[[0, 5]], fixed_features=[2], initial_subsets=[[0, 1], [3]]).among([0, 4])
    assert space.owner.tolist() == [0, -1, 1, -1, 2, 0]
    assert (space.n_features, space.sizes, space.fixed, space.initial) == (3, (2, 1, 1), (1,), ((0,),))
    columns = space.columns(np.array([[True, False, True], [False, True, False]]))
    assert columns.astype(int).tolist() == [[1, 0, 0, 0, 1, 1], [0, 0, 1, 0, 0, 0]]


def test_a_preselection_that_is_no_pair_is_refused(wine):
    with pytest.raises(SettingError, match=r"a pair of a ranking and a number"):
        SwarmSelector(GaussianNB(), preselect="mrmr", verbose=0).fit(*wine)
    with pytest.raises(SettingError, match="ranking of preselect must be one of"):
        SwarmSelector(GaussianNB(), preselect=("chi2", 4), verbose=0).fit(*wine)


def test_a_filter_serves_a_regressor():
    X, y = make_regression(80, 8, n_informative=3, noise=1.0, random_state=0)
    selector = SwarmSelector(Ridge(), "anova-f", cv=5, random_state=0, verbose=0).fit(X, y)
    assert 1 <= selector.n_features_ <= 8


def test_with_many_useless_columns_a_preselection_finds_the_useful_ones():
    X, y = make_classification(
        150, 60, n_informative=4, n_redundant=0, n_clusters_per_class=1, shuffle=False, random_state=0
    )
    assert kept("relieff", X, y, keep=6) >= {0, 1, 2, 3}


def test_the_command_line_preselects(tmp_path):
    out = tmp_path / "found.json"
    command = ["select", "wine", "--model", "nb", "--evaluations", "90", "--preselect", "anova-f:4", "--quiet"]
    result = CliRunner().invoke(app, [*command, "--jobs", "1", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert json.loads(out.read_text())["n_features"] <= 4
    wrong = CliRunner().invoke(app, ["select", "wine", "--preselect", "mrmr"])
    assert "RANKING:NUMBER" in str(wrong.exception)


def test_scores_may_be_an_iterator():
    assert RankingSearch(scores=iter((0.5, 1.0))).scores == (0.5, 1.0)
