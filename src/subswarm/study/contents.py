"""Reads all rows of a store and finds the damaged ones."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field

from subswarm.study.plan import Group, PlannedRun
from subswarm.study.records import ProblemFacts
from subswarm.study.schema import WITHOUT_CHECKSUMS, read_schema
from subswarm.study.stored_rows import (
    COLUMNS,
    PlanRow,
    ProblemRow,
    ResultRow,
    SqlValue,
    StudyRow,
    TimingRow,
    checksum,
    is_plausible,
)

__all__ = ["Contents", "read_contents"]

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
