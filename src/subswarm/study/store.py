"""One SQLite file with all results of a study: one writer, any number of readers, a commit for each run."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any

from subswarm.core.errors import StoreError
from subswarm.study import schema
from subswarm.study.plan import PlannedRun, Study
from subswarm.study.records import Failure, Outcome, ProblemFacts, Row, RunContent, RunTiming

__all__ = ["Store", "StudyInfo"]

Group = tuple[str, str, int | None]


@dataclass(frozen=True)
class StudyInfo:
    """The study a store belongs to: its name, what all runs have in common, and the outer folds (0: none).

    ``outer`` counts the folds of all repetitions of the outer cross-validation.
    """

    name: str
    protocol: str
    evaluations: int
    folds: int
    seed: int
    outer: int
    repeats: int = 1
    outer_repeats: int = 1

    @property
    def folds_at_a_time(self) -> int:
        """The folds of one outer cross-validation."""
        return self.outer // self.outer_repeats


class Store:
    """A study's results. Made by `Store.writing` (one process at a time) or `Store.reading`; use it in ``with``."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    @contextmanager
    def writing(cls, path: str | PathLike[str], *, jobs: int = 1, wait: bool = False) -> Iterator[Store]:
        """The store, for writing; a second writer waits, or is refused with a sentence that says who is first."""
        file = Path(path)
        if not file.parent.is_dir():
            raise StoreError(
                f"the store {file} cannot be made: the folder {file.parent} does not exist; make it first."
            )
        with schema.lock_file(file) as lock:
            _lock(lock, file, wait)
            with cls(file, schema.open_for_writing(file)) as store:
                store._note_writer(jobs)
                yield store

    @classmethod
    def reading(cls, path: str | PathLike[str]) -> Store:
        """The store, for reading; also while another process writes to it."""
        return cls(Path(path), schema.open_for_reading(Path(path)))

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def adopt(self, study: Study) -> None:
        """Take up a study's plan, beside what is planned already; refuse one whose runs would not be comparable."""
        with self._transaction():
            self._adopt_frame(study)
            for contender in study.algorithms:
                ours = (contender.label, contender.algorithm, _text(contender.facts))
                self._connection.execute("INSERT OR IGNORE INTO contenders VALUES (?, ?, ?)", ours)
                kept = self._one("SELECT * FROM contenders WHERE label = ?", contender.label)
                if tuple(kept) != ours:
                    raise StoreError(
                        f"the store {self.path} knows {contender.label!r} with the settings {kept[2]}, this study has "
                        f"{ours[2]}; give it another label, or name another store."
                    )
            self._connection.executemany(
                "INSERT OR IGNORE INTO plan VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(r.key, r.dataset, r.model, r.algorithm, r.run, r.outer_fold, str(r.seed)) for r in study.plan()],
            )

    def record(self, outcome: Outcome) -> None:
        """Keep what a run left behind: one commit, after which nothing can lose it."""
        key = outcome.planned.key
        with self._transaction():
            if outcome.failure is not None:
                self._connection.execute(
                    "INSERT INTO failures VALUES (?, ?, ?, 1, ?) ON CONFLICT (key) DO UPDATE SET "
                    "error = excluded.error, trace = excluded.trace, "
                    "attempts = attempts + 1, failed_at = excluded.failed_at",
                    (key, outcome.failure.error, outcome.failure.trace, _now()),
                )
                return
            if outcome.content is None or outcome.timing is None or outcome.problem is None:
                raise StoreError("an outcome without a failure must have content, timing and problem.")
            self._keep_problem(outcome.planned.group, outcome.problem)
            content, timing = outcome.content, outcome.timing
            self._connection.execute(
                "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    key,
                    content.loss,
                    _text(content.fold_losses),
                    _text(content.features),
                    _text(content.curve),
                    content.evaluations,
                    content.computed,
                    content.stop_reason,
                    content.held_out,
                    _text(content.settings),
                ),
            )
            self._connection.execute(
                "INSERT OR REPLACE INTO timings VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    key,
                    timing.algorithm_seconds,
                    timing.evaluation_seconds,
                    timing.engine,
                    timing.machine,
                    _text(timing.versions),
                    _now(),
                ),
            )
            self._connection.execute("DELETE FROM failures WHERE key = ?", (key,))

    def info(self) -> StudyInfo:
        """The study this store belongs to."""
        row = self._one("SELECT name, frame, outer_folds FROM study")
        if row is None:
            raise StoreError(f"the store {self.path} is empty: no study has been run into it yet.")
        return StudyInfo(name=row[0], outer=row[2], **json.loads(row[1]))

    def planned(self) -> list[PlannedRun]:
        """Every run planned so far, in the order of the plan."""
        rows = self._all("SELECT dataset, model, algorithm, run, outer_fold, key, seed FROM plan ORDER BY rowid")
        return [_planned(row) for row in rows]

    def done(self) -> set[str]:
        """The keys of finished runs."""
        return {row[0] for row in self._all("SELECT key FROM results")}

    def failures(self) -> dict[str, Failure]:
        """The failed runs by key."""
        return {row[0]: Failure(row[1], row[2]) for row in self._all("SELECT key, error, trace FROM failures")}

    def seconds(self) -> list[tuple[Group, float]]:
        """The group of each finished run, and how long it took."""
        rows = self._all(
            "SELECT dataset, model, outer_fold, algorithm_seconds + evaluation_seconds "
            "FROM timings JOIN plan USING (key)"
        )
        return [((row[0], row[1], row[2]), row[3]) for row in rows]

    def jobs(self) -> int:
        """The workers of the last writer."""
        row = self._one("SELECT jobs FROM writer")
        return 1 if row is None else int(row[0])

    def problems(self) -> dict[Group, ProblemFacts]:
        """The facts of every group that has a finished run."""
        rows = self._all("SELECT * FROM problems ORDER BY rowid")
        return {(row[0], row[1], None if row[2] < 0 else row[2]): ProblemFacts(*row[3:]) for row in rows}

    def rows(self) -> list[Row]:
        """Every finished run, in the order of the plan."""
        found = self._all(
            "SELECT p.dataset, p.model, p.algorithm, p.run, p.outer_fold, p.key, p.seed, r.loss, r.fold_losses, "
            "r.features, r.curve, r.evaluations, r.computed, r.stop_reason, r.held_out, r.settings, "
            "t.algorithm_seconds, "
            "t.evaluation_seconds, t.engine, t.machine, t.versions FROM plan p JOIN results r USING (key) "
            "JOIN timings t USING (key) ORDER BY p.rowid"
        )
        return [_row(values) for values in found]

    def content_digest(self) -> str:
        """A digest of what was planned and found: equal for equal studies, whatever the order, machine or clock."""
        digest = hashlib.sha256()
        for query in (
            "SELECT frame, outer_folds FROM study",
            "SELECT * FROM contenders ORDER BY label",
            "SELECT * FROM plan ORDER BY key",
            "SELECT * FROM problems ORDER BY dataset, model, outer_fold",
            "SELECT * FROM results ORDER BY key",
            "SELECT key FROM failures ORDER BY key",
        ):
            for row in self._all(query):
                digest.update(f"{_text(list(row))}\n".encode())
        return digest.hexdigest()

    def _adopt_frame(self, study: Study) -> None:
        row = self._one("SELECT name FROM study")
        if row is None:
            values = (study.name, _text(study.frame()), study.outer_folds)
            self._connection.execute("INSERT INTO study VALUES (?, ?, ?)", values)
            return
        info = self.info()
        there = {name: getattr(info, name) for name in ("protocol", "evaluations", "folds", "seed", "repeats")}
        differing = [
            f"{name} {theirs!r} there and {getattr(study, name)!r} here"
            for name, theirs in there.items()
            if theirs != getattr(study, name)
        ]
        if info.outer and study.outer and info.folds_at_a_time != study.outer:
            differing.append(f"outer folds {info.folds_at_a_time} there and {study.outer} here")
        if differing:
            raise StoreError(
                f"the store {self.path} belongs to another study ({'; '.join(differing)}), and their runs would not be "
                "comparable; name another store."
            )
        if study.outer_folds > info.outer:
            grown = (_text(study.frame()), study.outer_folds)
            self._connection.execute("UPDATE study SET frame = ?, outer_folds = ?", grown)

    def _keep_problem(self, group: Group, facts: ProblemFacts) -> None:
        dataset, model, outer_fold = group
        values = (dataset, model, -1 if outer_fold is None else outer_fold, *asdict(facts).values())
        self._connection.execute(
            "INSERT OR IGNORE INTO problems VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        )
        kept = self._one(
            "SELECT data_digest FROM problems WHERE dataset = ? AND model = ? AND outer_fold = ?", *values[:3]
        )[0]
        if kept != facts.data_digest:
            raise StoreError(
                f"the rows or folds of {dataset!r} are not those of the runs in the store {self.path}; restore the "
                "data, or name another store."
            )

    def _note_writer(self, jobs: int) -> None:
        with self._transaction():
            self._connection.execute("DELETE FROM writer")
            self._connection.execute("INSERT INTO writer VALUES (?, ?, ?)", (os.getpid(), jobs, _now()))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with schema.clear_errors(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def _all(self, query: str, *values: Any) -> list[Any]:
        with schema.clear_errors(self.path):
            return self._connection.execute(query, values).fetchall()

    def _one(self, query: str, *values: Any) -> Any:
        with schema.clear_errors(self.path):
            return self._connection.execute(query, values).fetchone()


def _lock(connection: sqlite3.Connection, path: Path, wait: bool) -> None:
    while True:
        try:
            connection.execute("BEGIN EXCLUSIVE")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
        if not wait:
            raise StoreError(
                f"the store {path} is being written by another process{_who(path)}; wait for it to end "
                "(--wait does), or name another store."
            )
        time.sleep(0.2)


def _who(path: Path) -> str:
    try:
        with Store.reading(path) as store:
            row = store._one("SELECT pid, since FROM writer")
    except StoreError:
        return ""
    return f" (number {row[0]}, since {row[1]})" if row else ""


def _planned(values: Sequence[Any]) -> PlannedRun:
    dataset, model, algorithm, run, outer_fold, key, seed = values[:7]
    return PlannedRun(dataset, model, algorithm, run, outer_fold, key, int(seed))


def _row(values: Sequence[Any]) -> Row:
    content = RunContent(
        loss=values[7],
        fold_losses=tuple(json.loads(values[8])),
        features=tuple(json.loads(values[9])),
        curve=tuple((step[0], step[1], step[2]) for step in json.loads(values[10])),
        evaluations=values[11],
        computed=values[12],
        stop_reason=values[13],
        held_out=values[14],
        settings=json.loads(values[15]),
    )
    algorithm_seconds, evaluation_seconds, engine, machine, versions = values[16:]
    timing = RunTiming(algorithm_seconds, evaluation_seconds, engine, machine, json.loads(versions))
    return Row(_planned(values), content, timing)


def _text(value: Iterable[Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=list)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
