"""One SQLite file with all results of a study: one writer, any number of readers, one commit for each run."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any

from subswarm.errors import StoreError, SubswarmWarning
from subswarm.study import schema
from subswarm.study.contents import Contents, read_contents
from subswarm.study.definition import Contender, Study
from subswarm.study.plan import Group, PlannedRun, canonical_json
from subswarm.study.records import Failure, Outcome, ProblemFacts, Row
from subswarm.study.stored_rows import (
    COLUMNS,
    ContenderRow,
    PlanRow,
    ProblemRow,
    ResultRow,
    SqlValue,
    StudyRow,
    TimingRow,
    with_checksum,
)
from subswarm.study.writer import (
    SECONDS_BETWEEN_TRIES,
    Owner,
    StoreFiles,
    describe_writer,
    hold_lock_file,
    identify_file,
    in_use_error,
    now,
)

__all__ = ["Store", "StudyInfo"]

_COUNTED = ("plan", "results", "failures")
_MOST_NAMED = 5
"""Damaged runs that a warning names."""


@dataclass(frozen=True)
class StudyInfo:
    """The study of a store: its name, what all runs have in common, and the outer folds (0: none).

    ``outer`` counts the folds of all outer repeats.
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
    def folds_per_outer_repeat(self) -> int:
        """The folds of one outer cross-validation."""
        return self.outer // self.outer_repeats


