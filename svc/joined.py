"""Connections of urllib3 whose requests leave in one piece."""

from __future__ import annotations

from typing import Any

from urllib3.connection import HTTPConnection

# A request of more bytes leaves in pieces.
JOINED_BYTES = 65_536


class Joined(HTTPConnection):
    """A connection that sends head and body together.

    One after the other they would wake the server twice, and the thread that sends them too.
    """

    # The parts of the request that is being put together; None while there is none.
    _parts: list[bytes] | None = None

    def request(self, *args: Any, **kwargs: Any) -> None:
        parts: list[bytes] = []
        self._parts = parts
        try:
            super().request(*args, **kwargs)
        finally:
            self._parts = None
        # What is large would be copied; it wakes the server more than once in any case.
        pieces = parts if sum(map(len, parts)) > JOINED_BYTES else [b"".join(parts)]
        for piece in pieces:
            self.send(piece)

    def send(self, data: Any) -> None:
        if self._parts is None:
            super().send(data)
        else:
            self._parts.append(data)
