"""The tables of a store, and opening a file that may not be a store.

What the searches found and how they ran (time, machine, versions) are in different tables, so that two stores can be
compared by content alone. Lists are JSON text, with floats in the shortest form that reads back exactly. The last
column of a row is its checksum. Schema 1 had none: such a store can be read, and is converted to the current schema
when it is opened for writing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from subswarm.errors import StoreError
from subswarm.study.stored_rows import COLUMNS, checksum, is_plausible

__all__ = [
    "SCHEMA_VERSION",
    "WITHOUT_CHECKSUMS",
    "check_folder",
    "open_for_reading",
    "open_for_writing",
    "read_schema",
    "translate_errors",
]

SCHEMA_VERSION = 2
WITHOUT_CHECKSUMS = 1
"""The schema without checksums."""

_APPLICATION_ID = 0x53425357  # "SBSW"

_TABLES = """
CREATE TABLE study (name TEXT NOT NULL, frame TEXT NOT NULL, outer_folds INTEGER NOT NULL, checksum TEXT);
CREATE TABLE contenders (
    label TEXT PRIMARY KEY, algorithm TEXT NOT NULL, settings TEXT NOT NULL, checksum TEXT
);
CREATE TABLE plan (
    key TEXT PRIMARY KEY, dataset TEXT NOT NULL, model TEXT NOT NULL, algorithm TEXT NOT NULL, run INTEGER NOT NULL,
    outer_fold INTEGER, seed TEXT NOT NULL, checksum TEXT
);
CREATE TABLE problems (
    dataset TEXT NOT NULL, model TEXT NOT NULL, outer_fold INTEGER NOT NULL, -- -1: no outer fold
    n_rows INTEGER NOT NULL, n_features INTEGER NOT NULL, n_classes INTEGER NOT NULL, data_digest TEXT NOT NULL,
    loss_all REAL NOT NULL, loss_first REAL NOT NULL, held_out_all REAL,
    checksum TEXT,
    PRIMARY KEY (dataset, model, outer_fold)
);
CREATE TABLE results (
    key TEXT PRIMARY KEY REFERENCES plan(key), loss REAL NOT NULL, fold_losses TEXT NOT NULL, features TEXT NOT NULL,
    curve TEXT NOT NULL, -- [[evaluations, best loss, its cardinality], ...] at each change of the best and at the end
    evaluations INTEGER NOT NULL, computed INTEGER NOT NULL, stop_reason TEXT NOT NULL, held_out REAL,
    settings TEXT NOT NULL, checksum TEXT
);
CREATE TABLE timings (
    key TEXT PRIMARY KEY REFERENCES plan(key), algorithm_seconds REAL NOT NULL, evaluation_seconds REAL NOT NULL,
    engine TEXT NOT NULL, machine TEXT NOT NULL, versions TEXT NOT NULL, finished_at TEXT NOT NULL,
    checksum TEXT
);
CREATE TABLE failures (
    key TEXT PRIMARY KEY REFERENCES plan(key), error TEXT NOT NULL, trace TEXT NOT NULL, attempts INTEGER NOT NULL,
    failed_at TEXT NOT NULL
);
CREATE TABLE writer (
    pid INTEGER NOT NULL, jobs INTEGER NOT NULL, since TEXT NOT NULL,
    token TEXT NOT NULL DEFAULT '', process TEXT NOT NULL DEFAULT '' -- as in `Owner`; '' after it has ended
);
"""

_TO_SCHEMA_2 = [
    *(f"ALTER TABLE {table} ADD COLUMN checksum TEXT" for table in COLUMNS),
    "ALTER TABLE writer ADD COLUMN token TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE writer ADD COLUMN process TEXT NOT NULL DEFAULT ''",
]


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Open a store for writing, and create it if the file does not exist; the caller must hold the lock."""
    check_folder(path)
    with translate_errors(path):
        connection = sqlite3.connect(path, isolation_level=None, timeout=30)
        connection.text_factory = _as_text
        try:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                _create(connection)
            _check(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            if read_schema(connection) == WITHOUT_CHECKSUMS:
                _add_checksums(connection)
            connection.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            connection.close()
            raise
    return connection


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Open a store for reading; this works while another process writes, and in a folder without write permission."""
    if not _is_file(path):
        raise StoreError(f"there is no store {str(path)!r}; `subswarm study run` creates one.")
    with translate_errors(path):
        try:
            return _connect(path, "mode=ro")
        except sqlite3.OperationalError:
            if Path(f"{path}-wal").exists():
                raise
            return _connect(path, "immutable=1")


def check_folder(path: Path) -> None:
    """Raise StoreError if the folder of a store does not exist."""
    if "\0" in str(path):
        raise StoreError(f"the path of the store, {str(path)!r}, contains a NUL character; name another file.")
    try:
        exists = path.parent.is_dir()
    except OSError:  # the path is too long
        exists = False
    if not exists:
        raise StoreError(
            f"the store {str(path)!r} cannot be created: the folder {str(path.parent)!r} does not exist; create it "
            "first."
        )


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into a `StoreError` that says what to do."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter if SQLite quotes damaged bytes
        message = " ".join(str(error).split())  # SQLite may use several lines
        raise StoreError(f"{_explain(path, message)} (SQLite: {message})") from error


def read_schema(connection: sqlite3.Connection) -> int:
    """Return the number of the schema that a store was written with."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _explain(path: Path, message: str) -> str:
    if "not a database" in message:
        return f"{path} is not the store of a study; name another file."
    if "full" in message or "I/O" in message:
        return f"the disk is full, or {path} cannot grow; free some space and run again. Finished runs are kept."
    if "readonly" in message or "unable to open" in message:
        return f"{path} cannot be written, or its folder cannot; name a store in a folder that you can write to."
    if "locked" in message:
        return f"the store {path} is locked by another program; wait until that program ends."
    return f"the store {path} is damaged or truncated; restore a copy, or name another file and run again."


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a path that is too long or contains a NUL character
        return False


def _connect(path: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?{how}", uri=True, isolation_level=None, timeout=30)
    connection.text_factory = _as_text
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


def _add_checksums(connection: sqlite3.Connection) -> None:
    """Convert schema 1 to schema 2. A row that is not plausible gets no checksum, so it counts as damaged."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in _TO_SCHEMA_2:
            connection.execute(statement)
        for table, columns in COLUMNS.items():
            rows = connection.execute(f"SELECT rowid, {', '.join(columns)} FROM {table}").fetchall()
            connection.executemany(
                f"UPDATE {table} SET checksum = ? WHERE rowid = ?",
                [(checksum(table, values), rowid) for rowid, *values in rows if is_plausible(table, values)],
            )
        connection.execute("PRAGMA user_version = 2")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _as_text(stored: bytes) -> str:
    """Decode text; bytes that are not UTF-8 become U+FFFD, so that only their own row is damaged."""
    return stored.decode("utf-8", "replace")


def _check(connection: sqlite3.Connection, path: Path) -> None:
    if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
        raise StoreError(f"{path} is a database, but not the store of a study; name another file.")
    found = read_schema(connection)
    if not WITHOUT_CHECKSUMS <= found <= SCHEMA_VERSION:
        raise StoreError(
            f"the store {path} has schema {found}, but this version of subswarm reads schema {SCHEMA_VERSION}; "
            f"{'update subswarm' if found > SCHEMA_VERSION else 'read it with the version that wrote it'}, "
            "or name another file."
        )
    state = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if state != "ok":
        raise sqlite3.DatabaseError(f"malformed: {state}")
