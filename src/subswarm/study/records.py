"""What a run leaves behind: what it found, and, apart from it, how long it took and where."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from subswarm._version import __version__
from subswarm.study.plan import PlannedRun

__all__ = ["Failure", "Outcome", "ProblemFacts", "Row", "RunContent", "RunTiming", "machine", "versions"]


@dataclass(frozen=True)
class ProblemFacts:
    """What is true of a data set under one model before any search: the same for every run of a group.

    Attributes
    ----------
    n_rows, n_features, n_classes : of the rows the search sees
    data_digest : of rows, labels and folds
    loss_all, loss_first : cross-validated error of all features (J(U)), and of the first feature alone
    held_out_all : error of all features on the outer fold, or None
    """

    n_rows: int
    n_features: int
    n_classes: int
    data_digest: str
    loss_all: float
    loss_first: float
    held_out_all: float | None


@dataclass(frozen=True)
class RunContent:
    """What a search found. It depends on the run's key alone, not on the machine or the clock.

    Attributes
    ----------
    loss : J of the best subset; ``fold_losses`` are its folds'
    features : indices of the best subset, ascending
    curve : (evaluations, best loss, its cardinality) whenever the best changed, and at the end
    evaluations, computed : subsets asked, and distinct ones among them
    stop_reason : as in `subswarm.SearchResult`
    held_out : error of the refitted model on the outer fold, or None
    settings : the algorithm's, all of them
    """

    loss: float
    fold_losses: tuple[float, ...]
    features: tuple[int, ...]
    curve: tuple[tuple[int, float, int], ...]
    evaluations: int
    computed: int
    stop_reason: str
    held_out: float | None
    settings: dict[str, Any]

    @property
    def cardinality(self) -> int:
        return len(self.features)


@dataclass(frozen=True)
class RunTiming:
    """How long a run took, and where.

    Attributes
    ----------
    algorithm_seconds, evaluation_seconds : the paper's T1 and T2
    engine : what scored the subsets
    machine, versions : as in `machine` and `versions`
    """

    algorithm_seconds: float
    evaluation_seconds: float
    engine: str
    machine: str
    versions: dict[str, str]

    @property
    def seconds(self) -> float:
        return self.algorithm_seconds + self.evaluation_seconds


@dataclass(frozen=True)
class Failure:
    """A run that raised: the error in one line, and its trace."""

    error: str
    trace: str


@dataclass(frozen=True)
class Outcome:
    """What comes back from a worker: a result with its problem's facts, or a failure."""

    planned: PlannedRun
    content: RunContent | None = None
    timing: RunTiming | None = None
    problem: ProblemFacts | None = None
    failure: Failure | None = None


@dataclass(frozen=True)
class Row:
    """A finished run, as read from a store."""

    planned: PlannedRun
    content: RunContent
    timing: RunTiming


@cache
def versions() -> dict[str, str]:
    """The releases that a result may depend on."""
    found = {"subswarm": __version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "scikit-learn", "numba"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found


@cache
def machine() -> str:
    """The machine's kind; no name, since results are meant to be passed on."""
    import os

    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
