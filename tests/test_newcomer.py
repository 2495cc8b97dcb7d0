"""A newcomer with a messy table gets an answer, or one message that lists everything and a command that then works."""

from __future__ import annotations

import gzip
import json
import shlex
import sys
import warnings
from pathlib import Path

import joblib
import numpy as np
import openpyxl
import pandas as pd
import pyarrow.parquet
import pytest

from subswarm.__main__ import main

ROWS = 60
QUICK = ["--model", "nb", "--evaluations", "40", "--cv", "3", "--repeats", "1", "--quiet", "--jobs", "1"]


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """``call(arguments)``: status, standard output and standard error of the command."""

    def run(arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["subswarm", *map(str, arguments)])
        monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
        monkeypatch.setenv("COLUMNS", "200")
        try:
            main()
            status = 0
        except SystemExit as end:
            status = end.code or 0
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def rows_of(**columns):
    """A CSV text with these columns, each a function of the row's number."""
    lines = [";".join(columns), *(";".join(str(cell(row)) for cell in columns.values()) for row in range(ROWS))]
    return "\n".join(lines) + "\n"


def label(row):
    return "yes" if row % 2 else "no"


def noisy(row):
    return (row * 7919) % 101 / 10 + 2 * (row % 2)


MESSY = {
    "decimal commas": (
        "a.csv",
        rows_of(a=lambda r: f"{noisy(r):.2f}".replace(".", ","), b=lambda r: f"1.{r + 100},5", y=label).encode(),
        ["--target", "y"],
        [],
    ),
    "money and percents": (
        "b.csv",
        rows_of(a=lambda r: f'"${1000 + 50 * noisy(r):,.2f}"', b=lambda r: f"{r % 30}%", c=lambda r: f"-€{r}", y=label)
        .replace(";", ",")
        .encode(),
        ["--target", "y"],
        [],
    ),
    "dates": (
        "c.csv",
        rows_of(
            when=lambda r: f"2024-{r % 12 + 1:02d}-{r % 28 + 1:02d}",
            other=lambda r: f"{r % 28 + 1}.{r % 12 + 1}.2023",
            a=noisy,
            y=label,
        ).encode(),
        ["--target", "y"],
        ["'when', 'other'", "--dates"],
    ),
    "yes and no": (
        "d.csv",
        rows_of(f=lambda r: "YES" if r % 3 else "No", a=noisy, y=label).encode(),
        ["--target", "y"],
        [],
    ),
    "another encoding": (
        "e.csv",
        rows_of(größe=noisy, b=lambda r: r % 5, y=label).encode("cp1252"),
        ["--target", "y"],
        ["--encoding cp1252"],
    ),
    "tabs in gzip": (
        "f.tsv.gz",
        gzip.compress(rows_of(a=noisy, b=lambda r: r % 5, y=label).replace(";", "\t").encode()),
        ["--target", "y"],
        [],
    ),
    "no header": (
        "g.csv",
        "".join(f"{noisy(r)},{r % 5},{r % 2}\n" for r in range(ROWS)).encode(),
        [],
        ["--no-header", "--target 'column 3'"],
    ),
    "no header, and the target by its number": (
        "g2.csv",
        "".join(f"{r % 2},{noisy(r)},{r % 5}.5,{'red' if r % 3 else 'blue'},{r}\n" for r in range(ROWS)).encode(),
        ["--target", "1"],
        ["'column 4'", "--no-header", "--target 'column 1'", "--one-hot"],
    ),
    "a mark in few cells": (
        "m.csv",
        rows_of(a=noisy, free=lambda r: "" if r % 5 else "x", y=label).encode(),
        ["--target", "y"],
        ["'free'", "--one-hot", "--impute"],
    ),
    "names twice": (
        "h.csv",
        rows_of(a=noisy, y=label).replace("a;y", "a;y").encode(),
        ["--target", "Y"],
        ["--target y"],
    ),
    "everything": (
        "i.csv",
        rows_of(
            Kunde=lambda r: f"K{r}",
            Preis=lambda r: f"1.{r + 100},{r % 9}" if r % 9 else "",
            Umsatz=lambda r: "k.A." if r == 7 else r % 13,
            Tag=lambda r: f"{r % 28 + 1:02d}.{r % 12 + 1:02d}.2024",
            Stadt=lambda r: ("Köln", "Bonn", "Rom")[r % 3],
            leer=lambda r: "",
            Ziel=lambda r: "" if r == 11 else label(r),
        ).encode("cp1252"),
        ["--target", "ziel"],
        [
            *("'Kunde'", "'Preis'", "'Umsatz'", "'k.A.' in row 8", "'Tag'", "'Stadt'", "'leer'", "lacks 1 of 60"),
            *("--encoding", "--target Ziel", "--id Kunde", "--drop leer", "--dates", "--one-hot", "--impute"),
            *("--missing k.A.", "--skip-unlabelled"),
        ],
    ),
    "no target": ("j.csv", rows_of(a=noisy, outcome=label, b=lambda r: r % 5).encode(), [], ["--target outcome"]),
    "many texts": (
        "k.csv",
        rows_of(a=noisy, who=lambda r: f"n{r % 50}", hue=lambda r: "rgb"[r % 3], y=label).encode(),
        ["--target", "y", "--max-categories", "40"],
        ["'who'", "--drop who", "'hue'", "--one-hot"],
    ),
    "missing cells": (
        "l.csv",
        rows_of(
            a=noisy, b=lambda r: "" if r % 9 == 0 else r % 5, c=lambda r: "?" if r == 4 else r % 7, y=label
        ).encode(),
        ["--target", "y"],
        ["'b', 'c'", "--impute"],
    ),
}


