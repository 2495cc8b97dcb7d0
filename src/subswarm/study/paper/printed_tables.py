"""The tables that the paper prints: errors, cardinalities, verdicts and times.

F. Hafiz, A. Swain, N. Patel, C. Naik, A two-dimensional (2-D) learning framework for Particle Swarm based feature
selection, Pattern Recognition 76 (2018) 416-433.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

from subswarm.study.paper.settings import PAPER_ALGORITHMS

__all__ = ["PaperTables", "Place", "paper_classifier", "paper_tables"]

_DATASETS = {"Lung Cancer": "lung-cancer", "Hill": "hill-valley"}
_CLASSIFIERS = {"nb": "nb", "normal-cdf-nb": "nb", "knn": "knn", "knn-raw": "knn"}

Place = tuple[str, str, str]
"""Data set, classifier ("nb" or "knn") and algorithm, all with our names."""


@dataclass(frozen=True)
class PaperTables:
    """The printed values, by place.

    Attributes
    ----------
    error : mean and SD of the error over 40 runs, and PI in percent
    error_rank, cardinality_rank, time_rank : ranks
    cardinality : mean, and Ξ in percent
    seconds : T1, T2 and T, for four of the algorithms
    verdict : "+", "-", "=" or "?" of 2D-UPSO against the algorithm
    error_all : J(U) by (data set, classifier)
    n_features : by data set
    """

    error: dict[Place, tuple[float, float, float]]
    error_rank: dict[Place, float]
    cardinality: dict[Place, tuple[float, float]]
    cardinality_rank: dict[Place, float]
    seconds: dict[Place, tuple[float, float, float]]
    time_rank: dict[Place, float]
    verdict: dict[Place, str]
    error_all: dict[tuple[str, str], float]
    n_features: dict[str, int]


def paper_classifier(model: str) -> str | None:
    """Return the paper's classifier that a model corresponds to, or None."""
    return _CLASSIFIERS.get(model)


@cache
def paper_tables() -> PaperTables:
    """Return the printed tables.

    Examples
    --------
    >>> paper_tables().error["wine", "nb", "2d-upso"]
    (0.2122, 0.00685, 64.7)
    """
    errors, sizes, times = _rows("error"), _rows("cardinality"), _rows("runtime_seconds")
    verdicts, sets = _rows("paired_t_test"), _rows("datasets")
    return PaperTables(
        error={_place(row): (float(row["mean"]), float(row["sd"]), float(row["pi_percent"])) for row in errors},
        error_rank={_place(row): float(row["rank"]) for row in errors},
        cardinality={_place(row): (float(row["cardinality"]), float(row["reduction_percent"])) for row in sizes},
        cardinality_rank={_place(row): float(row["rank"]) for row in sizes},
        seconds={
            _place(row): (float(row["algorithm_time"]), float(row["evaluation_time"]), float(row["total_time"]))
            for row in times
        },
        time_rank={_place(row): float(row["rank"]) for row in times},
        verdict={_place(row, "rival"): row["verdict"] for row in verdicts},
        error_all={
            (_dataset(row["dataset"]), classifier): float(row[f"error_all_features_{classifier}"])
            for row in sets
            for classifier in ("nb", "knn")
        },
        n_features={_dataset(row["dataset"]): int(row["features"]) for row in sets},
    )


def _rows(name: str) -> list[dict[str, str]]:
    text = (resources.files("subswarm.study.paper") / "facts" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _place(row: dict[str, str], column: str = "algorithm") -> Place:
    name = row[column].lower()
    if name not in PAPER_ALGORITHMS:
        raise KeyError(
            f"the paper's tables name an unknown algorithm {row[column]!r}; expected one of {PAPER_ALGORITHMS}"
        )
    return _dataset(row["dataset"]), row["classifier"], name


def _dataset(name: str) -> str:
    return _DATASETS.get(name, name.lower())
