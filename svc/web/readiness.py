"""Whether the server can do its work, found out once a second at most."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from svc.errors import NotReady

# For so long what was found is true.
KEPT_S = 1.0

# Says what is wrong, and an empty text where nothing is.
Check = Callable[[], str]


class Readiness:
    """Asks each check in turn; whoever comes while that is done gets what was found before."""

    def __init__(
        self, checks: Sequence[Check], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._checks, self._clock = checks, clock
        self._lock = threading.Lock()
        self._found, self._next_at = "nothing was checked yet", 0.0

    def check(self) -> None:
        """Raise `NotReady` where something is wrong."""
        if self._clock() >= self._next_at and self._lock.acquire(blocking=False):
            try:
                self._found = next(filter(None, (check() for check in self._checks)), "")
                self._next_at = self._clock() + KEPT_S
            finally:
                self._lock.release()
        if self._found:
            raise NotReady(self._found)
