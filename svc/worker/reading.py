"""What callers send: heads as they come, bodies within limits of time."""

from __future__ import annotations

import contextlib
import io
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from gunicorn.http.errors import LimitRequestHeaders, NoMoreData, ParseException
from gunicorn.http.unreader import SocketUnreader

from svc import limits

HEAD_BYTES = 32_768  # largest head of a request
STALL_S = 10.0  # seconds without a byte moving, after which a caller in mid-request is dropped
BODY_S = 20.0  # seconds for a body, and one more for each BODY_RATE bytes that have come
BODY_RATE = 1_000  # bytes
SEND_S = 60.0  # seconds for a caller to take in one response
READ_BYTES, DRAIN_READS = 65_536, 1_024  # 64 MiB at most are taken in from a refused caller
DRAIN_S = 10.0  # seconds for it
_END = re.compile(
    rb"\r?\n\r?\n"
)  # of a head; gunicorn refuses bare line feeds, but it has to see them


class CallerReader(SocketUnreader):  # type: ignore[misc]
    """The bytes of one connection; gunicorn's parser reads from it."""

    def __init__(self, sock: socket.socket, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(sock)
        self._clock = clock
        self.arrived = 0.0  # the request, on the monotonic clock
        self._in_head, self._ended = True, False
        self._began = self._by = self._last = 0.0  # of the body, on the clock
        self._waiting = self._cut = False
        self._sends_since: float | None = None  # on the clock; None while it sends nothing
        self._lock = threading.Lock()  # for `_sends_since`, and what is decided by it

    def take_head(self) -> bool:
        """Take in what has come of a head, without waiting; whether the parser can judge it.

        It can when the head is complete, and when it is too long or will never be complete.
        """
        self._in_head = True
        if self._is_judgeable():
            return True
        self.sock.setblocking(False)
        try:
            data = self.sock.recv(HEAD_BYTES)
        except BlockingIOError:
            return False
        except OSError:  # the caller is gone
            data = b""
        self._ended = not data
        self.buf.seek(0, io.SEEK_END)
        self.buf.write(data)
        return self._ended or self._is_judgeable()

    def _is_judgeable(self) -> bool:
        head = self.buf.getvalue()
        return len(head) > HEAD_BYTES or _END.search(head) is not None

    def begin_body(self) -> None:
        """From now on it is a body that is read, and a response that is sent."""
        self._in_head = False
        self._began = self._clock()
        self._by = self._began + BODY_S
        self._last = self._began + limits.REQUEST_DEADLINE_S
        self._send(True)
        self.sock.settimeout(SEND_S)

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Inside the block the response is made; before and after it, all that is done is sent."""
        self._send(False)
        try:
            yield
        finally:
            self._send(True)

    def _send(self, sends: bool) -> None:
        with self._lock:
            self._sends_since = self._clock() if sends else None

    def chunk(self, size_hint: int | None = None) -> bytes:
        """The next bytes, b"" after the last; gunicorn's parser and body call it.

        Raises `TimeoutError` when they do not come in time.
        """
        if self._in_head:  # the parser wants more than `take_head` let it judge by
            raise NoMoreData() if self._ended else LimitRequestHeaders("the head is too long")
        left = min(self._by, self._last) - self._clock()
        if left <= 0 or self._cut:
            raise TimeoutError("the body takes too long")
        self.sock.settimeout(min(left, STALL_S))
        self._waiting = True
        try:
            data: bytes = super().chunk(size_hint)
        finally:
            self._waiting = False
            self.sock.settimeout(SEND_S)
        if self._cut:
            raise TimeoutError("the body takes too long, and others wait")
        self._by += len(data) / BODY_RATE
        return data

    def waited(self) -> float:
        """Seconds that a thread has been sending, or waiting for a body since that began; or 0."""
        since = self._began if self._waiting else self._sends_since
        return 0.0 if since is None else self._clock() - since

    def cut(self) -> None:
        """Free the thread: from a body, so that it can still answer, or from a response.

        A thread that makes its response is left alone.
        """
        with self._lock, contextlib.suppress(OSError):  # the caller went away just now
            if self._sends_since is not None:
                self.sock.shutdown(socket.SHUT_RDWR)
            elif self._waiting:
                self._cut = True
                self.sock.shutdown(socket.SHUT_RD)

    def drain(self, body: Any) -> None:
        """The response is sent: take in what a refused caller still sends.

        Closing on it would reset the response.
        """
        self._send(False)
        self._last = min(self._last, self._clock() + DRAIN_S)
        with contextlib.suppress(OSError):  # the caller went away, or takes too long
            for _ in range(DRAIN_READS):
                if not body.read(READ_BYTES):
                    return


class BodyReader:
    """A body whose broken chunks are a connection that broke, which the application knows."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def read(self, size: int) -> bytes:
        """At most `size` bytes. Raises `OSError`."""
        try:
            data: bytes = self._reader.read(size)
        except ParseException as error:
            raise ConnectionAbortedError("the body's chunks are malformed") from error
        return data
