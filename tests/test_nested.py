"""The outer folds of a nested cross-validation follow the splitter of the search, or are given."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    LeavePGroupsOut,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.naive_bayes import GaussianNB

from subswarm import SwarmSelector
from subswarm.errors import DataError, SettingError, SubswarmError, SubswarmWarning
from subswarm.nested import held_out
from test_cli import run

WINE = load_wine(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
ROWS = 120
NUMBERS = np.arange(ROWS)
X = np.column_stack([NUMBERS, np.random.default_rng(0).random((ROWS, 4))])  # column 0 is the number of the row
y = NUMBERS // 2 % 2
GROUPS = NUMBERS // 10


class Witness(ClassifierMixin, BaseEstimator):
    """Notes the rows of every fit and of the prediction after it."""

    seen: ClassVar[list[tuple[list[int], list[int]]]] = []

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.rows_ = X[:, 0].astype(int).tolist()
        return self

    def predict(self, X):
        self.seen.append((self.rows_, X[:, 0].astype(int).tolist()))
        return np.full(len(X), self.classes_[0])


def selector(**settings):
    settings = {"max_evaluations": 4, "random_state": 0, "verbose": 0, "fixed_features": [0], **settings}
    return SwarmSelector(Witness(), "random", **settings)


def seen_by(**settings):
    """Every (training rows, test rows) that the estimator saw in the nested searches and on the outer folds."""
    chosen = selector(**{key: value for key, value in settings.items() if key != "groups"})
    outer = chosen.held_out
    Witness.seen = []
    held_out(chosen, X, y, folds=outer, groups=settings.get("groups"))
    return Witness.seen


def outer_parts(seen, folds):
    """The outer folds, from what the estimator saw with all columns, last of all."""
    return seen[-folds:]


@pytest.mark.parametrize(
    "cv", [TimeSeriesSplit(3), TimeSeriesSplit(3, gap=2), TimeSeriesSplit(2, test_size=6), TimeSeriesSplit(2, gap=1)]
)
def test_with_a_time_series_no_model_is_ever_tested_on_rows_before_those_it_was_trained_on(cv):
    seen = seen_by(cv=cv, held_out=4)
    assert len(seen) > 4
    for train, test in seen:
        assert max(train) + cv.gap < min(test)
    for (_, test), (expected, wanted) in zip(
        outer_parts(seen, 4), TimeSeriesSplit(4, gap=cv.gap, test_size=cv.test_size).split(X), strict=True
    ):
        assert test == wanted.tolist()
        assert len(expected) > 0


def test_a_limit_on_the_rows_trained_on_is_the_searchs_own():
    seen = seen_by(cv=TimeSeriesSplit(3, max_train_size=10), held_out=2)
    assert [len(train) for train, _ in outer_parts(seen, 2)] == [40, 80]
    assert all(max(train) < min(test) for train, test in seen)
    assert {len(train) for train, _ in seen} == {10, 40, 80}


def test_the_outer_folds_of_the_selector_are_those_of_the_function():
    X, y = DIABETES
    cv = TimeSeriesSplit(3)
    common = {"cv": cv, "max_evaluations": 30, "random_state": 0, "verbose": 0}
    fitted = SwarmSelector(LinearRegression(), held_out=3, **common).fit(X, y)
    function = held_out(SwarmSelector(LinearRegression(), **common), X, y, folds=3)
    given = SwarmSelector(LinearRegression(), held_out=TimeSeriesSplit(3), **common).fit(X, y)
    for other in (function, given.held_out_):
        assert fitted.held_out_.scores.tolist() == other.scores.tolist()
        assert fitted.held_out_.supports.tolist() == other.supports.tolist()
    for fold, (train, test) in enumerate(TimeSeriesSplit(3).split(X)):
        chosen = fitted.held_out_.supports[fold]
        model = LinearRegression().fit(X[train][:, chosen], y[train])
        assert fitted.held_out_.scores[fold] == model.score(X[test][:, chosen], y[test])


@pytest.mark.parametrize(
    "cv",
    [
        GroupKFold(3),
        StratifiedGroupKFold(3),
        LeaveOneGroupOut(),
        LeavePGroupsOut(2),
        GroupShuffleSplit(2, random_state=0),
    ],
    ids=lambda cv: type(cv).__name__,
)
def test_no_group_is_ever_split(cv):
    seen = seen_by(cv=cv, held_out=4, groups=GROUPS)
    for train, test in seen:
        assert not set(GROUPS[train]) & set(GROUPS[test])
    tested = [row for _, test in outer_parts(seen, 4) for row in test]
    assert sorted(tested) == NUMBERS.tolist()


@pytest.mark.parametrize("cv", [KFold(3), StratifiedKFold(3)])
def test_rows_that_the_search_does_not_shuffle_are_not_shuffled_outside(cv):
    seen = seen_by(cv=cv, held_out=4)
    expected = [test.tolist() for _, test in type(cv)(4).split(X, y)]
    assert [test for _, test in outer_parts(seen, 4)] == expected


@pytest.mark.parametrize("cv", [3, KFold(3, shuffle=True, random_state=1), ShuffleSplit(2, random_state=1)])
def test_other_rows_are_shuffled_and_stratified(cv):
    seen = seen_by(cv=cv, held_out=4)
    expected = [test.tolist() for _, test in StratifiedKFold(4, shuffle=True, random_state=0).split(X, y)]
    assert [test for _, test in outer_parts(seen, 4)] == expected


PLACES = np.where(NUMBERS < 20, -1, NUMBERS % 5)


@pytest.mark.parametrize("folds", [2, 3, 5])
def test_predefined_folds_are_never_split_and_rows_never_tested_are_never_tested(folds):
    seen = seen_by(cv=PredefinedSplit(PLACES), held_out=folds)
    for train, test in seen:
        assert not set(PLACES[train]) & set(PLACES[test])
        assert set(range(20)) <= set(train)
    tested = [row for _, test in outer_parts(seen, folds) for row in test]
    assert sorted(tested) == list(range(20, ROWS))


def test_a_given_splitter_is_used_as_it_is():
    outer = ShuffleSplit(3, test_size=7, random_state=5)
    expected = [(train.tolist(), test.tolist()) for train, test in outer.split(X)]
    for cv in (2, TimeSeriesSplit(2), PredefinedSplit(PLACES)):
        assert outer_parts(seen_by(cv=cv, held_out=outer), 3) == expected
    assert outer_parts(seen_by(cv=2, held_out=expected), 3) == expected


class OddRows:
    """A splitter of a class that nobody knows: even rows train, odd ones test."""

    def split(self, X, y=None, groups=None):
        yield np.arange(0, len(X), 2), np.arange(1, len(X), 2)

    def get_n_splits(self, X=None, y=None, groups=None):
        return 1


SPLITS = [(np.delete(NUMBERS, slice(part, None, 3)), NUMBERS[part::3]) for part in range(3)]


@pytest.mark.parametrize("cv", [OddRows(), SPLITS, type("MyFolds", (KFold,), {})(3)], ids=["odd", "list", "subclass"])
def test_where_the_outer_folds_do_not_follow_from_cv_the_splitter_must_be_given(cv):
    with pytest.raises(SettingError, match=r"held_out=3 has no meaning where cv is .*held_out=splitter"):
        selector(cv=cv, held_out=3).fit(X, y)
    with pytest.raises(SettingError, match=r"folds=3 has no meaning where cv is .*folds=splitter"):
        held_out(selector(cv=cv), X, y, folds=3)
    outer = KFold(3, shuffle=True, random_state=1)
    expected = [(train.tolist(), test.tolist()) for train, test in outer.split(X)]
    assert outer_parts(seen_by(cv=cv, held_out=outer), 3) == expected


def test_a_list_of_splits_is_cut_to_the_rows_of_an_outer_fold():
    outer = KFold(3)
    seen = seen_by(cv=SPLITS, held_out=outer)
    wanted = [
        (sorted(set(train) & set(left)), sorted(set(test) & set(left)))
        for left, _ in outer.split(X)
        for train, test in SPLITS
    ]
    inner = [pair for pair in seen if pair not in outer_parts(seen, 3)]
    assert {str(pair) for pair in inner} == {str(([int(r) for r in a], [int(r) for r in b])) for a, b in wanted}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"cv": TimeSeriesSplit(30), "held_out": 5}, r"outer fold 1 of held_out leaves 20 rows.*held_out=splitter"),
        ({"cv": 50, "held_out": 2}, "outer fold 1 of held_out leaves 60 rows to search on, too few for cv"),
        ({"cv": 3, "held_out": 70}, "held_out=70 stratified folds need a class with at least 70 rows"),
        ({"cv": GroupKFold(3), "held_out": 13, "groups": GROUPS}, "need at least 13 groups; got 12"),
        ({"cv": GroupKFold(12), "held_out": 3, "groups": GROUPS}, "outer fold 1 of held_out leaves 80 rows"),
        ({"cv": PredefinedSplit(PLACES), "held_out": 6}, "made of whole predefined folds, and cv, .* has 5"),
        ({"cv": PredefinedSplit(np.where(NUMBERS < 60, -1, 0)), "held_out": 2}, "has 1; give at most as many"),
        ({"cv": PredefinedSplit(NUMBERS % 2), "held_out": 2}, "leaves 60 rows to search on, too few for cv"),
        ({"cv": (pair for pair in SPLITS), "held_out": KFold(2)}, "iterator"),
        ({"held_out": "five"}, "held_out must be a number of outer folds, a splitter or a list of splits; got 'five'"),
        ({"held_out": KFold}, "held_out must be a number of outer folds"),
        ({"held_out": []}, "held_out gave no folds"),
        ({"cv": 3, "held_out": [(NUMBERS[y == 0], NUMBERS[y == 1])]}, "all of one class"),
    ],
)
def test_what_cannot_be_nested_is_refused_before_any_search(settings, sentence):
    groups = {"groups": settings["groups"]} if "groups" in settings else {}
    chosen = selector(**{key: value for key, value in settings.items() if key != "groups"}, callbacks=[pytest.fail])
    with pytest.raises(SubswarmError, match=sentence):
        chosen.fit(X, y, **groups)


def test_one_outer_fold_has_no_standard_error():
    found = held_out(selector(cv=2), X, y, folds=OddRows())
    assert len(found.scores) == 1
    assert np.isnan(found.standard_error)
    assert "±" not in found.sentence()
    assert "1 search did not use" in found.sentence()


def test_a_splitter_for_the_outer_folds_survives_cloning_and_setting():
    outer = TimeSeriesSplit(3)
    chosen = selector(held_out=outer)
    assert chosen.get_params()["held_out"] is outer
    copied = clone(chosen)
    assert repr(copied.held_out) == repr(outer)
    assert copied.set_params(held_out=None).held_out is None


def test_the_searches_inside_have_as_many_folds_as_their_rows_allow():
    rows = np.r_[:11, 60:71, 131:142]
    X, y = WINE[0][rows], WINE[1][rows]
    with pytest.warns(SubswarmWarning, match="they use as few as 8 folds instead of 10"):
        fitted = SwarmSelector(GaussianNB(), max_evaluations=30, random_state=0, verbose=0, held_out=3).fit(X, y)
    assert fitted.held_out_.scores.shape == (3,)
    with pytest.raises(DataError, match="too few for cv"):
        SwarmSelector(GaussianNB(), max_evaluations=30, random_state=0, verbose=0, cv=10, held_out=3).fit(X, y)


def test_the_command_line_refuses_before_the_search_what_cannot_be_nested():
    error = run("select", "wine", "--cv", 48, "--held-out", 2, "--evaluations", 10**7, status=2).stderr
    assert "outer fold 1 of held_out leaves 89 rows to search on" in error