@pytest.mark.parametrize("case", MESSY)
def test_a_messy_file_ends_in_an_answer_or_one_message_and_a_command_that_works(call, tmp_path, case):
    name, content, arguments, problems = MESSY[case]
    (tmp_path / name).write_bytes(content)
    status, out, said = call(["select", name, *arguments, *QUICK])
    if problems:
        assert status == 2
        assert [words for words in problems if words not in said] == []
        command = said.rstrip().splitlines()[-1].strip()
        status, out, said = call(shlex.split(command)[1:])
    assert status == 0, said
    assert "all features" in out


def test_the_values_of_messy_cells_are_right(tmp_path):
    from subswarm.datasets import load_table

    path = tmp_path / "t.csv"
    path.write_text(
        "price;share;net;gap;at;old;flag;y\n"
        '"1.234,5 €";12,5%;-1,25;1 234;31/12/2023;2024/1/31;Yes;a\n'
        "€80;3%;2;;1/2/2024 12:00;2023/12/31;no;b\n"
    )
    table = load_table(path, "y", dates=True, impute=True)
    values = dict(zip(table.feature_names, table.X.T.tolist(), strict=True))
    assert values == {
        "price": [1234.5, 80],
        "share": [12.5, 3],
        "net": [-1.25, 2],
        "gap": [1234, 1234],
        "at.year": [2023, 2024],
        "at.month": [12, 2],
        "at.day": [31, 1],
        "at.weekday": [6, 3],
        "at.age": [32.5, 0],
        "old.year": [2024, 2023],
        "old.month": [1, 12],
        "old.weekday": [2, 6],
        "old.age": [0, 31],
        "flag": [1, 0],
    }
    assert "'t.csv' is read with decimal commas." in table.notes
    assert "column 'at' is read with dates as day/month/year." in table.notes


@pytest.mark.parametrize("sign", ["{} €", "${}", "{}%"])
def test_decimal_commas_next_to_signs_are_recognised(tmp_path, sign):
    from subswarm.datasets import load_table

    numbers = ["1.234,500", "99,125", "3,250"]
    rows = [f"{sign.format(number)};{place};{'ab'[place % 2]}" for place, number in enumerate(numbers)]
    (tmp_path / "t.csv").write_text("price;n;kind\n" + "\n".join(rows))
    expected = [float(number.replace(".", "").replace(",", ".")) for number in numbers]
    assert load_table(tmp_path / "t.csv", "kind").X[:, 0].tolist() == expected


