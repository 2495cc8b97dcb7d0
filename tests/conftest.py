"""Fixtures that several test files share."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest
from threadpoolctl import threadpool_limits

from subswarm._search import plan
from subswarm.datasets import Dataset, is_present, load_dataset


@pytest.fixture(scope="session")
def uci() -> Callable[..., Dataset]:
    """``uci(name, protocol="sound")``: a data set of the paper, or a skip where its files are absent."""
    loaded: dict[tuple[str, str], Dataset] = {}

    def load(name: str, protocol: str = "sound") -> Dataset:
        if not is_present(name):
            pytest.skip(f"the files of {name!r} are absent; point SUBSWARM_DATA to a folder with the UCI files")
        if (name, protocol) not in loaded:
            loaded[name, protocol] = load_dataset(name, protocol=protocol)
        return loaded[name, protocol]

    return load


@pytest.fixture(autouse=True)
def compiled_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches in this process compile themselves, so that no other one changes what the next test sees."""
    monkeypatch.setattr(plan, "compile_aside", lambda kernels, work, announce: None)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C is heard, also where the tests were started in the background and inherited that it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Models compute with one thread: small fits of several threads are slow on a busy machine."""
    with threadpool_limits(1):
        yield
