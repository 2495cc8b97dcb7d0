"""The tables of docs/algorithms.md are made by a command."""

from __future__ import annotations

import re
from pathlib import Path

from typer.testing import CliRunner

from subswarm.algorithms import names
from subswarm.bench.algorithms import BEGIN, END, Row, format_tables, named_algorithms, replace_tables
from subswarm.cli import app

PAGE = Path(__file__).parent.parent / "docs" / "algorithms.md"


def test_the_command_replaces_the_tables_of_a_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"Before.\n\n{BEGIN}\nformer tables\n{END}\n\nAfter.\n", encoding="utf-8")
    command = ["bench", "algorithms", "--dataset", "wine", "--seeds", "1", "--evaluations", "60", "--out", str(page)]
    only = [part for name in ("sfs", "branch-and-bound", "anova-f", "ga") for part in ("--only", name)]
    result = CliRunner().invoke(app, [*command, *only])
    assert result.exit_code == 0, result.output
    text = page.read_text(encoding="utf-8")
    assert text.startswith("Before.")
    assert text.endswith("After.\n")
    assert "former tables" not in text
    assert [line.split(" |")[0] for line in text.splitlines() if re.match(r"\| [a-z]", line)] == [
        "| algorithm",
        "| sfs",
        "| branch-and-bound",
        "| anova-f",
        "| ga",
        "| ga, window",
    ]
    assert "not monotone" in text


def test_a_page_without_marks_gets_the_tables_at_its_end():
    assert replace_tables("Mine.\n", "tables\n") == f"Mine.\n{BEGIN}\ntables\n{END}\n"


def test_a_row_shows_error_features_and_both_times():
    row = Row("wine", "nb", "sfs", 1, 0.01234, 4.0, 91.0, 0.0021, 1.234)
    assert "| sfs | 0.0123 | 4.0 | 0.002 | 1.23 |" in format_tables([row], seeds=1, evaluations=91)


def test_all_algorithms_are_measured_and_described():
    assert set(names()) < set(named_algorithms())
    text = PAGE.read_text(encoding="utf-8").split(BEGIN)[0]
    headings = re.findall(r"^### (.+)$", text, flags=re.MULTILINE)
    described = {name for heading in headings for name in heading.split(", ")}
    assert described == {*names(), "Race", "FoldwiseRace"}