@pytest.mark.parametrize("text", ["1,2,3.5", "1,23", "12,34,567", "1 2", "--5", "$", "5%5", "1.2.3", ""])
def test_text_that_is_no_number_stays_text(text):
    from subswarm.datasets._column import NumberFormat, is_number

    assert not is_number(text)
    assert is_number("1,234.5")
    assert not is_number("1,234.5", NumberFormat(decimal_comma=True))


def test_duplicate_and_missing_names_are_numbered_with_a_note(tmp_path):
    from subswarm.datasets import load_table

    path = tmp_path / "t.csv"
    path.write_text(",a,a,a (2),y\n" + "".join(f"{r},{r % 3},{r % 4},{r % 5},{r % 2}\n" for r in range(8)))
    table = load_table(path, "y")
    assert table.feature_names == ("column 1", "a", "a (3)", "a (2)")
    assert [note for note in table.notes if "more than once" in note and "'a'" in note]
    assert [note for note in table.notes if "'column 1'" in note]


def test_a_workbook_is_read_with_a_note_on_other_sheets(tmp_path):
    from subswarm.datasets import load_table

    book = openpyxl.Workbook()
    book.active.title = "notes"
    sheet = book.create_sheet("data")
    sheet.append(["a", "when", "mixed", "y"])
    for row in range(8):
        sheet.append([noisy(row), pd.Timestamp(2024, 1, 1 + row), row if row % 2 else f"t{row % 4}", label(row)])
    path = tmp_path / "book.xlsx"
    book.save(path)
    table = load_table(path, "y", dates=True, one_hot=True)
    assert table.X.shape[0] == 8
    assert table.feature_names[:2] == ("a", "when.day")
    assert table.X[:, 0] == pytest.approx([noisy(row) for row in range(8)])
    assert "'book.xlsx' has 2 sheets; 'data' is read." in table.notes


def panel(tmp_path):
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(20), 4)
    frame = pd.DataFrame(
        {
            "person": [f"p{each}" for each in person],
            "day": pd.date_range("2024-01-01", periods=80).strftime("%Y-%m-%d"),
            "weight": rng.uniform(0.5, 2, 80).round(3),
            "a": rng.normal(size=80).round(4) + person % 2,
            "b": rng.normal(size=80).round(4),
            "colour": np.array(["red", "blue", "green"])[person % 3],
            "ill": np.where(person % 2, "ill", "well"),
        }
    ).sample(frac=1, random_state=0)
    frame.to_csv(tmp_path / "panel.csv", index=False)
    return frame


def test_groups_stay_together_and_weights_are_used(call, tmp_path, monkeypatch):
    from subswarm import selector

    seen = {}

    def fit(self, X, y, **params):
        seen.update(params)
        return original(self, X, y, **params)

    original = selector.SwarmSelector.fit
    monkeypatch.setattr(selector.SwarmSelector, "fit", fit)
    frame = panel(tmp_path)
    roles = ["--target", "ill", "--groups", "person", "--weights", "weight", "--drop", "day", "--one-hot"]
    status, _, said = call(["select", "panel.csv", *roles, *QUICK, "--out", "x.json"])
    assert status == 0, said
    names = frame["person"].to_numpy()
    assert len(set(zip(seen["groups"].tolist(), names.tolist(), strict=True))) == 20
    assert seen["sample_weight"].tolist() == frame["weight"].tolist()
    selected = json.loads((tmp_path / "x.json").read_text())["selected"]
    assert not {"person", "day", "weight"} & set(selected)
    status, _, said = call(["select", "panel.csv", *roles, *QUICK, "--model", "knn"])
    assert status == 2
    assert "the model 'knn' cannot use weights; choose nb or" in said
    status, _, said = call(["select", "panel.csv", *roles, *QUICK, "--model", "linear", "--evaluations", "5"])
    assert status == 0, said
    assert "logisticregression__sample_weight" in seen


