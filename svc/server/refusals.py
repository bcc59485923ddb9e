"""Responses to callers that are refused, or not known, and ask on and on wait before they leave.

They take no thread meanwhile. Such a response takes most of a millisecond. A caller that sends its
next request as soon as it has one would have a worker make a thousand a second, and others wait
behind them.
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

# No monitor asks again so soon after an answer.
JUST_NOW_S = 0.05

_NAME = "refusals"


class Refusals:
    """Says which responses wait, and holds the connections of those that do."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds."""
        self._clock = clock
        buckets = (Buckets(clock, slots=1) for _ in range(4))
        self._at_once, self._again, self._looks, self._ends = buckets
        # What waits, with the time at which it leaves; all wait equally long.
        self._held: deque[tuple[float, Any]] = deque()

    def waits(self, status: str, known: bool = False) -> bool:
        """Whether a response with this status line waits, to a caller who is `known` or not.

        What goes well waits for nobody, as it may be long: the application bounds how often.
        """
        refused = status[:3] in _STATUSES or not (known or status.startswith("2"))
        return refused and _exceeds(self._at_once, limits.REFUSALS_AT_ONCE)

    def look_waits(self, answered_at: float) -> bool:
        """The same for a look at the server; `answered_at` is when its connection had an answer.

        Those who ask again as soon as they have their answer wait earlier than others, so that
        monitors beside them do not wait.
        """
        if self._clock() - answered_at < JUST_NOW_S:
            return _exceeds(self._again, limits.REFUSALS_AT_ONCE)
        return _exceeds(self._looks, 2 * limits.REFUSALS_AT_ONCE)

    def end_waits(self) -> bool:
        """Whether the end of a connection waits on which no request came."""
        return _exceeds(self._ends, limits.REFUSALS_AT_ONCE)

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


def _exceeds(bucket: Buckets, per_minute: float) -> bool:
    try:
        bucket.reserve(_NAME, per_minute)
    except Exceeded:
        return True
    return False
