"""Reads the progress of a study from its store."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from os import PathLike
from statistics import fmean

from subswarm._display import format_duration
from subswarm.study.eta import Costs
from subswarm.study.store import Store

__all__ = ["GroupStatus", "Status", "read_status"]


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
