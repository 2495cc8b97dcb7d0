"""Damaged stores: intact runs are read, damaged ones are named and computed again, and no command shows a traceback."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import warnings
from contextlib import closing

import pytest

from subswarm.errors import StoreError, SubswarmError, SubswarmWarning
from subswarm.study import Contender, Source, Store, Study, run_study
from subswarm.study.status import read_status
from subswarm.study.stored_rows import COLUMNS
from subswarm.study.tables import TABLES

typer_testing = pytest.importorskip("typer.testing", reason="the command line needs the extra 'cli'")
pytest.importorskip("jinja2", reason="a report needs the extra 'report'")

STUDY = Study(
    name="small",
    datasets=(Source("wine"), Source("breast-cancer")),
    models=("nb",),
    algorithms=(Contender("random", "random"), Contender("2d-upso", "2d-upso", {"particles": 5})),
    runs=2,
    evaluations=15,
    folds=2,
    outer=2,
)

COMMANDS = [
    ["status", "STORE"],
    ["status", "STORE", "--json"],
    *(["table", "STORE", "--what", what, "--format", "csv"] for what in TABLES),
    *(["versus", "2d-upso", "STORE", "--against", "random", "--what", what] for what in ("error", "inner", "held-out")),
    ["report", "STORE"],
]

ODD = ["x", "", "[]", "[1]", '{"a": 1}', "null", "[[1]]", "-1", b"", b"\xff\xfe", -1, 10**18, 0.5, 1e308, None]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A store of 24 runs, all in one file."""
    path = tmp_path_factory.mktemp("sound") / "small.db"
    run_study(STUDY, path)
    return path


@pytest.fixture
def copy(sound, tmp_path):
    path = tmp_path / "small.db"
    shutil.copy(sound, path)
    return path


def execute(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement, *values in statements:
            connection.execute(statement, values)


def without_checksums(path):
    """The store as the first schema had it."""
    execute(
        path,
        *((f"ALTER TABLE {table} DROP COLUMN checksum",) for table in COLUMNS),
        ("ALTER TABLE writer DROP COLUMN token",),
        ("ALTER TABLE writer DROP COLUMN process",),
        ("PRAGMA user_version = 1",),
    )


def read(path, what="rows"):
    with Store.reading(path) as store:
        return getattr(store, what)()


def key_of(path, place):
    return read(path, "planned")[place].key


def flip_bytes(path, chance):
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice([1, 2, 8, 64])):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def blank_a_stretch(path, chance):
    content = bytearray(path.read_bytes())
    begin, length = chance.randrange(len(content)), chance.choice([16, 300, 4096])
    content[begin : begin + length] = bytes(len(content[begin : begin + length]))
    path.write_bytes(content)


def truncate(path, chance):
    os.truncate(path, chance.randrange(path.stat().st_size))


def edit_a_row(path, chance):
    table = chance.choice(list(COLUMNS))
    column = chance.choice([*COLUMNS[table], *(["checksum"] if chance.random() < 0.2 else [])])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        if column == "checksum" and connection.execute("PRAGMA user_version").fetchone()[0] == 1:
            return
        rowids = [row[0] for row in connection.execute(f"SELECT rowid FROM {table}")]
        connection.execute(
            f"UPDATE OR IGNORE {table} SET {column} = ? WHERE rowid = ?", (chance.choice(ODD), chance.choice(rowids))
        )


def lose_something(path, chance):
    table = chance.choice([*COLUMNS, "failures", "writer"])
    column = chance.choice(COLUMNS.get(table, ("key",)))
    statement = chance.choice(
        [f"DROP TABLE {table}", f"DELETE FROM {table}", f"ALTER TABLE {table} RENAME COLUMN {column} TO other"]
    )
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        try:
            connection.execute(statement)
        except sqlite3.OperationalError:
            connection.execute(f"DELETE FROM {table}")  # there is no such column


DAMAGES = [flip_bytes, blank_a_stretch, truncate, edit_a_row, lose_something]


def ends_well(arguments):
    """Whether a command ends with an answer; our own error is the other way to end, and anything else is raised."""
    from subswarm.cli import app

    result = typer_testing.CliRunner().invoke(app, ["study", *arguments])
    if isinstance(result.exception, SubswarmError):
        assert "\n" not in str(result.exception)
        return False
    if result.exception is not None:
        raise result.exception
    return True


