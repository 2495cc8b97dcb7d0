"""Serves a page that updates itself, on this machine only, read-only, under an address with a random token."""

from __future__ import annotations

import hmac
import io
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["LiveServer"]

HOST = "127.0.0.1"
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}
_REQUEST_SECONDS = 10.0
_ANSWER_SECONDS = 30.0


class LiveServer:
    """Serves ``page()`` and ``version()`` on 127.0.0.1, under an address that cannot be guessed.

    Parameters
    ----------
    page : function that returns HTML; called again only after the version has changed
    version : function that returns a short text, which changes whenever the page does
    port : 0 takes a free one
    request_seconds : the longest time that a client may take to send its request

    Attributes
    ----------
    url : address of the page
    """

    def __init__(
        self,
        page: Callable[[], str],
        version: Callable[[], str],
        *,
        port: int = 0,
        request_seconds: float = _REQUEST_SECONDS,
    ) -> None:
        self.request_seconds = request_seconds
        self._page, self._version = page, version
        self._last: tuple[str, bytes] | None = None
        self._lock = threading.Lock()
        token = secrets.token_urlsafe(24)
        self._paths = {f"/{token}/": self._current_page, f"/{token}/version": self._current_version}
        self._server = _Server((HOST, port), _handler(self))
        self.url = f"http://{HOST}:{self._server.server_port}/{token}/"

    def serve(self) -> None:
        """Answer requests until `stop` is called or Ctrl-C is pressed."""
        self._server.serve_forever(poll_interval=0.2)

    def stop(self) -> None:
        """End `serve`."""
        self._server.shutdown()

    def close(self) -> None:
        """Release the port."""
        self._server.server_close()

    def answer(self, host: str | None, path: str) -> tuple[HTTPStatus, str, bytes]:
        """Return status, content type and body for a request; only the two addresses are found."""
        if host not in (f"{HOST}:{self._server.server_port}", f"localhost:{self._server.server_port}"):
            return HTTPStatus.FORBIDDEN, "text/plain", b"this page is for this machine only\n"
        for known, respond in self._paths.items():
            if hmac.compare_digest(known.encode(), path.encode()):
                kind, body = respond()
                return HTTPStatus.OK, kind, body
        return HTTPStatus.NOT_FOUND, "text/plain", b"not found\n"

    def _current_page(self) -> tuple[str, bytes]:
        with self._lock:  # simultaneous requests wait for one page instead of each making one
            version = self._version()
            if self._last is None or self._last[0] != version:
                self._last = (version, self._page().encode())
            return "text/html", self._last[1]

    def _current_version(self) -> tuple[str, bytes]:
        return "text/plain", self._version().encode()


class _Server(ThreadingHTTPServer):
    """Handles each connection in a thread, and closes it after the answer: an idle one would block its thread."""

    request_queue_size = 128  # with the default of 5, simultaneous clients are rejected and wait for seconds
    daemon_threads = True

    def handle_error(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        """Ignore clients that disconnect."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _DeadlineReader(io.RawIOBase):
    """Reads a connection until a deadline, which single bytes do not extend."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection, self._end = connection, time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


def _handler(live: LiveServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers GET and HEAD; the base class refuses any other method."""

        server_version, sys_version = "subswarm", ""

        def setup(self) -> None:
            super().setup()
            self.rfile.close()
            self.rfile = io.BufferedReader(_DeadlineReader(self.connection, live.request_seconds))

        def do_GET(self) -> None:
            self._respond(with_body=True)

        def do_HEAD(self) -> None:
            self._respond(with_body=False)

        def _respond(self, *, with_body: bool) -> None:
            try:
                status, kind, body = live.answer(self.headers.get("Host"), self.path)
            except Exception as error:
                status, kind, body = HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain", f"{error}\n".encode()
            self.connection.settimeout(_ANSWER_SECONDS)
            self.send_response(status)
            for name, value in {**_HEADERS, "Content-Type": f"{kind}; charset=utf-8"}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: the address contains the token."""

    return Handler
