"""What the thread of an exchange takes of a processor, as another thread can see it.

Records of TLS that carry nothing are read below Python for as long as they come, in the handshake
and after it: nothing that is counted there ends that.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from svc import limits

# What an exchange has taken, in seconds, before it is seen as busy.
NOTICED_S = 0.005


class Spare:
    """The seconds of a processor that an exchange may still take, of so many at most.

    What is taken of one counts for all exchanges with the same peer, where there is such a sum.
    """

    def __init__(self, most_s: float, of_all: SpareOfPeer | None = None) -> None:
        self._most_s = self._left_s = most_s
        self._of_all = of_all

    def use(self, seconds: float) -> None:
        """Take some, whether they are there or not."""
        self._left_s -= seconds
        if self._of_all is not None:
            self._of_all.use(seconds)

    def came(self, size: int) -> None:
        """Add what there is for so many bytes that have come."""
        seconds = size * limits.EXCHANGE_BYTE_S
        self._left_s = min(self._most_s, self._left_s + seconds)
        if self._of_all is not None:
            self._of_all.give(seconds)

    def has_left(self) -> bool:
        """Whether any more may be taken."""
        return self._left_s > 0


class SpareOfPeer:
    """What all exchanges with one peer may take, which comes back with time: a token bucket."""

    def __init__(
        self,
        usual_s: float = limits.EXCHANGE_PROCESSOR_S,
        most_s: float = limits.PEER_PROCESSOR_S,
        back: float = limits.PEER_PROCESSOR_BACK,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """An exchange usually takes `usual_s`; so many come `back` with each second of time."""
        self._usual_s = usual_s
        self._most_s = self._left_s = most_s
        self._back, self._clock, self._seen_at = back, clock, clock()
        self._lock = threading.Lock()

    def use(self, seconds: float) -> None:
        """Take some, whether they are there or not."""
        self._change(-seconds)

    def give(self, seconds: float) -> None:
        """Add some, for what has come."""
        self._change(seconds)

    def begin(self) -> None:
        """Add what is usual for one exchange more."""
        self._change(self._usual_s)

    def has_left(self) -> bool:
        """Whether any more may be taken."""
        return self._change(0.0) > 0

    def wait_s(self) -> float:
        """The seconds until some come back, 0 where there are any."""
        return max(0.0, -self._change(0.0)) / self._back

    def _change(self, seconds: float) -> float:
        """What is left after so many are given."""
        with self._lock:
            now = self._clock()
            back_s, self._seen_at = self._back * (now - self._seen_at), now
            left_s = min(self._most_s, self._left_s + back_s)
            least_s = -limits.PEER_REST_S * self._back
            self._left_s = max(least_s, min(self._most_s, left_s + seconds))
            return self._left_s


class Collections:
    """The seconds of a processor that collections of garbage took in each thread, by its id.

    One happens in whichever thread made the last of many objects, and looks through those of all.
    """

    def __init__(self) -> None:
        self._taken: dict[int, float] = {}
        self._began_s = 0.0

    def note(self, phase: str, _: Mapping[str, Any]) -> None:
        """Called by `gc` before and after each; there is one at a time."""
        if phase == "start":
            self._began_s = time.thread_time()
            return
        thread = threading.get_ident()
        self._taken[thread] = self.seconds(thread) + time.thread_time() - self._began_s

    def seconds(self, thread: int) -> float:
        """Those of all threads that had this id."""
        return self._taken.get(thread, 0.0)


_collections = Collections()
gc.callbacks.append(_collections.note)


class Meter:
    """Counts the processor time of the thread that makes it, from when it is told to go on."""

    __slots__ = (
        *("_busy_s", "_clock", "_collected_s", "_counted_s", "_has_left", "_lock", "_thread"),
        *("_use", "_with_collections"),
    )

    def __init__(
        self,
        use: Callable[[float], object],
        has_left: Callable[[], bool],
        with_collections: bool = True,
    ) -> None:
        """`use` is told of seconds that were taken, `has_left` says whether more may be.

        Collections of garbage that happen to come in the thread are among them, or are not.
        """
        self._use, self._has_left = use, has_left
        self._with_collections, self._collected_s = with_collections, 0.0
        # Some systems show the time of a thread to that thread alone.
        clock_of = getattr(time, "pthread_getcpuclockid", None)
        self._thread = threading.get_ident()
        self._clock = clock_of and clock_of(self._thread)
        # Up to where it is counted; None while it is not.
        self._counted_s: float | None = None
        self._busy_s = 0.0
        self._lock = threading.Lock()

    def pause(self) -> None:
        """Count no more for now; the thread itself calls this, and the next two."""
        self.count()
        with self._lock:
            self._counted_s = None

    def go_on(self) -> None:
        """Count from now on."""
        with self._lock:
            self._counted_s = time.thread_time()
            self._collected_s = _collections.seconds(self._thread)

    def count(self) -> None:
        """Count what was taken since it was counted last."""
        with self._lock:
            self._count(time.thread_time())

    def look(self) -> bool:
        """Count from another thread; whether the exchange takes more than there is."""
        with self._lock:
            # A thread that pauses may be gone soon, and its clock with it.
            if self._counted_s is None or not self._clock:
                return False
            self._count(time.clock_gettime(self._clock))
            return self._busy_s > NOTICED_S and not self._has_left()

    @property
    def busy_s(self) -> float:
        """The seconds that were counted, without collections of garbage."""
        return self._busy_s

    @property
    def is_short(self) -> bool:
        """Whether nothing is left that the exchange may take."""
        return not self._has_left()

    def _count(self, now_s: float) -> None:
        if self._counted_s is not None and now_s > self._counted_s:
            took_s, collected_s = now_s - self._counted_s, _collections.seconds(self._thread)
            busy_s = max(0.0, took_s - (collected_s - self._collected_s))
            self._use(took_s if self._with_collections else busy_s)
            self._busy_s += busy_s
            self._counted_s, self._collected_s = now_s, collected_s
