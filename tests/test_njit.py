"""Kernels that several processes compile at the same time into one cache."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parent.parent / "src"

KERNEL = """
import sys
import numpy as np
from numba.core.caching import IndexDataCacheFile
if len(sys.argv) > 2:
    save = IndexDataCacheFile._save_data
    def wait_and_save(self, name, data):
        print("the index is written", flush=True)
        sys.stdin.readline()
        save(self, name, data)
    IndexDataCacheFile._save_data = wait_and_save
from kernel import twice
print(twice(np.arange(3, dtype=sys.argv[1])).tolist(), flush=True)
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """``run(dtype)`` calls the kernel in a new process; with ``waits`` it stops before it writes the machine code."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{SOURCE}")
    (tmp_path / "run.py").write_text(KERNEL)

    def start(dtype, *waits):
        command = [sys.executable, str(tmp_path / "run.py"), dtype, *waits]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    return start


def write_kernel(folder, factor):
    source = "from subswarm._njit import njit\n@njit(cache=True)\ndef twice(x):\n    return x * {}\n"
    (folder / "kernel.py").write_text(source.format(factor))


def test_code_of_an_earlier_source_is_not_loaded_while_another_process_writes_the_new_one(run, tmp_path):
    write_kernel(tmp_path, 2)
    assert run("int64").communicate()[0] == "[0, 2, 4]\n"
    write_kernel(tmp_path, "10 + 0")  # another size, so another source for numba
    first = run("int64", "waits")
    assert first.stdout.readline() == "the index is written\n"
    assert run("int64").communicate()[0] == "[0, 10, 20]\n"
    assert first.communicate("go on\n")[0] == "[0, 10, 20]\n"


def test_two_processes_that_compile_for_different_types_do_not_overwrite_each_other(run, tmp_path):
    write_kernel(tmp_path, 2)
    first = run("int64", "waits")
    assert first.stdout.readline() == "the index is written\n"
    (index,) = (tmp_path / "cache").rglob("*.nbi")
    index.unlink()  # the second process read the index before the first one wrote it
    second = run("float64", "waits")
    assert second.stdout.readline() == "the index is written\n"
    second.communicate("go on\n")
    first.communicate("go on\n")
    assert run("float64").communicate()[0] == "[0.0, 2.0, 4.0]\n"


def test_every_cached_kernel_is_compiled_this_way():
    for path in SOURCE.rglob("*.py"):
        if path.name != "_njit.py":
            assert not re.search(r"^(?:from numba import .*\bnjit\b|import numba\b)", path.read_text(), re.M), path
