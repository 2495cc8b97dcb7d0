"""A page that is watched: served to this machine alone, read only, behind a random token."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["LiveServer"]

HOST = "127.0.0.1"
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}


class LiveServer:
    """Serves ``page()`` and ``version()`` on 127.0.0.1 under an address that cannot be guessed.

    Parameters
    ----------
    page : from nothing to HTML; called again only where the version has changed
    version : from nothing to a short text that changes whenever the page would
    port : 0 takes a free one

    Attributes
    ----------
    url : where to look
    """

    def __init__(self, page: Callable[[], str], version: Callable[[], str], *, port: int = 0) -> None:
        self._page, self._version = page, version
        self._kept: tuple[str, bytes] | None = None
        token = secrets.token_urlsafe(24)
        self._paths = {f"/{token}/": self._current_page, f"/{token}/version": self._current_version}
        self._server = ThreadingHTTPServer((HOST, port), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://{HOST}:{self._server.server_port}/{token}/"

    def serve(self) -> None:
        """Answer until `stop` is called, or Ctrl-C."""
        self._server.serve_forever(poll_interval=0.2)

    def stop(self) -> None:
        """End `serve`."""
        self._server.shutdown()

    def close(self) -> None:
        """Let go of the port."""
        self._server.server_close()

    def answer(self, host: str | None, path: str) -> tuple[HTTPStatus, str, bytes]:
        """Status, content type and body for a request; all but the two addresses is not found."""
        if host not in (f"{HOST}:{self._server.server_port}", f"localhost:{self._server.server_port}"):
            return HTTPStatus.FORBIDDEN, "text/plain", b"this page is for this machine only\n"
        for known, respond in self._paths.items():
            if hmac.compare_digest(known.encode(), path.encode()):
                kind, body = respond()
                return HTTPStatus.OK, kind, body
        return HTTPStatus.NOT_FOUND, "text/plain", b"not found\n"

    def _current_page(self) -> tuple[str, bytes]:
        version = self._version()
        if self._kept is None or self._kept[0] != version:
            self._kept = (version, self._page().encode())
        return "text/html", self._kept[1]

    def _current_version(self) -> tuple[str, bytes]:
        return "text/plain", self._version().encode()


def _handler(live: LiveServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """GET and HEAD only: any other method is refused by the base class."""

        server_version, sys_version = "subswarm", ""

        def do_GET(self) -> None:
            self._respond(with_body=True)

        def do_HEAD(self) -> None:
            self._respond(with_body=False)

        def _respond(self, *, with_body: bool) -> None:
            try:
                status, kind, body = live.answer(self.headers.get("Host"), self.path)
            except Exception as error:
                status, kind, body = HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain", f"{error}\n".encode()
            self.send_response(status)
            for name, value in {**_HEADERS, "Content-Type": f"{kind}; charset=utf-8"}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: a token in a log is a token given away."""

    return Handler
