"""Without ``cv`` there are 10 folds, or as many as the rows allow; a number that was asked for is an error there."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from subswarm import SwarmSelector, make_objective
from subswarm.errors import DataError, SubswarmWarning
from test_cli import run

WINE = load_wine(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)


def table(counts, columns=6):
    """A table with so many rows of each class."""
    y = np.repeat(np.arange(len(counts)), counts)
    X = np.random.default_rng(0).random((len(y), columns)) + y[:, None] * np.arange(columns)
    return X, y


GENES = table([9, 9, 7, 6, 5, 4, 3, 3, 2])  # 48 rows in 9 classes, as in a study of gene expression


@pytest.mark.parametrize("settings", [{}, {"cv": None}])
def test_by_default_an_ordinary_table_has_ten_folds_and_the_same_partitions_as_if_asked_for(settings):
    common = {"estimator": GaussianNB(), "max_evaluations": 2000, "random_state": 1}
    ours, asked = SwarmSelector(**common, **settings).fit(*WINE), SwarmSelector(**common, cv=10).fit(*WINE)
    assert ours.result_.n_partitions == asked.result_.n_partitions == 2
    assert [test.tolist() for _, test in ours.folds_] == [test.tolist() for _, test in asked.folds_]
    assert ours.support_.tolist() == asked.support_.tolist()
    assert ours.fold_scores_.tolist() == asked.fold_scores_.tolist()


def test_with_few_rows_in_every_class_there_are_fewer_folds_and_a_warning_with_the_numbers():
    with pytest.warns(SubswarmWarning, match="need a class with 10 rows, but the largest has 9, so 9 folds are used"):
        fitted = SwarmSelector(KNeighborsClassifier(1), max_evaluations=60, random_state=0).fit(*GENES)
    assert len(fitted.folds_) == 9
    assert fitted.get_params()["cv"] is None
    with pytest.raises(DataError, match=r"cv=10 stratified folds need .* the largest has 9"):
        SwarmSelector(KNeighborsClassifier(1), max_evaluations=60, cv=10).fit(*GENES)


@pytest.mark.parametrize(
    ("model", "X", "y", "scoring", "folds", "sentence"),
    [
        (GaussianNB(), *table([4, 3]), None, 4, "the largest has 4, so 4 folds"),
        (LinearRegression(), DIABETES[0][:8], DIABETES[1][:8], "neg_mean_squared_error", 8, "need 10 rows, but .* 8"),
        (LinearRegression(), DIABETES[0][:8], DIABETES[1][:8], None, 4, "need 20 rows .*at least 2.* but .* 8"),
        (LinearRegression(), DIABETES[0][:19], DIABETES[1][:19], "r2", 9, "need 20 rows .* but the table has 19"),
    ],
)
def test_few_rows_have_fewer_folds_too(model, X, y, scoring, folds, sentence):
    with pytest.warns(SubswarmWarning, match=sentence):
        objective = make_objective(model, X, y, scoring=scoring)
    assert len(objective.folds) == folds
    assert np.isfinite(objective(np.eye(X.shape[1], dtype=bool))).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_objective(model, X, y, scoring=scoring, cv=2)


def test_where_other_scores_need_one_test_row_ten_rows_are_enough():
    X, y = (part[:10] for part in DIABETES)
    assert len(make_objective(LinearRegression(), X, y, scoring="neg_mean_absolute_error").folds) == 10


def test_rows_that_cannot_be_split_at_all_are_still_an_error():
    with (
        pytest.warns(SubswarmWarning),
        pytest.raises(DataError, match=r"class with at least 2 rows; the largest has 1\."),
    ):
        make_objective(GaussianNB(), *table([1, 1, 1]))


def test_the_command_line_says_it_once_as_a_note(tmp_path):
    X, y = GENES
    pd.DataFrame(X).add_prefix("gene").assign(tissue=np.array(list("abcdefghi"))[y]).to_csv(tmp_path / "genes.csv")
    common = ("select", tmp_path / "genes.csv", "--target", "tissue", "--evaluations", 60)
    shown = run(*common, "--seeds", 1, "--against", "bpso")
    assert shown.stderr.count("note: cv was not given") == 1
    assert "the largest has 9, so 9 folds are used" in shown.stderr
    assert "Warning" not in shown.stderr
    assert "means over 9 folds" in " ".join(shown.stdout.split())
    assert "the largest has 9" in run(*common, "--cv", 10, status=2).stderr
