"""Sockets that try first, and ask the system to wait only where there is something to wait for."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

GATHERED_BYTES = 65_536  # what is larger leaves at once

T = TypeVar("T")


class EagerSocket(socket.socket):
    """Takes a connected stream socket over, with its time limit, which then means the same.

    Python's own ask the system before each operation whether it would block, and tell it of each
    new time limit: calls during which other threads take the interpreter's lock, to be waited for.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._limit = sock.gettimeout()  # seconds; None for no limit
        self._gathered: list[bytes] | None = None
        self._name: Any = None
        kind = (sock.family, sock.type, sock.proto)
        super().__init__(*kind, fileno=sock.detach())
        super().setblocking(False)

    def gettimeout(self) -> float | None:
        return self._limit

    def settimeout(self, value: float | None) -> None:
        self._limit = value

    def setblocking(self, flag: bool) -> None:
        self._limit = None if flag else 0.0

    def getsockname(self) -> Any:
        """The address on this side, which stays as it is."""
        if self._name is None:
            self._name = super().getsockname()
        return self._name

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        return self._patiently(select.POLLIN, super().recv, bufsize, flags)

    def recv_into(self, *args: Any) -> int:
        return self._patiently(select.POLLIN, super().recv_into, *args)

    def send(self, *args: Any) -> int:
        return self._patiently(select.POLLOUT, super().send, *args)

    def sendall(self, data: Any, flags: int = 0) -> None:
        """All of `data` within the time limit, which is one for the whole."""
        if self._gathered is None:
            self._send_all(data, flags)
        elif len(data) < GATHERED_BYTES:
            self._gathered.append(data)
        else:
            self._flush(data)

    def sendfile(self, *args: Any, **kwargs: Any) -> int:
        self._flush()
        return super().sendfile(*args, **kwargs)

    @contextlib.contextmanager
    def gathering(self) -> Iterator[None]:
        """What `sendall` gets inside the block leaves at its end, in one piece.

        A block that raises sends nothing more.
        """
        self._gathered = []
        try:
            yield
            self._flush()
        finally:
            self._gathered = None

    def _flush(self, *more: bytes) -> None:
        if self._gathered is not None:
            parts, self._gathered = [*self._gathered, *more], []
            if parts:
                self._send_all(b"".join(parts), 0)

    def _send_all(self, data: Any, flags: int) -> None:
        by = self._by()
        left = memoryview(data).cast("B")
        while left:
            try:
                left = left[super().send(left, flags) :]
            except BlockingIOError:
                self._wait(select.POLLOUT, by)

    def _patiently(self, event: int, operation: Callable[..., T], *args: Any) -> T:
        by = self._by()
        while True:
            try:
                return operation(*args)
            except BlockingIOError:
                self._wait(event, by)

    def _by(self) -> float | None:
        """When the time is over, on the monotonic clock; None for never."""
        return None if self._limit is None else time.monotonic() + self._limit

    def _wait(self, event: int, by: float | None) -> None:
        """Raises `BlockingIOError` where there is no time to wait, else `TimeoutError`."""
        if self._limit == 0.0:
            raise BlockingIOError("it would block")
        poller = select.poll()
        poller.register(self, event)
        if not poller.poll(None if by is None else max(0.0, by - time.monotonic()) * 1000):
            raise TimeoutError("timed out")
