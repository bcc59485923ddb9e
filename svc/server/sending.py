"""Sends responses: the head together with the body, and without a poll before each operation."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

from svc import limits

# The time for a caller to take in one response.
SEND_S = 60.0

# A response of more bytes than these leaves in several pieces.
GATHERED_BYTES = 65_536


class Waiting:
    """The bytes of responses that wait for callers to take them in, over the whole process.

    Where they are more than `most_bytes`, the connection is shut whose caller has taken in nothing
    for longest.
    """

    def __init__(self, most_bytes: int = limits.WAITING_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._total = 0
        # What waits for each connection, and first for the one that took nothing in for longest.
        self._left: dict[socket.socket, int] = {}

    def note(self, sock: socket.socket, left: int) -> None:
        """From now on so many bytes wait for `sock`, which took something in; 0 for none."""
        with self._lock:
            self._total += left - self._left.pop(sock, 0)
            if left:
                self._left[sock] = left
            while self._total > self._most_bytes and len(self._left) > 1:
                self._cut()

    def _cut(self) -> None:
        """Shut the slowest one; its thread notices, and lets go of the response."""
        sock = next(iter(self._left))
        self._total -= self._left.pop(sock)
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


class ResponseSocket(socket.socket):
    """Takes a connected stream socket over, and sends each response in one piece.

    Every system call releases the interpreter's lock, and then has to wait for it. To send head and
    body one after the other, each after a poll, takes four such calls where one is enough. To the
    system this socket is non-blocking: a time limit is only noted here, and set on the socket while
    an operation has to wait.
    """

    def __init__(self, sock: socket.socket, waiting: Waiting | None = None) -> None:
        """`waiting` counts what callers do not take in at once; None for a count of its own."""
        kind = (sock.family, sock.type, sock.proto)
        self._timeout_s = sock.gettimeout()
        super().__init__(*kind, fileno=sock.detach())
        super().setblocking(False)
        # It stays the same as long as the socket is connected.
        self._name = super().getsockname()
        self._gathered: bytearray | None = None
        # Whether what is gathered leaves later, and a response that does.
        self._holds, self._held = False, bytearray()
        self._limit_s = 0.0
        self._waiting = waiting or Waiting()

    def gettimeout(self) -> float | None:
        """The time limit of each operation in seconds: 0 to wait for nothing, None for none."""
        return self._timeout_s

    def settimeout(self, value: float | None) -> None:
        """Set the time limit of each operation."""
        self._timeout_s = value

    def setblocking(self, flag: bool) -> None:
        """Wait without a limit, or for nothing."""
        self._timeout_s = None if flag else 0.0

    def getsockname(self) -> Any:
        """The address of this end."""
        return self._name

    def recv(self, size: int, flags: int = 0) -> bytes:
        """What has come, at most `size` bytes."""
        try:
            return super().recv(size, flags)
        except BlockingIOError:
            if self._timeout_s == 0:
                raise
        with self._with_time_limit():
            return super().recv(size, flags)

    def send(self, data: Any, flags: int = 0) -> int:
        """How many bytes of `data` the system took."""
        try:
            return super().send(data, flags)
        except BlockingIOError:
            if self._timeout_s == 0:
                raise
        with self._with_time_limit():
            return super().send(data, flags)

    @contextlib.contextmanager
    def _with_time_limit(self) -> Iterator[None]:
        """Inside the block the time limit is set on the socket."""
        super().settimeout(self._timeout_s)
        try:
            yield
        finally:
            super().setblocking(False)

    @contextlib.contextmanager
    def gathering(self, limit_s: float) -> Iterator[None]:
        """What `sendall` gets inside the block leaves at its end, in one piece or a few large ones.

        Each piece has to be taken in `limit_s` seconds. A block that raises sends nothing more. Of
        one that calls `hold` the last piece stays here.
        """
        self._gathered, self._limit_s, self._holds = bytearray(), limit_s, False
        try:
            yield
            if self._holds:
                self._held = self._gathered
            else:
                self._flush()
        finally:
            self._gathered = None

    def hold(self) -> None:
        """Have what is gathered wait for `let_go`, in place of leaving with the block's end."""
        self._holds = True

    def hold_whole(self, data: bytes) -> None:
        """Have a response, all of which this is, wait for `let_go`."""
        self._held = bytearray(data)

    @property
    def is_held(self) -> bool:
        """Whether a response waits for `let_go`."""
        return bool(self._held)

    def let_go(self) -> bool:
        """Send what was held, without waiting; whether the system took all of it."""
        data, self._held = self._held, bytearray()
        try:
            return super().send(data) == len(data)
        except OSError:
            return False

    def sendall(self, data: Any, flags: int = 0) -> None:
        """All of `data`: within the time limit, or with the rest of what is gathered."""
        if self._gathered is None:
            with self._with_time_limit():
                super().sendall(data, flags)
            return
        if len(data) > GATHERED_BYTES:
            # It is large, and not copied.
            self._flush()
            self._send(data)
            return
        self._gathered += data
        if len(self._gathered) > GATHERED_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Send what is gathered, if anything."""
        if self._gathered:
            data, self._gathered = self._gathered, bytearray()
            self._send(data)

    def _send(self, data: bytes | bytearray) -> None:
        """Send what the system takes at once; the rest, if any, within the time limit."""
        sent = 0
        self.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            sent = self.send(data)
        if sent < len(data):
            self._send_rest(memoryview(data)[sent:])

    def _send_rest(self, rest: memoryview) -> None:
        due_at = time.monotonic() + self._limit_s
        try:
            while rest:
                self._waiting.note(self, len(rest))
                self.settimeout(max(0.001, due_at - time.monotonic()))
                rest = rest[self.send(rest) :]
        finally:
            self._waiting.note(self, 0)
