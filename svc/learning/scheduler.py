"""One background thread that runs each thing at its time, at most once at a time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from svc import limits

T = TypeVar("T")
log = logging.getLogger(__name__)


class Scheduler(Generic[T]):
    """Calls `run` with what was scheduled, when its time has come."""

    def __init__(
        self,
        run: Callable[[T], None],
        retry_s: float = limits.REFIT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """What fails runs again in `retry_s` seconds; `clock` gives seconds."""
        self._run, self._retry_s, self._clock = run, retry_s, clock
        self._due: dict[T, float] = {}
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name="svc-refits", daemon=True)
        self._thread.start()

    def schedule(self, item: T, delay_s: float) -> None:
        """Run `item` in `delay_s` seconds, unless it is to run before that already."""
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
        self._thread.join()

    def _loop(self) -> None:
        while (item := self._next()) is not None:
            try:
                self._run(item)
            except Exception:  # the thread outlives what goes wrong with one of them
                log.exception("a refit failed")
                self.schedule(item, self._retry_s)

    def _next(self) -> T | None:
        """The first item whose time has come; None once closed."""
        with self._changed:
            while not self._closed:
                first = min(self._due, key=self._due.__getitem__, default=None)
                left = None if first is None else self._due[first] - self._clock()
                if first is not None and left is not None and left <= 0:
                    del self._due[first]
                    return first
                self._changed.wait(left)
        return None
