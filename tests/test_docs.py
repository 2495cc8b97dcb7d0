"""What the documentation shows, runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ["docs/algorithms.md", "docs/write-your-own-swarm.md", "README.md"]


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs_from_top_to_bottom(page):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    assert blocks
    names: dict[str, object] = {"__name__": "documentation"}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{page}[{number}]", "exec", dont_inherit=True), names)


def test_every_decision_is_in_the_paper_notes():
    notes = (ROOT / "docs/paper-notes.md").read_text(encoding="utf-8")
    for number in range(1, 16):
        assert f"| D{number} |" in notes
