"""What callers still send once they are answered is dropped, and not faster than others bear.

The polling thread reads it. A caller whose bodies nobody wants, and who sends as fast as it can,
would have that thread, for which all others wait, do nothing else.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

# The bytes that a worker drops in a second, and at once after a quiet moment.
BYTES_A_SECOND = 16 * 1024 * 1024
BYTES_AT_ONCE = 64 * 1024 * 1024


class Unwanted:
    """Says when no more is dropped for a while, and keeps the connections that wait for that."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds."""
        self._clock = clock
        # When all that was dropped would have been, at `BYTES_A_SECOND`.
        self._done_at = 0.0
        self._waiting: deque[Any] = deque()

    def dropped(self, size: int) -> bool:
        """Note that so many bytes were dropped; whether there have been too many."""
        self._done_at = max(self._done_at, self._clock()) + size / BYTES_A_SECOND
        return self._early_s() > 0

    def keep(self, waiting: Any) -> None:
        """Keep something until more may be dropped."""
        self._waiting.append(waiting)

    def due_in(self) -> float:
        """The seconds until what waits goes on; infinity where nothing does."""
        return self._early_s() if self._waiting else float("inf")

    def going_on(self) -> Iterator[Any]:
        """All that has waited, once more may be dropped."""
        if self.due_in() <= 0:
            while self._waiting:
                yield self._waiting.popleft()

    def _early_s(self) -> float:
        return self._done_at - self._clock() - BYTES_AT_ONCE / BYTES_A_SECOND
