"""How long a request may still take, handed down from its arrival to its last call."""

from __future__ import annotations

import time
from collections.abc import Callable

from svc.errors import Timeout


class Deadline:
    """A moment on the monotonic clock that every wait below it respects."""

    __slots__ = ("_clock", "at")

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.at = clock() + seconds

    def left(self) -> float:
        """Seconds left, negative once it has passed."""
        return self.at - self._clock()

    def check(self) -> None:
        """Raise `Timeout` once the deadline has passed."""
        if self.left() <= 0:
            raise Timeout("the request exceeded its deadline")
