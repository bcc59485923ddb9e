"""What callers send: heads as they come, bodies within limits of time."""

from __future__ import annotations

import contextlib
import errno
import io
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from gunicorn.http.body import ChunkedReader
from gunicorn.http.errors import LimitRequestHeaders, NoMoreData, ParseException
from gunicorn.http.unreader import SocketUnreader

from svc import limits

# The largest head of a request, and its most lines: gunicorn takes every line apart before it
# counts those that it allows, which are 100.
HEAD_BYTES = 32_768
HEAD_LINES = 110

# A caller in mid-request is dropped when no byte moves for so long.
STALL_S = 10.0

# The seconds for a body to come, and how many bytes of it earn it one more second.
BODY_S = 20.0
BODY_BYTES_PER_S = 1_000

# The most small chunks of a body: each costs as much processor time as a kilobyte of a large one. A
# chunk of `PIECE_BYTES` or more does not count, and a smaller one counts by the part that it lacks.
BODY_PIECES = 4_096
PIECE_BYTES = 256

# Bytes of a body that come in pieces of less than `PIECE_BYTES`, each of which costs a thread as
# much as many kilobytes at once: so many pieces are read as they come, counted as above, and each
# further one after a pause in which more can come.
PIECES_AT_ONCE = 128
PIECE_PAUSE_S = 0.05

# What may stand around the chunks of a body: their sizes and extensions, and the trailers. It is so
# many bytes, and one more for each so many of the chunks themselves.
FRAMING_BYTES = 65_536
BYTES_PER_FRAMING = 16

# What a thread still reads of a body once its request is answered: so many bytes at a time, so many
# times, at most so many small chunks, and for so many seconds. The polling thread drops what comes
# then.
REST_READ_BYTES = 65_536
REST_READS = 3
REST_PIECES = 16
REST_S = 0.02

# The ends of a head. Gunicorn refuses bare line feeds, but it has to see them to do so.
_HEAD_ENDS = (b"\n\r\n", b"\n\n")
_LONGEST_END = 3


