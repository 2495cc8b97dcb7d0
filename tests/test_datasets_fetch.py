"""Downloads are verified and leave no partial files: tested with a local server."""

from __future__ import annotations

import hashlib
import io
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from subswarm.datasets import describe, is_present, load_dataset
from subswarm.datasets._catalogue import Entry, SourceFile
from subswarm.datasets._fetch import fetch_files
from subswarm.errors import DatasetError

TEXT = b"1,2,a\n3,4,b\n"


@dataclass
class Served:
    """What the server has: content by path, paths it cuts short, and the paths it was asked for."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cut_short: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)


@contextmanager
def serving() -> Iterator[Served]:
    served = Served()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append(self.path)
            content = served.files.get(self.path)
            if content is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if self.path in served.cut_short else content)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        served.url = f"http://127.0.0.1:{server.server_port}/"
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def straight_to_this_machine(monkeypatch):
    pytest.importorskip("pooch", reason="downloads need the extra 'data'")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def server() -> Iterator[Served]:
    with serving() as served:
        yield served


def tiny(content: bytes = TEXT, **changes: object) -> Entry:
    """An entry of one small file."""
    digest = hashlib.sha256(content).hexdigest()
    file = SourceFile(name="tiny.data", size=len(content), sha256=digest, text_sha256=digest)
    return replace(describe("zoo"), name="tiny", folder="deep/tiny", files=(replace(file, **changes),))


def everything_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_download_lands_in_the_cache_and_is_not_repeated(server, tmp_path):
    server.files["/deep/tiny/tiny.data"] = TEXT
    for _ in range(2):
        paths = fetch_files(tiny(), mirror=server.url, folder=tmp_path)
    assert [path.read_bytes() for path in paths] == [TEXT]
    assert everything_below(tmp_path) == paths == [tmp_path / "tiny" / "tiny.data"]
    assert server.asked == ["/deep/tiny/tiny.data"]


def test_other_line_ends_are_the_same_data(server, tmp_path):
    server.files["/deep/tiny/tiny.data"] = TEXT.replace(b"\n", b"\r\n") + b"\r\n"
    (path,) = fetch_files(tiny(), mirror=server.url, folder=tmp_path)
    assert path.read_bytes() == TEXT


def test_a_member_of_an_archive_is_unpacked(server, tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("tiny.data", TEXT)
    server.files["/deep/tiny/all.zip"] = packed.getvalue()
    (path,) = fetch_files(tiny(archive="all.zip"), mirror=server.url, folder=tmp_path)
    assert path.read_bytes() == TEXT


def test_a_damaged_file_in_the_cache_is_downloaded_again(server, tmp_path):
    server.files["/deep/tiny/tiny.data"] = TEXT
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "tiny.data").write_bytes(TEXT[:5])
    (path,) = fetch_files(tiny(), mirror=server.url, folder=tmp_path)
    assert path.read_bytes() == TEXT


@pytest.mark.parametrize("wrong", [b"<html>not here</html>", TEXT + b"5,6,c\n", b""], ids=["page", "longer", "empty"])
def test_a_wrong_checksum_is_refused_and_leaves_nothing(server, tmp_path, wrong):
    server.files["/deep/tiny/tiny.data"] = wrong
    with pytest.raises(DatasetError, match=r"does not match the catalogue.*No file was kept"):
        fetch_files(tiny(), mirror=server.url, folder=tmp_path)
    assert everything_below(tmp_path) == []


@pytest.mark.parametrize("content", [b"no archive", None], ids=["no zip", "other member"])
def test_a_bad_archive_is_refused_and_leaves_nothing(server, tmp_path, content):
    if content is None:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("other.data", TEXT)
        content = packed.getvalue()
    server.files["/deep/tiny/all.zip"] = content
    with pytest.raises(DatasetError, match="does not match the catalogue"):
        fetch_files(tiny(archive="all.zip"), mirror=server.url, folder=tmp_path)
    assert everything_below(tmp_path) == []


@pytest.mark.parametrize("extra", [{"bomb.data": bytes(50_000_000)}, {"../tiny.data": TEXT}], ids=["bomb", "path"])
def test_an_archive_that_is_not_plausible_is_refused_and_leaves_nothing(server, tmp_path, extra):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in ({"tiny.data": TEXT} | extra).items():
            archive.writestr(name, content)
    server.files["/deep/tiny/all.zip"] = packed.getvalue()
    with pytest.raises(DatasetError, match=r"does not match the catalogue \(all.zip has .*No file was kept"):
        fetch_files(tiny(archive="all.zip"), mirror=server.url, folder=tmp_path / "cache")
    assert everything_below(tmp_path) == []


def test_a_truncated_download_is_refused_and_leaves_nothing(server, tmp_path):
    server.files["/deep/tiny/tiny.data"] = TEXT
    server.cut_short.add("/deep/tiny/tiny.data")
    with pytest.raises(DatasetError, match=r"could not be downloaded"):
        fetch_files(tiny(), mirror=server.url, folder=tmp_path)
    assert everything_below(tmp_path) == []


def test_an_absent_file_is_a_clear_error(server, tmp_path):
    with pytest.raises(DatasetError, match=r"could not be downloaded: HTTPError: 404"):
        fetch_files(tiny(), mirror=server.url, folder=tmp_path)
    assert everything_below(tmp_path) == []


def test_a_network_failure_is_a_clear_error(tmp_path):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        closed_port = held.getsockname()[1]
    with pytest.raises(DatasetError, match=r"could not be downloaded.*set data_dir or SUBSWARM_DATA to its folder"):
        fetch_files(tiny(), mirror=f"http://127.0.0.1:{closed_port}/", folder=tmp_path)
    assert everything_below(tmp_path) == []


def test_a_cache_that_cannot_be_written_is_a_clear_error(server, tmp_path):
    server.files["/deep/tiny/tiny.data"] = TEXT
    blocked = tmp_path / "cache"
    blocked.write_text("a file where the folder should be")
    with pytest.raises(DatasetError, match="could not be downloaded"):
        fetch_files(tiny(), mirror=server.url, folder=blocked)


def test_musk_explains_why_it_must_be_downloaded_by_hand(tmp_path):
    with pytest.raises(DatasetError, match=r"clean1.data.Z.*gzip -d"):
        fetch_files(describe("musk-1"), folder=tmp_path)


def test_without_pooch_the_sentence_names_the_extra(tmp_path):
    code = (
        "import sys; sys.modules['pooch'] = None\n"
        "from subswarm.datasets import describe\n"
        "from subswarm.datasets._fetch import fetch_files\n"
        "from pathlib import Path\n"
        "try: fetch_files(describe('zoo'), folder=Path(sys.argv[1]))\n"
        "except ImportError as error: print(type(error).__name__, error)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    ).stdout
    assert said.startswith("MissingExtraError")
    assert "pip install 'subswarm[data]'" in said


@pytest.mark.parametrize("name", ["zoo", "vehicle", "lsvt"])
def test_a_dataset_loads_the_same_through_a_mirror(server, uci, tmp_path, monkeypatch, name):
    dataset = uci(name)
    entry = describe(name)
    for file in entry.files:
        content = (Path(dataset.origin) / file.name).read_bytes()
        if file.archive is not None:
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w") as archive:
                archive.writestr(file.name, content)
            content = packed.getvalue()
        server.files[f"/{entry.folder}/{file.archive or file.name}"] = content
    monkeypatch.setenv("SUBSWARM_MIRROR", server.url)
    monkeypatch.setenv("SUBSWARM_CACHE", str(tmp_path))
    monkeypatch.delenv("SUBSWARM_DATA", raising=False)
    assert not is_present(name)
    with pytest.raises(DatasetError, match="download=False"):
        load_dataset(name, download=False)
    fetched = load_dataset(name)
    assert is_present(name)
    assert fetched.origin == str(tmp_path / name)
    for again in (fetched, load_dataset(name, download=False)):
        np.testing.assert_array_equal(again.X, dataset.X)
        np.testing.assert_array_equal(again.y, dataset.y)
