"""How many bytes the calls under way hold: each one has its request's images and state anew."""

from __future__ import annotations

import threading
from collections import Counter

from svc import limits


class CallBytes:
    """Bounds them for all callers and for each, so that a slow provider costs no memory."""

    def __init__(
        self,
        most: int = limits.CALLS_BYTES,
        most_of_caller: int = limits.CALLS_BYTES_OF_CALLER,
    ) -> None:
        self._most, self._most_of_caller = most, most_of_caller
        self._all = 0
        self._of: Counter[str | None] = Counter()
        self._lock = threading.Lock()

    def take(self, caller: str | None, size: int) -> bool:
        """Count a call of so many bytes; False, and it is not counted, while there is no room.

        A call that is larger than the bounds has room where no other one is counted.
        """
        if size < limits.CALL_BYTES_UNCOUNTED:
            return True
        with self._lock:
            theirs = self._of[caller]
            fits = theirs + size <= self._most_of_caller or not theirs
            if not fits or (self._all and self._all + size > self._most):
                return False
            self._all += size
            self._of[caller] = theirs + size
            return True

    def give_back(self, caller: str | None, size: int) -> None:
        """Count it no longer."""
        if size < limits.CALL_BYTES_UNCOUNTED:
            return
        with self._lock:
            self._all -= size
            self._of[caller] -= size
            if not self._of[caller]:
                del self._of[caller]
