"""Frames and sparse matrices reach the estimator as they are: columns, categories, names and missing values."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from subswarm import SwarmSelector
from subswarm.engines.data import for_columns, params_for_columns, take_columns
from subswarm.engines.importances import _permuted
from subswarm.errors import DataError, SettingError
from subswarm.objective.foldwise import foldwise
from subswarm.objective.objective import make_objective

pytestmark = pytest.mark.usefixtures("one_thread")

SEEN: list[object] = []
"""The tables that `Witness` was fitted on."""


class Witness(ClassifierMixin, BaseEstimator):
    """Keeps each table it is fitted on, and predicts the first class."""

    def fit(self, X, y):
        SEEN.append(X)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(X.shape[0], self.classes_[0])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.normal(size=90),
            "colour": pd.Categorical(rng.choice(["red", "green", "blue"], 90)),
            "count": rng.integers(0, 9, 90),
            "grade": pd.Categorical(rng.choice([1, 2, 3], 90)),
            "flag": rng.random(90) < 0.5,
        }
    )
    table.loc[3, "age"] = np.nan
    table.loc[5, "colour"] = None
    return table


@pytest.fixture
def y(frame):
    return ((frame["colour"] == "red") ^ (frame["grade"] == 2)).to_numpy().astype(int)


def select(estimator, X, y, **settings):
    settings = {"max_evaluations": 12, "cv": 2, "random_state": 0, "choose": "best"} | settings
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return SwarmSelector(estimator, **settings).fit(X, y)


def test_lightgbm_sees_all_categorical_columns_of_a_frame(frame, y):
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=3, min_child_samples=5, verbose=-1, n_jobs=1)
    selector = select(model, frame, y, min_features=5)
    names = selector.estimator_.booster_.feature_name()
    categories = selector.estimator_.booster_.pandas_categorical
    assert names == list(frame.columns)
    assert categories == [["blue", "green", "red"], [1, 2, 3]]
    expected = cross_val_score(model, frame, y, cv=selector.folds_)
    np.testing.assert_array_equal(selector.fold_scores_, expected)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_estimator_gets_frames_with_the_dtypes_names_and_missing_values_of_the_table(frame, y, library):
    X = frame if library == "pandas" else pl.from_pandas(frame.astype({"grade": str}).astype({"grade": "category"}))
    SEEN.clear()
    objective = make_objective(Witness(), X, y, cv=2)
    mask = np.array([True, True, False, True, False])
    objective(mask[None])
    assert len(SEEN) == 3  # a first fit of all columns, and two folds
    for number, seen in enumerate(SEEN[1:]):
        expected = take_columns(X, mask)
        train = objective.folds[number][0]
        assert type(seen) is type(X)
        if library == "pandas":
            pd.testing.assert_frame_equal(seen, expected.iloc[train])
        else:
            assert seen.equals(expected[train.tolist()])
            assert seen.schema == expected.schema


def test_an_array_reaches_the_estimator_as_an_array(y):
    SEEN.clear()
    make_objective(Witness(), np.ones((len(y), 3), dtype=np.int64), y, cv=2)(np.array([[True, False, True]]))
    assert [(type(seen), seen.dtype, seen.shape[1]) for seen in SEEN] == [(np.ndarray, np.float64, 2)] * 2


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_matrix", "coo_matrix", "csr_array"])
def test_sparse_matrices_stay_sparse_and_score_as_dense_ones_do(kind):
    dense = sparse.random(80, 6, density=0.4, random_state=0).toarray()
    X, y = getattr(sparse, kind)(dense), (dense[:, 1] > 0).astype(int)
    SEEN.clear()
    make_objective(Witness(), X, y, cv=2)(np.array([[True, False, True, False, True, True]]))
    assert {(sparse.issparse(seen), seen.format, seen.shape[1]) for seen in SEEN} == {(True, "csr", 4)}
    selector = select(LogisticRegression(), X, y)
    assert selector.result_.engine == "estimator"
    assert sparse.issparse(selector.transform(X))
    np.testing.assert_allclose(
        selector.fold_scores_,
        cross_val_score(LogisticRegression(), dense[:, selector.support_], y, cv=selector.folds_),
    )
    assert selector.predict(X).shape == y.shape


def test_an_estimator_that_needs_a_dense_table_refuses_a_sparse_one():
    X = sparse.random(40, 4, density=0.5, random_state=0)
    with pytest.raises(DataError, match=r"sparse matrix, which GaussianNB does not accept.*toarray"):
        make_objective(GaussianNB(), X, np.arange(40) % 2)


@pytest.mark.parametrize("columns", ["names", "positions", "selector"])
def test_a_column_transformer_keeps_the_columns_of_the_subset(frame, y, columns):
    frame = frame.fillna({"age": 0.0}).astype({"colour": str})
    encoded, rest = {
        "names": (["colour", "grade"], ["age", "count", "flag"]),
        "positions": ([1, 3], slice(0, 1)),
        "selector": (make_column_selector(dtype_exclude="number"), make_column_selector(dtype_include="number")),
    }[columns]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    model = make_pipeline(
        make_column_transformer((encoder, encoded), ("passthrough", rest)), DecisionTreeClassifier(random_state=0)
    )
    objective = make_objective(model, frame, y, cv=2)
    every = objective(np.ones((1, 5), dtype=bool))
    one = objective(np.array([[False, False, False, True, False]]))
    alone = make_pipeline(encoder, DecisionTreeClassifier(random_state=0))
    expected = 1 - cross_val_score(alone, frame[["grade"]], y, cv=objective.folds).mean()
    assert one == pytest.approx(expected)
    assert every < one  # the target depends on both
    assert objective.failed == 0


def test_nested_cross_validation_and_predictions_use_the_frame(frame, y):
    model = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=2, categorical_features="from_dtype")
    selector = select(model, frame, y, held_out=2, min_features=4)
    assert selector.held_out_ is not None
    assert np.isfinite(selector.held_out_.scores).all()
    kept = selector.transform(frame)
    pd.testing.assert_frame_equal(kept, frame.loc[:, selector.support_])
    np.testing.assert_array_equal(selector.predict(frame), selector.estimator_.predict(kept))
    assert selector.estimator_.is_categorical_.sum() == (kept.dtypes == "category").sum()
    with pytest.raises(ValueError, match="feature names should match"):
        selector.predict(frame[frame.columns[::-1]])


def test_a_frame_of_numbers_uses_a_fast_engine_and_becomes_an_array(frame, y):
    numbers = frame[["age", "count", "flag"]].fillna(0.0)
    selector = select(GaussianNB(), numbers, y)
    same = select(GaussianNB(), numbers.to_numpy(dtype=float), y)
    assert selector.result_.engine == same.result_.engine != "estimator"
    np.testing.assert_array_equal(selector.fold_scores_, same.fold_scores_)
    assert isinstance(selector.transform(numbers), np.ndarray)
    assert isinstance(selector.set_output(transform="polars").transform(pl.from_pandas(numbers)), pl.DataFrame)


def test_a_fast_engine_is_refused_for_categories(frame, y):
    with pytest.raises(SettingError, match="needs a table of numbers"):
        make_objective(HistGradientBoostingClassifier(), frame, y, engine="fast")


def test_a_model_that_cannot_use_a_column_says_so_before_the_search(frame, y):
    with pytest.raises(DataError, match=r"X has text in column 'colour'; expected numbers or categories"):
        make_objective(HistGradientBoostingClassifier(), frame.astype({"colour": object}), y)
    encoder = make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough")
    with pytest.raises(DataError, match="Pipeline fails on all columns of X as they are"):
        make_objective(make_pipeline(encoder, LogisticRegression()), frame.astype({"grade": str}), y)


def test_lightgbm_refuses_categories_of_polars_before_it_ends_the_process(frame, y):
    lightgbm = pytest.importorskip("lightgbm")
    X = pl.from_pandas(frame[["age", "colour"]])
    with pytest.raises(DataError, match=r"Polars frame with categories in column 'colour'.*to_pandas"):
        make_objective(lightgbm.LGBMClassifier(), X, y)


def test_xgboost_gets_the_categories(frame, y):
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(n_estimators=3, enable_categorical=True, n_jobs=1)
    selector = select(model, frame, y, min_features=5)
    assert selector.estimator_.get_booster().feature_types == ["float", "c", "int", "c", "i"]


def test_catboost_gets_the_categories_of_the_subset(frame, y):
    catboost = pytest.importorskip("catboost")
    X = frame.astype({"colour": object, "grade": str}).fillna({"colour": "none"})
    model = catboost.CatBoostClassifier(
        iterations=3, cat_features=["colour", "grade"], thread_count=1, verbose=False, allow_writing_files=False
    )
    objective = make_objective(model, X, y, cv=2)
    objective(np.array([[True, False, True, True, False], [True, False, True, False, False]]))
    assert objective.failed == 0


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([0, 2], [1]),
        ([-1], [1]),
        (2, 1),
        (0, []),
        (["a", "c", "other"], ["c", "other"]),
        ([True, False, True], [1]),
        (slice(1, 3), [0, 1]),
        ("from_dtype", "from_dtype"),
    ],
)
def test_settings_that_name_columns_follow_the_subset(given, expected):
    model = HistGradientBoostingClassifier(categorical_features=given, monotonic_cst={"a": 1, "c": -1})
    mask, names = np.array([False, True, True]), ["a", "b", "c"]
    changed = for_columns(model, mask, names)
    assert changed.categorical_features == expected
    assert changed.monotonic_cst == {"c": -1}
    assert model.monotonic_cst == {"a": 1, "c": -1}
    assert for_columns(model, np.ones(3, dtype=bool), names) is model
    assert params_for_columns({"m__cat_features": [0, 2], "sample_weight": [1, 2]}, mask, names) == {
        "m__cat_features": [1],
        "sample_weight": [1, 2],
    }


@pytest.mark.parametrize("change", ["values", "dtypes", "names", "categories"])
def test_the_fingerprint_covers_the_frame(frame, y, change):
    changed = {
        "values": lambda: frame.assign(age=frame["age"] + 1),
        "dtypes": lambda: frame.astype({"count": float}),
        "names": lambda: frame.rename(columns={"count": "number"}),
        "categories": lambda: frame.assign(colour=frame["colour"].cat.add_categories(["pink"])),
    }[change]()
    model = HistGradientBoostingClassifier(max_iter=1)
    first, same, other = (make_objective(model, X, y, cv=2).fingerprint() for X in (frame, frame.copy(), changed))
    assert first == same != other


def test_rankings_use_codes_for_categories_and_means_for_missing_values(frame, y):
    objective = make_objective(HistGradientBoostingClassifier(max_iter=1), frame, y, cv=2)
    for ranking in ("anova-f", "relieff", "mrmr", "mutual-information"):
        assert np.isfinite(objective.ranking(ranking)).all()
    X = sparse.random(60, 5, density=0.5, random_state=0)
    sparse_objective = make_objective(LogisticRegression(), X, np.arange(60) % 2, cv=2)
    np.testing.assert_array_equal(
        sparse_objective.ranking("anova-f"),
        make_objective(LogisticRegression(), X.toarray(), np.arange(60) % 2, cv=2).ranking("anova-f"),
    )


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_importances_of_models_without_their_own_come_from_the_frame(frame, y, library):
    X = frame.fillna({"age": 0.0}).astype({"grade": str}).astype({"grade": "category"})
    X = X if library == "pandas" else pl.from_pandas(X)
    model = HistGradientBoostingClassifier(
        max_iter=10, min_samples_leaf=2, categorical_features="from_dtype", random_state=0
    )
    objective = foldwise(make_objective(model, X, y, cv=2))
    every = np.ones((1, 5), dtype=bool)
    objective(every)
    found = objective.importances(every)[0]
    assert found.sum() == pytest.approx(1.0)
    assert found.argmax() == 1  # a column of categories that the target depends on


@pytest.mark.parametrize("library", ["numpy", "pandas", "polars"])
def test_a_column_is_permuted_in_its_own_copy_of_the_rows(library):
    values = np.arange(6.0).reshape(3, 2)
    rows = {"numpy": np.array, "pandas": pd.DataFrame, "polars": pl.DataFrame}[library](values)
    found = np.asarray(_permuted(rows, range(2)))
    np.testing.assert_array_equal(found, [[4, 1], [0, 3], [2, 5], [0, 5], [2, 1], [4, 3]])


def test_a_transformer_of_one_column_of_texts_keeps_its_column():
    texts = pd.DataFrame({"age": np.arange(40.0), "note": ["good day", "bad night"] * 20, "size": np.ones(40)})
    model = make_pipeline(
        make_column_transformer((TfidfVectorizer(), "note"), ("passthrough", ["age", "size"])),
        DecisionTreeClassifier(random_state=0),
    )
    objective = make_objective(model, texts, np.arange(40) % 2, cv=2)
    losses = objective(np.array([[False, True, True], [False, False, True]]))
    assert losses.tolist() == [0.0, 0.5]
    assert objective.failed == 0


def test_lists_in_the_cells_of_a_column_are_values_like_others():
    table = pl.DataFrame({"a": np.arange(12.0), "b": [[1.0, 2.0], [3.0]] * 6})
    objective = make_objective(Witness(), table, np.arange(12) % 2, cv=3)
    assert objective([[True, True]]).tolist() == [0.5]
