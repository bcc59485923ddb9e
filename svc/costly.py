"""Costly work of an API key takes turns, and leaves most of a worker's processor to others.

Python runs one thread of a process at a time. Where many threads read large bodies, a small request
waits for each of them many times over.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from svc import processor_time
from svc.deadline import Deadline
from svc.errors import RateLimited, Timeout
from svc.rests import Rests

# After its turn a key waits this many times what the turn took of the processor.
PAUSE = 3.0

# The seconds between two looks of who waits for a turn at whether it is still wanted.
LOOK_S = 0.5

# When a place may be free again that was not waited for, in seconds.
_PLACE_AGAIN_S = 1.0

# What a key takes unnoticed at most where that counts for all of its work: so many seconds, and so
# many more with each second.
FREE_S, FREE_BACK = 0.2, 0.05

# For work that needs none.
_NO_TURN = contextlib.nullcontext()


@contextlib.contextmanager
def held(lock: threading.Lock | threading.Semaphore, deadline: Deadline) -> Iterator[None]:
    """Hold it in the block. Raises `Timeout` where it is not free before the deadline."""
    left_s = deadline.left()
    while not lock.acquire(timeout=max(0.0, min(LOOK_S, left_s))):
        left_s = min(left_s - LOOK_S, deadline.left())
        if left_s <= 0:
            raise Timeout("the request exceeded its deadline")
    try:
        yield
    finally:
        lock.release()


class Places:
    """So many places of each key in this process, for what takes memory or threads."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._keys: dict[str | None, threading.Semaphore] = {}

    @contextlib.contextmanager
    def place_now(self, key_id: str | None, what: str) -> Iterator[None]:
        """Have one in the block, for requests of which `what` says which. Raises `RateLimited`."""
        places = self._of(key_id)
        if not places.acquire(blocking=False):
            raise RateLimited(f"this API key has {self._each} {what} under way", _PLACE_AGAIN_S)
        try:
            yield
        finally:
            places.release()

    def _of(self, key_id: str | None) -> threading.Semaphore:
        return self._keys.setdefault(key_id, threading.Semaphore(self._each))


class FreeSeconds:
    """The seconds of a processor that each key takes unnoticed: a token bucket.

    Else a stream of pieces of work, of which none takes long, would be followed by no pause.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds."""
        self._clock, self._lock = clock, threading.Lock()
        # Of each key what was left, and when.
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, key_id: str, seconds: float) -> float:
        """How many of these seconds are free."""
        with self._lock:
            now = self._clock()
            left_s, seen_at = self._left.get(key_id, (FREE_S, now))
            left_s = min(FREE_S, left_s + FREE_BACK * (now - seen_at))
            free_s = max(0.0, min(seconds, left_s))
            self._left[key_id] = left_s - free_s, now
            return free_s


class CostlyWork:
    """The turns of this process for one kind of work."""

    def __init__(
        self,
        small: int,
        processor: Callable[[], float] = processor_time.used_s,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[Deadline, float], None] = Deadline.pause,
        pause: float = PAUSE,
        unnoticed_s: float = 0.0,
        rests: Rests | None = None,
        free: FreeSeconds | None = None,
    ) -> None:
        """Work of at most the size `small` costs too little to wait.

        After its turn a key waits `pause` times what it took, but for the first `unnoticed_s`
        seconds of it, as far as they are `free`, where that counts; `rests` are those of other
        kinds of work that it waits for too. The others give seconds, and wait some while a deadline
        is not cancelled.
        """
        self._small, self._pause, self._unnoticed_s = small, pause, unnoticed_s
        self._processor, self._clock, self._sleep = processor, clock, sleep
        self._rests, self._free = Rests() if rests is None else rests, free
        self._turns: dict[str | None, threading.Lock] = {}

    def turn(
        self, key_id: str | None, size: int, deadline: Deadline
    ) -> contextlib.AbstractContextManager[None]:
        """Inside the block work of that `size` may be done.

        What is small does not wait. Callers without a key are one caller, whose turns follow each
        other without a pause. Raises `Timeout` where the turn does not come before the deadline.
        """
        return _NO_TURN if size <= self._small else self._turn(key_id, deadline)

    def resting(
        self, key_id: str | None, size: int, deadline: Deadline, unnoticed_s: float
    ) -> contextlib.AbstractContextManager[None]:
        """What is done for the request in the block follows work of that `size`, and costs pauses.

        But for the first `unnoticed_s` seconds of it.
        """
        small = size <= self._small or key_id is None
        return _NO_TURN if small else self._resting(key_id, deadline, unnoticed_s)

    def _worked_s(self, deadline: Deadline) -> float:
        """Seconds of a processor that this thread took, with what others took for the request."""
        return self._processor() + deadline.effort.worked_s

    @contextlib.contextmanager
    def _resting(
        self, key_id: str | None, deadline: Deadline, unnoticed_s: float
    ) -> Iterator[None]:
        began = self._worked_s(deadline)
        try:
            yield
        finally:
            self._rest(key_id, self._worked_s(deadline) - began - unnoticed_s)

    @contextlib.contextmanager
    def _turn(self, key_id: str | None, deadline: Deadline) -> Iterator[None]:
        # In one step: two threads never get two turns of one key.
        with held(self._turns.setdefault(key_id, threading.Lock()), deadline):
            self._pause_for(key_id, deadline)
            began = self._worked_s(deadline)
            try:
                yield
            finally:
                worked_s = self._worked_s(deadline) - began
                self._rest(key_id, worked_s - self._free_s(key_id, worked_s))

    def _free_s(self, key_id: str | None, worked_s: float) -> float:
        """The seconds of a turn after which its key makes no pause."""
        if self._free is None or key_id is None:
            return self._unnoticed_s
        return self._free.take(key_id, min(worked_s, self._unnoticed_s))

    def _pause_for(self, key_id: str | None, deadline: Deadline) -> None:
        """Wait while the key pauses, also for what other work takes meanwhile."""
        waited_until = None
        while (until := self._rests.until(key_id)) != waited_until:
            self._sleep(deadline, max(0.0, min(until - self._clock(), deadline.left())))
            deadline.check()
            waited_until = until

    def _rest(self, key_id: str | None, noticed_s: float) -> None:
        """Make the key wait for what it took of the processor."""
        # Without keys there is nobody else to leave the processor to.
        if key_id is None or noticed_s <= 0:
            return
        self._rests.add(key_id, self._clock(), self._pause * noticed_s)
