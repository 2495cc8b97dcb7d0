"""Draw searches on the breast-cancer table for the documentation, with fixed seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import pyplot
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer
from sklearn.naive_bayes import GaussianNB
from themes import save

from subswarm import Budget, make_objective, plot, search

RUNS, EVALUATIONS = 10, 3000


def main(folder: Path) -> None:
    """Run the searches and write the pictures."""
    table = load_breast_cancer()
    objective = make_objective(GaussianNB(), table.data, table.target)
    budget = Budget(evaluations=EVALUATIONS)
    algorithms = {"2D-Elite": "2d-elite", "2D-UPSO": "2d-upso", "BPSO": "bpso", "GA": "ga", "random": "random"}
    runs = {
        name: [search(algorithm, objective, budget, rng=seed, record=seed == 0) for seed in range(RUNS)]
        for name, algorithm in algorithms.items()
    }
    baseline = float(objective(np.ones((1, 30), dtype=bool))[0])
    first = runs["2D-UPSO"][0]

    def convergence() -> Figure:
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(8.6, 3.5), layout="constrained")
        plot.convergence(runs, show="improvement", baseline=baseline, ax=left)
        plot.convergence(runs, show="reduction", ax=right)
        right.get_legend().remove()
        return figure

    save(folder, "convergence", convergence)
    save(folder, "trade-off", lambda: plot.trade_off(first).figure)
    save(folder, "likelihood", lambda: plot.cardinality_likelihood(first).figure)
    names = [str(name) for name in table.feature_names]
    save(folder, "frequency", lambda: plot.selection_frequency(runs["2D-UPSO"], names=names, top=15).figure)


if __name__ == "__main__":
    main(Path(__file__).parents[1] / "img")
