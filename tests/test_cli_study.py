"""The commands of ``subswarm study``."""

from __future__ import annotations

import json

import pytest

from subswarm.errors import SettingError, StoreError

typer_testing = pytest.importorskip("typer.testing", reason="the command line needs the extra 'cli'")

STUDY = """
datasets = ["wine"]
models = ["nb"]
algorithms = ["random", "2d-upso"]
runs = 2
evaluations = 30
folds = 3
"""


@pytest.fixture
def run(monkeypatch, tmp_path):
    from subswarm.cli import app

    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(STUDY)

    def call(*arguments: str, code: int = 0) -> str:
        result = typer_testing.CliRunner().invoke(app, ["study", *arguments], catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result.output

    return call


def test_run_status_and_table_work_together(run, tmp_path):
    said = run("run", "mine.toml", "--jobs", "1")
    assert "4 of 4 runs are in mine.db" in said
    assert "4 of 4 runs" in run("status", "mine.db")
    assert json.loads(run("status", "mine.db", "--json"))["done"] == 4
    assert "Classification error, nb" in run("table", "mine.db")
    run("table", "mine.db", "--what", "ranks", "--format", "csv", "--out", "ranks.csv")
    assert (tmp_path / "ranks.csv").read_text().startswith("table,ranked by,measure,random,2d-upso")
    assert "(0 run now" in run("run", "mine.toml", "--jobs", "1")


def test_a_part_of_the_grid_more_runs_and_an_outer_cross_validation(run):
    run("run", "mine.toml", "--only", "random", "--jobs", "1", "--quiet")
    assert "2 of 2 runs" in run("status", "mine.db")
    said = run("run", "mine.toml", "--runs", "1", "--outer", "2", "--jobs", "1", "--quiet")
    assert "6 of 6 runs are in mine.db (5 run now" in said
    assert "Error in nested cross-validation" in run("table", "mine.db", "--what", "heldout")


def test_failed_runs_are_reported_with_a_bad_exit_status(run, tmp_path):
    (tmp_path / "mine.toml").write_text(
        STUDY.replace('"wine"', '"wine", { name = "own", table = "own.csv", target = "y" }')
    )
    said = run("run", "mine.toml", "--jobs", "1", "--quiet", code=1)
    assert "4 runs failed" in said
    assert "own.csv" in run("status", "mine.db")


def test_a_wrong_argument_is_a_clear_error(run):
    with pytest.raises(SettingError, match="cannot be read"):
        run("run", "papper")
    with pytest.raises(StoreError, match="there is no store"):
        run("status", "absent.db")
    with pytest.raises(SettingError, match="needs the address of its scheduler"):
        run("run", "mine.toml", "--backend", "dask")


def test_a_report_is_written_or_refused_with_a_clear_error(run, tmp_path):
    run("run", "mine.toml", "--jobs", "1", "--quiet")
    assert "the report is file://" in run("report", "mine.db")
    assert "Study mine" in (tmp_path / "mine.html").read_text(encoding="utf-8")
    with pytest.raises(SettingError, match="does not exist"):
        run("report", "mine.db", "--out", "no/such/folder/x.html")
    with pytest.raises(StoreError):
        run("watch", "absent.db", "--no-browser")


def test_a_report_of_the_root_folder_is_refused_as_no_store(run):
    with pytest.raises(StoreError, match="there is no store '/'"):
        run("report", "/")
