"""What a run returns: its result, and separately how long it took and where."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache

from subswarm.study.plan import PlannedRun

__all__ = ["Failure", "Outcome", "ProblemFacts", "Row", "RunContent", "RunTiming", "describe_machine"]


@dataclass(frozen=True)
class ProblemFacts:
    """Facts about a data set with one model before any search; the same for every run of a group.

    Attributes
    ----------
    n_rows, n_features, n_classes : of the rows that the search sees
    data_digest : digest of rows, labels and folds
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
    """What a search found. It depends only on the key of the run, not on the machine or the time.

    Attributes
    ----------
    loss, fold_losses : J of the best subset, and its loss on each fold
    features : indices of the best subset, ascending
    curve : (evaluations, best loss, its cardinality) at each change of the best subset, and at the end
    evaluations, computed : subsets asked for, and distinct subsets among them
    stop_reason : as in `subswarm.SearchResult`
    held_out : error of the refitted model on the outer fold, or None
    settings : all settings of the algorithm
    """

    loss: float
    fold_losses: tuple[float, ...]
    features: tuple[int, ...]
    curve: tuple[tuple[int, float, int], ...]
    evaluations: int
    computed: int
    stop_reason: str
    held_out: float | None
    settings: dict[str, object]

    @property
    def cardinality(self) -> int:
        """The number of selected features."""
        return len(self.features)


@dataclass(frozen=True)
class RunTiming:
    """How long a run took, and where.

    Attributes
    ----------
    algorithm_seconds, evaluation_seconds : T1 and T2 of the paper
    engine : the engine that scored the subsets
    machine, versions : as in `describe_machine` and `subswarm._display.package_versions`
    """

    algorithm_seconds: float
    evaluation_seconds: float
    engine: str
    machine: str
    versions: dict[str, str]

    @property
    def seconds(self) -> float:
        """The total time."""
        return self.algorithm_seconds + self.evaluation_seconds


@dataclass(frozen=True)
class Failure:
    """A run that raised an exception: the error in one line, and its traceback."""

    error: str
    trace: str


@dataclass(frozen=True)
class Outcome:
    """What a worker returns: a result with the facts of its problem, or a failure."""

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
def describe_machine() -> str:
    """Return the kind of machine, without its name: stores are meant to be shared."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
