"""A study on a real Dask cluster: a scheduler and two worker processes, one of which is killed during the study."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from limits import SECONDS
from subswarm.errors import SettingError
from subswarm.study import Contender, Source, Store, Study, run_study

pytest.importorskip("distributed", reason="a Dask cluster needs the extra 'dask'")

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent

STUDY = Study(
    name="small",
    datasets=(Source("wine"),),
    models=("nb",),
    algorithms=(Contender("random", "random"), Contender("2d-upso", "2d-upso")),
    runs=10,
    evaluations=3000,
    folds=10,
)


@pytest.fixture
def cluster(tmp_path):
    """The scheduler's address, and the two workers' processes."""
    about = tmp_path / "scheduler.json"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    started = []

    def start(module, *arguments):
        with (tmp_path / f"{module}{len(started)}.log").open("wb") as log:
            command = [sys.executable, "-m", f"distributed.cli.{module}", "--scheduler-file", str(about)]
            started.append(
                subprocess.Popen([*command, *arguments], cwd=tmp_path, env=environment, stdout=log, stderr=log)
            )
        return started[-1]

    start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    deadline = time.monotonic() + 240
    while not (about.exists() and about.read_text().endswith("}")):
        assert time.monotonic() < deadline, "the scheduler did not start"
        time.sleep(0.05)
    worker = ["--host", "127.0.0.1", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    workers = [start("dask_worker", *worker) for _ in range(2)]
    yield json.loads(about.read_text())["address"], workers
    for process in started:
        process.kill()
        process.wait()


def wait_for_two_workers(address):
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=SECONDS)


def test_a_study_survives_a_killed_worker_with_the_same_content(cluster, tmp_path):
    address, workers = cluster
    wait_for_two_workers(address)
    done = []

    def kill_one_on_the_way(progress):
        done.append(progress.done)
        if progress.done == 3:
            workers[0].kill()

    summary = run_study(STUDY, tmp_path / "dask.db", backend="dask", scheduler=address, progress=kill_one_on_the_way)
    assert (summary.ran, summary.failed) == (20, 0)
    assert workers[0].wait(timeout=SECONDS) != 0
    assert workers[1].poll() is None
    assert done == list(range(21))
    run_study(STUDY, tmp_path / "local.db")
    with Store.reading(tmp_path / "dask.db") as ours, Store.reading(tmp_path / "local.db") as theirs:
        assert ours.content_digest() == theirs.content_digest()


def test_a_missing_scheduler_is_a_clear_error(tmp_path):
    with pytest.raises(SettingError, match=r"there is no Dask scheduler at 'tcp://127\.0\.0\.1:9'"):
        run_study(STUDY, tmp_path / "a.db", backend="dask", scheduler="tcp://127.0.0.1:9")
    with pytest.raises(SettingError, match="needs the address of its scheduler"):
        run_study(STUDY, tmp_path / "a.db", backend="dask")
