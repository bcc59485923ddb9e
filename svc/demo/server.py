"""HTTP/1.1 over loopback sockets: one thread a connection, and as little parsing as it takes.

The `http.server` of the standard library parses headers as e-mail, which would take more time
than the model itself.
"""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

from svc.demo.chat import ChatError, complete, models

# The longest request line or header.
LINE_BYTES = 16_384

# The most headers that a request may have.
HEADERS = 100

# Eight images of 5 MB fit, in base64.
BODY_BYTES = 64 * 2**20

# How long and how often data is read from a refused caller.
DRAIN_SECONDS, DRAIN_READS = 1.0, 64

# The longest wait for one thread to end.
STOP_SECONDS = 5.0

# The listening thread checks at this interval whether to stop.
POLL_SECONDS = 0.05

ROUTES = {"/v1/chat/completions": ("POST", complete), "/v1/models": ("GET", models)}


class DemoServer:
    """The demonstration model as an OpenAI-compatible server; also a context manager.

    `port` 0 takes a free one. The address is bound at once, and an `OSError` says why it cannot be.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._listener = _Listener((host, port), _Connection)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The base URL, the part before `/chat/completions`."""
        host, port = self._listener.server_address[:2]
        return f"http://{host!s}:{port}/v1"

    def start(self) -> None:
        """Begin to answer; returns at once."""
        self._thread = threading.Thread(
            target=self._listener.serve_forever,
            args=(POLL_SECONDS,),
            name="demo",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop listening, close every connection and end its thread; may be called again."""
        if self._thread is not None:
            self._listener.shutdown()
            self._thread.join(STOP_SECONDS)
            self._thread = None
        self._listener.server_close()
        self._listener.close_connections()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class _Listener(socketserver.TCPServer):
    """Accepts connections and knows the ones that are open, so that they can be ended."""

    allow_reuse_address = True
    request_queue_size = 1_024

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._open: dict[threading.Thread, socket.socket] = {}

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(target=self._serve, args=(request, client_address), daemon=True)
        self._open[thread] = request
        thread.start()

    def _serve(self, request: Any, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        finally:
            self.shutdown_request(request)
            self._open.pop(threading.current_thread(), None)

    def close_connections(self) -> None:
        # Threads that end meanwhile take their connections out.
        for thread in list(self._open):
            connection = self._open.get(thread)
            if connection is not None:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            thread.join(STOP_SECONDS)


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    body: bytes
    keep_alive: bool


class _BadRequest(Exception):
    """A request that cannot be read; the connection ends with this status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Connection(socketserver.StreamRequestHandler):
    """One connection: requests are read and answered until either side closes it."""

    disable_nagle_algorithm = True

    def handle(self) -> None:
        # An error here means that the caller went away.
        with suppress(OSError):
            while self._exchange():
                pass

    def _exchange(self) -> bool:
        """Answer one request; False when the connection ends with it."""
        try:
            request = self._read()
        except _BadRequest as refused:
            self._send(refused.status, ChatError(str(refused)).body(), keep_alive=False)
            self._drain()
            return False
        if request is None:
            return False
        status, body, allow = _answer(request)
        self._send(status, body, request.keep_alive, allow, request.method != "HEAD")
        return request.keep_alive

    def _drain(self) -> None:
        """Read what is still on its way, because closing on unread bytes would reset the reply."""
        self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(DRAIN_SECONDS)
        for _ in range(DRAIN_READS):
            if not self.connection.recv(LINE_BYTES):
                return

    def _read(self) -> _Request | None:
        """The next request, None when there is no further one. Raises `_BadRequest`."""
        line = self.rfile.readline(LINE_BYTES)
        if not line:
            return None
        if not line.endswith(b"\n"):
            raise _BadRequest(414, f"a request line of over {LINE_BYTES} bytes")
        parts = line.decode("latin-1").split()
        if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
            raise _BadRequest(400, "not an HTTP/1.1 request")
        headers = self._read_headers()
        body = self._read_body(headers)
        if body is None:
            return None
        closes = parts[2] == "HTTP/1.0" or headers.get(b"connection", b"").lower() == b"close"
        return _Request(parts[0], parts[1].partition("?")[0], body, not closes)

    def _read_headers(self) -> dict[bytes, bytes]:
        headers: dict[bytes, bytes] = {}
        for _ in range(HEADERS):
            line = self.rfile.readline(LINE_BYTES)
            if line in (b"\r\n", b"\n"):
                return headers
            if not line.endswith(b"\n"):
                raise _BadRequest(431, f"a header of over {LINE_BYTES} bytes, or cut off")
            name, _colon, value = line.partition(b":")
            headers[name.lower()] = value.strip()
        raise _BadRequest(431, f"over {HEADERS} headers")

    def _read_body(self, headers: dict[bytes, bytes]) -> bytes | None:
        """The whole body, None when the caller went away before its end."""
        if b"transfer-encoding" in headers:
            raise _BadRequest(411, "send a Content-Length")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit():
            raise _BadRequest(400, "Content-Length is not a whole number")
        if len(length) > len(str(BODY_BYTES)) or int(length) > BODY_BYTES:
            raise _BadRequest(413, f"the body is over {BODY_BYTES} bytes")
        if b"expect" in headers:
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = self.rfile.read(int(length))
        return body if len(body) == int(length) else None

    def _send(
        self,
        status: int,
        body: dict[str, Any],
        keep_alive: bool,
        allow: str = "",
        with_body: bool = True,
    ) -> None:
        data = json.dumps(body).encode()
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
            f"{allow}Connection: {'keep-alive' if keep_alive else 'close'}\r\n\r\n"
        )
        self.wfile.write(head.encode() + (data if with_body else b""))


def _answer(request: _Request) -> tuple[int, dict[str, Any], str]:
    """Status, body and, where the method is wrong, the header that names the right one."""
    method, handler = ROUTES.get(request.path, ("", None))
    if handler is None:
        return 404, ChatError(f"no such route: {request.path[:200]}").body(), ""
    if request.method != method:
        return 405, ChatError(f"this route takes only {method}").body(), f"Allow: {method}\r\n"
    try:
        return 200, handler(request.body), ""
    except ChatError as error:
        return error.status, error.body(), ""
