"""How a response leaves: its head together with its body, and without asking the system first."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

# The time for a caller to take in one response.
SEND_S = 60.0

# With more than these bytes, part of a response leaves before its end.
GATHERED_BYTES = 65_536


class ResponseSocket(socket.socket):
    """Takes a connected stream socket over, and sends each response in one piece.

    Every call to the system gives the interpreter's lock to another thread, to be waited for. Head
    and body sent one after the other, each after a look whether the system would take them, are
    four such calls where one does.
    """

    def __init__(self, sock: socket.socket) -> None:
        kind = (sock.family, sock.type, sock.proto)
        timeout_s = sock.gettimeout()
        super().__init__(*kind, fileno=sock.detach())
        self.settimeout(timeout_s)
        self._gathered: bytearray | None = None
        self._limit_s = 0.0

    @contextlib.contextmanager
    def gathering(self, limit_s: float) -> Iterator[None]:
        """What `sendall` gets inside the block leaves at its end, in one piece or a few large ones.

        Each piece has to be taken in `limit_s` seconds. A block that raises sends nothing more.
        """
        self._gathered, self._limit_s = bytearray(), limit_s
        try:
            yield
            self._flush()
        finally:
            self._gathered = None

    def sendall(self, data: Any, flags: int = 0) -> None:
        """All of `data`: within the time limit, or with the rest of what is gathered."""
        if self._gathered is None:
            super().sendall(data, flags)
            return
        self._gathered += data
        if len(self._gathered) > GATHERED_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Send what the system takes at once; the rest, if any, within the time limit."""
        if not self._gathered:
            return
        data, self._gathered = self._gathered, bytearray()
        sent = 0
        if self.gettimeout() != 0:
            self.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            sent = self.send(data)
        if sent < len(data):
            self.settimeout(self._limit_s)
            super().sendall(memoryview(data)[sent:])
