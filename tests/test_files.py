"""Atomic writes."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from subswarm._files import _machine, write_whole


def test_a_file_is_replaced_with_the_usual_permissions(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(b"old")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    plain = tmp_path / "plain"
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode
    assert sorted(os.listdir(tmp_path)) == ["plain", "x.json"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "x"
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        write_whole(path, b"new")
    assert os.listdir(tmp_path) == ["x"]
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "no" / "x", b"new")


@pytest.mark.parametrize("name", ["/", ".", ""])
def test_a_path_without_a_name_is_an_os_error(name):
    with pytest.raises(IsADirectoryError):
        write_whole(name, b"content")


KILLED = """
import os, sys
from subswarm._files import write_whole
os.fsync = lambda file: os.kill(os.getpid(), 9)
write_whole(sys.argv[1], b"half")
"""

WRITING = """
import os, sys
from subswarm._files import write_whole
def wait(file):
    print("writing", flush=True)
    sys.stdin.read()
os.fsync = wait
write_whole(sys.argv[1], b"theirs")
"""


@pytest.mark.skipif(os.name != "posix", reason="needs kill -9")
def test_leftovers_of_a_killed_write_are_removed_by_the_next_write_to_the_same_file(tmp_path):
    path, other = tmp_path / "x.ckpt", tmp_path / "x"
    for target in (path, other):
        subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False)
    left = sorted(os.listdir(tmp_path))
    assert len(left) == 2
    write_whole(path, b"new")
    assert sorted(os.listdir(tmp_path)) == [next(name for name in left if "ckpt" not in name), "x.ckpt"]
    write_whole(other, b"new")
    assert sorted(os.listdir(tmp_path)) == ["x", "x.ckpt"]


def test_temporary_files_of_a_running_process_are_kept(tmp_path):
    path = tmp_path / "x"
    command = [sys.executable, "-c", WRITING, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "writing\n"
        write_whole(path, b"ours")
        assert len(os.listdir(tmp_path)) == 2
        process.communicate("")
    assert process.returncode == 0
    assert os.listdir(tmp_path) == ["x"]
    assert path.read_bytes() == b"theirs"


def test_leftovers_of_other_machines_are_removed_once_they_are_a_day_old(tmp_path):
    names = (".x.01234567-1-89abcdef.part", ".x.89abcdef.part", ".x.notes.part", ".x.y.89abcdef.part")
    for name in names:
        (tmp_path / name).touch()
    write_whole(tmp_path / "x", b"new")
    assert sorted(os.listdir(tmp_path)) == sorted([*names, "x"])
    day_ago = time.time() - 25 * 3600
    for name in names:
        os.utime(tmp_path / name, (day_ago, day_ago))
    write_whole(tmp_path / "x", b"new")
    assert sorted(os.listdir(tmp_path)) == [".x.notes.part", ".x.y.89abcdef.part", "x"]


def test_a_leftover_with_the_number_of_this_process_is_of_an_earlier_one(tmp_path):
    """In a container every process may have the same number."""
    (tmp_path / f".x.{_machine()}-{os.getpid()}-0123abcd.part").touch()
    write_whole(tmp_path / "x", b"new")
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "é\0\ud800"])
def test_a_path_that_no_file_can_have_is_an_os_error(tmp_path, name):
    with pytest.raises(OSError, match="the path cannot be used"):
        write_whole(tmp_path / name, b"content")
    assert list(tmp_path.iterdir()) == []
