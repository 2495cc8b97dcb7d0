"""Draw the pictures of the gallery by running the code on its page."""

from __future__ import annotations

import re
from pathlib import Path

from matplotlib import pyplot
from themes import save

DOCS = Path(__file__).parents[1]
NAMES = (
    "gallery-trade-off",
    "gallery-front",
    "gallery-selection-frequency",
    "gallery-convergence",
    "gallery-algorithms",
)


def main(folder: Path) -> None:
    """Run the blocks of the page from top to bottom; a picture that follows a block is what the block draws."""
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "gallery"}
    drawn = []
    for code, picture in re.findall(
        r"```python\n(.*?)```\n+(?:!\[[^]]*\]\(img/([a-z-]+)-light\.svg\))?", page, re.DOTALL
    ):
        block = compile(code, "gallery.md", "exec", dont_inherit=True)
        if not picture:
            exec(block, names)
            continue

        def draw() -> object:
            exec(block, names)  # noqa: B023  (called before the next block)
            return pyplot.gcf()

        save(folder, picture, draw)
        drawn.append(picture)
    if tuple(drawn) != NAMES:
        raise SystemExit(f"the page has the pictures {drawn}, and this script names {NAMES}")


if __name__ == "__main__":
    main(DOCS / "img")
