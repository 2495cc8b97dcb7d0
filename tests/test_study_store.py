"""The store: one writer, readers at any time, and a clear error for everything that can be wrong with a file."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from limits import SECONDS
from subswarm.errors import StoreError
from subswarm.study import Contender, Source, Store, Study
from subswarm.study.records import Failure, Outcome, ProblemFacts, RunContent, RunTiming
from subswarm.study.status import read_status

ROOT = Path(__file__).parent.parent

STUDY = Study(
    name="small",
    datasets=(Source("wine"),),
    models=("nb",),
    algorithms=(Contender("random", "random"),),
    runs=4,
    evaluations=5,
    folds=2,
)
FACTS = ProblemFacts(178, 13, 3, "digest", 0.03, 0.3, None)
TIMING = RunTiming(0.1, 0.2, "estimator", "a machine", {"numpy": "1"})


def content(loss=0.1):
    return RunContent(loss, (loss, loss), (0, 2), ((5, loss, 2),), 5, 5, "evaluations", None, {"batch": 30})


def outcomes(study=STUDY, **changes):
    return [Outcome(run, content(0.1 + run.run / 100), replace(TIMING, **changes), FACTS) for run in study.plan()]


@pytest.fixture
def filled(tmp_path):
    """A store with three of four runs."""
    path = tmp_path / "a.db"
    with Store.writing(path) as store:
        store.adopt(STUDY)
        for outcome in outcomes()[:3]:
            store.record(outcome)
    return path


def runs_in(path):
    with Store.reading(path) as store:
        return len(store.done())


def in_a_process(code, *arguments, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], env=environment, text=True, **options)


def test_what_is_recorded_is_read_back(filled):
    with Store.reading(filled) as store:
        rows = store.rows()
        assert [row.content for row in rows] == [outcome.content for outcome in outcomes()[:3]]
        assert [row.planned for row in rows] == STUDY.plan()[:3]
        assert rows[0].timing == TIMING
        assert store.problems() == {("wine", "nb", None): FACTS}
        info = store.info()
    assert (info.name, info.protocol, info.evaluations, info.outer) == ("small", "sound", 5, 0)


def test_the_digest_is_of_content_and_not_of_time_machine_or_order(tmp_path):
    def digest(name, landed):
        with Store.writing(tmp_path / name) as store:
            store.adopt(STUDY)
            for outcome in landed:
                store.record(outcome)
            return store.content_digest()

    first = digest("a.db", outcomes())
    assert digest("b.db", reversed(outcomes(machine="another", algorithm_seconds=9.0))) == first
    assert digest("c.db", outcomes()[:3]) != first
    other = outcomes()
    other[0] = replace(other[0], content=content(0.2))
    assert digest("d.db", other) != first


def test_a_failure_is_stored_until_the_run_succeeds(filled):
    last = STUDY.plan()[3]
    with Store.writing(filled) as store:
        store.record(Outcome(last, failure=Failure("ValueError: no", "trace")))
        store.record(Outcome(last, failure=Failure("ValueError: no", "trace")))
        assert store.failures() == {last.key: Failure("ValueError: no", "trace")}
        store.record(outcomes()[3])
        assert store.failures() == {}


def test_status_counts_runs_and_estimates_the_time_left(filled):
    status = read_status(filled)
    assert (status.done, status.planned) == (3, 4)
    assert status.seconds_left == pytest.approx(0.3)
    text = status.as_text()
    assert "3 of 4 runs" in text
    assert "time left: about 0 s" in text
    with Store.writing(filled) as store:
        store.record(Outcome(STUDY.plan()[3], failure=Failure("ValueError: no", "trace")))
    assert "failed 1 time: ValueError: no" in read_status(filled).as_text()


def test_readers_read_while_another_process_writes(filled):
    with Store.writing(filled) as writer:
        writer.record(outcomes()[3])
        with Store.reading(filled) as reader:
            assert len(reader.done()) == 4
        assert read_status(filled).done == 4


def test_the_error_of_a_second_writer_names_the_first(filled):
    with Store.writing(filled):
        process = in_a_process(
            "import sys; from subswarm.study import Store\n"
            "try:\n    Store.writing(sys.argv[1]).__enter__()\nexcept OSError as error:\n    print(error)",
            filled,
            stdout=subprocess.PIPE,
        )
        said, _ = process.communicate(timeout=SECONDS)
    assert "is being written by another process" in said
    assert f"number {os.getpid()}" in said


def test_a_second_writer_can_wait(filled):
    process = in_a_process(
        "import sys; from subswarm.study import Store\n"
        "with Store.writing(sys.argv[1], wait=True) as store: print(len(store.done()))",
        filled,
        stdout=subprocess.PIPE,
    )
    with Store.writing(filled) as store:
        time.sleep(2.5)
        store.record(outcomes()[3])
    said, _ = process.communicate(timeout=SECONDS)
    assert int(said) in (3, 4)
    assert runs_in(filled) == 4


def test_the_lock_ends_with_its_process(filled):
    process = in_a_process(
        "import sys, time; from subswarm.study import Store\n"
        "with Store.writing(sys.argv[1]):\n    print('in', flush=True)\n    time.sleep(60)",
        filled,
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == "in\n"
    with pytest.raises(StoreError, match="another process"), Store.writing(filled):
        pass
    process.kill()
    process.communicate()
    with Store.writing(filled) as store:
        assert len(store.done()) == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"evaluations": 6}, "evaluations is 5 there and 6 here"),
        ({"folds": 3}, "folds is 2 there and 3 here"),
        ({"seed": 1}, "seed is 0 there and 1 here"),
        ({"protocol": "published"}, "protocol is 'sound' there and 'published' here"),
        ({"algorithms": (Contender("random", "random", {"batch": 5}),)}, "has 'random' with the settings {}"),
    ],
)
def test_a_study_whose_runs_would_not_be_comparable_is_refused(filled, change, said):
    with Store.writing(filled) as store, pytest.raises(StoreError, match=said):
        store.adopt(replace(STUDY, **change))


def test_outer_folds_can_be_added_later_but_not_changed(filled):
    with Store.writing(filled) as store:
        store.adopt(replace(STUDY, outer=3))
        store.adopt(STUDY)
        assert store.info().outer == 3
        with pytest.raises(StoreError, match="outer is 3 there and 4 here"):
            store.adopt(replace(STUDY, outer=4))


def test_outer_repeats_can_be_added_later_and_none_is_lost(filled):
    with Store.writing(filled) as store:
        store.adopt(replace(STUDY, outer=3))
        before = {run.key for run in store.planned()}
        store.adopt(replace(STUDY, outer=3, outer_repeats=4))
        info = store.info()
        assert (info.outer, info.outer_repeats, info.folds_per_outer_repeat) == (12, 4, 3)
        assert before < {run.key for run in store.planned()}
        store.adopt(replace(STUDY, outer=3, outer_repeats=2))
        assert store.info().outer_repeats == 4
        with pytest.raises(StoreError, match="outer is 3 there and 4 here"):
            store.adopt(replace(STUDY, outer=4, outer_repeats=4))


def test_data_that_changed_between_two_calls_are_noticed(filled):
    with Store.writing(filled) as store, pytest.raises(StoreError, match="rows or folds of 'wine' differ from those"):
        store.record(replace(outcomes()[3], problem=replace(FACTS, data_digest="other")))
    assert runs_in(filled) == 3


def opened_both_ways(path, message):
    with pytest.raises(StoreError, match=message), Store.reading(path):
        pass
    with pytest.raises(StoreError, match=message), Store.writing(path):
        pass


def test_a_store_of_a_newer_schema_is_refused(filled):
    with sqlite3.connect(filled) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    opened_both_ways(filled, "has schema 99, but this version of subswarm reads schema 2; update subswarm")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_truncated_store_is_refused(filled, share):
    size = filled.stat().st_size
    os.truncate(filled, int(size * share) // 4096 * 4096 or 100)
    opened_both_ways(filled, "damaged or truncated|not the store of a study")


def test_a_file_that_is_not_a_database_is_refused_and_not_changed(tmp_path):
    file = tmp_path / "notes.db"
    file.write_text("my notes, which are long enough to be no header of a database at all\n" * 50)
    before = file.read_bytes()
    opened_both_ways(file, "is not the store of a study; name another file")
    assert file.read_bytes() == before


def test_the_database_of_another_program_is_refused_and_not_changed(tmp_path):
    file = tmp_path / "other.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE plan (a)")
    connection.close()
    before = file.read_bytes()
    opened_both_ways(file, "is a database, but not the store of a study")
    assert file.read_bytes() == before


def test_an_absent_store_and_an_absent_folder_are_named(tmp_path):
    with pytest.raises(StoreError, match="there is no store"), Store.reading(tmp_path / "absent.db"):
        pass
    with (
        pytest.raises(StoreError, match=r"the folder '.*absent' does not exist"),
        Store.writing(tmp_path / "absent/a.db"),
    ):
        pass


@pytest.mark.parametrize("name", ["a\0b.db", "n" * 5000, "n" * 300 + "/a.db"], ids=["NUL", "long name", "long folder"])
def test_a_path_that_no_file_can_have_is_refused(tmp_path, name):
    with pytest.raises(StoreError, match="there is no store"), Store.reading(tmp_path / name):
        pass
    with pytest.raises(StoreError), Store.writing(tmp_path / name):
        pass


def test_a_store_without_a_study_is_a_clear_error(tmp_path):
    with Store.writing(tmp_path / "a.db") as store, pytest.raises(StoreError, match="no study has been run"):
        store.info()


def as_somebody_without_rights(code, *arguments):
    """Root may write everywhere, so such a test gives its rights away first."""
    drop = "import os; import subswarm.study; os.getuid() or (os.setgid(65534), os.setuid(65534))\n"
    process = in_a_process(drop + code, *arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return process.communicate(timeout=SECONDS)[0]


@pytest.fixture
def read_only(filled):
    """A folder that holds a store, and that nobody can write to; beside the temporary folder only root may enter."""
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="subswarm-read-only-"))
    shutil.copy(filled, folder / "a.db")
    (folder / "a.db").chmod(0o444)
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_read_only_folder_is_a_clear_error_for_writers_and_none_for_readers(read_only):
    writing = (
        "import sys; from subswarm.study import Store\n"
        "try:\n    Store.writing(sys.argv[1]).__enter__()\nexcept OSError as error:\n    print(error)"
    )
    for name in ("a.db", "new.db"):
        assert "cannot be written, or its folder cannot" in as_somebody_without_rights(writing, read_only / name)
    reading = "import sys; from subswarm.study import Store\nprint(len(Store.reading(sys.argv[1]).done()))"
    assert as_somebody_without_rights(reading, read_only / "a.db").strip() == "3"


def test_a_full_disk_is_a_clear_error_and_finished_runs_are_kept(tmp_path):
    code = """
