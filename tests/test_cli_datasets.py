"""``subswarm datasets`` lists the data sets and whether they are available."""

from __future__ import annotations

import json

import pytest

from subswarm.datasets import names
from subswarm.errors import SettingError

typer_testing = pytest.importorskip("typer.testing", reason="the command line needs the extra 'cli'")


@pytest.fixture
def run(monkeypatch, tmp_path):
    from subswarm.cli import app

    monkeypatch.setenv("SUBSWARM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: str) -> str:
        result = typer_testing.CliRunner().invoke(app, ["datasets", *arguments], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.output

    return call


def test_all_sixteen_are_listed_with_shape_and_presence(run, tmp_path):
    lines = {line.split()[0]: line for line in run("--data-dir", str(tmp_path)).splitlines() if line.strip()}
    assert set(names()) <= set(lines)
    assert lines["wine"].split()[1:] == ["Wine", "178", "13", "3", "yes", "UCI", "109"]
    assert lines["zoo"].split()[1:] == ["Zoo", "101", "16", "7", "no", "UCI", "111"]


def test_one_data_set_is_shown_with_both_protocols_and_its_source(run, tmp_path):
    said = " ".join(run("zoo", "--data-dir", str(tmp_path)).split())
    assert "sound: 101 rows, 16 features, 7 classes" in said
    assert "published: 101 rows, 17 features, 7 classes. The class is also the seventeenth feature." in said
    assert "Forsyth" in said
    assert "licence: CC BY 4.0" in said


def test_json_has_the_same_content(run, tmp_path):
    data = json.loads(run("--json", "--data-dir", str(tmp_path)))
    assert list(data) == list(names())
    assert data["lung-cancer"]["protocols"]["published"]["rows"] == 32
    assert data["secom"]["files"] == ["secom.data", "secom_labels.data"]


def test_an_unknown_name_is_a_clear_error(run):
    with pytest.raises(SettingError, match="Did you mean 'sonar'"):
        run("sonnar")
