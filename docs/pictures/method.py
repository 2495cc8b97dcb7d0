"""Draw the paper's five-feature example of a swarm, computed with the functions that the swarms use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from themes import save

from subswarm.algorithms.two_d.learning import add_influence, add_pull, ranked_features, wheel_position
from subswarm.plot import PALETTE
from subswarm.plot._style import tidy

POSITION, PERSONAL, GLOBAL = (
    np.array([[int(bit) for bit in word]], dtype=bool) for word in ("10101", "01001", "11010")
)
RHO = np.array([[0.14, 2.56, 1.35, 0.38, 0.71]])
SIGMA = np.array([[1.31, 2.40, 0.57, 1.46, 1.30]])
SPIN = 3.25


def cells(ax: Axes, bits: np.ndarray, x: float, y: float, colour: str) -> None:
    """Draw bits as boxes, filled where they are one."""
    for place, bit in enumerate(bits):
        ink = ax.xaxis.label.get_color()
        box = pyplot.Rectangle(
            (x + place, y), 0.9, 0.9, facecolor=colour if bit else "none", edgecolor=ink, linewidth=0.8
        )
        ax.add_patch(box)
        ax.text(x + place + 0.45, y + 0.42, str(int(bit)), ha="center", va="center", color="white" if bit else ink)


def learning_set(exemplar: np.ndarray) -> np.ndarray:
    """Return what the particle learns from a subset, or from itself, shape (2, n)."""
    learnt = np.zeros((1, 2, POSITION.shape[1]))
    if exemplar is POSITION:
        add_influence(learnt, POSITION, np.ones(1))
    else:
        add_pull(learnt, exemplar, POSITION, np.ones((1, 1, 1)))
    return learnt[0]


def learning() -> Figure:
    """Draw the learning sets that a particle takes from three subsets."""
    figure, ax = pyplot.subplots(figsize=(8.2, 4.3), layout="constrained")
    rows = (
        ("the particle, x", POSITION, "itself", PALETTE[2]),
        ("its personal best", PERSONAL, "its personal best", PALETTE[0]),
        ("the global best", GLOBAL, "the global best", PALETTE[1]),
    )
    for place, (who, bits, source, colour) in enumerate(rows):
        y = -3.1 * place
        cells(ax, bits[0], 0, y + 0.5, colour)
        ax.text(0, y + 1.75, f"{who}, {int(bits.sum())} features", va="center")
        ax.annotate("", (8.0, y + 0.95), (5.3, y + 0.95), arrowprops={"arrowstyle": "->", "color": colour, "lw": 1.6})
        matrix = learning_set(bits)
        cells(ax, matrix[0], 8.6, y + 1.0, colour)
        cells(ax, matrix[1], 8.6, y, colour)
        ax.text(8.6, y + 2.2, f"learning set from {source}", va="center")
        ax.text(13.8, y + 1.42, "number of features, 1 … 5", va="center", fontsize="small")
        which = "its own features" if place == 0 else "features that x does not have"
        ax.text(13.8, y + 0.42, which, va="center", fontsize="small")
    ax.set_xlim(-0.2, 19.6)
    ax.set_ylim(-6.5, 2.7)
    ax.set_axis_off()
    return figure


def moving() -> Figure:
    """Draw how a velocity becomes the next position: the wheel, then the ranks."""
    figure, (wheel, rank) = pyplot.subplots(1, 2, figsize=(8.2, 3.6), layout="constrained", width_ratios=[1, 1.15])
    size = int(wheel_position(RHO, np.array([SPIN / RHO.sum()]))[0]) + 1
    chosen = ranked_features(SIGMA, np.array([size]))[0]
    start = 0.0
    for place, width in enumerate(RHO[0]):
        hit = place + 1 == size
        angles = np.linspace(start, start + width, 60) / RHO.sum() * 2 * np.pi
        edge = np.concatenate([[[0, 0]], np.column_stack([np.sin(angles), np.cos(angles)])])
        wheel.fill(edge[:, 0], edge[:, 1], facecolor=PALETTE[1] if hit else PALETTE[7], alpha=1 if hit else 0.45,
                   edgecolor=wheel.xaxis.label.get_color(), linewidth=0.8)  # fmt: skip
        middle = (start + width / 2) / RHO.sum() * 2 * np.pi
        wheel.text(1.17 * np.sin(middle), 1.17 * np.cos(middle), f"{place + 1}", ha="center", va="center",
                   fontweight="bold" if hit else "normal")  # fmt: skip
        start += width
    turn = SPIN / RHO.sum() * 2 * np.pi
    wheel.annotate("", (0.93 * np.sin(turn), 0.93 * np.cos(turn)), (0, 0),
                   arrowprops={"arrowstyle": "-|>", "color": wheel.xaxis.label.get_color(), "lw": 2})  # fmt: skip
    wheel.set_title(
        f"1. Draw a number of features from the first\nrow: {SPIN} of {RHO.sum():.2f} is in slot {size}",
        fontsize="medium",
    )
    wheel.set_aspect("equal")
    wheel.set_ylim(-1.15, 1.35)
    wheel.set_axis_off()
    places = np.arange(1, 6)
    bars = rank.bar(places, SIGMA[0], color=[PALETTE[1] if inside else PALETTE[7] for inside in chosen], width=0.7)
    order = np.argsort(np.argsort(-SIGMA[0])) + 1
    for bar, place, inside in zip(bars, order, chosen, strict=True):
        bar.set_alpha(1 if inside else 0.45)
        rank.annotate(f"rank {place}", (bar.get_x() + bar.get_width() / 2, bar.get_height()), xytext=(0, 3),
                      textcoords="offset points", ha="center", fontsize="small")  # fmt: skip
    word = "".join(str(int(inside)) for inside in chosen)
    rank.set_title(f"2. Select the {size} features that rank highest\nin the second row: {word}", fontsize="medium")
    rank.set_xticks(places, [f"feature {place}" for place in places], fontsize="small")
    rank.set_ylabel("likelihood")
    rank.set_ylim(0, 2.8)
    tidy(rank, grid="y")
    return figure


def main(folder: Path) -> None:
    """Write the pictures."""
    save(folder, "learning", learning)
    save(folder, "moving", moving)


if __name__ == "__main__":
    main(Path(__file__).parents[1] / "img")
