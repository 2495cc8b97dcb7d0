"""The benchmarks run from the command line and print their results."""

from __future__ import annotations

from pathlib import Path

import pytest

typer_testing = pytest.importorskip("typer.testing")


def run(*arguments: str):
    from subswarm.cli import app

    done = typer_testing.CliRunner().invoke(app, ["bench", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_engines_are_compared_with_scikit_learn(uci):
    uci("wine")
    output = run("engines", "--datasets", "wine", "--repeats", "1")
    assert "wine" in output
    assert "| nb | accuracy |" in output
    assert "| knn | accuracy |" in output
    assert "GFLOP/s" in output
    assert "first evaluation of a new process" in output


def test_engines_are_compared_for_each_scorer_that_a_table_allows(uci):
    uci("wine")
    output = run(
        "engines", "--datasets", "wine", "--repeats", "1", "--models", "nb", "--scoring", "roc_auc,f1_macro"
    )  # fmt: skip
    assert "| nb | f1_macro |" in output
    assert "| nb | roc_auc |" not in output  # wine has three classes


def test_growth_is_drawn(tmp_path: Path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "growth.png"
    output = run("growth", "--quick", "--out", str(picture))
    assert output.count("subset size") == 6
    assert picture.stat().st_size > 5000


@pytest.mark.slow
def test_searches_of_wide_and_tall_tables_are_measured():
    output = run("growth", "--searches", "--quick", "--repeats", "1")
    lines = output.splitlines()
    assert [line.split(" s CPU")[0].split()[:4] for line in lines[:3]] == [
        ["nb", "100", "x", "60"], ["nb", "100", "x", "120"], ["knn", "600", "x", "10"],
    ]  # fmt: skip
    assert "| model | rows | columns | CPU seconds | seconds | peak memory, MB |" in lines
    *_, cpu, seconds, memory, _ = next(line for line in lines if line.startswith("| knn | 600 | 10 |")).split("|")
    assert float(cpu) > 0
    assert float(seconds) > 0
    assert float(memory) > 50
    assert "120 columns take " in lines[-1]


def test_torch_is_compared_with_the_cpu_engines(uci):
    pytest.importorskip("torch", reason="torch (extra gpu) is not installed")
    uci("wine")
    output = run(
        "gpu", "--device", "cpu", "--datasets", "wine", "--models", "nb,lda", "--repeats", "1", "--search", "wine",
        "--evaluations", "60",
    )  # fmt: skip
    assert output.count("0 of 600") == 2
    assert "TFLOP/s in float32" in output
    assert "wine, nb, 2d-upso, 60 evaluations" in output
