"""One background thread that runs each scheduled item when it is due, one after the other.

Of those that are due the one whose owner has waited longest runs next, so that the many of one
owner do not hold up those of others.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from svc import limits

# How many seconds an item that is under way is waited for at the end.
CLOSING_S = 2.0

T = TypeVar("T")
log = logging.getLogger(__name__)


class Scheduler(Generic[T]):
    """Calls `run` with each scheduled item when it is due."""

    def __init__(
        self,
        run: Callable[[T], None],
        retry_s: float = limits.REFIT_S,
        clock: Callable[[], float] = time.monotonic,
        closing_s: float = CLOSING_S,
        owner: Callable[[T], Hashable] = lambda item: item,
    ) -> None:
        """An item that fails runs again after `retry_s` seconds; `clock` gives seconds.

        `owner` tells whose an item is; by default each has one of its own.
        After each item nothing runs for `limits.FIT_REST` times as long as it took. At the end one
        that is under way is waited for `closing_s` seconds.
        """
        self._run, self._retry_s, self._clock = run, retry_s, clock
        self._closing_s, self._owner = closing_s, owner
        self._rested = clock()
        self._due: dict[T, float] = {}
        # When an item of each owner last ran, of those that have one scheduled.
        self._ran_at: dict[Hashable, float] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name="svc-refits", daemon=True)
        self._thread.start()

    def schedule(self, item: T, delay_s: float) -> None:
        """Run `item` in `delay_s` seconds, unless it is already scheduled for an earlier time."""
        due = self._clock() + delay_s
        with self._changed:
            if due < self._due.get(item, float("inf")):
                self._due[item] = due
                self._changed.notify()

    def close(self) -> None:
        """Stop; what is still scheduled is left undone."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(self._closing_s)

    def _loop(self) -> None:
        while (item := self._next()) is not None:
            began = self._clock()
            try:
                self._run(item)
            except Exception:
                # The failure of one item must not end the thread. Once closed, an item that goes
                # on finds the database closed, which is no failure to tell of.
                if not self._closed:
                    log.exception("a refit failed")
                    self.schedule(item, self._retry_s)
            ended = self._clock()
            self._ran_at[self._owner(item)] = ended
            self._rested = ended + limits.FIT_REST * (ended - began)

    def _next(self) -> T | None:
        """Wait for the next item that is due; None once closed."""
        with self._changed:
            while not self._closed:
                now = self._clock()
                left_s = max(min(self._due.values(), default=math.inf), self._rested) - now
                if left_s <= 0:
                    item = self._longest_waiting(now)
                    del self._due[item]
                    return item
                self._changed.wait(None if left_s == math.inf else left_s)
        return None

    def _longest_waiting(self, now: float) -> T:
        """Of the items that are due, one of the owner that has waited longest.

        An owner waits from when its first item was due, or from when its last one ran.
        """
        owners = {item: self._owner(item) for item in self._due}
        waiting = set(owners.values())
        self._ran_at = {owner: at for owner, at in self._ran_at.items() if owner in waiting}

        def place(item: T) -> tuple[float, float]:
            due = self._due[item]
            return max(self._ran_at.get(owners[item], due), due), due

        return min((item for item, at in self._due.items() if at <= now), key=place)
