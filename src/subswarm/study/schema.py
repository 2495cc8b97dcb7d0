"""The store's tables, and opening a file that may be anything.

Content (what the searches found) and circumstances (clock, machine, releases) lie in different tables, so that two
stores can be compared by content alone. Lists are JSON text: floats in the shortest form that reads back exactly.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from subswarm.core.errors import StoreError

__all__ = ["SCHEMA_VERSION", "clear_errors", "lock_file", "open_for_reading", "open_for_writing"]

SCHEMA_VERSION = 1
_APPLICATION_ID = 0x53425357  # "SBSW"

_TABLES = """
CREATE TABLE study (name TEXT NOT NULL, frame TEXT NOT NULL, outer_folds INTEGER NOT NULL);
CREATE TABLE contenders (label TEXT PRIMARY KEY, algorithm TEXT NOT NULL, settings TEXT NOT NULL);
CREATE TABLE plan (
    key TEXT PRIMARY KEY, dataset TEXT NOT NULL, model TEXT NOT NULL, algorithm TEXT NOT NULL, run INTEGER NOT NULL,
    outer_fold INTEGER, seed TEXT NOT NULL
);
CREATE TABLE problems (
    dataset TEXT NOT NULL, model TEXT NOT NULL, outer_fold INTEGER NOT NULL, -- -1: no fold is held out
    n_rows INTEGER NOT NULL, n_features INTEGER NOT NULL, n_classes INTEGER NOT NULL, data_digest TEXT NOT NULL,
    loss_all REAL NOT NULL, loss_first REAL NOT NULL, held_out_all REAL,
    PRIMARY KEY (dataset, model, outer_fold)
);
CREATE TABLE results (
    key TEXT PRIMARY KEY REFERENCES plan(key), loss REAL NOT NULL, fold_losses TEXT NOT NULL, features TEXT NOT NULL,
    curve TEXT NOT NULL, -- [[evaluations, best loss, its cardinality], ...] at each change of the best and at the end
    evaluations INTEGER NOT NULL, computed INTEGER NOT NULL, stop_reason TEXT NOT NULL, held_out REAL,
    settings TEXT NOT NULL
);
CREATE TABLE timings (
    key TEXT PRIMARY KEY REFERENCES plan(key), algorithm_seconds REAL NOT NULL, evaluation_seconds REAL NOT NULL,
    engine TEXT NOT NULL, machine TEXT NOT NULL, versions TEXT NOT NULL, finished_at TEXT NOT NULL
);
CREATE TABLE failures (
    key TEXT PRIMARY KEY REFERENCES plan(key), error TEXT NOT NULL, trace TEXT NOT NULL, attempts INTEGER NOT NULL,
    failed_at TEXT NOT NULL
);
CREATE TABLE writer (pid INTEGER NOT NULL, jobs INTEGER NOT NULL, since TEXT NOT NULL);
"""


def open_for_writing(path: Path) -> sqlite3.Connection:
    """A connection to the store, which is made where it is not there; the caller holds the lock."""
    if not path.parent.is_dir():
        raise StoreError(f"the store {path} cannot be made: the folder {path.parent} does not exist; make it first.")
    with clear_errors(path):
        connection = sqlite3.connect(path, isolation_level=None, timeout=30)
        try:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                _create(connection)
            _check(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
    return connection


def open_for_reading(path: Path) -> sqlite3.Connection:
    """A connection that cannot write; it works while another process writes, and in a folder one cannot write to."""
    if not path.is_file():
        raise StoreError(f"there is no store {path}; `subswarm study run` makes one.")
    with clear_errors(path):
        try:
            return _connected(path, "mode=ro")
        except sqlite3.OperationalError:
            if Path(f"{path}-wal").exists():
                raise
            return _connected(path, "immutable=1")


@contextmanager
def lock_file(path: Path) -> Iterator[sqlite3.Connection]:
    """SQLite's own lock on a file beside the store: the system frees it when the process ends, however it ends."""
    beside = Path(f"{path}-lock")
    with clear_errors(path), closing(sqlite3.connect(beside, isolation_level=None, timeout=0)) as connection:
        yield connection


@contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """SQLite's errors as sentences."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{_sentence(path, error)} (SQLite: {error})") from error


def _sentence(path: Path, error: sqlite3.Error) -> str:
    said = str(error)
    if "not a database" in said:
        return f"{path} is not a study's store; name another file."
    if "malformed" in said:
        return f"the store {path} is damaged or cut short; restore a copy, or name another file and run again."
    if "full" in said or "I/O" in said:
        return f"the disk is full, or {path} cannot grow; make room and run again: what was finished is kept."
    if "readonly" in said or "unable to open" in said:
        return f"{path} cannot be written, or its folder cannot; name a store in a folder of your own."
    if "locked" in said:
        return f"the store {path} is locked by another program; wait for it to end."
    return f"the store {path} cannot be used."


def _connected(path: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?{how}", uri=True, isolation_level=None, timeout=30)
    try:
        _check(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _create(connection: sqlite3.Connection) -> None:
    connection.executescript(
        f"BEGIN IMMEDIATE; {_TABLES} PRAGMA application_id = {_APPLICATION_ID}; "
        f"PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
    )


def _check(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
        raise StoreError(f"{path} is a database, but no study's store; name another file.")
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found != SCHEMA_VERSION:
        raise StoreError(
            f"the store {path} has schema {found} and this release reads schema {SCHEMA_VERSION}; "
            f"{'update subswarm' if found > SCHEMA_VERSION else 'read it with the release that wrote it'}, "
            "or name another file."
        )
    state = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if state != "ok":
        raise sqlite3.DatabaseError(f"malformed: {state}")
