"""Draw the mean ranks of the paper's study as critical-difference diagrams, from its results page."""

from __future__ import annotations

import re
from pathlib import Path

from matplotlib.figure import Figure
from themes import save

from subswarm import plot

PAGE = Path(__file__).parents[1] / "results" / "paper.md"
NAMES = {"ga": "GA", "aco": "ACO", "bpso": "BPSO", "cbpso": "CBPSO", "erfs": "ErFS", "pso-42": "PSO(4-2)",
         "chbpso": "chBPSO", "2d-upso": "2D-UPSO"}  # fmt: skip


def friedman_table(page: str, model: str) -> tuple[dict[str, float], float]:
    """Return mean ranks and critical difference, as `study table --what friedman --format markdown` prints them."""
    part = page.split(f"### Friedman's test over 16 data sets, {model}\n", 1)[1].split("\n#", 1)[0]
    ranks = {NAMES[name]: float(rank) for name, rank in re.findall(r"^\| (\S+) \| ([\d.]+) \|", part, re.MULTILINE)}
    distance = re.search(r"critical difference at 0\.05: ([\d.]+\d)", part)
    assert distance is not None
    return ranks, float(distance[1])


def main(folder: Path) -> None:
    """Write the pictures."""
    page = PAGE.read_text(encoding="utf-8")

    def draw(model: str) -> Figure:
        ranks, distance = friedman_table(page, model)
        return plot.critical_difference(ranks, distance=distance, highlight="2D-UPSO").figure

    save(folder, "ranks-nb", lambda: draw("nb"))
    save(folder, "ranks-knn", lambda: draw("knn"))


if __name__ == "__main__":
    main(Path(__file__).parents[1] / "img")
