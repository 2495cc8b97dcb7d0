"""One SQLite file with all results of a study: one writer, any number of readers, one commit for each run.

On reading, every row is checked, and the damaged ones are found.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any

from subswarm.errors import StoreError, SubswarmWarning
from subswarm.study import schema
from subswarm.study.definition import Contender, Study
from subswarm.study.plan import Group, PlannedRun, canonical_json
from subswarm.study.records import Failure, Outcome, ProblemFacts, Row
from subswarm.study.schema import WITHOUT_CHECKSUMS, read_schema
from subswarm.study.stored_rows import (
    COLUMNS,
    ContenderRow,
    PlanRow,
    ProblemRow,
    ResultRow,
    SqlValue,
    StudyRow,
    TimingRow,
    checksum,
    is_plausible,
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

__all__ = ["Contents", "Store", "StudyInfo", "read_contents"]

Values = tuple[SqlValue, ...]


@dataclass(eq=False)
class Contents:
    """The rows of a store.

    Attributes
    ----------
    study : the study; None if there is no intact row
    plan : the runs, in the order of the plan
    problems : the facts of each group
    results, timings : the intact rows by key
    done : the runs that have a result, a timing and the facts of their group
    incomplete : the runs that have only some of these, because the others are damaged or lost
    damaged : the damaged rows of each table, by rowid
    rowids : the rowid of each intact row of a run, by table and key
    failed : the rowid of each recorded failure, by key
    """

    study: StudyRow | None = None
    plan: list[PlannedRun] = field(default_factory=list)
    problems: dict[Group, ProblemFacts] = field(default_factory=dict)
    results: dict[str, ResultRow] = field(default_factory=dict)
    timings: dict[str, TimingRow] = field(default_factory=dict)
    done: list[PlannedRun] = field(default_factory=list)
    incomplete: list[PlannedRun] = field(default_factory=list)
    damaged: dict[str, dict[int, Values]] = field(default_factory=lambda: {table: {} for table in COLUMNS})
    rowids: dict[str, dict[str, int]] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)

    def describe_damaged(self) -> list[str]:
        """Describe the runs that cannot be used; a damaged row of the plan is described by its values."""
        return [*map(str, self.incomplete), *(_describe(values) for values in self.damaged["plan"].values())]

    def rows_to_remove(self) -> dict[str, list[int]]:
        """Return the rows to remove so that unusable runs count as missing; a run's rows come before its plan row."""
        done, planned = {run.key for run in self.done}, {run.key for run in self.plan}
        unusable = {
            table: [rowid for key, rowid in rowids.items() if key not in done] for table, rowids in self.rowids.items()
        }
        lost = [rowid for key, rowid in self.failed.items() if key not in planned]
        order = ("results", "timings", "problems", "contenders", "plan")
        return {"failures": lost, **{table: [*unusable.get(table, []), *self.damaged[table]] for table in order}}


def read_contents(connection: sqlite3.Connection) -> Contents:
    """Read and check every row."""
    found = Contents()
    has_checksums = read_schema(connection) > WITHOUT_CHECKSUMS
    intact = {table: _read_intact(connection, table, has_checksums, found.damaged[table]) for table in COLUMNS}
    found.study = next(map(StudyRow._make, intact["study"].values()), None)
    found.plan = [PlanRow._make(values).planned() for values in intact["plan"].values()]
    problems = map(ProblemRow._make, intact["problems"].values())
    found.problems = {row.group: row.facts() for row in problems}
    found.results = {row.key: row for row in map(ResultRow._make, intact["results"].values())}
    found.timings = {row.key: row for row in map(TimingRow._make, intact["timings"].values())}
    found.rowids = {
        table: {str(values[0]): rowid for rowid, values in intact[table].items()} for table in ("results", "timings")
    }
    found.failed = {row[1]: row[0] for row in connection.execute("SELECT rowid, key FROM failures")}
    keys_with_rows = {
        values[0]
        for table in ("results", "timings")
        for values in (*intact[table].values(), *found.damaged[table].values())
    }
    for run in found.plan:
        if _is_done(run, found, has_checksums):
            found.done.append(run)
        elif run.key in keys_with_rows:
            found.incomplete.append(run)
    return found


def _read_intact(
    connection: sqlite3.Connection, table: str, has_checksums: bool, damaged: dict[int, Values]
) -> dict[int, Values]:
    """Return the intact rows of a table by rowid, and put the damaged ones into ``damaged``."""
    columns = ", ".join(COLUMNS[table])
    query = f"SELECT rowid, {'checksum' if has_checksums else 'NULL'}, {columns} FROM {table} ORDER BY rowid"
    intact: dict[int, Values] = {}
    for rowid, stored, *row in connection.execute(query):
        values = tuple(row)
        is_intact = stored == checksum(table, values) if has_checksums else is_plausible(table, values)
        (intact if is_intact else damaged)[rowid] = values
    return intact


def _is_done(run: PlannedRun, found: Contents, has_checksums: bool) -> bool:
    if run.key not in found.results or run.key not in found.timings or run.group not in found.problems:
        return False
    if has_checksums:
        return True
    features = json.loads(found.results[run.key].features)
    return not features or features[-1] < found.problems[run.group].n_features


def _describe(values: Values) -> str:
    _, dataset, model, algorithm, run, outer_fold, _ = values
    left_out = "" if outer_fold is None else f", outer fold {_from_1(outer_fold)}"
    return f"{dataset!s}, {model!s}, {algorithm!s}, run {_from_1(run)}{left_out} (its entry in the plan)"


def _from_1(number: SqlValue) -> str:
    return str(number + 1) if isinstance(number, int) else repr(number)


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
