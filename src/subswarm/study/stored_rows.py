"""The rows of a store as typed records, their checksums, and the checks of rows without a checksum.

SQLite notices a torn page, but not a byte that changed inside a value. Each row therefore has a checksum of its
values. Stores of schema 1 have none: their rows are checked for the types and ranges of their values instead.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import NamedTuple

from subswarm.study.plan import Group, PlannedRun, canonical_json
from subswarm.study.records import ProblemFacts, RunContent, RunTiming

__all__ = [
    "COLUMNS",
    "ContenderRow",
    "PlanRow",
    "ProblemRow",
    "ResultRow",
    "SqlValue",
    "StudyRow",
    "TimingRow",
    "checksum",
    "is_plausible",
    "with_checksum",
]

SqlValue = str | int | float | bytes | None
_NO_OUTER_FOLD = -1


class StudyRow(NamedTuple):
    """The study of a store; ``frame`` is `Study.frame` as JSON."""

    name: str
    frame: str
    outer_folds: int


class ContenderRow(NamedTuple):
    """An algorithm with its settings as JSON."""

    label: str
    algorithm: str
    settings: str


class PlanRow(NamedTuple):
    """A planned run. The seed is text: it has more bits than an integer of SQLite."""

    key: str
    dataset: str
    model: str
    algorithm: str
    run: int
    outer_fold: int | None
    seed: str

    @classmethod
    def of(cls, run: PlannedRun) -> PlanRow:
        """Return the row of a run."""
        return cls(run.key, run.dataset, run.model, run.algorithm, run.run, run.outer_fold, str(run.seed))

    def planned(self) -> PlannedRun:
        """Return the run."""
        return PlannedRun(self.dataset, self.model, self.algorithm, self.run, self.outer_fold, self.key, int(self.seed))


class ProblemRow(NamedTuple):
    """The facts of a group; ``outer_fold`` is -1 if the search sees all rows."""

    dataset: str
    model: str
    outer_fold: int
    n_rows: int
    n_features: int
    n_classes: int
    data_digest: str
    loss_all: float
    loss_first: float
    held_out_all: float | None

    @classmethod
    def of(cls, group: Group, facts: ProblemFacts) -> ProblemRow:
        """Return the row of a group."""
        dataset, model, outer_fold = group
        return cls(dataset, model, _NO_OUTER_FOLD if outer_fold is None else outer_fold, *astuple(facts))

    @property
    def group(self) -> Group:
        """The group."""
        return self.dataset, self.model, None if self.outer_fold == _NO_OUTER_FOLD else self.outer_fold

    def facts(self) -> ProblemFacts:
        """Return the facts."""
        return ProblemFacts(*self[3:])


class ResultRow(NamedTuple):
    """What a run found; lists and settings are JSON text."""

    key: str
    loss: float
    fold_losses: str
    features: str
    curve: str
    evaluations: int
    computed: int
    stop_reason: str
    held_out: float | None
    settings: str

    @classmethod
    def of(cls, key: str, content: RunContent) -> ResultRow:
        """Return the row of a run."""
        return cls(
            key,
            content.loss,
            canonical_json(content.fold_losses),
            canonical_json(content.features),
            canonical_json(content.curve),
            content.evaluations,
            content.computed,
            content.stop_reason,
            content.held_out,
            canonical_json(content.settings),
        )

    def content(self) -> RunContent:
        """Return what the run found."""
        return RunContent(
            loss=self.loss,
            fold_losses=tuple(json.loads(self.fold_losses)),
            features=tuple(json.loads(self.features)),
            curve=tuple((step[0], step[1], step[2]) for step in json.loads(self.curve)),
            evaluations=self.evaluations,
            computed=self.computed,
            stop_reason=self.stop_reason,
            held_out=self.held_out,
            settings=json.loads(self.settings),
        )


class TimingRow(NamedTuple):
    """How long a run took, and where; the versions are JSON text."""

    key: str
    algorithm_seconds: float
    evaluation_seconds: float
    engine: str
    machine: str
    versions: str
    finished_at: str

    @classmethod
    def of(cls, key: str, timing: RunTiming, finished_at: str) -> TimingRow:
        """Return the row of a run."""
        versions = canonical_json(timing.versions)
        seconds = timing.algorithm_seconds, timing.evaluation_seconds
        return cls(key, *seconds, timing.engine, timing.machine, versions, finished_at)

    @property
    def seconds(self) -> float:
        """The total time."""
        return self.algorithm_seconds + self.evaluation_seconds

    def timing(self) -> RunTiming:
        """Return the timing."""
        seconds = self.algorithm_seconds, self.evaluation_seconds
        return RunTiming(*seconds, self.engine, self.machine, json.loads(self.versions))


COLUMNS: dict[str, tuple[str, ...]] = {
    "study": StudyRow._fields,
    "contenders": ContenderRow._fields,
    "plan": PlanRow._fields,
    "problems": ProblemRow._fields,
    "results": ResultRow._fields,
    "timings": TimingRow._fields,
}
"""The columns of each table with checksums, in order; the checksum is the last column."""

_FLOATS = {"loss", "held_out", "loss_all", "loss_first", "held_out_all", "algorithm_seconds", "evaluation_seconds"}


def with_checksum(table: str, values: Sequence[SqlValue]) -> tuple[SqlValue, ...]:
    """Return the values as they are stored, followed by their checksum."""
    stored = tuple(
        float(value) if name in _FLOATS and value is not None else value
        for name, value in zip(COLUMNS[table], values, strict=True)
    )
    return *stored, checksum(table, stored)


def checksum(table: str, values: Sequence[SqlValue]) -> str:
    """Return 16 hexadecimal digits that change if any of the values changes."""
    return hashlib.blake2b(canonical_json([table, *values]).encode(), digest_size=8).hexdigest()


def is_plausible(table: str, values: Sequence[SqlValue]) -> bool:
    """Return whether every value has a type and a range that its column allows."""
    return all(_CHECKS[table, name](value) for name, value in zip(COLUMNS[table], values, strict=True))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\ufffd" not in value  # this character replaces bytes that are not UTF-8


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_seed(value: object) -> bool:
    return isinstance(value, str) and value.isascii() and value.isdigit()


def _or_none(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or check(value)


def _json(check: Callable[[object], bool]) -> Callable[[object], bool]:
    def parse_and_check(value: object) -> bool:
        try:
            return isinstance(value, str) and _is_text(value) and check(json.loads(value))
        except (ValueError, OverflowError, RecursionError):
            return False

    return parse_and_check


def _is_table(value: object) -> bool:
    return isinstance(value, dict)


def _are_versions(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


def _is_frame(value: object) -> bool:
    required, optional = {"protocol", "evaluations", "folds", "seed"}, {"repeats", "outer_repeats"}
    return (
        isinstance(value, dict)
        and required <= value.keys() <= required | optional
        and isinstance(value["protocol"], str)
        and all(_is_count(number) for name, number in value.items() if name != "protocol")
        and value.get("outer_repeats", 1) > 0
    )


def _are_numbers(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_number, value))


def _are_features(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_count, value)) and value == sorted(set(value))


def _is_curve(value: object) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(map(_is_step, value))


def _is_step(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 3
        and _is_count(value[0])
        and _is_number(value[1])
        and _is_count(value[2])
    )


_CHECKS: dict[tuple[str, str], Callable[[object], bool]] = {
    (table, name): _is_number if name in _FLOATS else _is_text for table, names in COLUMNS.items() for name in names
}
_CHECKS |= {
    ("study", "frame"): _json(_is_frame),
    ("study", "outer_folds"): _is_count,
    ("contenders", "settings"): _json(_is_table),
    ("plan", "run"): _is_count,
    ("plan", "outer_fold"): _or_none(_is_count),
    ("plan", "seed"): _is_seed,
    ("problems", "outer_fold"): lambda value: value == _NO_OUTER_FOLD or _is_count(value),
    ("problems", "n_rows"): _is_count,
    ("problems", "n_features"): _is_count,
    ("problems", "n_classes"): _is_count,
    ("problems", "held_out_all"): _or_none(_is_number),
    ("results", "fold_losses"): _json(_are_numbers),
    ("results", "features"): _json(_are_features),
    ("results", "curve"): _json(_is_curve),
    ("results", "evaluations"): _is_count,
    ("results", "computed"): _is_count,
    ("results", "held_out"): _or_none(_is_number),
    ("results", "settings"): _json(_is_table),
    ("timings", "versions"): _json(_are_versions),
}
