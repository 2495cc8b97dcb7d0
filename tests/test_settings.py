"""Settings of the wrong type are refused with an error that names them."""

from __future__ import annotations

from inspect import signature

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB

from subswarm import Budget, SwarmSelector, make_objective
from subswarm._checks import check_bool, check_int, check_real
from subswarm.algorithms import Race, TwoDUPSO, get_algorithm, names, settings
from subswarm.errors import SettingError, SubswarmError

IRIS = load_iris(return_X_y=True)

ODD = {
    "text": "no",
    "minus one": -1,
    "a fraction": 2.5,
    "None": None,
    "an empty list": [],
    "an object": object(),
    "not a number": float("nan"),
    "infinite": float("inf"),
    "beyond floats": 10**400,
    "beyond repr": 10**5000,
    "complex": 1j,
    "a dict": {"a": 1},
    "a bool": True,
    "an array": np.array([[0.5, "x"]], dtype=object),
    "a scalar array": np.array(3.5),
}
SETTINGS = [(name, setting) for name in names() for setting in settings(name)]


def sentence_of(make, errors=SettingError):
    """What an error says that comes of making something; None where none comes."""
    try:
        make()
    except errors as error:
        return str(error)
    return None


def check_odd_values(make, setting, errors=SettingError):
    """Make something with each odd value of a setting: it is taken, or an error names the setting."""
    for kind, value in ODD.items():
        said = sentence_of(lambda value=value: make(**{setting: value}), errors)
        assert said is None or (setting in said and len(said) < 500), f"{kind}: {said}"


@pytest.mark.parametrize(("name", "setting"), SETTINGS, ids=[f"{name}-{setting}" for name, setting in SETTINGS])
def test_an_algorithm_refuses_a_wrong_value_by_the_settings_name_or_takes_it(name, setting):
    check_odd_values(lambda **odd: get_algorithm(name, **odd), setting)


@pytest.mark.parametrize("setting", ["algorithm", "elite", "n_partitions"])
def test_a_race_does_so_too(setting):
    check_odd_values(lambda **odd: Race(**{"algorithm": TwoDUPSO(), **odd}), setting)


@pytest.mark.parametrize("setting", ["evaluations", "seconds", "target", "patience"])
def test_a_budget_does_so_too(setting):
    check_odd_values(lambda **odd: Budget(**{"evaluations": 10, **odd}), setting)


BOOLS = [(name, setting) for name, setting in SETTINGS if isinstance(settings(name)[setting], bool)]


@pytest.mark.parametrize("value", ["no", 0, 1, None, 1.0])
@pytest.mark.parametrize(("name", "setting"), BOOLS)
def test_a_yes_or_no_of_an_algorithm_is_true_or_false(name, setting, value):
    with pytest.raises(SettingError, match=f"{setting} must be True or False; got {value!r}"):
        get_algorithm(name, **{setting: value})
    for kept in (True, np.False_):
        assert getattr(get_algorithm(name, **{setting: kept}), setting) == kept


def test_every_kind_of_yes_or_no_is_covered():
    assert {setting for _, setting in BOOLS} == {
        "parsimonious",
        "whole_exemplar",
        "independent_draws",
        "must_beat_current",
        "distinct",
        "adaptive",
    }


def test_what_a_search_fills_in_cannot_be_given():
    with pytest.raises(SettingError, match="cross_fit is filled in by the search, so it must be None; got 'no'"):
        get_algorithm("2d-elite", cross_fit="no")


def test_lists_of_features_are_kept_as_tuples():
    algorithm = TwoDUPSO(fixed_features=[1], feature_sizes=np.array([1, 1, 2]), initial_subsets=[[0, 2]])
    assert (algorithm.fixed_features, algorithm.feature_sizes, algorithm.initial_subsets) == (
        (1,),
        (1, 1, 2),
        ((0, 2),),
    )
    assert algorithm.rules(3).is_legal(np.array([[False, True, False]])).all()


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (lambda: check_int("n", 10**5000), "n must be a whole number, below .* got a value of type int"),
        (lambda: check_int("n", 2**33, low=0, high=2**32), "from 0 to 4294967296; got 8589934592"),
        (lambda: check_real("x", 10**400), "x must be a finite number; got 1000"),
        (lambda: check_bool("b", "yes"), "b must be True or False; got 'yes'"),
    ],
)
def test_a_message_shows_the_value_and_stays_short(check, sentence):
    with pytest.raises(SettingError, match=sentence) as caught:
        check()
    assert len(str(caught.value)) < 200


def selector(**settings):
    settings = {"estimator": GaussianNB(), "max_evaluations": 30, "cv": 2, "random_state": 0, "verbose": 0, **settings}
    return SwarmSelector(**settings).fit(*IRIS)


