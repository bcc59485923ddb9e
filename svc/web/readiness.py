"""Whether the server can do its work, found out once a second at most."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence

from svc.errors import NotReady

# For so long what was found is true, and so long the first check is waited for, in seconds.
KEPT_S, FIRST_S = 1.0, 5.0

# Says what is wrong, and an empty text where nothing is.
Check = Callable[[], str]


class Readiness:
    """Asks each check in turn; whoever comes while that is done gets what was found before.

    While it is done for the first time, it is waited for.
    """

    def __init__(
        self, checks: Sequence[Check], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._checks, self._clock = checks, clock
        self._lock = threading.Lock()
        self._found, self._next_at = "nothing was checked yet", -math.inf

    def check(self) -> None:
        """Raise `NotReady` where something is wrong."""
        wait_s = FIRST_S if self._next_at < 0 else 0.0
        if self._is_due and self._lock.acquire(timeout=wait_s):
            try:
                self._look()
            finally:
                self._lock.release()
        if self._found:
            raise NotReady(self._found)

    @property
    def _is_due(self) -> bool:
        return self._clock() >= self._next_at

    def _look(self) -> None:
        """Ask the checks, unless somebody has just done so."""
        if self._is_due:
            self._found = next(filter(None, (check() for check in self._checks)), "")
            self._next_at = self._clock() + KEPT_S
