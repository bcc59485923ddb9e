"""The rate at which the many lines of replies are read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable

from svc import limits

# The pause between two looks at whether a reply that waits is still wanted.
_LOOK_S = 0.1


class LinePace:
    """The rate of many replies together, which those who read them share evenly.

    Else many threads that read chunks of one byte would each have the processor in turn before one
    that answers a request has it again.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._lock = threading.Lock()
        # When each of those who read now may go on.
        self._next_at: dict[Hashable, float] = {}

    def wait(self, lines: int, who: Hashable, is_wanted: Callable[[], bool]) -> None:
        """Wait until so many more may be read, as long as `is_wanted`.

        Those with the same `who` wait for each other.
        """
        at, takes_s = self._reserved(lines, who)
        while (left_s := at - self._clock()) > 0:
            if not is_wanted():
                self._give_back(takes_s, who)
                return
            self._sleep(min(left_s, _LOOK_S))

    def _reserved(self, lines: int, who: Hashable) -> tuple[float, float]:
        """When they may be read, and for how many seconds no others of the same may be."""
        with self._lock:
            now = self._clock()
            self._next_at = {one: at for one, at in self._next_at.items() if at > now}
            at = self._next_at.setdefault(who, now)
            takes_s = lines * len(self._next_at) / limits.REPLY_LINES_A_SECOND
            self._next_at[who] = at + takes_s
            return at, takes_s

    def _give_back(self, seconds: float, who: Hashable) -> None:
        with self._lock:
            # Others that gave theirs back may have left nothing to wait for.
            if who in self._next_at:
                self._next_at[who] -= seconds
