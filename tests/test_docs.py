"""The code of the documentation runs, and its numbers and pictures come from commands."""

from __future__ import annotations

import doctest
import importlib
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in (ROOT / "README.md", *DOCS.rglob("*.md"))
    if "_build" not in page.parts and "```python\n" in page.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.slow
def test_the_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a page may write files
    monkeypatch.setenv("MPLBACKEND", "Agg")
    blocks = re.findall(r"```(python|console)\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    assert blocks
    names: dict[str, object] = {"__name__": "documentation"}
    for number, (kind, block) in enumerate(blocks):
        if kind == "python":
            exec(compile(block, f"{page}[{number}]", "exec", dont_inherit=True), names)
        else:
            check_session(block)


def check_session(session):
    """Run the command of a session in a terminal; its output is as shown, where a line ``...`` is any text."""
    command, expected = session.removeprefix("$ ").split("\n", 1)
    program, *arguments = shlex.split(command)
    assert program == "subswarm"
    process = subprocess.run(
        [sys.executable, "-m", "subswarm", *arguments], capture_output=True, text=True, check=False
    )
    printed = process.stderr + process.stdout
    assert doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE), (
        printed
    )


def test_the_readme_shows_what_its_example_prints(capsys):
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    example, output = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, flags=re.DOTALL).groups()
    exec(compile(example, "README.md", "exec", dont_inherit=True), {"__name__": "documentation"})
    assert capsys.readouterr().out == output


def test_the_measurements_of_the_readme_are_on_the_pages_it_names():
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    section = page.split("## What it beats\n", 1)[1].split("\n## ", 1)[0]
    sources = [ROOT / link for link in set(re.findall(r"\]\((docs/[^)#]+\.md)\)", section))]
    assert len(sources) >= 3
    printed = set(re.findall(r"\d[\d.,]*\d|\d", "".join(source.read_text(encoding="utf-8") for source in sources)))
    measured = re.findall(r"\b\d+\.\d+\b|\b\d{3,}\b", section)
    assert len(measured) >= 10
    assert set(measured) <= printed


def test_every_picture_is_made_by_a_command_and_every_one_made_is_shown(tmp_path):
    makers = (ROOT / "Makefile").read_text(encoding="utf-8")
    makers += "".join(script.read_text(encoding="utf-8") for script in (DOCS / "pictures").glob("*.py"))
    shown = set()
    for page in DOCS.rglob("*.md"):
        found = re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
        shown |= {(page.parent / name).resolve() for name in found}
    assert shown == set((DOCS / "img").iterdir())
    for picture in shown:
        assert f'"{re.sub("-(light|dark)$", "", picture.stem)}"' in makers or picture.name in makers, picture


@pytest.mark.parametrize(
    ("script", "names"), [("method", ("learning", "moving")), ("ranks", ("ranks-knn", "ranks-nb"))]
)
@pytest.mark.slow
def test_pictures_that_need_no_search_can_be_drawn_again(script, names, tmp_path):
    code = f"import sys; from pathlib import Path; sys.path.insert(0, {str(DOCS / 'pictures')!r}); import {script}; "
    subprocess.run([sys.executable, "-c", f"{code} {script}.main(Path({str(tmp_path)!r}))"], check=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{name}-{theme}.svg" for name in names for theme in ("dark", "light")
    ]


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("sphinx", reason="sphinx is not installed (it comes with the extra 'dev')")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    source = tmp_path / "docs"
    shutil.copytree(DOCS, source, ignore=shutil.ignore_patterns("_build"))
    process = subprocess.run([*command, source, tmp_path / "site"], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    page = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    fetched = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)"', page)
    assert fetched == []


def test_every_decision_is_in_the_paper_notes():
    notes = (ROOT / "docs/paper-notes.md").read_text(encoding="utf-8")
    for number in range(1, 16):
        assert f"| D{number} |" in notes


def test_the_page_of_the_command_line_has_every_command_and_option(monkeypatch):
    typer_testing = pytest.importorskip(
        "typer.testing", reason="typer is not installed (it comes with the extra 'cli')"
    )
    from subswarm.cli import app

    monkeypatch.syspath_prepend(DOCS)
    page = importlib.import_module("commands").describe_commands()
    sections = dict(zip(*[iter(re.split(r"^#+ (subswarm .*)\n", page, flags=re.MULTILINE)[1:])] * 2, strict=True))
    assert {"subswarm select", "subswarm study run", "subswarm bench engines"} <= set(sections)
    runner = typer_testing.CliRunner(env={"COLUMNS": "200"})
    for name, section in sections.items():
        shown = runner.invoke(app, [*name.split()[1:], "--help"]).output
        options = set(re.findall(r"^[\s│]*(--[a-z][\w-]*)", shown, flags=re.MULTILINE)) - {"--help"}
        assert bool(options) == ("```" in section)  # a group of commands has none
        assert {f"`{option}`" for option in options} <= set(re.findall(r"`--[^`]+`", section)), name
