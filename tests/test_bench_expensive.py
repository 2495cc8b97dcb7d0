"""The benchmark of selectors for boosted trees and forests."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

from subswarm.bench.expensive import MADELON, SELECTORS, _ours, format_tables, measure
from subswarm.cli import app
from subswarm.errors import DatasetError, SettingError

SMALL = {"models": ["forest"], "folds": 2, "trees": 3}


def test_a_row_for_each_selector_and_fold_with_fits_and_noise_columns(tmp_path, monkeypatch):
    store = tmp_path / "rows.jsonl"
    seen = []
    rows = measure(["made-120x17"], selectors=["default", "rfecv", "all"], store=store, report=seen.append, **SMALL)
    assert [(row.selector, row.fold) for row in rows] == [
        (selector, fold) for selector in ("default", "rfecv", "all") for fold in range(2)
    ]
    for row in rows:
        assert 0.3 < row.score <= 1
        assert 0 <= row.noise <= 2
    ours, rfecv = (next(row for row in rows if row.selector == name) for name in ("default", "rfecv"))
    assert ours.fits <= 5 * 17 + 1 <= rfecv.fits
    assert rows[-1].columns == 17
    monkeypatch.setitem(SELECTORS, "short", partial(_ours, most_fits=20))
    (short, _) = measure(["made-120x17"], selectors=["short"], **SMALL)
    assert short.fits <= 20 + 2 * 5 + 1 < ours.fits
    again = measure(["made-120x17"], selectors=["default", "rfecv", "all"], store=store, report=seen.append, **SMALL)
    assert again == rows
    assert len(seen) == 6
    tables = {"models": ["forest"], "selectors": ["all"], "store": store}
    assert measure(["made-120x17"], folds=3, trees=3, only_stored=True, **tables) == []  # of other outer folds
    assert len(measure(["made-120x17"], folds=2, trees=3, only_stored=True, **tables)) == 2
    text = format_tables(rows)
    assert "| made-120x17 | default |" in text
    assert text.count("\n| ") == 4  # a header and three selectors


def test_selections_that_run_at_a_time_give_the_same_rows_in_the_same_order():
    tables, settings = ["made-60x15", "made-60x16"], {**SMALL, "selectors": ["default", "all"]}
    one, two = (measure(tables, n_jobs=n_jobs, **settings) for n_jobs in (1, 2))
    assert [replace(row, seconds=0.0) for row in two] == [replace(row, seconds=0.0) for row in one]
    *_, before, last = (line.split(" | ") for line in format_tables(one).strip().splitlines())
    assert (before[:2], last[1]) == (["| all tables", "default"], "all")
    every = [row for row in one if row.selector == "all"]
    assert float(last[2]) == pytest.approx(np.mean([row.score for row in every]), abs=1e-4)
    assert last[4] == "15.5"
    assert "all tables" not in format_tables([row for row in one if row.table == tables[0]])


def test_a_selector_that_does_not_use_the_model_runs_once_for_all_models(monkeypatch):
    calls = []
    monkeypatch.setitem(SELECTORS, "boruta", lambda task: calls.append(1) or (np.arange(15) < 3, None))
    models = ["forest", "hist-gradient-boosting"]
    rows = measure(["made-60x15"], selectors=["boruta"], models=models, folds=2, trees=2)
    assert len(calls) == 2
    assert [(row.model, row.fold, row.columns) for row in rows] == [
        (model, fold, 3) for model in models for fold in (0, 1)
    ]
    assert len({row.score for row in rows}) > 2


def test_a_regression_is_scored_by_r2_and_its_noise_is_unknown(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 6))
    np.savez(tmp_path / "mine.npz", X=X, y=X[:, 0] + 0.1 * rng.standard_normal(90))
    rows = measure(["mine"], selectors=["default", "all"], more=tmp_path, **SMALL)
    assert all(row.noise is None and row.score > 0.5 for row in rows)
    assert "– |" in format_tables(rows)


def test_a_table_that_is_missing_is_an_error_with_its_folder(tmp_path):
    with pytest.raises(DatasetError, match="madelon"):
        measure(["madelon"], selectors=["all"], more=tmp_path, **SMALL)
    with pytest.raises(SettingError, match="made-ROWSxCOLUMNS"):
        measure(["made-up"], selectors=["all"], **SMALL)
    store = tmp_path / "rows.jsonl"
    store.write_text("no json\n")
    with pytest.raises(DatasetError, match="line 1, is not a row of 'subswarm bench expensive'"):
        measure(["made-60x15"], selectors=["all"], store=store, **SMALL)
    assert len(set(MADELON)) == 20


def test_the_command_prints_or_writes_the_table(tmp_path):
    out = tmp_path / "table.md"
    wanted = ["bench", "expensive", "--tables", "made-60x15", "--models", "forest", "--selectors", "all"]
    result = CliRunner().invoke(app, [*wanted, "--folds", "2", "--trees", "2", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "| made-60x15 | all |" in out.read_text(encoding="utf-8")
