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

from svc import limits, processors
from svc.ratelimit import Buckets, Exceeded

# The statuses of callers that are not known, may not do this, or ask too much.
_STATUSES = ("401", "403", "429")

# No monitor asks again so soon after an answer on the same connection.
JUST_NOW_S = 0.4

# The buckets of one worker: each kind has its own.
_SLOTS = 64
_LOOKS = "looks"


class Refusals:
    """Says which responses wait, and holds the connections of those that do."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds."""
        self._clock, self._own = clock, Buckets(clock, slots=_SLOTS)
        # Those of all workers, once these share some. Many workers have few processors together.
        self.shared: Buckets | None = None
        # What waits, with the time at which it leaves; all wait equally long.
        self._held: deque[tuple[float, Any]] = deque()

    def waits(self, status: str, known: bool = False) -> bool:
        """Whether a response with this status line waits, to a caller who is `known` or not.

        What goes well waits for nobody, as it may be long: the application bounds how often.
        """
        refused = status[:3] in _STATUSES or not (known or status.startswith("2"))
        return refused and self._exceeds("refusals", limits.REFUSALS_AT_ONCE)

    def look_waits(self, after_s: float) -> bool:
        """The same for a look at the server, so long after the connection had its last answer.

        Those who ask again as soon as they have their answer wait earlier than others, so that
        monitors beside them do not wait.
        """
        if after_s < JUST_NOW_S:
            return self._exceeds("looks again", limits.REFUSALS_AT_ONCE)
        return self._exceeds(_LOOKS, 2 * limits.REFUSALS_AT_ONCE)

    def end_waits(self) -> bool:
        """Whether the end of a connection waits on which no request came."""
        return self._exceeds("ends", limits.REFUSALS_AT_ONCE)

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

    def _exceeds(self, kind: str, per_minute: float) -> bool:
        """Whether there are more of a kind in this worker, or in all of them for each processor.

        All kinds count together there but looks, which a monitor has to take beside all others.
        """
        try:
            _reserve(self._own, kind, per_minute)
            if self.shared is not None:
                name = "held looks" if kind == _LOOKS else "held"
                _reserve(self.shared, name, limits.HELD_A_PROCESSOR * processors.usable())
        except Exceeded:
            return True
        return False


def _reserve(buckets: Buckets, kind: str, per_minute: float) -> None:
    """Take one of a kind. Raises `Exceeded`."""
    buckets.reserve(kind, per_minute, at_once=int(per_minute * limits.REFUSALS_BURST_S / 60))
