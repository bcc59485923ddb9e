"""The rate at which replies are read that come in many lines, or in many pieces."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable

from svc import limits

# A caller, and a provider that replies to it.
_Pair = tuple[Hashable, str]

# The pause between two looks at whether a reply that waits is still wanted. Hundreds may wait.
_LOOK_S, _LEAST_LOOK_S = 1.0, 0.01


class ReplyPace:
    """The rate of many replies together, which callers share evenly, and the providers of each.

    Else many threads that read a few bytes would each have the processor in turn before one that
    answers a request has it again.
    """

    def __init__(
        self,
        a_second: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """So many lines, or pieces, are read `a_second`."""
        self._a_second, self._clock, self._sleep = a_second, clock, sleep
        self._lock = threading.Lock()
        # When what a provider sends to a caller is read on, for those that are read now.
        self._next_at: dict[_Pair, float] = {}

    def wait(
        self,
        count: int,
        caller: Hashable,
        provider: str,
        is_wanted: Callable[[], bool],
        until: float = math.inf,
    ) -> None:
        """Wait until so many more may be read, as long as `is_wanted`, which ends by `until`.

        What one provider sends to one caller is read one after the other.
        """
        pair = caller, provider
        at, takes_s = self._reserved(count, pair)
        while (left_s := at - self._clock()) > 0:
            if not is_wanted():
                self._give_back(takes_s, pair)
                return
            wanted_s = max(_LEAST_LOOK_S, until - self._clock())
            self._sleep(min(left_s, _LOOK_S, wanted_s))

    def _reserved(self, count: int, pair: _Pair) -> tuple[float, float]:
        """When they may be read, and for how many seconds no others of the same pair may be."""
        with self._lock:
            now = self._clock()
            self._next_at = {one: at for one, at in self._next_at.items() if at > now}
            at = self._next_at.setdefault(pair, now)
            pairs = Counter(caller for caller, _ in self._next_at)
            takes_s = count * len(pairs) * pairs[pair[0]] / self._a_second
            self._next_at[pair] = at + takes_s
            return at, takes_s

    def _give_back(self, seconds: float, pair: _Pair) -> None:
        with self._lock:
            # Others that gave theirs back may have left nothing to wait for.
            if pair in self._next_at:
                self._next_at[pair] -= seconds


# Those of this process, whose threads share one interpreter.
LINE_PACE = ReplyPace(limits.REPLY_LINES_A_SECOND)
PIECE_PACE = ReplyPace(limits.REPLY_READS_A_SECOND)
