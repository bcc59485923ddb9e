"""A receiver of hooks, which keeps a journal and answers as a test wants."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from standardwebhooks import Webhook


class Received(NamedTuple):
    """A request: its path, its headers in lower case, and its body."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def event(self) -> Any:
        return json.loads(self.body)

    def verified(self, secret: str) -> Any:
        """The event, once the official library has found its signature to be right."""
        return Webhook(secret).verify(self.body, self.headers)


# Answers a request that is in the journal already: a status, or what writes to the connection.
Answer = Callable[[Received, int, BaseHTTPRequestHandler], int | None]


def taken(received: Received, n: int, handler: BaseHTTPRequestHandler) -> int | None:
    return 204


class Receiver:
    """A context manager: a server on loopback, at `url` inside the block."""

    def __init__(self, answer: Answer = taken, tls: Path | None = None) -> None:
        self.journal: list[Received] = []
        self.over = threading.Event()
        self._lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                body = self.rfile.read(length)
                if len(body) < length:
                    # The sender was killed before it had sent all of it.
                    return
                headers = {name.lower(): value for name, value in self.headers.items()}
                received = Received(self.path, headers, body)
                with receiver._lock:
                    receiver.journal.append(received)
                    n = len(receiver.journal)
                with contextlib.suppress(OSError):
                    status = answer(received, n, self)
                    if status is not None:
                        self.send_response(status)
                        self.send_header("Content-Length", "0")
                        self.end_headers()

            def log_message(self, *_: object) -> None:
                """Into no log."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        scheme = "http"
        if tls is not None:
            scheme = "https"
            self._wrap(tls)
        self.port = self._server.server_address[1]
        self.url = f"{scheme}://127.0.0.1:{self.port}/hooks?token=rosebud"

    def _wrap(self, certificate: Path) -> None:
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
