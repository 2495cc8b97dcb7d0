"""The benchmark of selections: known truth, honest test rows, and rivals that match scikit-learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.feature_selection import f_classif
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from typer.testing import CliRunner

from subswarm.bench.answers import SELECTORS, measure
from subswarm.bench.problems import make_table, problem_names, tasks_of
from subswarm.cli import app
from subswarm.errors import DatasetError, SettingError


def test_the_columns_without_information_are_those_that_do_not_separate_the_classes():
    task = make_table("falling", 50, 20, seed=1)
    means = [task.X_test[task.y_test == label].mean(axis=0) for label in (0, 1)]
    difference = np.sort(np.abs(means[1] - means[0])[~task.noise])[::-1]
    assert difference == pytest.approx(1.6 * 0.8 ** np.arange(8), abs=0.1)
    assert np.abs(means[1] - means[0])[task.noise].max() < 0.1
    assert len(task.X) == 50
    assert len(task.X_test) == 10_000


def test_tables_of_a_problem_differ_and_have_the_same_informative_columns():
    first, second = tasks_of("falling-30x12", folds=2, seeds=2, seed=3)
    assert not np.array_equal(first.X, second.X)
    assert np.array_equal(first.noise, second.noise)
    assert first.seed != second.seed


def test_single_columns_of_xor_say_nothing_and_products_of_pairs_say_all():
    task = make_table("xor", 40, 6, seed=0)
    assert f_classif(task.X_test, task.y_test)[1].min() > 1e-4
    a, b, c, d = np.flatnonzero(~task.noise)
    X = task.X_test
    agreement = [
        np.mean((X[:, i] * X[:, j] + X[:, k] * X[:, m] > 0) == task.y_test)
        for i, j, k, m in ((a, b, c, d), (a, c, b, d), (a, d, b, c))
    ]
    assert max(agreement) == 1.0


def test_correlated_copies_and_rare_classes():
    task = make_table("correlated", 40, 30, seed=0)
    inside = np.corrcoef(task.X_test[task.y_test == 0][:, ~task.noise].T)
    assert (np.sort(inside, axis=1)[:, -2] > 0.85).all()
    assert make_table("rare", 210, 9, seed=0).y.sum() == 10
    assert make_table("noise", 40, 9, seed=0).noise.all()


def test_amounts_are_a_regression_that_the_informative_columns_explain():
    task = make_table("amounts", 60, 12, seed=0)
    fitted = LinearRegression().fit(task.X_test[:, ~task.noise], task.y_test)
    assert np.sort(fitted.coef_) == pytest.approx(np.sort(1.6 * 0.8 ** np.arange(8)), abs=0.1)
    selectors = ["default", "truth", "select-k-best", "mrmr", "l1"]
    rows = measure(["amounts-60x12"], models=["nb", "ridge"], selectors=selectors, seeds=1, evaluations=60)
    assert [row.selector for row in rows] == selectors  # naive Bayes predicts no amounts
    assert all(0.2 < row.error < 0.8 for row in rows)


def test_the_number_of_ranked_columns_is_that_of_grid_search():
    from subswarm.bench.answers import _select_ranked

    for seed in range(3):
        task = make_table("falling", 80, 20, seed=seed)
        assert np.array_equal(_select_ranked(task, "anova-f"), SELECTORS["select-k-best"](task))


def test_the_error_is_that_of_the_model_on_new_rows():
    (row,) = measure(["falling-60x10"], models=["nb"], selectors=["all"], seeds=1, seed=5)
    (task,) = tasks_of("falling-60x10", folds=2, seeds=1, seed=5)
    assert row.error == 1.0 - GaussianNB().fit(task.X, task.y).score(task.X_test, task.y_test)
    assert (row.size, row.noise) == (10, 2)
    assert np.isnan(row.stability)


def test_selectors_that_do_not_apply_have_no_numbers():
    rows = measure(["noise-40x8"], models=["nb"], selectors=["truth", "rfecv", "l1"], seeds=2)
    assert [np.isnan(row.error) for row in rows] == [True, True, False]
    assert 0.3 < rows[2].error < 0.7
    assert rows[2].noise == rows[2].size


def test_files_of_a_folder_are_problems_unless_their_target_is_continuous(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4)).astype(np.float32)
    np.savez(tmp_path / "classes.npz", X=X, y=np.arange(30) % 3)
    np.savez(tmp_path / "amounts.npz", X=X, y=X[:, 0])
    assert problem_names("more", str(tmp_path)) == ["classes"]
    tasks = list(tasks_of("classes", folds=3, seeds=1, seed=0, more=str(tmp_path)))
    assert [len(task.X_test) for task in tasks] == [10, 10, 10]
    assert tasks[0].noise is None
    with pytest.raises(SettingError, match=r"amounts has a continuous target"):
        list(tasks_of("amounts", folds=3, seeds=1, seed=0, more=str(tmp_path)))


def test_an_unknown_problem_is_named():
    with pytest.raises(SettingError, match=r"there is no problem 'mad'\. Did you mean 'made'"):
        problem_names("falling-30x9,mad")


def test_the_command_writes_a_markdown_table(tmp_path):
    page = tmp_path / "page.md"
    names = ["default", "best", "repeats=6", "select-k-best", "mrmr", "sffs", "2d-upso", "bpso"]
    command = ["bench", "answers", "--problems", "falling-60x10,wine", "--models", "nb", "--seeds", "2", "--folds", "2"]
    command += ["--evaluations", "60", "--selectors", ",".join(names), "--out", str(page)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    table, means = page.read_text(encoding="utf-8").split("means over 2 problems")
    lines = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")]
    assert [cells[1] for cells in lines[1:]] == names + names
    assert lines[1][0] == "| falling-60x10"
    assert all(float(cells[2]) < 0.35 for cells in lines[1:])
    assert [cells[4] for cells in lines[9:]] == ["–"] * 8
    assert [line.split(" | ")[0] for line in means.splitlines() if line.startswith("| ")][1:] == [
        f"| {x}" for x in names
    ]


@pytest.mark.parametrize("selector", ["sfs", "mlxtend", "forest"])
@pytest.mark.slow
def test_selectors_of_other_packages_find_the_strongest_column(selector):
    if selector == "mlxtend":
        pytest.importorskip("mlxtend")
    task = make_table("falling", 80, 10, seed=3)
    mask = SELECTORS[selector](task)
    strongest = f_classif(task.X_test, task.y_test)[0].argmax()
    assert mask[strongest]
    assert 0 < mask.sum() <= 10


def test_selections_in_the_store_are_not_made_again(tmp_path):
    store = tmp_path / "rows.jsonl"
    settings = {"models": ["nb"], "selectors": ["all", "truth", "select-k-best"], "seeds": 2, "store": store}
    first = measure(["falling-60x10", "noise-60x10"], **settings)
    lines = store.read_text().splitlines(keepends=True)
    assert len(lines) == 12
    store.write_text("".join(lines[:7]) + lines[7][:20])  # the program ended in the middle of a line
    again = measure(["falling-60x10", "noise-60x10"], **settings)
    kept = store.read_text().splitlines(keepends=True)
    assert (len(kept), kept[:7]) == (12, lines[:7])
    for a, b in zip(first, again, strict=True):
        assert str(replace(a, seconds=0)) == str(replace(b, seconds=0))
    measure(["falling-60x10"], **settings | {"seeds": 1})  # other settings are other rows
    assert len(store.read_text().splitlines()) == 15
    store.write_text('{"key": 1}\n')
    with pytest.raises(DatasetError, match="line 1, is not a row of 'subswarm bench answers'"):
        measure(["falling-60x10"], **settings)