def test_folds_in_time_train_on_earlier_rows(call, tmp_path, monkeypatch):
    from subswarm import selector

    fitted = []
    original = selector.SwarmSelector.fit
    monkeypatch.setattr(
        selector.SwarmSelector,
        "fit",
        lambda self, X, y, **params: fitted.append((self, X)) or original(self, X, y, **params),
    )
    frame = panel(tmp_path).sort_values("day")
    arguments = ["--target", "ill", "--time", "day", "--drop", "person", "--one-hot", "--positive", "ill"]
    status, _, said = call(["select", "panel.csv", *arguments, *QUICK])
    assert status == 0, said
    assert "40 of 80 rows have 'ill' as 'ill', the positive class" in said
    (only, X), *_ = fitted
    assert X[:, 1].tolist() == frame["a"].tolist()
    assert all(train.max() < test.min() for train, test in only.folds_)
    status, _, said = call(["select", "panel.csv", *arguments, *QUICK, "--positive", "sick"])
    assert status == 2
    assert "has no class 'sick' (the positive one)" in said


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_reduced_table_and_the_pipeline_are_written(call, tmp_path, ending):
    frame = panel(tmp_path)
    out = f"small.{ending}"
    arguments = ["--target", "ill", "--id", "person", "--dates", "--one-hot", "--drop", "weight"]
    status, _, said = call(
        [
            "select",
            "panel.csv",
            *arguments,
            *QUICK,
            "--keep",
            "a",
            "--write",
            out,
            "--save",
            "m.joblib",
            "--out",
            "x.json",
        ]
    )
    assert status == 0, said
    found = json.loads((tmp_path / "x.json").read_text())
    sources = {name.split("=")[0].split(".")[0] for name in found["selected"]}
    small = pd.read_csv(tmp_path / out) if ending == "csv" else pyarrow.parquet.read_table(tmp_path / out).to_pandas()
    assert set(small.columns) == sources | {"person", "ill"}
    assert small["person"].tolist() == frame["person"].tolist()
    assert small["a"].tolist() == pytest.approx(frame["a"].tolist(), rel=1e-14)
    pipeline = joblib.load(tmp_path / "m.joblib")
    predicted = pipeline.predict(pd.read_csv(tmp_path / "panel.csv"))
    assert set(predicted) <= {"ill", "well"}
    assert np.mean(predicted == frame["ill"]) > 0.5
    from subswarm.datasets import load_table

    table = load_table(tmp_path / "panel.csv", "ill", id=["person"], dates=True, one_hot=True, drop=["weight"])
    assert table.feature_names == (
        "day.month",
        "day.day",
        "day.weekday",
        "day.age",
        "a",
        "b",
        *(f"colour={c}" for c in ("blue", "green", "red")),
    )
    X = table.X[:, found["support"]]
    assert predicted.tolist() == pipeline.named_steps["model"].predict(X).tolist()