def objective(**settings):
    return make_objective(**{"estimator": GaussianNB(), "X": IRIS[0], "y": IRIS[1], "cv": 2, **settings})


@pytest.mark.parametrize("setting", signature(SwarmSelector).parameters)
def test_the_selector_refuses_a_wrong_value_by_the_settings_name_or_takes_it(setting, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where the checkpoint "no" is written
    check_odd_values(selector, setting, SubswarmError)


@pytest.mark.parametrize("setting", signature(make_objective).parameters)
def test_an_objective_refuses_a_wrong_value_by_the_settings_name_or_takes_it(setting):
    check_odd_values(objective, setting, SubswarmError)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"fixed_features": 0.1}, "fixed_features must be a list of column indices or names; got 0.1"),
        ({"feature_groups": 3}, "feature_groups must be a list of groups of columns; got 3"),
        ({"feature_groups": [3]}, "feature_groups must be a list of column indices or names; got 3"),
        ({"initial_subsets": 5}, "initial_subsets must be a list of subsets; got 5"),
        ({"preselect": 7}, "preselect must be a pair"),
        ({"preselect": "ab"}, "preselect must be a pair"),
        ({"preselect": ("mrmr", "x")}, "the number of preselect must be a whole number"),
        ({"preselect": ("nope", 3)}, "the ranking of preselect must be one of 'mutual-information'"),
        ({"callbacks": 3}, "callbacks must be a list of functions; got 3"),
        ({"callbacks": print}, "callbacks must be a list of functions"),
        ({"callbacks": [3]}, "each of callbacks must be a function"),
        ({"checkpoint": 5}, "checkpoint must be a path or None; got 5"),
        ({"n_jobs": "two"}, "n_jobs must be a number of workers"),
        ({"n_jobs": 0}, "n_jobs must be a number of workers"),
        ({"device": 3}, "device must be one of 'cpu', 'cuda'"),
        ({"engine": []}, "engine must be one of 'auto'"),
        ({"verbose": "x"}, "verbose must be a whole number"),
        ({"record": "no"}, "record must be True or False; got 'no'"),
        ({"race": "yes"}, 'race must be True, False or "folds"; got .yes.'),
        ({"random_state": "a"}, "random_state must be a whole number from 0 to 4294967295"),
        ({"cv": "ten"}, "cv must be a number of folds, a splitter or a list of splits; got 'ten'"),
        ({"cv": StratifiedKFold}, "cv must be a number of folds, a splitter or a list of splits"),
        ({"cv": [1, 2]}, "cv cannot split the rows"),
        ({"cv": [([0.5, 1.5], [2])]}, "cv gave rows of dtype float64"),
        ({"cv": [([0, 1], [-3])]}, "cv names row -3, but the table has 150 rows"),
        ({"scoring": 3}, "scoring must be a scorer .a name, a callable or None., a list of different names"),
        ({"repeats": 1.5}, "repeats must be a whole number"),
        ({"algorithm": 3}, "algorithm must be a registered name or an algorithm such as"),
        ({"algorithm": "2d-elit"}, "no algorithm '2d-elit' .did you mean '2d-elite'"),
        ({"algorithm": "nope"}, "no algorithm 'nope'; there are 2d-elite, "),
        ({"estimator": GaussianNB}, "estimator must be a scikit-learn estimator object"),
        ({"max_evaluations": None}, "max_evaluations, max_fits, max_seconds and patience"),
        ({"max_evaluations": 0}, "max_evaluations must be"),
        ({"max_seconds": "1"}, "max_seconds must be"),
    ],
)
def test_a_wrong_setting_of_the_selector_gets_its_own_sentence(settings, sentence):
    with pytest.raises(SubswarmError, match=sentence):
        selector(**settings)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"groups": [1, 2]}, r"groups must hold one label for each of the 150 rows; got an array of shape \(2,\)"),
        ({"groups": "no"}, "groups must hold one label for each of the 150 rows; got 'no'"),
        ({"params": 3}, "params must be a dict of metadata"),
        ({"params": [("sample_weight", 1)]}, "params must be a dict of metadata"),
        ({"max_bytes": 0}, "max_bytes"),
        ({"random_state": -1}, "random_state must be a whole number from 0"),
    ],
)
def test_a_wrong_setting_of_an_objective_gets_its_own_sentence(settings, sentence):
    with pytest.raises(SubswarmError, match=sentence):
        objective(**settings)


def test_callbacks_may_come_from_a_generator():
    seen = []
    selector(callbacks=(seen.append for _ in range(1)))
    assert seen
