"""Costly work of an API key takes turns, and leaves most of a worker's processor to others.

Python runs one thread of a process at a time. Where many threads read large bodies, a small request
waits for each of them many times over.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from svc.deadline import Deadline
from svc.errors import Timeout

# After its turn a key waits this many times what the turn took of the processor.
PAUSE = 3.0

# For work that needs none.
_NO_TURN = contextlib.nullcontext()


class _Key:
    """One key's turn, and the time from which on it may have the next one."""

    def __init__(self) -> None:
        self.turn, self.rested_at = threading.Lock(), 0.0


@contextlib.contextmanager
def _held(lock: threading.Lock | threading.Semaphore, deadline: Deadline) -> Iterator[None]:
    """Hold it in the block. Raises `Timeout` where it is not free before the deadline."""
    if not lock.acquire(timeout=max(0.0, deadline.left())):
        raise Timeout("the request exceeded its deadline")
    try:
        yield
    finally:
        lock.release()


class Places:
    """So many places of each key in this process, for what takes memory; who comes later waits."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._keys: dict[str | None, threading.Semaphore] = {}

    @contextlib.contextmanager
    def place(self, key_id: str | None, deadline: Deadline) -> Iterator[None]:
        """Have one in the block. Raises `Timeout` where none is free before the deadline."""
        with _held(self._keys.setdefault(key_id, threading.Semaphore(self._each)), deadline):
            yield


class CostlyWork:
    """The turns of this process for one kind of work."""

    def __init__(
        self,
        small: int,
        processor: Callable[[], float] = time.thread_time,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        pause: float = PAUSE,
        unnoticed_s: float = 0.0,
    ) -> None:
        """Work of at most the size `small` costs too little to wait.

        After its turn a key waits `pause` times what it took, but for the first `unnoticed_s`
        seconds of it. The others give seconds.
        """
        self._small, self._pause, self._unnoticed_s = small, pause, unnoticed_s
        self._processor, self._clock, self._sleep = processor, clock, sleep
        self._keys: dict[str | None, _Key] = {}

    def turn(
        self, key_id: str | None, size: int, deadline: Deadline
    ) -> contextlib.AbstractContextManager[None]:
        """Inside the block work of that `size` may be done.

        What is small does not wait. Callers without a key are one caller, whose turns follow each
        other without a pause. Raises `Timeout` where the turn does not come before the deadline.
        """
        return _NO_TURN if size <= self._small else self._turn(key_id, deadline)

    def resting(
        self, key_id: str | None, size: int, unnoticed_s: float
    ) -> contextlib.AbstractContextManager[None]:
        """What this thread does in the block follows work of that `size`, and costs pauses too.

        But for the first `unnoticed_s` seconds of it.
        """
        small = size <= self._small or key_id is None
        return _NO_TURN if small else self._resting(key_id, unnoticed_s)

    def paced(
        self, key_id: str | None, size: int, deadline: Deadline
    ) -> contextlib.AbstractContextManager[None]:
        """What this thread does in the block costs pauses as a turn does, but needs no turn.

        Any number of threads of a key do such work at once, as it may wait for others. What is
        small does not wait. Raises `Timeout` where the pause lasts beyond the deadline.
        """
        small = size <= self._small or key_id is None
        return _NO_TURN if small else self._paced(key_id, deadline)

    @contextlib.contextmanager
    def _paced(self, key_id: str | None, deadline: Deadline) -> Iterator[None]:
        key = self._keys.get(key_id)
        if key is not None and key.rested_at > self._clock():
            with self._turn(key_id, deadline):
                pass
        with self._resting(key_id, self._unnoticed_s):
            yield

    @contextlib.contextmanager
    def _resting(self, key_id: str | None, unnoticed_s: float) -> Iterator[None]:
        began = self._processor()
        try:
            yield
        finally:
            self._rest(key_id, began, unnoticed_s)

    @contextlib.contextmanager
    def _turn(self, key_id: str | None, deadline: Deadline) -> Iterator[None]:
        # In one step: two threads never get two turns of one key.
        key = self._keys.setdefault(key_id, _Key())
        with _held(key.turn, deadline):
            self._sleep(max(0.0, min(key.rested_at - self._clock(), deadline.left())))
            deadline.check()
            began = self._processor()
            try:
                yield
            finally:
                self._rest(key_id, began, self._unnoticed_s)

    def _rest(self, key_id: str | None, began: float, unnoticed_s: float) -> None:
        """Make the key wait for what this thread took of the processor since it `began`."""
        # Without keys there is nobody else to leave the processor to.
        if key_id is None:
            return
        noticed_s = max(0.0, self._processor() - began - unnoticed_s)
        key = self._keys.setdefault(key_id, _Key())
        key.rested_at = max(key.rested_at, self._clock()) + self._pause * noticed_s