import resource, sys
from subswarm.study import Store
sys.path.insert(0, sys.argv[2])
from test_study_store import STUDY, outcomes
from dataclasses import replace
with Store.writing(sys.argv[1]) as store:
    store.adopt(replace(STUDY, runs=1000))
    resource.setrlimit(resource.RLIMIT_FSIZE, (900_000, 900_000))
    try:
        for outcome in outcomes(replace(STUDY, runs=1000)):
            store.record(outcome)
    except OSError as error:
        print(error)
"""
    process = in_a_process(code, tmp_path / "a.db", ROOT / "tests", stdout=subprocess.PIPE)
    said, _ = process.communicate(timeout=SECONDS)
    assert "the disk is full, or" in said
    assert "Finished runs are kept" in said
    with Store.reading(tmp_path / "a.db") as store:
        done = len(store.done())
    assert 0 < done < 1000
    with Store.writing(tmp_path / "a.db") as store:
        for outcome in outcomes(replace(STUDY, runs=1000)):
            store.record(outcome)
        assert len(store.done()) == 1000


SLOW_WRITER = """
import sys
from subswarm.study import Store
sys.path.insert(0, sys.argv[2])
from test_study_store import outcomes
with Store.writing(sys.argv[1]) as store:
    print("in", flush=True)
    sys.stdin.readline()
    store.record(outcomes()[3])
    print("recorded", flush=True)