class Store:
    """The results of a study.

    Open it with `Store.writing` (one process at a time) or `Store.reading`, in a ``with`` statement.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._owner: Owner | None = None
        self._files: StoreFiles | None = None
        self._contents: tuple[tuple[int, int], Contents] | None = None
        self._has_warned = False

    @classmethod
    @contextmanager
    def writing(cls, path: str | PathLike[str], *, jobs: int = 1, wait: bool = False) -> Iterator[Store]:
        """Open the store for writing; a second writer waits, or gets an error that names the first one."""
        file = Path(path)
        schema.check_folder(file)
        with hold_lock_file(file, wait=wait):
            before = identify_file(file)
            with cls(file, schema.open_for_writing(file)) as store:
                owner = store._claim(jobs, wait)
                try:
                    store._files = StoreFiles(file, before)
                    yield store
                finally:
                    owner.release(store._connection)

    @classmethod
    def reading(cls, path: str | PathLike[str]) -> Store:
        """Open the store for reading; another process may be writing to it."""
        return cls(Path(path), schema.open_for_reading(Path(path)))

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one consistent state, even if another process writes in the meantime."""
        is_inside = self._connection.in_transaction
        with schema.translate_errors(self.path):
            if not is_inside:
                self._connection.execute("BEGIN")
        try:
            yield
        finally:
            if not is_inside:
                with schema.translate_errors(self.path):
                    self._connection.execute("COMMIT")

    def adopt(self, study: Study) -> None:
        """Add the plan of a study to what is planned already; raise StoreError if its runs are not comparable.

        Damaged runs are removed, with a warning that names them, so that they are computed again.
        """
        with self._transaction():
            self._remove_damaged()
            self._adopt_frame(study)
            for contender in study.algorithms:
                self._adopt_contender(contender)
            for run in study.plan():
                self._insert("plan", PlanRow.of(run), "INSERT OR IGNORE")

    def record(self, outcome: Outcome) -> None:
        """Save what a run returned, in one commit."""
        key = outcome.planned.key
        with self._transaction():
            if outcome.failure is not None:
                self._connection.execute(
                    "INSERT INTO failures VALUES (?, ?, ?, 1, ?) ON CONFLICT (key) DO UPDATE SET "
                    "error = excluded.error, trace = excluded.trace, "
                    "attempts = attempts + 1, failed_at = excluded.failed_at",
                    (key, outcome.failure.error, outcome.failure.trace, now()),
                )
                return
            if outcome.content is None or outcome.timing is None or outcome.problem is None:
                raise StoreError("an outcome without a failure must have content, timing and problem.")
            self._record_problem(ProblemRow.of(outcome.planned.group, outcome.problem))
            self._insert("results", ResultRow.of(key, outcome.content))
            self._insert("timings", TimingRow.of(key, outcome.timing, now()))
            self._connection.execute("DELETE FROM failures WHERE key = ?", (key,))

    def info(self) -> StudyInfo:
        """Return the study that this store belongs to."""
        contents = self._read()
        if contents.study is None:
            raise StoreError(
                f"the row of the store {self.path} that names its study is damaged; restore a copy, or name another "
                "file and run again."
                if contents.damaged["study"]
                else f"the store {self.path} is empty: no study has been run into it yet."
            )
        return StudyInfo(name=contents.study.name, outer=contents.study.outer_folds, **json.loads(contents.study.frame))

    def planned(self) -> list[PlannedRun]:
        """Return every run planned so far, in the order of the plan."""
        return list(self._read().plan)

    def done(self) -> set[str]:
        """Return the keys of finished runs, without damaged ones."""
        return {run.key for run in self._read().done}

    def damaged(self) -> list[str]:
        """Return descriptions of the runs whose rows are damaged."""
        return self._read().describe_damaged()

    def counts(self) -> tuple[int, int, int]:
        """Count planned, finished and failed runs, with damaged ones: a quick way to see that something changed."""
        planned, done, failed = (int(self._one(f"SELECT count(*) FROM {table}")[0]) for table in _COUNTED)
        return planned, done, failed

    def failures(self) -> dict[str, Failure]:
        """Return the failed runs by key."""
        rows = self._all("SELECT key, error, trace FROM failures")
        return {str(row[0]): Failure(str(row[1]), str(row[2])) for row in rows}

    def seconds(self) -> list[tuple[Group, float]]:
        """Return the group of each finished run and how long the run took."""
        contents = self._read()
        return [(run.group, contents.timings[run.key].seconds) for run in contents.done]

    def jobs(self) -> int:
        """Return the number of workers of the last writer."""
        row = self._one("SELECT jobs FROM writer")
        return row[0] if row is not None and isinstance(row[0], int) and row[0] > 0 else 1

    def problems(self) -> dict[Group, ProblemFacts]:
        """Return the facts of every group that has a finished run."""
        return dict(self._read().problems)

    def rows(self) -> list[Row]:
        """Return every finished run, in the order of the plan; damaged ones are left out, with a warning."""
        contents = self._read()
        return [
            Row(run, contents.results[run.key].content(), contents.timings[run.key].timing()) for run in contents.done
        ]

    def content_digest(self) -> str:
        """Return a digest of plan and results: equal for equal studies, whatever the order, machine or time."""
        digest = hashlib.sha256()
        for query in (
            "SELECT frame, outer_folds FROM study",
            f"SELECT {', '.join(COLUMNS['contenders'])} FROM contenders ORDER BY +label",  # +: do not use the index
            f"SELECT {', '.join(COLUMNS['plan'])} FROM plan ORDER BY +key",
            f"SELECT {', '.join(COLUMNS['problems'])} FROM problems ORDER BY +dataset, model, outer_fold",
            f"SELECT {', '.join(COLUMNS['results'])} FROM results ORDER BY +key",
            "SELECT key FROM failures ORDER BY key",
        ):
            for row in self._all(query):
                digest.update(f"{canonical_json(list(row))}\n".encode())
        return digest.hexdigest()

    def _read(self) -> Contents:
        """Return the rows, read and checked again only after a change; warn once about damaged ones."""
        with self.snapshot():
            state = (int(self._one("PRAGMA data_version")[0]), self._connection.total_changes)
            if self._contents is None or self._contents[0] != state:
                with schema.translate_errors(self.path):
                    self._contents = (state, read_contents(self._connection))
        contents = self._contents[1]
        damaged = contents.describe_damaged()
        if damaged and not self._has_warned:
            self._has_warned = True
            runs, be, them = ("1 run", "is", "it") if len(damaged) == 1 else (f"{len(damaged)} runs", "are", "them")
            consequence = (
                f"{be} left out; `subswarm study run` computes {them} again"
                if self._owner is None
                else f"{be} computed again"
            )
            warnings.warn(
                f"the store {self.path} is damaged in {runs}, which {consequence}: {_list_some(damaged)}.",
                SubswarmWarning,
                stacklevel=3,
            )
        return contents

    def _remove_damaged(self) -> None:
        """Remove every row that is damaged, or belongs to a damaged one, so that its run is computed again."""
        to_remove = self._read().rows_to_remove()
        if any(to_remove.values()) or self._one("PRAGMA integrity_check(1)")[0] != "ok":
            self._connection.execute("REINDEX")  # the indexes must agree with the rows
        for table, rowids in to_remove.items():
            self._connection.executemany(f"DELETE FROM {table} WHERE rowid = ?", [(rowid,) for rowid in rowids])

    def _adopt_frame(self, study: Study) -> None:
        if self._one("SELECT name FROM study") is None:
            self._insert("study", StudyRow(study.name, canonical_json(study.frame()), study.outer_folds))
            return
        info = self.info()
        differences = [
            f"{name} is {getattr(info, name)!r} there and {getattr(study, name)!r} here"
            for name in ("protocol", "evaluations", "folds", "seed", "repeats")
            if getattr(info, name) != getattr(study, name)
        ]
        if info.outer and study.outer and info.folds_per_outer_repeat != study.outer:
            differences.append(f"outer is {info.folds_per_outer_repeat} there and {study.outer} here")
        if differences:
            raise StoreError(
                f"the store {self.path} belongs to another study ({'; '.join(differences)}), whose runs are not "
                "comparable; name another store."
            )
        if study.outer_folds > info.outer:
            self._connection.execute("DELETE FROM study")
            self._insert("study", StudyRow(info.name, canonical_json(study.frame()), study.outer_folds))

    def _adopt_contender(self, contender: Contender) -> None:
        ours = ContenderRow(contender.label, contender.algorithm, canonical_json(contender.facts))
        self._insert("contenders", ours, "INSERT OR IGNORE")
        stored = self._one("SELECT label, algorithm, settings FROM contenders WHERE label = ?", ours.label)
        if tuple(stored) != ours:
            raise StoreError(
                f"the store {self.path} has {ours.label!r} with the settings {stored[2]}, but this study has it with "
                f"{ours.settings}; use another label, or name another store."
            )

    def _record_problem(self, row: ProblemRow) -> None:
        self._insert("problems", row, "INSERT OR IGNORE")
        stored = self._one(
            "SELECT data_digest FROM problems WHERE dataset = ? AND model = ? AND outer_fold = ?", *row[:3]
        )[0]
        if stored != row.data_digest:
            raise StoreError(
                f"the rows or folds of {row.dataset!r} differ from those of the runs in the store {self.path}; restore "
                "the data, or name another store."
            )

    def _claim(self, jobs: int, wait: bool) -> Owner:
        """Become the writer that the store names; wait for another living writer, or raise StoreError."""
        owner = Owner()
        while True:
            with self._transaction():
                is_claimed = owner.claim(self._connection, jobs)
            if is_claimed:
                self._owner = owner
                return owner
            if not wait:
                raise in_use_error(self.path)
            time.sleep(SECONDS_BETWEEN_TRIES)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._check_files()
        with schema.translate_errors(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._check_owner()
                yield
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")
        self._check_files()

    def _check_files(self) -> None:
        if self._files is not None:
            self._files.check()

    def _check_owner(self) -> None:
        """Raise StoreError if another process has become the writer."""
        if self._owner is not None and not self._owner.is_writer(self._connection):
            raise StoreError(
                f"another process{describe_writer(self.path)} has become the writer of the store {self.path}, so this "
                "one stops. Its finished runs are kept; run again when the other process has ended."
            )

    def _insert(self, table: str, values: Sequence[SqlValue], how: str = "INSERT OR REPLACE") -> None:
        stored = with_checksum(table, values)
        self._connection.execute(f"{how} INTO {table} VALUES ({', '.join('?' * len(stored))})", stored)

    def _all(self, query: str, *values: SqlValue) -> list[Sequence[SqlValue]]:
        with schema.translate_errors(self.path):
            return self._connection.execute(query, values).fetchall()

    def _one(self, query: str, *values: SqlValue) -> Any:
        with schema.translate_errors(self.path):
            return self._connection.execute(query, values).fetchone()


def _list_some(names: Sequence[str]) -> str:
    more = f"; and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return "; ".join(names[:_MOST_NAMED]) + more
