"""Gradient boosting and forests on the command line: categories and missing values of a file reach the model."""

from __future__ import annotations

import json
import sys

import joblib
import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")

from typer.testing import CliRunner

from subswarm._models import MODELS, make_model
from subswarm.cli import app
from subswarm.datasets import load_table
from subswarm.datasets._write import selected_pipeline
from subswarm.errors import MissingExtraError, TableError

pytestmark = pytest.mark.usefixtures("one_thread")

LIBRARIES = {"lightgbm": "lightgbm", "xgboost": "xgboost", "catboost": "catboost"}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 10, 120),
            "colour": rng.choice(["red", "green", "blue"], 120),
            "noise": rng.normal(size=120),
        }
    )
    frame["outcome"] = np.where((frame["colour"] == "red") ^ (frame["age"] > 50), "ill", "well")
    frame.loc[::15, "age"] = np.nan
    frame.loc[::17, "colour"] = None
    return frame


@pytest.fixture(scope="module")
def path(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "patients.csv"
    table.to_csv(path, index=False)
    return path


def select(path, model, *options):
    arguments = ("select", path, "--target", "outcome", "--model", model, "--evaluations", 12, "--cv", 2, "--jobs", 1)
    return CliRunner().invoke(app, [str(each) for each in (*arguments, "--quiet", *options)], catch_exceptions=False)


@pytest.mark.parametrize("model", ["hist-gradient-boosting", *LIBRARIES])
def test_categories_and_missing_values_of_a_file_reach_the_model(table, path, tmp_path, model):
    if model in LIBRARIES:
        pytest.importorskip(LIBRARIES[model])
    out, saved = tmp_path / "selected.json", tmp_path / "model.joblib"
    options = ("--out", out, "--save", saved, "--early-stopping", 5, "--keep", "colour", "--keep", "age")
    done = select(path, model, *options)
    assert done.exit_code == 0, done.output
    found = json.loads(out.read_text())
    assert {"age", "colour"} <= set(found["selected"]) <= {"age", "colour", "noise"}
    pipeline = joblib.load(saved)
    seen = pipeline[0].transform(table)
    assert seen["colour"].dtype == "category"
    assert seen["colour"].isna().sum() == table["colour"].isna().sum()
    assert seen["age"].isna().sum() == table["age"].isna().sum()
    assert (pipeline.predict(table) == table["outcome"]).mean() > 0.6
    assert set(pipeline.predict(table.assign(colour="violet"))) <= {"ill", "well"}
    if model == "lightgbm":
        assert pipeline[-1].estimator_.booster_.pandas_categorical == [["blue", "green", "red"]]
    if model == "xgboost":
        assert pipeline[-1].estimator_.get_booster().feature_types[:2] == ["float", "c"]
    if model == "catboost":
        assert pipeline[-1].estimator_.get_cat_feature_indices() == [1]
    if model == "hist-gradient-boosting":
        assert pipeline[-1].is_categorical_.tolist()[:2] == [False, True]


@pytest.mark.parametrize("model", ["forest", "extra-trees"])
def test_forests_get_missing_values_and_need_text_encoded(path, tmp_path, model):
    with pytest.raises(TableError, match="text in column 'colour'"):
        select(path, model)
    done = select(path, model, "--drop", "colour")
    assert done.exit_code == 0, done.output
    assert "imputed" not in done.output


def test_a_model_whose_package_is_missing_says_what_to_install(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(MissingExtraError, match=r"needs the package xgboost; install it with `pip install xgboost`"):
        select(path, "xgboost")


def test_boosters_use_one_thread_and_print_nothing(table, capfd):
    for name in MODELS:
        if name in LIBRARIES:
            pytest.importorskip(name)
            settings = make_model(name).get_params(deep=True)
            threads = {key: value for key, value in settings.items() if key.endswith(("n_jobs", "thread_count"))}
            assert 1 in threads.values()
            make_model(name).fit(table[["noise"]], table["outcome"])
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_a_table_keeps_categories_and_missing_values_only_if_asked(path):
    kept = load_table(path, "outcome", categories=True, keep_missing=True)
    assert kept.feature_names == ("age", "colour", "noise")
    assert kept.features["colour"].cat.categories.tolist() == ["blue", "green", "red"]
    assert np.isnan(kept.X[:, :2]).any(axis=0).all()
    assert kept.imputed == 0
    filled = load_table(path, "outcome", categories=True, impute=True)
    assert not np.isnan(filled.X).any()
    numbers = load_table(path, "outcome", drop=["colour"], keep_missing=True)
    assert numbers.features is numbers.X
    with pytest.raises(TableError, match="missing cells"):
        load_table(path, "outcome", categories=True)


def test_a_saved_pipeline_of_numbers_only_still_passes_a_frame(table, path):
    kept = load_table(path, "outcome", categories=True, keep_missing=True)
    model = make_model("hist-gradient-boosting").fit(kept.features[["noise"]], kept.y)
    pipeline = selected_pipeline(kept, np.array([False, False, True]), model)
    assert pipeline.predict(table).shape == (120,)
