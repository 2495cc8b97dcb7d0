"""Documentation, docstrings and messages use the project's terms, not the words that they replace."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

REPLACEMENTS = {
    "anew": "again, new",
    "broken off": "interrupted",
    "chosen by themselves": "selected automatically",
    "clan": "island",
    "clans": "islands",
    "held-out figure": "nested score",
    "honest figure": "nested score",
    "reckon": "compute",
    "reckoned": "computed",
    "slow truth": "reference engine",
    "vouch": "check, guarantee",
    "vouched": "checked, guaranteed",
    "vouches": "checks, guarantees",
    "whole or not there": "atomic write",
}
_PATTERNS = "|".join(r"\s+".join(map(re.escape, words.split())) for words in REPLACEMENTS)
_OLD_WORDS = re.compile(rf"(?<!\w)(?:{_PATTERNS})(?!\w)", flags=re.IGNORECASE)


def checked_files():
    """The pages, modules and tests whose words users and contributors read; tables of results are data."""
    pages = sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts)
    return [
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "SECURITY.md",
        *pages,
        *sorted((ROOT / "src").rglob("*.py")),
        *sorted((ROOT / "src").rglob("*.j2")),
        *sorted((ROOT / "docs").rglob("*.toml")),
        *sorted((ROOT / "docs" / "pictures").glob("*.py")),
        *sorted(path for path in (ROOT / "tests").rglob("*.py") if path.name != Path(__file__).name),
    ]


def prose_of(text, suffix):
    """The text with the parts that are not prose blanked, lines kept: fenced blocks and tables of a page."""
    if suffix != ".md":
        return text
    text = re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), text, flags=re.DOTALL)
    return re.sub(r"^\|.*$", "", text, flags=re.MULTILINE)


def old_words(text, suffix=".py"):
    """Each replaced word in a text as (line, word, what to write instead)."""
    prose = prose_of(text, suffix)
    return [
        (prose.count("\n", 0, match.start()) + 1, word, REPLACEMENTS[word])
        for match in _OLD_WORDS.finditer(prose)
        for word in [" ".join(match[0].lower().split())]
    ]


@pytest.mark.parametrize("path", checked_files(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_file_has_no_replaced_words(path):
    found = old_words(path.read_text(encoding="utf-8"), path.suffix)
    assert not found, "\n".join(f"{path.name}:{line}: {word!r} -> {instead}" for line, word, instead in found)


def test_words_are_found_across_lines_and_in_capitals():
    assert old_words("It starts Anew.\nThe held-out\n    figure.") == [
        (1, "anew", "again, new"),
        (2, "held-out figure", "nested score"),
    ]


@pytest.mark.parametrize("text", ["clan_memory = 0.97", "held_out=5", "a vouchered clanging", "renewed"])
def test_identifiers_and_longer_words_are_allowed(text):
    assert old_words(text) == []


def test_tables_and_code_of_a_page_are_not_prose():
    page = "a clan\n\n```\nstudy versus (clans)\n```\n\n| 2d-elite (clans) | 1.47 |\n"
    assert old_words(page, ".md") == [(1, "clan", "island")]
