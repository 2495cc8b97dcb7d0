"""The command line, run as a separate process."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_wine

from limits import SECONDS
from subswarm.algorithms import names

pytestmark = pytest.mark.slow


def run(*arguments: object, status: int = 0, **settings) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "subswarm", *map(str, arguments)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, **settings)
    assert process.returncode == status, process.stdout + process.stderr
    assert "Traceback" not in process.stderr
    return process


QUICK = ("--model", "nb", "--evaluations", 60, "--cv", 3)


@pytest.fixture(scope="module")
def wine_csv(tmp_path_factory):
    frame = load_wine(as_frame=True).frame
    path = tmp_path_factory.mktemp("tables") / "wine.csv"
    frame.assign(target=np.array(["barolo", "grignolino", "barbera"])[frame["target"]]).to_csv(path, index=False)
    return path


def test_a_csv_file_in_a_summary_and_json_out(wine_csv, tmp_path):
    out = tmp_path / "selected.json"
    shown = run("select", wine_csv, "--target", "target", *QUICK, "--seed", 3, "--out", out).stdout
    found = json.loads(out.read_text())
    assert "all features" in shown
    assert f"{found['baseline_score']:.4f}" in shown
    assert f"{found['best_score']:.4f}" in shown
    assert found["selected"][0] in shown
    assert found["evaluations"] == 60
    assert found["seed"] == 3
    assert found["n_features"] == len(found["selected"]) == sum(found["support"])
    assert np.mean(found["fold_scores"]) == pytest.approx(found["best_score"])
    again = tmp_path / "again.json"
    run("select", wine_csv, "--target", "target", *QUICK, "--seed", 3, "--jobs", 1, "--out", again)
    clocks = ("algorithm_seconds", "evaluation_seconds")
    kept = [{k: v for k, v in json.loads(p.read_text()).items() if k not in clocks} for p in (out, again)]
    assert kept[0] == kept[1]


def test_a_csv_file_in_another_encoding(wine_csv, tmp_path):
    text = wine_csv.read_text().replace("alcohol", "größe", 1)
    path = tmp_path / "wein.csv"
    path.write_bytes(text.encode("cp1252"))
    arguments = ("select", path, "--target", "target", *QUICK, "--quiet", "--keep", "größe")
    assert "'wein.csv' is not UTF-8: byte 0xF6 at offset 2 (line 1)" in run(*arguments, status=2).stderr
    assert "no text encoding 'cp9'" in run(*arguments, "--encoding", "cp9", status=2).stderr
    shown = run(*arguments, "--encoding", "cp1252")
    assert "größe" in shown.stdout
    assert shown.stderr == ""
    path.write_bytes(text.encode("utf-16"))
    assert "note: 'wein.csv' is read as UTF-16, according to its byte order mark." in run(*arguments).stderr


def test_a_parquet_file_and_regression(tmp_path):
    path = tmp_path / "diabetes.parquet"
    load_diabetes(as_frame=True).frame.to_parquet(path)
    out = tmp_path / "x.json"
    run("select", path, "--target", "target", "--model", "linear", "--evaluations", 30, "--cv", 3, "--out", out)
    found = json.loads(out.read_text())
    assert (found["task"], found["scoring"]) == ("regression", "r2")


@pytest.mark.parametrize("table", ["wine", "breast-cancer", "digits"])
def test_the_demo_tables_are_built_in(table):
    assert "selected" in run("select", table, *QUICK).stdout


@pytest.mark.parametrize(
    ("table", "model", "engine"),
    [
        ("wine", "logistic", "logistic"),
        ("wine", "ridge", "linear"),
        ("wine", "lda", "linear"),
        ("wine", "qda", "quadratic"),
        ("wine", "ridge-classifier", "linear"),
        ("wine", "nearest-centroid", "centroids"),
        ("diabetes", "ridge", "linear"),
        ("diabetes", "ols", "linear"),
    ],
)
def test_linear_models_have_names(table, model, engine, tmp_path):
    out = tmp_path / "x.json"
    run("select", table, "--model", model, "--evaluations", 20, "--cv", 3, "--out", out)
    assert json.loads(out.read_text())["engine"] == engine


def test_limits_kept_columns_and_settings_are_passed_on(wine_csv, tmp_path):
    out = tmp_path / "x.json"
    run(
        *("select", wine_csv, "--target", "target", *QUICK, "--max-features", 3, "--keep", "ash", "--choose", "one-se"),
        *(
            "--algorithm",
            "2d-gpso",
            "--set",
            "particles=10",
            "--set",
            "refresh_gap=null",
            "--out",
            out,
            "--scoring",
            "f1_macro",
        ),
    )
    found = json.loads(out.read_text())
    assert "ash" in found["selected"]
    assert found["n_features"] <= 3
    assert (found["algorithm"], found["settings"]["particles"], found["settings"]["refresh_gap"]) == (
        "2d-gpso",
        10,
        None,
    )
    assert found["scoring"] == "f1_macro"


def test_text_and_missing_values_are_named_with_what_to_do(tmp_path):
    frame = load_wine(as_frame=True).frame
    frame["colour"] = np.where(frame["color_intensity"] > 5, "dark", np.where(frame["hue"] > 1, "pale", "middling"))
    frame.loc[::9, "ash"] = np.nan
    path = tmp_path / "wine.csv"
    frame.to_csv(path, index=False)
    error = run("select", path, "--target", "target", *QUICK, status=2).stderr
    assert "colour" in error
    assert "--one-hot" in error or "one_hot" in error
    error = run("select", path, "--target", "target", *QUICK, "--one-hot", status=2).stderr
    assert "ash" in error
    assert "impute" in error
    shown = run("select", path, "--target", "target", *QUICK, "--one-hot", "--impute").stdout
    assert "selected" in shown


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("select", "wine", "--model", "oracle"), "no model 'oracle'"),
        (("select", "wine", "--algorithm", "2d-upsi"), "did you mean '2d-upso'"),
        (("select", "wine", "--set", "particles"), "NAME=VALUE"),
        (("select", "wine", "--set", "particle=3"), "did you mean 'particles'"),
        (("select", "wine", "--scoring", "acuracy"), "acuracy"),
        (("select", "wine", "--keep", "ashe"), "Did you mean 'ash'"),
        (("select", "wine", "--out", "no/such/folder/x.json"), "does not exist"),
        (("select", "wine", "--task", "regression", "--model", "nb"), "does not support regression"),
        (("select", "wine", "--max-features", "0"), "max_features"),
        (("select", "no-such-file.csv", "--target", "y"), "no-such-file.csv"),
        (("select", "wine", "--cv", "1"), "at least 2 folds"),
        (("select", "wine", "--jobs", "0"), "--jobs must be a number of workers"),
        (("select", "wine", "--task", "sorting"), "--task must be one of 'auto', 'classification', 'regression'"),
        (("select", "wine", "--model", "nb", "--scoring", "r2"), "model 'nb' cannot be scored by r2 on this table"),
        (("select", "wine", "--set", f"particles={'9' * 5000}"), "particles must be a whole number"),
        (("select", "a" * 400), "is neither a file nor a known table"),
        (("select", "wine", "--out", f"{'a' * 5000}/x.json"), "--out"),
        (("select", "wine", "--report", "no/such/folder/x.html"), "does not exist"),
        (("select", "wine", "--report", "/"), "--report got /, which is a folder"),
        (("select", "wine", "--out", "."), "--out got ., which is a folder"),
    ],
)
def test_bad_arguments_give_a_one_line_error(arguments, sentence):
    error = run(*arguments, status=2).stderr
    assert error.startswith("error: ")
    assert sentence in error


def test_a_column_called_like_markup_is_shown_as_it_is(tmp_path):
    frame = load_wine(as_frame=True).frame.rename(columns={"ash": "[red]ash[/red]", "hue": "<script>"})
    path = tmp_path / "wine.csv"
    frame.to_csv(path, index=False)
    shown = run(
        *("select", path, "--target", "target", *QUICK, "--keep", "[red]ash[/red]", "--keep", "<script>")
    ).stdout
    assert "[red]ash[/red]" in shown
    assert "<script>" in shown


def test_the_algorithms_are_listed_with_their_settings():
    listed = json.loads(run("algorithms", "--json").stdout)
    assert list(listed) == names()
    assert listed["2d-upso"]["settings"]["refresh_gap"] == 3
    assert all(entry["source"] and entry["summary"] for entry in listed.values())
    shown = run("algorithms").stdout
    assert "2d-upso" in shown
    assert "unification" in run("algorithms", "2d-upso").stdout
    assert "no algorithm" in run("algorithms", "nonsense", status=2).stderr


def test_version_and_help():
    assert run("--version").stdout.startswith("subswarm ")
    assert "select" in run("--help").stdout
    assert "--target" in run("select", "--help").stdout


def test_the_options_of_select_are_in_panels():
    from typer.main import get_command

    from subswarm.cli import app
    from subswarm.cli.select import _PANELS

    params = {param.name: param for param in get_command(app).commands["select"].params}
    panels = [name for names in _PANELS.values() for name in names.split()]
    assert len(panels) == len(set(panels))
    assert set(panels) <= set(params)
    assert params["held_out"].rich_help_panel == "Checks"
    shown = run("select", "--help").stdout
    places = [shown.index(f"─ {panel} ─") for panel in _PANELS]
    assert places == sorted(places)


def test_an_interrupted_search_can_be_resumed(wine_csv, tmp_path):
    checkpoint = tmp_path / "wine.ckpt"
    whole, broken = tmp_path / "whole.json", tmp_path / "broken.json"
    run("select", wine_csv, "--target", "target", *QUICK, "--out", whole)
    run("select", wine_csv, "--target", "target", *QUICK, "--checkpoint", checkpoint, "--seconds", 0)
    run("select", wine_csv, "--target", "target", *QUICK, "--checkpoint", checkpoint, "--out", broken)
    assert json.loads(whole.read_text())["selected"] == json.loads(broken.read_text())["selected"]


def test_a_checkpoint_that_cannot_be_used_is_one_sentence_and_status_2(wine_csv, tmp_path):
    checkpoint = tmp_path / "wine.ckpt"
    command = ("select", wine_csv, "--target", "target", *QUICK, "--checkpoint", checkpoint)
    run(*command)
    shown = run(*command, "--scoring", "f1_macro", "--seed", 1, status=2).stderr
    assert shown.startswith("error: ")
    assert "wine.ckpt belongs to another search; what differs: folds, scoring. Delete the file" in shown
    checkpoint.write_bytes(checkpoint.read_bytes()[:-100])
    shown = run(*command, status=2).stderr
    assert shown.startswith("error: ")
    assert "is damaged (it is not a checkpoint of a search" in shown


HIDDEN = """
import sys
for name in {hidden!r}:
    sys.modules[name] = None
