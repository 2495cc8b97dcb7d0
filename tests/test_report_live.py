"""The live page's server serves many clients at once, whatever some of them do."""

from __future__ import annotations

import http.client
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from limits import SECONDS
from subswarm.report.live_server import LiveServer

PAGE = "<p>größer</p>\n" * 100_000


@contextmanager
def serving(server: LiveServer) -> Iterator[LiveServer]:
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        server.close()
        thread.join(timeout=SECONDS)


def connected(server: LiveServer, timeout: float = 240) -> socket.socket:
    place = urlsplit(server.url)
    return socket.create_connection((place.hostname, place.port), timeout=timeout)


def reset(connection: socket.socket) -> None:
    """Close so that the other side gets a reset instead of an end."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def request(server: LiveServer) -> bytes:
    place = urlsplit(server.url)
    return f"GET {place.path} HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode()


def reads_the_page(server: LiveServer) -> str:
    place = urlsplit(server.url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=SECONDS)
    connection.request("GET", place.path)
    page = connection.getresponse().read().decode()
    connection.close()
    return page


def leaves_before_the_answer(server: LiveServer) -> None:
    connection = connected(server)
    connection.sendall(request(server))
    reset(connection)


def leaves_within_the_answer(server: LiveServer) -> None:
    connection = connected(server)
    connection.sendall(request(server))
    connection.recv(100)
    reset(connection)


def leaves_within_the_request(server: LiveServer) -> None:
    connection = connected(server)
    connection.sendall(request(server)[:20])
    reset(connection)


def test_fifty_clients_at_once_get_the_whole_page_and_nothing_is_printed(capfd):
    made = []

    def page() -> str:
        made.append(None)
        return PAGE

    bad = [leaves_before_the_answer, leaves_within_the_answer, leaves_within_the_request]
    kinds: list[Callable[[LiveServer], str | None]] = [reads_the_page] * 30 + bad * 5
    start = threading.Barrier(len(kinds))

    def client(kind: Callable[[LiveServer], str | None]) -> str | None:
        start.wait()
        return kind(server)

    with serving(LiveServer(page, lambda: "1")) as server:
        silent = [connected(server) for _ in range(5)]
        with ThreadPoolExecutor(len(kinds)) as clients:
            answers = list(clients.map(client, kinds))
        for connection in silent:
            connection.close()
        assert reads_the_page(server) == PAGE
    assert [answer == PAGE for answer in answers[:30]] == [True] * 30
    assert len(made) == 1
    assert capfd.readouterr() == ("", "")


def test_a_hundred_clients_may_wait_to_be_accepted():
    server = LiveServer(lambda: PAGE, lambda: "1")
    waiting = [connected(server, timeout=20) for _ in range(100)]  # nobody accepts them yet
    for connection in waiting:
        connection.close()
    server.close()


@pytest.mark.parametrize("drip", [b"", b"x"], ids=["silent", "a byte now and then"])
def test_a_client_that_does_not_finish_its_request_is_disconnected(drip, capfd):
    with serving(LiveServer(lambda: PAGE, lambda: "1", request_seconds=0.5)) as server, connected(server) as slow:
        slow.settimeout(0.1)
        slow.sendall(b"GET /")
        until = time.monotonic() + 60
        while not is_closed(slow, drip):
            assert time.monotonic() < until, "the connection is still held"
    assert capfd.readouterr() == ("", "")


def is_closed(connection: socket.socket, drip: bytes) -> bool:
    try:
        connection.sendall(drip)
        return connection.recv(100) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True