"""

SECOND_WRITER = """
import sys
from subswarm.study import Store
try:
    with Store.writing(sys.argv[1]):
        print("in")
except OSError as error:
    print(error)
"""


def a_writer(path):
    """Another process that has the store open, and records a run when it is told to."""
    process = in_a_process(
        SLOW_WRITER, path, ROOT / "tests", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == "in\n"
    return process


def delete(path):
    path.unlink()


def move_away(path):
    path.rename(path.with_name("moved.db"))


def replace_by_a_copy(path):
    shutil.copy(path, path.with_name("copy.db"))
    os.replace(path.with_name("copy.db"), path)


@pytest.mark.parametrize("what", [delete, move_away, replace_by_a_copy])
def test_the_next_commit_notices_that_the_store_was_removed_or_replaced(filled, what):
    process = a_writer(filled)
    what(filled)
    said, error = process.communicate("go on\n", timeout=SECONDS)
    assert process.returncode != 0
    assert "recorded" not in said
    assert "StoreError" in error
    assert "was deleted, moved or replaced while the study was running" in error


def test_a_study_whose_store_is_deleted_ends_with_an_error_and_exit_status_2(tmp_path):
    file, path = tmp_path / "s.toml", tmp_path / "a.db"
    file.write_text('datasets = ["wine"]\nmodels = ["nb"]\nalgorithms = ["random"]\nruns = 2000\nevaluations = 500\n')
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = ["-m", "subswarm", "study", "run", str(file), "--store", str(path), "--jobs", "1", "--quiet"]
    process = subprocess.Popen([sys.executable, *command], env=environment, text=True, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 240
    while not path.exists() or not has_runs(path):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    path.unlink()
    _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 2
    assert said.startswith("error: ")
    assert "was deleted, moved or replaced" in said
    assert "Traceback" not in said


def has_runs(path):
    try:
        return runs_in(path) > 0
    except StoreError:
        return False  # it is being made


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="other systems do not say when a process began")
def test_deleting_the_lock_file_lets_no_second_writer_in(filled):
    first = a_writer(filled)
    Path(f"{filled}-lock").unlink()
    second = in_a_process(SECOND_WRITER, filled, stdout=subprocess.PIPE)
    said, _ = second.communicate(timeout=SECONDS)
    assert f"is being written by another process (number {first.pid}" in said
    assert first.communicate("go on\n", timeout=SECONDS)[0] == "recorded\n"
    assert runs_in(filled) == 4


def test_deleting_the_lock_file_lets_no_second_writer_of_the_same_process_in(filled):
    with Store.writing(filled) as store:
        Path(f"{filled}-lock").unlink()
        with pytest.raises(StoreError, match="another process"), Store.writing(filled):
            pass
        store.record(outcomes()[3])
    with Store.writing(filled) as store:
        assert len(store.done()) == 4


def test_a_writer_that_was_displaced_cannot_write_any_more(filled):
    """Also where the system does not say which processes live, no two writers mix their runs."""
    first = a_writer(filled)
    Path(f"{filled}-lock").unlink()
    with sqlite3.connect(filled) as connection:
        connection.execute("UPDATE writer SET process = ''")
    connection.close()
    with Store.writing(filled) as second:
        _, error = first.communicate("go on\n", timeout=SECONDS)
        assert first.returncode != 0
        assert f"another process (number {os.getpid()}" in error
        second.record(outcomes()[3])
    assert runs_in(filled) == 4


def test_a_killed_writer_that_is_a_zombie_does_not_block_the_store(filled):
    process = a_writer(filled)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # ended, and still in the table of processes
    with Store.writing(filled) as store:
        store.record(outcomes()[3])
    process.communicate()
    assert runs_in(filled) == 4
