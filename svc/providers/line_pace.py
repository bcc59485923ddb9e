"""The rate at which the many lines of replies are read."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable

from svc import limits

# A caller, and a provider that replies to it.
_Pair = tuple[Hashable, str]

# The pause between two looks at whether a reply that waits is still wanted.
_LOOK_S = 0.1


class LinePace:
    """The rate of many replies together, which callers share evenly, and the providers of each.

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
        # When what a provider sends to a caller is read on, for those that are read now.
        self._next_at: dict[_Pair, float] = {}

    def wait(
        self, lines: int, caller: Hashable, provider: str, is_wanted: Callable[[], bool]
    ) -> None:
        """Wait until so many more may be read, as long as `is_wanted`.

        What one provider sends to one caller is read one after the other.
        """
        pair = caller, provider
        at, takes_s = self._reserved(lines, pair)
        while (left_s := at - self._clock()) > 0:
            if not is_wanted():
                self._give_back(takes_s, pair)
                return
            self._sleep(min(left_s, _LOOK_S))

    def _reserved(self, lines: int, pair: _Pair) -> tuple[float, float]:
        """When they may be read, and for how many seconds no others of the same pair may be."""
        with self._lock:
            now = self._clock()
            self._next_at = {one: at for one, at in self._next_at.items() if at > now}
            at = self._next_at.setdefault(pair, now)
            pairs = Counter(caller for caller, _ in self._next_at)
            takes_s = lines * len(pairs) * pairs[pair[0]] / limits.REPLY_LINES_A_SECOND
            self._next_at[pair] = at + takes_s
            return at, takes_s

    def _give_back(self, seconds: float, pair: _Pair) -> None:
        with self._lock:
            # Others that gave theirs back may have left nothing to wait for.
            if pair in self._next_at:
                self._next_at[pair] -= seconds


# That of this process, whose threads share one interpreter.
LINE_PACE = LinePace()
