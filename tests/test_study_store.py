"""The store: one writer, readers at any time, and a clear sentence for everything that can be wrong with a file."""

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

from subswarm.core.errors import StoreError
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


def test_a_failure_is_kept_until_the_run_succeeds(filled):
    last = STUDY.plan()[3]
    with Store.writing(filled) as store:
        store.record(Outcome(last, failure=Failure("ValueError: no", "trace")))
        store.record(Outcome(last, failure=Failure("ValueError: no", "trace")))
        assert store.failures() == {last.key: Failure("ValueError: no", "trace")}
        store.record(outcomes()[3])
        assert store.failures() == {}


def test_status_counts_runs_and_reckons_the_time_left(filled):
    status = read_status(filled)
    assert (status.done, status.planned) == (3, 4)
    assert status.seconds_left == pytest.approx(0.3)
    text = status.as_text()
    assert "3 of 4 runs" in text
    assert "time left: about 0 s" in text
    with Store.writing(filled) as store:
        store.record(Outcome(STUDY.plan()[3], failure=Failure("ValueError: no", "trace")))
    assert "failed 1 times: ValueError: no" in read_status(filled).as_text()


def test_readers_read_while_another_process_writes(filled):
    with Store.writing(filled) as writer:
        writer.record(outcomes()[3])
        with Store.reading(filled) as reader:
            assert len(reader.done()) == 4
        assert read_status(filled).done == 4


def test_a_second_writer_is_refused_with_a_sentence_that_says_who_is_first(filled):
    with Store.writing(filled):
        process = in_a_process(
            "import sys; from subswarm.study import Store\n"
            "try:\n    Store.writing(sys.argv[1]).__enter__()\nexcept OSError as error:\n    print(error)",
            filled,
            stdout=subprocess.PIPE,
        )
        said, _ = process.communicate(timeout=240)
    assert "is being written by another process" in said
    assert f"number {os.getpid()}" in said


def test_a_second_writer_may_wait(filled):
    process = in_a_process(
        "import sys; from subswarm.study import Store\n"
        "with Store.writing(sys.argv[1], wait=True) as store: print(len(store.done()))",
        filled,
        stdout=subprocess.PIPE,
    )
    with Store.writing(filled) as store:
        time.sleep(2.5)
        store.record(outcomes()[3])
    said, _ = process.communicate(timeout=240)
    assert int(said) in (3, 4)
    assert runs_in(filled) == 4


def test_the_lock_dies_with_its_process(filled):
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
        ({"evaluations": 6}, "evaluations 5 there and 6 here"),
        ({"folds": 3}, "folds 2 there and 3 here"),
        ({"seed": 1}, "seed 0 there and 1 here"),
        ({"protocol": "published"}, "protocol 'sound' there and 'published' here"),
        ({"algorithms": (Contender("random", "random", {"batch": 5}),)}, "knows 'random' with the settings {}"),
    ],
)
def test_a_study_whose_runs_would_not_be_comparable_is_refused(filled, change, said):
    with Store.writing(filled) as store, pytest.raises(StoreError, match=said):
        store.adopt(replace(STUDY, **change))


def test_outer_folds_may_be_added_later_and_not_changed(filled):
    with Store.writing(filled) as store:
        store.adopt(replace(STUDY, outer=3))
        store.adopt(STUDY)
        assert store.info().outer == 3
        with pytest.raises(StoreError, match="outer folds 3 there and 4 here"):
            store.adopt(replace(STUDY, outer=4))


def test_repetitions_of_the_outer_folds_may_be_added_later_and_none_is_lost(filled):
    with Store.writing(filled) as store:
        store.adopt(replace(STUDY, outer=3))
        before = {run.key for run in store.planned()}
        store.adopt(replace(STUDY, outer=3, outer_repeats=4))
        info = store.info()
        assert (info.outer, info.outer_repeats, info.folds_at_a_time) == (12, 4, 3)
        assert before < {run.key for run in store.planned()}
        store.adopt(replace(STUDY, outer=3, outer_repeats=2))
        assert store.info().outer_repeats == 4
        with pytest.raises(StoreError, match="outer folds 3 there and 4 here"):
            store.adopt(replace(STUDY, outer=4, outer_repeats=4))


def test_data_that_changed_between_two_calls_are_noticed(filled):
    with Store.writing(filled) as store, pytest.raises(StoreError, match="rows or folds of 'wine' are not those"):
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
    opened_both_ways(filled, "has schema 99 and this release reads schema 1; update subswarm")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_truncated_store_is_refused(filled, share):
    size = filled.stat().st_size
    os.truncate(filled, int(size * share) // 4096 * 4096 or 100)
    opened_both_ways(filled, "damaged or cut short|not a study's store")


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    file = tmp_path / "notes.db"
    file.write_text("my notes, which are long enough to be no header of a database at all\n" * 50)
    before = file.read_bytes()
    opened_both_ways(file, "is not a study's store; name another file")
    assert file.read_bytes() == before


def test_another_programs_database_is_refused_and_left_alone(tmp_path):
    file = tmp_path / "other.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE plan (a)")
    connection.close()
    before = file.read_bytes()
    opened_both_ways(file, "is a database, but no study's store")
    assert file.read_bytes() == before


def test_an_absent_store_and_an_absent_folder_are_named(tmp_path):
    with pytest.raises(StoreError, match="there is no store"), Store.reading(tmp_path / "absent.db"):
        pass
    with (
        pytest.raises(StoreError, match=r"the folder .*absent does not exist"),
        Store.writing(tmp_path / "absent/a.db"),
    ):
        pass


def test_a_store_without_a_study_says_so(tmp_path):
    with Store.writing(tmp_path / "a.db") as store, pytest.raises(StoreError, match="no study has been run"):
        store.info()


def as_somebody_without_rights(code, *arguments):
    """Root may write everywhere, so such a test gives its rights away first."""
    drop = "import os; import subswarm.study; os.getuid() or (os.setgid(65534), os.setuid(65534))\n"
    process = in_a_process(drop + code, *arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return process.communicate(timeout=240)[0]


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


def test_a_full_disk_is_a_clear_error_and_what_was_finished_is_kept(tmp_path):
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
    said, _ = process.communicate(timeout=240)
    assert "the disk is full, or" in said
    assert "what was finished is kept" in said
    with Store.reading(tmp_path / "a.db") as store:
        done = len(store.done())
    assert 0 < done < 1000
    with Store.writing(tmp_path / "a.db") as store:
        for outcome in outcomes(replace(STUDY, runs=1000)):
            store.record(outcome)
        assert len(store.done()) == 1000
