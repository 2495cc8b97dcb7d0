"""The benchmark of honest scores: new rows are new, and every model gets the problems that fit it."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from subswarm.bench.honesty import MADE, Case, _draw, format_tables, measure, problem_names
from subswarm.cli import app
from subswarm.errors import DatasetError, SettingError


def test_new_rows_have_the_columns_of_the_table_and_are_drawn_again_for_any_mask():
    task = _draw("falling-100x20", seed=3, number=0, new_rows=12_000)
    every = [np.concatenate(parts) for parts in zip(*task.new_rows(np.ones(20, dtype=bool)), strict=True)]
    few = [np.concatenate(parts) for parts in zip(*task.new_rows(np.arange(20) < 4), strict=True)]
    assert every[0].shape == (12_000, 20)
    assert np.array_equal(every[0][:, :4], few[0])
    assert np.array_equal(every[1], few[1])
    gaps = [X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0) for X, y in ((task.X, task.y), every)]
    assert np.corrcoef(*gaps)[0, 1] > 0.8
    assert not np.isin(task.X[:, 0], every[0][:, 0]).any()


def test_the_columns_of_a_target_of_numbers_explain_it_or_not():
    shares = []
    for kind in ("linear", "unrelated"):
        task = _draw(f"{kind}-2000x10", seed=0, number=0, new_rows=100)
        shares.append(max(abs(np.corrcoef(column, task.y)[0, 1]) for column in task.X.T))
    assert shares[0] > 0.3
    assert shares[1] < 0.1


def test_each_model_gets_the_problems_that_fit_it_and_the_table_counts_them():
    cases = measure(
        ["falling-60x12", "unrelated-60x12"],
        models=["nb", "ridge"],
        algorithms=["2d-upso"],
        seeds=1,
        evaluations=60,
        nested=2,
        new_rows=1000,
    )
    assert [(case.problem, case.model) for case in cases] == [
        ("falling-60x12", "nb"),
        ("falling-60x12", "ridge"),
        ("unrelated-60x12", "ridge"),
    ]
    assert all(case.corrected >= case.reported - 1e-12 for case in cases)
    assert all(np.isfinite([case.nested, case.true]).all() for case in cases)
    text = format_tables(cases)
    assert text.count("| falling-60x12 |") == 2
    assert f"of {len(cases)} |" in text


def test_the_table_has_the_means_and_the_share_inside():
    cases = [
        Case("a", "nb", "x", 0.1, corrected, float("nan"), 0.2, inside, 2.0, 0.02)
        for corrected, inside in ((0.15, True), (0.35, False))
    ]
    assert "| a | x | 0.1000 | 0.2500 | – | 0.2000 | 1.25 | 1 of 2 | 1.0 % |" in format_tables(cases)
    assert "| x | new rows | 0.50 | 1.25 | 1.25 to 1.25 | 0 of 1 | 1 of 2 | 1.0 % |" in format_tables(cases)


def test_the_nested_score_stands_for_the_true_one_where_there_are_no_new_rows():
    nan = float("nan")
    cases = [
        Case("large", "nb", "x", 0.1, 0.19, nan, 0.2, True, 2.0, 0.02),
        Case("small", "nb", "x", 0.1, 0.30, 0.2, nan, False, 2.0, 0.02),
    ]
    text = format_tables(cases)
    assert "| small | x | 0.1000 | 0.3000 | 0.2000 | – | 1.50 | 0 of 1 | 1.0 % |" in text
    assert "| x | new rows | 0.50 | 0.95 | 0.95 to 0.95 | 1 of 1 | 1 of 1 | 1.0 % |" in text
    assert "|  | nested score | 0.50 | 1.50 | 1.50 to 1.50 | 0 of 1 | 0 of 1 | 1.0 % |" in text
    assert "|  | both | 0.50 | 1.22 | 0.95 to 1.50 | 1 of 2 | 1 of 2 | 1.0 % |" in text


def test_an_error_of_zero_has_no_ratio():
    text = format_tables([Case("a", "nb", "x", 0.0, 0.01, float("nan"), 0.0, True, 2.0, 0.02)])
    assert "| a | x | 0.0000 | 0.0100 | – | 0.0000 | – | 1 of 1 | 1.0 % |" in text


def save_table(folder, name, rows, is_number):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 6))
    y = X[:, 0] + rng.normal(size=rows)
    np.savez(folder / f"{name}.npz", X=X.astype(np.float32), y=y if is_number else (y > 0).astype(np.int64))


def test_files_are_halved_or_if_small_nested_and_jobs_change_nothing(tmp_path):
    save_table(tmp_path, "amounts-of-all", 420, is_number=True)
    save_table(tmp_path, "few", 90, is_number=False)
    problems = problem_names("more", str(tmp_path))
    assert problems == ["amounts-of-all", "few"]
    settings = {"models": ["nb", "ridge"], "algorithms": ["sffs"], "seeds": 1, "evaluations": 60, "more": str(tmp_path)}
    cases = measure(problems, **settings)
    assert [(case.problem, case.model) for case in cases] == [
        ("amounts-of-all", "ridge"),
        ("few", "nb"),
        ("few", "ridge"),
    ]
    assert [np.isfinite(case.true) for case in cases] == [True, False, False]
    assert [np.isfinite(case.nested) for case in cases] == [False, True, True]
    again = measure(problems, **settings, jobs=2)
    assert [(case.corrected, case.true) for case in cases[:1]] == [(case.corrected, case.true) for case in again[:1]]
    assert [(case.corrected, case.nested) for case in cases[1:]] == [
        (case.corrected, case.nested) for case in again[1:]
    ]


def test_searches_in_the_store_are_not_run_again(tmp_path):
    store, seen = tmp_path / "cases.jsonl", []
    settings = {"models": ["nb"], "evaluations": 60, "new_rows": 500, "seed": 3, "store": store, "report": seen.append}
    first = measure(["falling-60x12"], algorithms=["sffs"], seeds=1, **settings)
    with store.open("a") as file:
        file.write(store.read_text().replace('"seed": 3', '"seed": 4'))  # another seed in the same store
    both = measure(["falling-60x12"], algorithms=["ga", "sffs"], seeds=2, **settings)
    assert [(case.algorithm, case.number) for case in both] == [("ga", 0), ("sffs", 0), ("ga", 1), ("sffs", 1)]
    assert repr(both[1]) == repr(first[0])
    assert len(seen) == 4
    assert len(store.read_text().splitlines()) == 5
    settings = settings | {"evaluations": 600, "only_stored": True}
    shown = measure(["falling-60x12", "noise-60x12"], algorithms=["ga", "sffs"], seeds=1, **settings)
    assert repr(shown) == repr(both)
    assert len(seen) == 4
    store.write_text("no json\n")
    with pytest.raises(DatasetError, match="not a row"):
        measure(["falling-60x12"], algorithms=["sffs"], seeds=1, **settings)


def test_problems_by_name():
    assert problem_names("made,noise-30x5") == [*MADE, "noise-30x5"]
    with pytest.raises(SettingError, match="unrelated"):
        problem_names("unrelate-30x5")


@pytest.mark.parametrize(
    ("options", "words"), [(["--nested", "1"], "at least 2"), (["--problems", "linear-60x9", "--models", "nb"], "fits")]
)
def test_wrong_options_are_refused(options, words):
    found = CliRunner().invoke(app, ["bench", "honesty", "--seeds", "1", *options])
    assert found.exit_code != 0
    assert words in found.output + str(found.exception)
