"""How far a study is, from its store alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from os import PathLike
from statistics import fmean
from typing import Any

from subswarm.study.costs import Costs
from subswarm.study.store import Store

__all__ = ["GroupStatus", "Status", "in_words", "read_status"]


@dataclass(frozen=True)
class GroupStatus:
    """Runs of one data set with one model: planned, done, failed, and mean seconds of a run (None: none is done)."""

    dataset: str
    model: str
    planned: int
    done: int
    failed: int
    seconds: float | None


@dataclass(frozen=True)
class Status:
    """A study's progress; ``seconds_left`` is an estimate, None where no run is finished yet."""

    name: str
    protocol: str
    groups: tuple[GroupStatus, ...]
    failures: dict[str, str]
    seconds_left: float | None

    @property
    def planned(self) -> int:
        return sum(group.planned for group in self.groups)

    @property
    def done(self) -> int:
        return sum(group.done for group in self.groups)

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "planned": self.planned, "done": self.done}

    def as_text(self) -> str:
        """For a person."""
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
            *_aligned([("data set", "model", "runs", "failed", "seconds a run"), *rows]),
        ]
        if self.done < self.planned:
            left = "not known yet" if self.seconds_left is None else f"about {in_words(self.seconds_left)}"
            lines.append(f"time left: {left}")
        for error, count in Counter(self.failures.values()).most_common(5):
            lines.append(f"failed {count} times: {error}")
        return "\n".join(lines)


def read_status(path: str | PathLike[str]) -> Status:
    """The progress of the study in a store; it may be in use."""
    with Store.reading(path) as store:
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


def in_words(seconds: float) -> str:
    """A length of time as a person says it.

    Examples
    --------
    >>> in_words(42), in_words(130), in_words(7800)
    ('42 s', '2 min', '2 h 10 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min"


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
