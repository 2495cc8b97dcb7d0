"""The progress of a study, read from its store, and estimates of how long the remaining runs take."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from statistics import fmean, median

from subswarm._display import format_duration
from subswarm.datasets import describe, names
from subswarm.study.plan import Group, PlannedRun
from subswarm.study.store import Store

__all__ = ["Costs", "GroupStatus", "Status", "read_status"]


@dataclass(frozen=True)
class Costs:
    """The seconds that a run of each group takes.

    Attributes
    ----------
    protocol, evaluations : of the study
    measured : the group of each finished run and how long the run took
    """

    protocol: str
    evaluations: int
    measured: Sequence[tuple[Group, float]]

    def sort_longest_first(self, runs: Iterable[PlannedRun]) -> list[PlannedRun]:
        """Sort the runs, longest first, so that all workers stay busy until the end; groups stay together."""
        runs = list(runs)
        cost = self._estimate({run.group for run in runs})
        return sorted(
            runs, key=lambda run: (-cost[run.group], *run.group[:2], -1 if run.group[2] is None else run.group[2])
        )

    def seconds_left(self, left: Iterable[PlannedRun], jobs: int) -> float | None:
        """Estimate how long the remaining runs take on ``jobs`` workers; None if no run has been measured yet."""
        if not self.measured:
            return None
        left = list(left)
        cost = self._estimate({run.group for run in left})
        return sum(cost[run.group] for run in left) / jobs

    def _estimate(self, groups: set[Group]) -> dict[Group, float]:
        """Return the mean seconds of a run of each group; a group without measurements gets a scaled guess."""
        seconds: dict[Group, list[float]] = defaultdict(list)
        for group, value in self.measured:
            seconds[group].append(value)
        means = {group: fmean(values) for group, values in seconds.items()}
        ratios = [mean / self._guess(group) for group, mean in means.items()]
        scale = median(ratios) if ratios else 1.0
        return {group: means.get(group, scale * self._guess(group)) for group in groups}

    def _guess(self, group: Group) -> float:
        """Guess the seconds of a run: quadratic in the rows for neighbours, rows times classes for other models."""
        dataset, model, _ = group
        rows, features, classes = 500, 30, 2
        if dataset in names():
            reading = describe(dataset).reading(self.protocol)
            (rows, features), classes = reading.shape, reading.n_classes
        if "knn" in model:
            return self.evaluations * (1e-5 + 2.5e-11 * rows * rows * features)
        return self.evaluations * (5e-5 + 1.5e-10 * rows * features * classes)


@dataclass(frozen=True)
class GroupStatus:
    """Runs of one data set with one model: planned, done, failed, and mean seconds of a run (None if none is done)."""

    dataset: str
    model: str
    planned: int
    done: int
    failed: int
    seconds: float | None


@dataclass(frozen=True)
class Status:
    """The progress of a study; ``seconds_left`` is an estimate, None if no run is finished yet."""

    name: str
    protocol: str
    groups: tuple[GroupStatus, ...]
    failures: dict[str, str]
    seconds_left: float | None

    @property
    def planned(self) -> int:
        """The number of planned runs."""
        return sum(group.planned for group in self.groups)

    @property
    def done(self) -> int:
        """The number of finished runs."""
        return sum(group.done for group in self.groups)

    def as_json(self) -> dict[str, object]:
        """Return the progress as values that JSON can hold."""
        return {**asdict(self), "planned": self.planned, "done": self.done}

    def as_text(self) -> str:
        """Return the progress as text for a terminal."""
        rows = [
            (
                group.dataset,
                group.model,
                f"{group.done}/{group.planned}",
                str(group.failed) if group.failed else "",
                "" if group.seconds is None else f"{group.seconds:.1f}",
            )
            for group in self.groups
        ]
        lines = [
            f"{self.name} ({self.protocol} protocol): {self.done} of {self.planned} runs",
            *_align([("data set", "model", "runs", "failed", "seconds per run"), *rows]),
        ]
        if self.done < self.planned:
            left = "not known yet" if self.seconds_left is None else f"about {format_duration(self.seconds_left)}"
            lines.append(f"time left: {left}")
        for error, count in Counter(self.failures.values()).most_common(5):
            lines.append(f"failed {count} {'time' if count == 1 else 'times'}: {error}")
        return "\n".join(lines)


def read_status(path: str | PathLike[str]) -> Status:
    """Read the progress of the study in a store; another process may be writing to it."""
    with Store.reading(path) as store, store.snapshot():
        info, planned, done, failures = store.info(), store.planned(), store.done(), store.failures()
        measured, jobs = store.seconds(), store.jobs()
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    for group, value in measured:
        seconds[group[:2]].append(value)
    names = dict.fromkeys((run.dataset, run.model) for run in planned)
    groups = []
    for name in names:
        keys = [run.key for run in planned if (run.dataset, run.model) == name]
        mean = fmean(seconds[name]) if seconds[name] else None
        finished, failed = sum(key in done for key in keys), sum(key in failures for key in keys)
        groups.append(GroupStatus(*name, len(keys), finished, failed, mean))
    left = [run for run in planned if run.key not in done and run.key not in failures]
    return Status(
        info.name,
        info.protocol,
        tuple(groups),
        {str(run): failures[run.key].error for run in planned if run.key in failures},
        Costs(info.protocol, info.evaluations, measured).seconds_left(left, jobs),
    )


def _align(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