def test_a_saved_pipeline_names_absent_columns_and_fills_missing_cells(call, tmp_path):
    name, content, *_ = MESSY["missing cells"]
    (tmp_path / name).write_bytes(content)
    arguments = ["--target", "y", "--impute", "--keep", "b", "--keep", "c", *QUICK, "--save", "m.joblib"]
    assert call(["select", name, *arguments])[0] == 0
    pipeline = joblib.load(tmp_path / "m.joblib")
    frame = pd.read_csv(tmp_path / name, sep=";")
    assert len(pipeline.predict(frame)) == ROWS
    with pytest.raises(ValueError, match=r"lacks 1 of the \d columns that the model needs: 'b'"):
        pipeline.predict(frame.drop(columns="b"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--write", "x.txt"], "'x.txt' does not end in one of .csv"),
        (["--write", "no/x.csv"], "--write got no/x.csv, but the folder no does not exist"),
        (["--save", "no/x.joblib"], "--save got no/x.joblib, but the folder"),
        (["--groups", "a", "--time", "a"], "groups and time exclude each other"),
        (["--groups", "nobody"], "has no column 'nobody' (the groups one)"),
        (["--weights", "who"], "holds text; weights must be numbers"),
        (["--scoring", "ballanced_accuracy"], "Did you mean 'balanced_accuracy'"),
        (["--scoring", "f1"], "name the positive class with --positive"),
        (["--target", "a", "--model", "linear", "--scoring", "roc_auc"], "scoring='roc_auc' is for classes"),
    ],
)
def test_what_cannot_work_is_said_before_the_search(call, tmp_path, options, sentence):
    text = rows_of(a=noisy, b=lambda r: r % 5, who=lambda r: f"n{r % 5}", y=label)
    (tmp_path / "t.csv").write_text(text)
    status, _, said = call(["select", "t.csv", "--target", "y", "--one-hot", *QUICK, *options])
    assert status == 2
    assert sentence in said


def test_the_positive_class_makes_scorers_of_two_classes_work(call, tmp_path):
    (tmp_path / "t.csv").write_text(rows_of(a=noisy, b=lambda r: r % 5, y=label))
    status, _, said = call(["select", "t.csv", "--target", "y", *QUICK, "--scoring", "f1", "--positive", "yes"])
    assert status == 0, said
    status, _, said = call(["select", "wine", *QUICK, "--scoring", "roc_auc", "--positive", "class_1"])
    assert status == 0, said
    assert "71 of 178 rows have 'class_1'" in said


def test_roc_auc_of_more_classes_is_one_against_the_rest_with_a_note(call):
    status, out, said = call(["select", "wine", *QUICK, "--scoring", "roc_auc", "--held-out", "2"])
    assert status == 0, said
    assert said.count("of 3 classes is computed for each class against the rest ('roc_auc_ovr')") == 1
    assert "nested, selected" in out


@pytest.mark.parametrize(
    ("scoring", "meant"),
    [("mse", "neg_mean_squared_error"), ("R2-score", "r2"), ("f1_Score", "f1"), ("pr_auc", "average_precision")],
)
def test_usual_names_of_scorers_lead_to_those_of_scikit_learn(scoring, meant):
    from sklearn.naive_bayes import GaussianNB

    from subswarm.errors import ScoringError
    from subswarm.objective.scoring import resolve_scoring

    with pytest.raises(ScoringError, match=f"there is no scoring '{scoring}'. Did you mean '{meant}'"):
        resolve_scoring(GaussianNB(), scoring)


def test_roc_auc_of_amounts_treated_as_classes_is_a_clear_error():
    from sklearn.naive_bayes import GaussianNB

    from subswarm import SwarmSelector
    from subswarm.errors import ScoringError

    X = np.random.default_rng(0).normal(size=(90, 4))
    amounts = np.append(np.arange(88) // 2, [90, 91])
    with pytest.raises(ScoringError, match=r"of the 46 different values of the target 90 has a single row"):
        SwarmSelector(GaussianNB(), scoring="roc_auc", cv=2).fit(X, amounts)


@pytest.mark.slow
def test_the_demo_selects_few_columns_and_does_no_worse_than_all_on_new_rows(call, tmp_path):
    makefile = (Path(__file__).parent.parent / "Makefile").read_text(encoding="utf-8")
    command = next(line for line in makefile.splitlines() if line.startswith("\t$(BIN)/subswarm select"))
    status, out, _ = call([*shlex.split(command)[1:], "--quiet", "--out", "demo.json"])
    found = json.loads((tmp_path / "demo.json").read_text())
    assert status == 0
    assert found["n_features"] <= found["n_features_in"] / 3
    assert found["held_out"]["score"] >= found["held_out"]["baseline_score"]
    assert f"{found['held_out']['score']:.4f}" in out
    assert found["warnings"] == []
