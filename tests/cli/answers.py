"""A server that gives the answers of a script, one for each request of any method."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.scripted import Reply


class Asked(NamedTuple):
    """What a request was."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Answers:
    """A context manager; the last answer goes on."""

    def __init__(self, *replies: Reply) -> None:
        self.asked: list[Asked] = []
        script = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                reply = replies[min(len(script.asked), len(replies) - 1)]
                headers = {name.lower(): value for name, value in self.headers.items()}
                script.asked.append(Asked(self.command, self.path, headers, body))
                # Said, because a client may else ask on before it sees the connection close.
                head, rest = reply.wire().split(b"\r\n", 1)
                self.wfile.write(head + b"\r\nConnection: close\r\n" + rest)

            do_POST = do_GET

            def log_message(self, *_: Any) -> None:
                """Say nothing on standard error."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
