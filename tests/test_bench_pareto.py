"""The comparison of fronts is made by a command that can be interrupted and continued."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from subswarm.bench.pareto import FrontRun, format_tables, front_algorithms, measure, read_runs
from subswarm.cli import app
from subswarm.errors import DataError


def run_of(algorithm, run, columns, losses, dataset="wine"):
    return FrontRun(dataset, "nb", algorithm, run, 0, 100, 9, 0.5, columns, losses, 0.1)


def test_the_hypervolume_is_a_share_of_the_box_up_to_the_reference_point():
    # Columns cost 1 of 10, losses are shares of 0.5: from 1 to 3 columns 1 - 0.6, from 3 to 10 columns 1 - 0.2.
    assert run_of("nsga2", 0, (1, 3), (0.3, 0.1)).hypervolume == pytest.approx((2 * 0.4 + 7 * 0.8) / 10)
    assert run_of("nsga2", 0, (1, 3), (0.5, 0.6)).hypervolume == 0.0
    assert run_of("nsga2", 0, (1, 3), (0.3, 0.1)).dominated(1.0) == pytest.approx((2 * 0.7 + 7 * 0.9) / 10)


def test_the_tables_rank_the_searches_and_test_the_differences():
    rows = [
        run_of(name, run, (1, 3), (0.3, level + 0.001 * run))
        for name, level in (("2d-pareto", 0.1), ("nsga2", 0.2), ("sffs", 0.05))
        for run in range(6)
    ]
    text = format_tables(rows)  # the mean loss of a level is 0.0025 above it
    lines = text.split("loss 1.")[0].splitlines()
    summary = {line.split(" | ")[0].strip("| "): line.split(" | ") for line in lines}
    assert summary["2d-pareto"][1] == "2.00"
    assert summary["sffs"][1:3] == ["1.00", "1.00"]
    assert summary["nsga2"][5] == "1, 0, 0"
    assert summary["sffs"][5:7] == ["0, 1, 0", "0, 1, 0"]
    assert "- Best mean rank in hypervolume: sffs with 1.00, then 2d-pareto with 2.00." in text
    assert "of 1 data sets, 2d-pareto is significantly better on 1 and worse on 0 by the t-test" in text
    assert "| wine | 0.6365 | 0.4965 + | 0.7065 - |" in text


def test_runs_in_the_store_are_not_run_again(tmp_path):
    store = tmp_path / "fronts.jsonl"
    first = measure(["wine"], models=["nb"], runs=1, evaluations=120, store=store)
    assert [row.algorithm for row in first] == list(front_algorithms())
    seen = []
    again = measure(["wine"], models=["nb"], runs=2, evaluations=120, store=store, report=seen.append)
    assert {row.run for row in seen} == {1}
    assert [row for row in again if row.run == 0] == first
    assert read_runs(store) == again


def test_the_longest_searches_start_first_and_the_tables_keep_the_order_asked_for(uci):
    seen = []
    sets = ["wine", "ionosphere"]
    uci("ionosphere")
    rows = measure(sets, models=["nb"], runs=2, evaluations=60, n_jobs=1, report=seen.append)
    assert list(dict.fromkeys(row.dataset for row in seen)) == ["ionosphere", "wine"]
    assert list(dict.fromkeys((row.dataset, row.run) for row in rows)) == [
        (name, run) for name in sets for run in (0, 1)
    ]


def test_the_gain_on_unseen_rows_is_that_of_the_subset_the_search_prefers_within_each_limit():
    # Nothing at a limit of 1; 1 - 0.4 at 2, although 3 columns are better in the search, and 1 - 0.8 from 3 to 9.
    front = replace(run_of("nsga2", 0, (2, 3), (0.2, 0.1)), unseen_losses=(0.2, 0.4))
    assert front.gain_on_unseen_rows == pytest.approx((0.6 + 7 * 0.2) / 9)


def test_searches_do_not_see_the_rows_kept_from_them(tmp_path):
    store = tmp_path / "fronts.jsonl"
    rows = measure(["wine"], models=["nb"], runs=2, evaluations=120, unseen=0.5, store=store)
    assert all(len(row.unseen_losses) == len(row.losses) for row in rows)
    assert rows[0].losses != rows[len(front_algorithms())].losses  # other rows in the other run
    assert {loss * 89 % 1 < 1e-9 or loss * 89 % 1 > 1 - 1e-9 for row in rows for loss in row.unseen_losses} == {True}
    assert measure(["wine"], models=["nb"], runs=2, evaluations=120, unseen=0.5, store=store) == rows
    assert "Each search used 50% of the rows" in format_tables(rows)


def test_a_damaged_store_is_named_with_its_line(tmp_path):
    store = tmp_path / "fronts.jsonl"
    store.write_text(json.dumps({"dataset": "wine"}) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"fronts\.jsonl, line 1, is not a run"):
        read_runs(store)


def test_the_command_replaces_the_tables_of_a_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "Before.\n\n<!-- tables: begin -->\nformer tables\n<!-- tables: end -->\n\nAfter.\n", encoding="utf-8"
    )
    command = ["bench", "pareto", "--sets", "wine", "--models", "nb", "--runs", "2", "--evaluations", "100"]
    result = CliRunner().invoke(app, [*command, "--out", str(page)])
    assert result.exit_code == 0, result.output
    text = page.read_text(encoding="utf-8")
    assert text.startswith("Before.")
    assert text.endswith("After.\n")
    assert "1 data set, 2 runs" in text
    assert "former tables" not in text
