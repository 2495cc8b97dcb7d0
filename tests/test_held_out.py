"""Nested scores and repeated cross-validation of the selector."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import load_diabetes, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GroupKFold, RepeatedStratifiedKFold, StratifiedGroupKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from subswarm import SwarmSelector
from subswarm._search.result import one_standard_error, standard_error
from subswarm.errors import DataError, SettingError
from subswarm.nested import describe_cost, held_out
from subswarm.report.record import search_with_algorithms

WINE = load_wine(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)


def selector(estimator=None, **settings):
    settings = {"max_evaluations": 90, "random_state": 3, "cv": 3, "verbose": 0, **settings}
    return SwarmSelector(GaussianNB() if estimator is None else estimator, **settings)


def test_the_selector_gives_the_nested_scores_of_held_out_and_the_same_selection():
    fitted = selector(held_out=4, n_jobs=2).fit(*WINE)
    assert fitted.support_.tolist() == selector().fit(*WINE).support_.tolist()
    nested = held_out(selector(), *WINE, folds=4, random_state=3)
    assert fitted.held_out_.scores.tolist() == nested.scores.tolist()
    assert fitted.held_out_.supports.tolist() == nested.supports.tolist()
    assert fitted.held_out_.baseline_scores.tolist() == nested.baseline_scores.tolist()
    assert selector().fit(*WINE).held_out_ is None


def test_the_same_seed_gives_the_same_nested_score_with_a_random_model():
    models = [RandomForestClassifier(n_estimators=3) for _ in range(2)]
    one, other = (selector(model, held_out=2, max_evaluations=12).fit(*WINE).held_out_ for model in models)
    assert one.scores.tolist() == other.scores.tolist()


def test_the_cost_is_printed_first_unless_verbose_is_0(capfd):
    selector(held_out=3, verbose=1).fit(*WINE)
    said = capfd.readouterr()
    assert said.err.count("nested cross-validation: 3 more searches, 1 at a time, about ") == 1
    assert said.out == ""
    selector(held_out=3).fit(*WINE)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("folds", "jobs", "seconds", "words"),
    [(5, 1, 10.0, "1 at a time, about 40 s"), (5, 2, 10.0, "2 at a time, about 24 s"), (4, 9, 600.0, "about 8 min")],
)
def test_the_cost_follows_from_the_first_search_and_the_workers(folds, jobs, seconds, words):
    assert words in describe_cost(folds, jobs, seconds)


def test_a_notebook_shows_the_nested_score():
    fitted = selector(held_out=3).fit(*WINE)
    shown = fitted._repr_html_()
    assert f"{fitted.best_score_:.4f}" in shown
    assert f"{fitted.held_out_.score:.4f} ± {fitted.held_out_.standard_error:.4f}" in shown
    assert "3 searches did not use" in shown
    assert "nested score" not in selector().fit(*WINE)._repr_html_()


@pytest.mark.parametrize(
    ("model", "data", "splitter"),
    [
        (GaussianNB(), WINE, StratifiedGroupKFold(3, shuffle=True, random_state=3)),
        (LinearRegression(), DIABETES, GroupKFold(3)),
    ],
)
def test_groups_and_weights_are_kept_in_the_outer_folds(model, data, splitter):
    X, y = data
    groups, weights = np.arange(len(y)) % 12, np.random.default_rng(0).random(len(y))
    ours = selector(model, cv=GroupKFold(3), held_out=3).fit(X, y, groups=groups, sample_weight=weights)
    for fold, (train, test) in enumerate(splitter.split(X, y, groups)):
        inner = selector(model, cv=GroupKFold(3)).fit(
            X[train], y[train], groups=groups[train], sample_weight=weights[train]
        )
        chosen = ours.held_out_.supports[fold]
        assert inner.support_.tolist() == chosen.tolist()
        fitted = type(model)().fit(X[train][:, chosen], y[train], sample_weight=weights[train])
        assert ours.held_out_.scores[fold] == fitted.score(X[test][:, chosen], y[test])
        everything = type(model)().fit(X[train], y[train], sample_weight=weights[train])
        assert ours.held_out_.baseline_scores[fold] == everything.score(X[test], y[test])


@pytest.mark.parametrize("folds", [1, 0, "5", True])
def test_wrong_numbers_of_outer_folds_are_refused(folds):
    with pytest.raises(SettingError, match="held_out"):
        selector(held_out=folds).fit(*WINE)


def test_splits_and_metadata_that_cannot_be_nested_are_refused_before_the_search():
    splits = [(np.arange(0, 178, 2), np.arange(1, 178, 2))]
    with pytest.raises(
        SettingError, match=r"held_out=3 has no meaning where cv is a list of splits.*held_out=splitter"
    ):
        selector(cv=splits, held_out=3).fit(*WINE)
    with config_context(enable_metadata_routing=True):
        routed = selector(GaussianNB().set_fit_request(sample_weight=True), held_out=3)
        with pytest.raises(SettingError, match="cannot route sample_weight"):
            routed.fit(*WINE, sample_weight=np.ones(178))


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupted_search_is_not_repeated():
    def interrupt(snapshot):
        if snapshot.evaluations >= 60:
            os.kill(os.getpid(), signal.SIGINT)

    fitted = selector(held_out=3, max_evaluations=None, max_seconds=60, callbacks=[interrupt]).fit(*WINE)
    assert fitted.result_.stop_reason == "interrupted"
    assert fitted.held_out_ is None


def test_with_repeats_the_reported_score_is_what_cross_val_score_gives_on_repeated_folds():
    X, y = WINE
    folds = RepeatedStratifiedKFold(n_splits=4, n_repeats=3, random_state=3)
    for model in (GaussianNB(), make_pipeline(StandardScaler(), KNeighborsClassifier())):
        fitted = selector(model, cv=4, repeats=3, choose="best").fit(X, y)
        assert fitted.result_.evaluations == 90
        assert fitted.result_.n_partitions == 3
        scores = cross_val_score(model, X[:, fitted.support_], y, cv=folds)
        assert np.array_equal(fitted.fold_scores_, scores)
        assert np.array_equal(fitted.fold_scores_, cross_val_score(model, X[:, fitted.support_], y, cv=fitted.folds_))
        assert fitted.best_score_ == scores.mean()
        assert fitted.baseline_score_ == cross_val_score(model, X, y, cv=folds).mean()
        again = selector(model, cv=folds, choose="best").fit(X, y)
        assert again.support_.tolist() == fitted.support_.tolist()


def test_groups_of_columns_are_scored_on_all_repeats():
    fitted = selector(repeats=2, feature_groups=[[0, 1, 2], [5, 6]], held_out=2).fit(*WINE)
    assert fitted.support_[:3].all() or not fitted.support_[:3].any()
    assert len(fitted.fold_scores_) == 6
    assert fitted.held_out_.scores.shape == (2,)


def test_repeating_the_folds_does_not_make_the_standard_error_small():
    result = selector(cv=5, repeats=8, max_evaluations=240).fit(*WINE).result_
    losses = result.fold_losses.reshape(8, 5)
    assert standard_error(result) == pytest.approx((losses.std(axis=1, ddof=1) / np.sqrt(5)).mean())
    few = one_standard_error(result)
    within = result.front.fitness <= result.best.fitness + standard_error(result)
    assert few.cardinality == result.front.cardinality[within].min()


@pytest.mark.parametrize(
    ("partitions", "settings"),
    [
        (6, {"max_evaluations": 6000}),
        (6, {"max_evaluations": None, "max_seconds": 0.2}),
        (6, {"max_evaluations": 9000, "max_seconds": 0.2}),
        (2, {"max_evaluations": 2999}),
        (1, {"max_evaluations": 1999}),
        (1, {"max_evaluations": 6000, "patience": 100}),
        (1, {"max_evaluations": 6000, "max_seconds": 0.2, "cv": RepeatedStratifiedKFold(n_splits=3, n_repeats=1)}),
        (1, {"max_evaluations": 2999, "algorithm": "bpso"}),
        (3, {"max_evaluations": 6000, "max_seconds": 0.2, "repeats": 3}),
    ],
)
def test_by_default_2d_elite_has_one_repeat_for_every_1000_evaluations_and_at_most_six(partitions, settings):
    result = selector(**settings).fit(*WINE).result_
    assert result.n_partitions == partitions
    assert len(result.fold_losses) == 3 * partitions


def test_by_default_the_score_is_that_of_cross_val_score_on_all_repeats():
    X, y = WINE
    fitted = selector(max_evaluations=2000).fit(X, y)
    folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=3)
    scores = cross_val_score(GaussianNB(), X[:, fitted.support_], y, cv=folds)
    assert fitted.fold_scores_.tolist() == scores.tolist()


def test_an_unknown_word_for_repeats_is_refused():
    with pytest.raises(SettingError, match="repeats must be one of 'auto'; got 'many'"):
        selector(repeats="many").fit(*WINE)


def test_other_algorithms_are_compared_on_the_same_folds():
    fitted = selector(max_evaluations=2000).fit(*WINE)
    rivals = search_with_algorithms(fitted, *WINE, ["bpso", "2d-elite"])
    for rival in rivals.values():
        assert rival.result_.evaluations <= 2000
        for ours, theirs in zip(fitted.folds_, rival.folds_, strict=True):
            assert ours[1].tolist() == theirs[1].tolist()
    assert [rival.result_.algorithm for rival in rivals.values()] == ["bpso (race)", "2d-elite"]


@pytest.mark.parametrize("value", [None, 3, "2d-elite", [0, 0], GaussianNB(), SwarmSelector, {"estimator": 1}])
def test_only_a_selector_can_be_scored_by_nested_cross_validation(value):
    with pytest.raises(SettingError, match="selector must be a SwarmSelector; got"):
        held_out(value, *WINE, folds=2)


@pytest.mark.parametrize("params", [9, "a", 0.5, [1, 2], {3: 4}])
def test_metadata_of_nested_cross_validation_must_be_a_dict(params):
    with pytest.raises(SettingError, match="params must be a dict of metadata by name"):
        held_out(selector(), *WINE, folds=2, params=params)


def test_groups_of_mixed_types_are_refused_before_the_search():
    X, y = WINE
    groups = np.array([1, "a"] * (len(y) // 2), dtype=object)
    with pytest.raises(DataError, match="groups must be labels of one type"):
        held_out(selector(), X, y, folds=2, groups=groups)
    with pytest.raises(DataError, match="groups must be labels of one type"):
        selector().fit(X, y, groups=groups)
