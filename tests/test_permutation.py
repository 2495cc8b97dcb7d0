"""The permutation test: chance is recognised, the result is determined by the seed, and errors are clear."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold
from sklearn.naive_bayes import GaussianNB

from subswarm import PermutationTest, SwarmSelector
from subswarm._permutation import describe_permutations, shuffles
from subswarm.errors import DataError, SettingError
from subswarm.report.record import Selection
from subswarm.report.selection_page import selection_page

WINE = load_wine(return_X_y=True)


def selector(**settings):
    return SwarmSelector(GaussianNB(), **{"cv": 3, "max_evaluations": 60, "random_state": 0} | settings)


def test_informative_columns_are_better_than_all_shuffled_targets():
    found = selector(permutation_test=9).fit(*WINE)
    test = found.permutation_test_
    assert test.scores.shape == (9,)
    assert test.score == found.best_score_
    assert test.count == 0
    assert test.p_value == 0.1
    assert test.scores.max() < 0.6
    plain = selector().fit(*WINE)
    assert plain.best_score_ == found.best_score_
    assert plain.permutation_test_ is None


def test_noise_columns_are_not():
    p_values = []
    for seed in range(3):
        X = np.random.default_rng(seed).normal(size=(90, 12))
        found = selector(permutation_test=9).fit(X, np.arange(90) % 2)
        p_values.append(found.permutation_test_.p_value)
        assert found.permutation_test_.sentence() in found._repr_html_()
    assert np.mean(p_values) > 0.3


def test_the_scores_depend_on_the_seed_and_not_on_the_workers():
    first, second, other = (
        selector(permutation_test=3, n_jobs=jobs, random_state=seed).fit(*WINE).permutation_test_.scores
        for jobs, seed in ((1, 0), (2, 0), (1, 1))
    )
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_the_p_value_counts_the_given_target_too():
    test = PermutationTest(0.7, np.array([0.5, 0.7, 0.8, 0.6]))
    assert test.count == 2
    assert test.p_value == 3 / 5
    assert test.sentence().startswith("p = 0.6: 2 of 4")


def test_a_search_on_a_shuffled_target_is_the_same_search():
    X, y = load_diabetes(return_X_y=True)
    (order,) = shuffles(y, 1, seed=5)
    settings = {"max_evaluations": 60, "cv": 3, "random_state": 5}
    found = SwarmSelector(Ridge(), permutation_test=1, **settings).fit(X, y)
    assert found.permutation_test_.scores[0] == SwarmSelector(Ridge(), **settings).fit(X, y[order]).best_score_


def test_groups_are_shuffled_within():
    groups = np.repeat(np.arange(6), 10)
    y = np.tile([0, 1], 30)
    for order in shuffles(y, 5, 0, groups):
        assert np.array_equal(groups[order], groups)
        assert not np.array_equal(order, np.arange(60))
    X = np.random.default_rng(0).normal(size=(60, 5))
    found = selector(cv=GroupKFold(3), permutation_test=2).fit(X, y, groups=groups)
    assert found.permutation_test_.scores.shape == (2,)
    with pytest.raises(DataError, match="constant within each group"):
        selector(cv=GroupKFold(3), permutation_test=2).fit(X, groups % 2, groups=groups)


@pytest.mark.parametrize("wrong", [0, -3, 2.5, "many", True])
def test_wrong_numbers_are_refused_before_the_search(wrong):
    with pytest.raises(SettingError, match="permutation_test"):
        selector(permutation_test=wrong).fit(*WINE)


def test_an_interruption_keeps_the_selection(monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("subswarm.selector.run_permutations", interrupt)
    with pytest.warns(UserWarning, match="permutation test was interrupted"):
        found = selector(permutation_test=2).fit(*WINE)
    assert found.permutation_test_ is None
    assert found.n_features_ >= 1


def test_the_page_and_the_json_have_the_test():
    found = selector(permutation_test=4).fit(*WINE)
    selection = Selection.of(found)
    page = selection_page(selection)
    assert "Scores on shuffled targets" in page
    assert "p = 0.2: 0 of 4" in page
    assert selection.as_json()["permutation_test"]["p_value"] == 0.2
    assert len(selection.as_json()["permutation_test"]["scores"]) == 4


def test_nested_searches_do_not_repeat_the_test():
    found = selector(permutation_test=2, held_out=2).fit(*WINE)
    assert found.held_out_.scores.shape == (2,)
    assert found.permutation_test_.scores.shape == (2,)


def test_the_cost_is_announced():
    assert describe_permutations(20, 1, 3.0) == "permutation test: 20 more searches, 1 at a time, about 60 s"
