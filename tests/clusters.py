"""A real Dask cluster: a scheduler and two worker processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from limits import SECONDS

ROOT = Path(__file__).parent.parent


@pytest.fixture
def cluster(tmp_path):
    """The scheduler's address, and the two workers' processes."""
    about = tmp_path / "scheduler.json"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])}
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
