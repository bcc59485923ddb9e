"""Sockets that try first, and ask the system to wait only where there is something to wait for."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

GATHERED_BYTES = 65_536  # with more than these it leaves before the end

T = TypeVar("T")


class EagerSocket(socket.socket):
    """Takes a connected stream socket over, with its time limit, which then means the same.

    Python's own ask the system before each operation whether it would block, and tell it of each
    new time limit: calls during which other threads take the interpreter's lock, to be waited for.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._limit = sock.gettimeout()  # seconds; None for no limit
        self._gathered: bytearray | None = None
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
        return self._patiently(select.POLLIN, self._by(), super().recv, bufsize, flags)

    def recv_into(self, *args: Any) -> int:
        return self._patiently(select.POLLIN, self._by(), super().recv_into, *args)

    def send(self, *args: Any) -> int:
        return self._patiently(select.POLLOUT, self._by(), super().send, *args)

    def sendall(self, data: Any, flags: int = 0) -> None:
        """All of `data` within the time limit, which is one for the whole."""
        if self._gathered is None:
            self._send_all(data, flags)
            return
        self._gathered += data
        if len(self._gathered) > GATHERED_BYTES:
            self._flush()

    def sendfile(self, *args: Any, **kwargs: Any) -> int:
        self._flush()
        return super().sendfile(*args, **kwargs)

    @contextlib.contextmanager
    def gathering(self) -> Iterator[None]:
        """What `sendall` gets inside the block leaves at its end, in one piece or a few large ones.

        A block that raises sends nothing more.
        """
        self._gathered = bytearray()
        try:
            yield
            self._flush()
        finally:
            self._gathered = None

    def _flush(self) -> None:
        if self._gathered:
            data, self._gathered = self._gathered, bytearray()
            self._send_all(data)

    def _send_all(self, data: Any, flags: int = 0) -> None:
        by = self._by()
        left = memoryview(data).cast("B")
        while left:
            left = left[self._patiently(select.POLLOUT, by, super().send, left, flags) :]

    def _patiently(
        self, event: int, by: float | None, operation: Callable[..., T], *args: Any
    ) -> T:
        while True:
            try:
                return operation(*args)
            except BlockingIOError:
                if self._limit == 0.0:
                    raise
            self._wait(event, by)

    def _by(self) -> float | None:
        """When the time is over, on the monotonic clock; None for never."""
        return None if self._limit is None else time.monotonic() + self._limit

    def _wait(self, event: int, by: float | None) -> None:
        poller = select.poll()
        poller.register(self, event)
        if not poller.poll(None if by is None else max(0.0, by - time.monotonic()) * 1000):
            raise TimeoutError("timed out")