@pytest.mark.parametrize("has_checksums", [True, False])
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("seed", range(6))
def test_every_command_prints_a_result_or_an_error_of_ours(copy, damage, has_checksums, seed):
    if not has_checksums:
        without_checksums(copy)
    chance = random.Random(f"{damage.__name__} {has_checksums} {seed}")
    damage(copy, chance)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SubswarmWarning)
        for command in chance.sample(COMMANDS, 4):
            ends_well([str(copy) if word == "STORE" else word for word in command])


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("seed", range(6))
def test_no_damaged_run_is_ever_read_and_a_study_computes_it_again(sound, copy, damage, seed):
    intact = {row.planned.key: row for row in read(sound)}
    damage(copy, random.Random(f"again {damage.__name__} {seed}"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SubswarmWarning)
        try:
            rows = read(copy)
        except StoreError:
            return  # nothing can be read, and that was said
        assert all(row == intact[row.planned.key] for row in rows)
        try:
            run_study(STUDY, copy)
        except StoreError:
            return
    assert read(copy, "content_digest") == read(sound, "content_digest")


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("results", "loss", 0.123),
        ("results", "loss", "a word"),
        ("results", "features", "[0,1,2,"),
        ("results", "curve", b"\xff\x00"),
        ("results", "settings", "[]"),
        ("timings", "algorithm_seconds", b"\x01\x02\x03"),
        ("timings", "versions", "no"),
    ],
)
def test_a_damaged_run_is_named_left_out_and_computed_again(sound, copy, table, column, value):
    key = key_of(copy, 4)
    execute(copy, (f"UPDATE {table} SET {column} = ? WHERE key = ?", value, key))
    names = r"damaged in 1 run, which is left out.*: wine, nb, random, run 1, outer fold 1\.$"
    with pytest.warns(SubswarmWarning, match=names):
        rows = read(copy)
    assert len(rows) == 23
    assert key not in {row.planned.key for row in rows}
    with pytest.warns(SubswarmWarning, match=names):
        assert read_status(copy).done == 23
    with pytest.warns(SubswarmWarning, match="computed again: wine, nb, random, run 1, outer fold 1"):
        assert run_study(STUDY, copy).ran == 1
    assert read(copy, "content_digest") == read(sound, "content_digest")
    assert len(read(copy)) == 24


def test_the_facts_of_a_damaged_group_are_measured_again_with_its_runs(sound, copy):
    execute(copy, ("UPDATE problems SET loss_all = 0.5 WHERE dataset = 'wine' AND outer_fold = -1",))
    with pytest.warns(SubswarmWarning, match="damaged in 4 runs"):
        assert len(read(copy)) == 20
    with pytest.warns(SubswarmWarning, match="damaged in 4 runs"):
        assert run_study(STUDY, copy).ran == 4
    assert read(copy, "content_digest") == read(sound, "content_digest")


def test_a_run_whose_entry_in_the_plan_is_damaged_is_planned_again(sound, copy):
    execute(copy, ("UPDATE plan SET dataset = 'wins' WHERE key = ?", key_of(copy, 0)))
    with pytest.warns(SubswarmWarning, match=r"wins, nb, random, run 1 \(its entry in the plan\)"):
        assert len(read(copy)) == 23
    with pytest.warns(SubswarmWarning, match="computed again"):
        run_study(STUDY, copy)
    assert read(copy, "content_digest") == read(sound, "content_digest")


def test_the_command_prints_one_warning_in_one_line(copy):
    import subprocess
    import sys

    execute(copy, ("UPDATE results SET loss = 0.5 WHERE key = ?", key_of(copy, 0)))
    said = subprocess.run(
        [sys.executable, "-m", "subswarm", "study", "report", str(copy)], capture_output=True, text=True, check=True
    )
    lines = [line for line in said.stderr.splitlines() if line]
    assert lines == [
        f"warning: the store {copy} is damaged in 1 run, which is left out; `subswarm study run` computes it again: "
        "wine, nb, random, run 1."
    ]


def test_a_store_without_checksums_is_read_as_it_is_and_gets_them_when_it_is_written(sound, copy):
    without_checksums(copy)
    before = copy.read_bytes()
    assert read(copy) == read(sound)
    assert copy.read_bytes() == before
    assert run_study(STUDY, copy).ran == 0
    assert read(copy) == read(sound)
    assert read(copy, "content_digest") == read(sound, "content_digest")
    execute(copy, ("UPDATE results SET loss = loss + 1e-12 WHERE key = ?", key_of(copy, 0)))
    with pytest.warns(SubswarmWarning, match="damaged in 1 run"):
        assert len(read(copy)) == 23


def test_implausible_rows_get_no_checksum_when_an_old_store_is_written(sound, copy):
    without_checksums(copy)
    first, second = key_of(copy, 0), key_of(copy, 1)
    execute(copy, ("UPDATE results SET features = '[999]' WHERE key = ?", first))
    execute(copy, ("UPDATE results SET loss = 'x' WHERE key = ?", second))
    with pytest.warns(SubswarmWarning, match="damaged in 2 runs"):
        assert len(read(copy)) == 22
    with pytest.warns(SubswarmWarning, match="wine, nb, 2d-upso, run 1"):
        run_study(STUDY, copy)
    with Store.reading(copy) as store:
        assert len(store.done()) == 24


def test_a_store_without_an_intact_study_row_is_refused(copy):
    execute(copy, ("UPDATE study SET frame = '{}'",))
    with pytest.raises(StoreError, match="that names its study is damaged"):
        read_status(copy)
    with pytest.raises(StoreError, match="that names its study is damaged"):
        run_study(STUDY, copy)
