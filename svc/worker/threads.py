"""The worker: one thread polls every connection, and the others each answer one request.

Gunicorn gives a thread to a connection when its first byte comes. Here it gets one when the head
of a request is complete; before that, between requests, and while it is being closed, it costs a
file and nothing else. Threads that wait for a body, or for a caller to take in its response, give
way when all are taken.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import select
import socket
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from http import HTTPStatus
from selectors import EVENT_READ
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException
from gunicorn.workers.gthread import _DEFER, ThreadWorker

from svc.errors import ApiError, InternalError, InvalidJson, TooLarge
from svc.forks import let_signals_through
from svc.logs import FIELDS
from svc.web.hooks import ARRIVED, REQUEST_ID, SECURITY_HEADERS
from svc.worker.files import room_for
from svc.worker.reading import BodyReader, CallerReader

log = logging.getLogger(__name__)

HEAD_S = 10.0  # seconds for a head, from the connection's or the head's first byte
SOON_MS = 10  # milliseconds that a thread waits for the next request of its connection
OTHERS_MS = 10  # milliseconds that workers with fewer connections have to take a new one
LINGER_S = 2.0  # seconds for a caller to close after us
PATIENCE_S = 1.0  # seconds for a body or to take in a response, when all threads are taken
PAUSE_S = 1.0  # seconds without accepting, when there is no file for a connection
TELL_EVERY_S = 60.0  # seconds between two log lines about it
NO_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Worker(ThreadWorker):  # type: ignore[misc]
    """Gunicorn's threads behind a poller that reads heads."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lingering: deque[Any] = deque()  # connections that wait for the caller to close
        self._readers: dict[socket.socket, CallerReader] = {}  # of the requests with a thread
        self._requests = 0  # that have a thread or wait for one
        self._no_files = False
        self._accept_at = self._look_at = self._tell_at = 0.0  # on the monotonic clock

    def init_process(self) -> None:
        """In the new process, before the application is built."""
        self.worker_connections = room_for(self.cfg.worker_connections)
        self.max_keepalived = max(1, self.worker_connections - self.cfg.threads)
        super().init_process()

    def init_signals(self) -> None:
        """Listen to signals, and let those through that came before."""
        super().init_signals()
        let_signals_through()

    def load_wsgi(self) -> None:
        """Build the application, with `_answer` around it."""
        super().load_wsgi()
        self._loads = self.wsgi.extensions["svc"].shared.loads
        self.wsgi.wsgi_app = partial(self._answer, self.wsgi.wsgi_app)

    def set_accept_enabled(self, enabled: bool) -> None:
        """Stopping, refuse connections at once: nobody would answer those left in the queue."""
        if enabled and time.monotonic() < self._accept_at:
            return
        super().set_accept_enabled(enabled)
        if not self.alive:
            for listener in self.sockets:
                listener.close()

    def accept(self, listener: socket.socket) -> None:
        """Accept a connection; without a file for it, it stays in the queue."""
        if self._another_takes(listener):
            return
        try:
            super().accept(listener)
        except OSError as error:
            if error.errno not in NO_FILES:
                raise
            self._no_files = True
            if (now := time.monotonic()) >= self._tell_at:
                self._tell_at = now + TELL_EVERY_S
                log.error("no file for a new connection: %s", errno.errorcode[error.errno])

    def _another_takes(self, listener: socket.socket) -> bool:
        """Leave the connection that waits to a worker with fewer, which has a moment to take it.

        Every worker hears of it; the first to come would often be the same one.
        """
        poller = select.poll()
        poller.register(listener, select.POLLIN)
        for _ in range(OTHERS_MS):
            least = self._loads.least_of_others()
            if least is None or least >= self.nr_conns:
                return False
            time.sleep(0.001)
            if not poller.poll(0):
                return True
        return False

    def enqueue_req(self, conn: Any) -> None:
        """Let a thread handle a connection of which there is something to read."""
        self._requests += 1
        conn.arrived = time.monotonic()
        super().enqueue_req(conn)

    def handle(self, conn: Any) -> object:
        """In a thread: answer one request, or say that its head is not there yet."""
        if not conn.initialized:
            conn.init()
            conn.parser.unreader = CallerReader(conn.sock)
        if not conn.parser.unreader.take_head():
            return _DEFER
        again = super().handle(conn)
        while again and self._next_is_here(conn):
            again = super().handle(conn)
        return again

    def _next_is_here(self, conn: Any) -> bool:
        """Whether the next request comes so soon that its thread need not be given back."""
        if not self.alive or self._requests > self.cfg.threads // 2:
            return False
        poller = select.poll()
        poller.register(conn.sock, select.POLLIN)
        if not poller.poll(SOON_MS) or not conn.parser.unreader.take_head():
            return False
        conn.arrived = time.monotonic()
        return True

    def handle_request(self, req: Any, conn: Any) -> bool:
        """In a thread: have the application answer; whether the connection can go on."""
        reader: CallerReader = conn.parser.unreader
        req.body.reader = BodyReader(req.body.reader)
        reader.begin_body()
        reader.arrived = conn.arrived
        self._readers[conn.sock] = reader
        try:
            again = bool(super().handle_request(req, conn))
            reader.drain(req.body)
        except TimeoutError as error:
            raise ConnectionResetError(errno.ECONNRESET, "the caller is too slow") from error
        finally:
            del self._readers[conn.sock]
        return again

    def _answer(
        self,
        application: WSGIApplication,
        environ: WSGIEnvironment,
        start_response: StartResponse,
    ) -> Iterable[bytes]:
        """In a thread: the application's response; making it is not the caller's slowness."""
        reader = self._readers[environ["gunicorn.socket"]]
        environ[ARRIVED] = reader.arrived
        with reader.answering():
            return application(environ, start_response)

    def finish_request(self, conn: Any, future: Future[object]) -> None:
        """In the polling thread again: wait for the head, the next request, or the end."""
        self._requests -= 1
        if future.cancelled() or future.exception() or not (outcome := future.result()):
            self._linger(conn)
        elif outcome is _DEFER:
            wait_s = HEAD_S if self.alive else LINGER_S
            self._wait(conn, self.pending_conns, wait_s, self.on_pending_socket_readable)
        else:
            super().finish_request(conn, future)

    def on_pending_socket_readable(self, conn: Any, client: socket.socket) -> None:
        """More of a head has come."""
        if conn.parser.unreader.take_head():
            super().on_pending_socket_readable(conn, client)

    def murder_pending(self) -> None:
        """After each turn of the loop: end what took too long, or whose place others need."""
        super().murder_pending()
        self._loads.tell(self.nr_conns)
        now = time.monotonic()
        while self._lingering and self._lingering[0].timeout <= now:
            self._drop(self._lingering.popleft())
        if self._no_files and not self._make_room():
            self._accept_at = now + PAUSE_S
            self.set_accept_enabled(False)
        self._no_files = False
        while self.nr_conns >= self.worker_connections and self._make_room():
            pass
        excess = self._requests - self.cfg.threads
        if excess > 0 and now >= self._look_at:
            patience_s = PATIENCE_S / (1 + excess / self.cfg.threads)
            self._look_at = now + patience_s / 4
            self._free_threads(excess, patience_s)

    def handle_error(self, req: object, client: socket.socket, addr: object, exc: object) -> None:
        """Answer a request that never reached the application as the application would."""
        error = _refusal(exc)
        request_id = uuid.uuid4().hex
        fields = {"status": error.status, "error": type(exc).__name__, "request_id": request_id}
        log.warning("no valid HTTP request", extra={FIELDS: fields})
        self.wsgi.extensions["svc"].metrics.responded(error.status)
        client.settimeout(PATIENCE_S)  # it is short: who does not take it in does not read
        try:
            client.sendall(_response(error, request_id))
        except OSError:
            log.debug("the caller went away")

    def _cap_keepalive(self, deadline: float) -> None:
        """Stopping, wait for heads as shortly as for further requests."""
        super()._cap_keepalive(deadline)
        for conn in self.pending_conns:
            conn.timeout = min(conn.timeout, deadline)

    def _wait(
        self,
        conn: Any,
        room: deque[Any],
        seconds: float,
        callback: Callable[[Any, socket.socket], None],
    ) -> None:
        """Have the poller look after a connection; those in one `room` wait equally long."""
        conn.sock.setblocking(False)
        conn.timeout = time.monotonic() + seconds
        room.append(conn)
        self.poller.register(conn.sock, EVENT_READ, partial(callback, conn))

    def _linger(self, conn: Any) -> None:
        """Wait for the caller to close: closing on unread bytes would reset the last response.

        RFC 9112, section 9.6.
        """
        try:
            conn.sock.shutdown(socket.SHUT_WR)
            self._wait(conn, self._lingering, LINGER_S, self._on_lingering_readable)
        except (OSError, ValueError):  # it is closed already
            self._drop(conn)

    def _on_lingering_readable(self, conn: Any, client: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            try:
                data = client.recv(65_536)
            except ConnectionError:
                data = b""
            if not data:
                self._lingering.remove(conn)
                self._drop(conn)

    def _make_room(self) -> bool:
        """Close who has waited longest with nothing to answer; False when nobody has."""
        for room in (self._lingering, self.pending_conns, self.keepalived_conns):
            if room:
                self._drop(room.popleft())
                return True
        return False

    def _drop(self, conn: Any) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self.poller.unregister(conn.sock)
        self.nr_conns -= 1
        conn.close()

    def _free_threads(self, wanted: int, patience_s: float) -> None:
        """Take up to `wanted` threads from the callers that have been waited for longest."""
        waited = {reader: reader.waited() for reader in list(self._readers.values())}
        slow = [reader for reader in waited if waited[reader] > patience_s]
        for reader in sorted(slow, key=waited.__getitem__, reverse=True)[:wanted]:
            reader.cut()


def _refusal(exc: object) -> ApiError:
    if isinstance(exc, LimitRequestLine | LimitRequestHeaders):
        return TooLarge("the request line or the headers are too long")
    if isinstance(exc, ParseException):
        return InvalidJson("this is no valid HTTP request")
    return InternalError("something failed on the server; its log has the request id")


def _response(error: ApiError, request_id: str) -> bytes:
    """The whole of a response that gunicorn has no part in."""
    body = json.dumps({"error": {"type": error.type, "message": error.message}})
    headers = {
        "Connection": "close",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        REQUEST_ID: request_id,
        **SECURITY_HEADERS,
    }
    lines = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", body]).encode()