class CallerReader(SocketUnreader):  # type: ignore[misc]
    """The bytes of one connection; gunicorn's parser reads from it."""

    def __init__(
        self,
        sock: socket.socket,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(sock)
        self._clock, self._sleep = clock, sleep
        # When the request's head had come, on the monotonic clock.
        self.arrived = 0.0
        self._in_head, self._ended = True, False
        # How many bytes were already searched for the end of the head.
        self._looked_through = 0
        # Times of the body on the clock. Bytes that come move `_due_at`, which never counts past
        # `_last_due_at`. It is None until the first bytes are wanted, because bodies take turns.
        self._began_at = self._last_due_at = 0.0
        self._due_at: float | None = None
        self._waits_for_body = self._body_is_cut = False
        self._pieces_left = float(PIECES_AT_ONCE)
        # How many more bytes may come around the chunks of this body.
        self.framing_left = math.inf
        # On the clock; None while nothing is sent. The lock keeps it unchanged while `cut` acts.
        self._sending_since: float | None = None
        self._lock = threading.Lock()

    def take_head(self) -> bool:
        """Take in what has come of a head, without waiting; whether the parser can judge it.

        It can when the head is complete, and when it is too long or will never be complete.
        """
        if not self._in_head:
            self._in_head, self._looked_through = True, 0
        if self._is_judgeable():
            return True
        size = self.buf.seek(0, io.SEEK_END)
        self.sock.setblocking(False)
        try:
            data = self.sock.recv(HEAD_BYTES + 1 - size)
        except BlockingIOError:
            return False
        except OSError:
            # The caller is gone.
            data = b""
        self._ended = not data
        self.buf.write(data)
        return self._ended or self._is_judgeable()

    def _is_judgeable(self) -> bool:
        size: int = self.buf.seek(0, io.SEEK_END)
        # An end may have begun in what was looked through.
        begin = max(0, self._looked_through - _LONGEST_END)
        self.buf.seek(begin)
        new = self.buf.read()
        ends = [at for at in map(new.find, _HEAD_ENDS) if at >= 0]
        if not ends:
            self._looked_through = size
            return size > HEAD_BYTES
        # What follows may be further requests.
        if self.buf.getvalue().count(b"\n", 0, begin + min(ends)) > HEAD_LINES:
            # With nothing to take apart the parser asks for more, which `chunk` refuses.
            self.buf.seek(0)
            self.buf.truncate()
            self._ended = False
        return True

    @property
    def gave_nothing(self) -> bool:
        """Whether the caller has ended its side without a further request."""
        return self._in_head and self._ended

    def begin_body(self) -> None:
        """From now on it is a body that is read, and a response that is sent."""
        self._in_head = False
        self._due_at, self.framing_left = None, math.inf
        self._pieces_left = PIECES_AT_ONCE
        self._last_due_at = self._clock() + limits.REQUEST_DEADLINE_S
        self._set_sending(True)

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Inside the block the response is made; before and after it, all that is done is sent."""
        self._set_sending(False)
        try:
            yield
        finally:
            self._set_sending(True)

    def _set_sending(self, sends: bool) -> None:
        with self._lock:
            self._sending_since = self._clock() if sends else None

    def chunk(self, size_hint: int | None = None) -> bytes:
        """The next bytes, b"" after the last; gunicorn's parser and body call it.

        Raises `TimeoutError` when they do not come in time, and `OSError` when there is too much
        around the chunks of a body.
        """
        if self._in_head:
            # The parser wants more than `take_head` let it judge by.
            raise NoMoreData() if self._ended else LimitRequestHeaders("the head is too long")
        if self.framing_left < 0:
            raise OSError(errno.EMSGSIZE, "the body has too much around its chunks")
        if self._due_at is None:
            self._began_at = self._clock()
            self._due_at = self._began_at + BODY_S
        left = min(self._due_at, self._last_due_at) - self._clock()
        if left <= 0 or self._body_is_cut:
            raise TimeoutError("the body takes too long")
        self.sock.settimeout(min(left, STALL_S))
        self._waits_for_body = True
        try:
            if self._pieces_left < 0:
                self._sleep(min(left, PIECE_PAUSE_S))
            data: bytes = super().chunk(size_hint)
        finally:
            self._waits_for_body = False
        if self._body_is_cut:
            raise TimeoutError("the body takes too long, and others wait")
        self._due_at += len(data) / BODY_BYTES_PER_S
        self._pieces_left -= _lack(data)
        # What of it are chunks is added again when they are taken out.
        self.framing_left -= len(data)
        return data

    def waited(self) -> float:
        """Seconds that a thread has been sending, or waiting for a body since that began; or 0."""
        since = self._began_at if self._waits_for_body else self._sending_since
        return 0.0 if since is None else self._clock() - since

    def cut(self) -> None:
        """Free the thread: from a body, so that it can still answer, or from a response.

        A thread that makes its response is left alone.
        """
        # The caller may go away just now.
        with self._lock, contextlib.suppress(OSError):
            if self._sending_since is not None:
                self.sock.shutdown(socket.SHUT_RDWR)
            elif self._waits_for_body:
                self._body_is_cut = True
                self.sock.shutdown(socket.SHUT_RD)

    def take_rest(self, body: Any) -> bool:
        """Once the response is made, read what is left of the body; False where more is to come."""
        self._last_due_at = min(self._last_due_at, self._clock() + REST_S)
        try:
            return any(not body.read(REST_READ_BYTES) for _ in range(REST_READS))
        except OSError:
            # The caller is slow, or has gone away.
            return False


def _lack(piece: bytes) -> float:
    """The part that it lacks of `PIECE_BYTES`, by which a small piece counts."""
    return max(0.0, 1 - len(piece) / PIECE_BYTES)


class BodyReader:
    """A body that reports malformed chunks as a broken connection, as the application expects."""

    def __init__(self, reader: Any, caller: CallerReader) -> None:
        """`reader` is gunicorn's, which reads from the `caller`; its body has begun."""
        self._reader, self._caller = reader, caller
        self._pieces_left = float(BODY_PIECES)
        if isinstance(reader, ChunkedReader):
            caller.framing_left = FRAMING_BYTES
            reader.parser = self._bounded(reader.parser)

    def read(self, size: int) -> bytes:
        """At most `size` bytes. Raises `OSError`."""
        try:
            data: bytes = self._reader.read(size)
        except ParseException as error:
            raise ConnectionAbortedError("the body's chunks are malformed") from error
        return data

    def expect_little(self) -> None:
        """Once the response is made, allow few more chunks: they are thrown away."""
        self._pieces_left = min(self._pieces_left, REST_PIECES)

    def _bounded(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """The chunks. Raises `OSError` where they are too many."""
        for piece in pieces:
            self._pieces_left -= _lack(piece)
            if self._pieces_left < 0:
                raise OSError(errno.EMSGSIZE, "the body comes in too many chunks")
            self._caller.framing_left += len(piece) * (1 + 1 / BYTES_PER_FRAMING)
            yield piece
