"""Files that are whole or not there."""

from __future__ import annotations

import os

import pytest

from subswarm.core.files import write_whole


def test_a_file_is_replaced_whole_with_the_usual_permissions(tmp_path):
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
