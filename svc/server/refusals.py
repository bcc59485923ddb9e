"""Refusals of callers that ask on and on wait before they leave, and take no thread meanwhile.

A refusal takes most of a millisecond. A caller that sends its next request as soon as it is refused
would have a worker refuse a thousand a second, and others wait behind them.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from svc import limits
from svc.ratelimit import Buckets, Exceeded

# The statuses of callers that are not known, may not do this, or ask too much.
_STATUSES = ("401", "403", "429")

_NAME = "refusals"


class Refusals:
    """Says which refusals wait, and holds the connections of those that do."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds."""
        self._clock, self._at_once = clock, Buckets(clock, slots=1)
        # What waits, with the time at which it leaves; all wait equally long.
        self._held: deque[tuple[float, Any]] = deque()

    def waits(self, status: str) -> bool:
        """Whether a response with this status line waits."""
        if status[:3] not in _STATUSES:
            return False
        try:
            self._at_once.reserve(_NAME, limits.REFUSALS_AT_ONCE)
        except Exceeded:
            return True
        return False

    def hold(self, held: Any) -> None:
        """Keep something until its response leaves."""
        self._held.append((self._clock() + limits.REFUSAL_HELD_S, held))

    def due_in(self) -> float:
        """The seconds until the next one leaves; infinity where none waits."""
        return self._held[0][0] - self._clock() if self._held else float("inf")

    def leaving(self, at_once: bool = False) -> Iterator[Any]:
        """What leaves now, those that wait longest first: what is due, or everything."""
        while self._held and (at_once or self.due_in() <= 0):
            yield self._held.popleft()[1]