sys.argv = ["subswarm", *{arguments!r}]
from subswarm.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("hidden", "arguments", "sentence"),
    [
        (["typer"], ["algorithms"], "pip install 'subswarm[cli]'"),
        (["pyarrow"], ["select", "x.parquet", "--target", "y"], "subswarm[cli]"),
        (["jinja2"], ["select", "wine", "--report", "x.html"], "subswarm[report]"),
    ],
)
def test_a_missing_extra_gives_one_clear_sentence(hidden, arguments, sentence, tmp_path):
    pd.DataFrame({"a": [1, 2], "y": [0, 1]}).to_parquet(tmp_path / "x.parquet")
    code = HIDDEN.format(hidden=hidden, arguments=arguments)
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert process.returncode != 0
    assert sentence in process.stderr
    assert "Traceback" not in process.stderr


def test_importing_the_package_is_light():
    heavy = ("sklearn", "numba", "scipy", "pandas", "typer", "rich", "matplotlib", "torch")
    code = f"import sys, subswarm; print([m for m in {heavy!r} if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_repeated_folds_from_the_command_line(wine_csv, tmp_path):
    out = tmp_path / "repeated.json"
    shown = run("select", wine_csv, "--target", "target", *QUICK, "--repeats", 2, "--held-out", 2, "--out", out)
    found = json.loads(out.read_text())
    assert (found["repeats"], found["evaluations"], len(found["fold_scores"])) == (2, 60, 6)
    assert "means over 6 folds" in " ".join(shown.stdout.split())
    assert "nested cross-validation: 2 more searches" in shown.stderr
