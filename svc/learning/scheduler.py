"""One background thread that runs each scheduled item when it is due, one after the other."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
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
    ) -> None:
        """An item that fails runs again after `retry_s` seconds; `clock` gives seconds.

        After each item nothing runs for `limits.FIT_REST` times as long as it took. At the end one
        that is under way is waited for `closing_s` seconds.
        """
        self._run, self._retry_s, self._clock = run, retry_s, clock
        self._closing_s = closing_s
        self._rested = clock()
        self._due: dict[T, float] = {}
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
            self._rested = ended + limits.FIT_REST * (ended - began)

    def _next(self) -> T | None:
        """Wait for the next item that is due; None once closed."""
        with self._changed:
            while not self._closed:
                first = min(self._due, key=self._due.__getitem__, default=None)
                due = None if first is None else max(self._due[first], self._rested)
                left_s = None if due is None else due - self._clock()
                if first is not None and left_s is not None and left_s <= 0:
                    del self._due[first]
                    return first
                self._changed.wait(left_s)
        return None
