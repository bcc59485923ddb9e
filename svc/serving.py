"""How gunicorn serves: its settings, by gunicorn's own names, its hooks, and what is checked first.

`svc serve` and `gunicorn wsgi:app` (by way of gunicorn.conf.py) both read this module.
"""

from __future__ import annotations

import contextlib
import json
import logging
import signal
import socket
import struct
import uuid
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from gunicorn import util
from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, ParseException
from gunicorn.workers.gthread import ThreadWorker

from svc import limits
from svc.addresses import is_loopback
from svc.bootstrap import Shared
from svc.errors import ApiError, InternalError, InvalidJson, SettingsError, TooLarge
from svc.logs import FIELDS
from svc.providers.catalog import build_catalog
from svc.settings import Settings
from svc.store.database import Database
from svc.store.keys import Keys

log = logging.getLogger(__name__)

STALL_S = 10  # seconds without a byte moving, after which a caller in mid-request is dropped
CLOSE_S = 5  # seconds to stop threads and write what is queued, after the shutdown grace

# Settings of gunicorn; https://docs.gunicorn.org/en/stable/settings.html
worker_class = "svc.serving.Worker"
workers = 1
threads = limits.REQUEST_THREADS
worker_connections = 8 * limits.REQUEST_THREADS  # kept-alive ones that are idle count too
keepalive = 75  # seconds; longer than usual clients and proxies keep theirs
timeout = int(limits.REQUEST_DEADLINE_S)  # seconds without a sign of life from the whole worker
graceful_timeout = limits.SHUTDOWN_GRACE_S + CLOSE_S  # seconds, in the master
control_socket_disable = True
logger_class = "svc.serving.Log"
loglevel = "warning"
accesslog = None  # every request has its line in our own log
errorlog = None


shared: Shared | None = None  # what all workers have in common, once there is a master


def on_starting(server: Arbiter) -> None:
    """In the master, before anything else."""
    global shared
    shared = Shared()


def when_ready(server: Arbiter) -> None:
    """In the master, before the first worker: time limits of sockets, and a graceful Ctrl-C.

    Accepted sockets take the limits over from those that listen. A second Ctrl-C is the quick
    stop that gunicorn makes of the first.
    """
    for listener in server.LISTENERS:
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            listener.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", STALL_S, 0))

    def interrupt(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, server.signal)
        server.signal(signal.SIGTERM, frame)

    signal.signal(signal.SIGINT, interrupt)


def post_worker_init(worker: ThreadWorker) -> None:
    """In a worker, when its application is built.

    Ctrl-C reaches every process of the terminal; the worker waits for the master's word. What is
    under way gets the whole grace, so the master has to wait a little longer than the worker.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker.cfg.set("graceful_timeout", limits.SHUTDOWN_GRACE_S)


def worker_exit(server: Arbiter, worker: ThreadWorker) -> None:
    """In a worker that ends: stop the services and write what is queued."""
    app = getattr(worker, "wsgi", None)  # none, when the application could not be built
    if app is not None:
        app.extensions["svc"].close()


class Log(Logger):  # type: ignore[misc]
    """Gunicorn's log as part of ours."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        self.error_log.propagate = True


class Worker(ThreadWorker):  # type: ignore[misc]
    """Gunicorn's threads, with our answers to what is no valid HTTP."""

    def set_accept_enabled(self, enabled: bool) -> None:
        """Stopping, refuse connections at once: nobody would answer those left in the queue."""
        super().set_accept_enabled(enabled)
        if not self.alive:
            for listener in self.sockets:
                listener.close()

    def handle(self, conn: Any) -> object:
        """Wait for a caller to close in this thread: gunicorn would in the one that serves all."""
        again: object = super().handle(conn)
        if again is False:
            with contextlib.suppress(OSError):
                util.close_graceful(conn.sock.dup())
                conn.sock.shutdown(socket.SHUT_RDWR)
        return again

    def handle_request(self, req: Any, conn: Any) -> bool:
        req.body.reader = _Reader(req.body.reader)
        return bool(super().handle_request(req, conn))

    def handle_error(self, req: object, client: socket.socket, addr: object, exc: object) -> None:
        """Answer a request that never reached the application as the application would."""
        error = _refusal(exc)
        request_id = uuid.uuid4().hex
        fields = {"status": error.status, "error": type(exc).__name__, "request_id": request_id}
        log.warning("no valid HTTP request", extra={FIELDS: fields})
        body = json.dumps({"error": {"type": error.type, "message": error.message}}).encode()
        head = (
            f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            f"x-request-id: {request_id}\r\n\r\n"
        )
        try:
            client.sendall(head.encode() + body)
        except OSError:
            log.debug("the caller went away")


class _Reader:
    """A body whose broken chunks are a connection that broke, which the application knows."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def read(self, size: int) -> bytes:
        try:
            data: bytes = self._reader.read(size)
        except ParseException as error:
            raise ConnectionAbortedError("the body's chunks are malformed") from error
        return data


def _refusal(exc: object) -> ApiError:
    if isinstance(exc, LimitRequestLine | LimitRequestHeaders):
        return TooLarge("the request line or the headers are too long")
    if isinstance(exc, ParseException):
        return InvalidJson("this is no valid HTTP request")
    return InternalError("something failed on the server; its log has the request id")


def check(settings: Settings, addresses: Iterable[str]) -> None:
    """Try what a server needs before it starts; `addresses` are the IP addresses it listens on.

    Raises `SettingsError` for a provider or database that cannot be used, and for an address
    that other machines reach while there are no keys.
    """
    build_catalog(settings)
    database = Database.open(settings.db)
    try:
        guarded = settings.no_auth or Keys(database).exist()
    finally:
        database.close()
    public = [address for address in addresses if not is_loopback(address)]
    if public and not guarded:
        raise SettingsError(
            f"{public[0]} can be reached from other machines and there are no API keys; "
            "make one with `svc keys create --name <who>`, or pass --no-auth (SVC_NO_AUTH=1)"
        )
