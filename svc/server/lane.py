"""Which requests get a thread at once, and which wait in line.

Requests that only look at the server wait on nothing. They have threads that no other request may
take, so that the server can be watched while all others wait on models.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from typing import Any

# The threads besides those of `limits.REQUEST_THREADS`.
RESERVED_THREADS = 16

_WATCHING = re.compile(rb"(?:GET|HEAD) /(?:health|ready|metrics)/?[ ?]")
_BODY = (b"\ncontent-length:", b"\ntransfer-encoding:")


def watches(head: bytes) -> bool:
    """Whether a request that begins so only looks at the server, and has no body to wait for."""
    if _WATCHING.match(head) is None:
        return False
    names = head.lower()
    return not any(name in names for name in _BODY)


class Lane:
    """The places of all other requests, and the connections that wait for one."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._line: deque[Any] = deque()
        self._lock = threading.Lock()

    def enter(self, conn: Any) -> bool:
        """Whether the connection has a place now; if not, a call of `leave` returns it later."""
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            self._line.append(conn)
            return False

    def leave(self) -> Any:
        """Give a place back: to the connection that is returned, or to nobody where it is None."""
        with self._lock:
            if self._line:
                return self._line.popleft()
            self._free += 1
            return None
