"""One background thread that runs each scheduled item when it is due, one after the other.

Of those that are due the one whose owner has waited longest runs next, so that the many of one
owner do not hold up those of others.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
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
        left_out: Callable[[int], Iterable[T]] = lambda most: (),
        most: int = limits.FITS_REMEMBERED,
    ) -> None:
        """An item that fails runs again after `retry_s` seconds; `clock` gives seconds.

        `owner` tells whose an item is; by default each has one of its own. At most `most` items are
        remembered. Which others there are, so many at most, is asked of `left_out` at the start,
        and when half of those that are remembered have run; they are due after `retry_s` seconds.
        After each item, and each time that others are asked for, nothing runs for `limits.FIT_REST`
        times as long as it took. At the end one that is under way is waited for `closing_s`
        seconds.
        """
        self._run, self._retry_s, self._clock = run, retry_s, clock
        self._closing_s, self._owner = closing_s, owner
        self._left_out, self._most = left_out, most
        self._rested = clock()
        self._due: dict[T, float] = {}
        # How many of these are whose, and when one of each owner ran last.
        self._of: Counter[Hashable] = Counter()
        self._ran_at: dict[Hashable, float] = {}
        # When to look for those that are not remembered, where there may be some.
        self._others_at = self._rested
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name="svc-refits", daemon=True)
        self._thread.start()

    def schedule(self, item: T, delay_s: float) -> None:
        """Run `item` in `delay_s` seconds, unless it is already scheduled for an earlier time.

        Where no more are remembered, who has most of them gives up the last of its own; nobody
        does for who would have as many, and its item is found later.
        """
        due = self._clock() + delay_s
        with self._changed:
            if item not in self._due:
                owner = self._owner(item)
                if not self._makes_room(owner):
                    return
                self._of[owner] += 1
            elif due >= self._due[item]:
                return
            self._due[item] = due
            self._changed.notify()

    def _makes_room(self, owner: Hashable) -> bool:
        """Whether one more of this owner is remembered, for which another one may be given up."""
        if len(self._due) < self._most:
            return True
        self._others_at = min(self._others_at, self._clock())
        largest = max(self._of, key=self._of.__getitem__)
        if self._of[largest] <= self._of[owner] + 1:
            return False
        theirs = (item for item in self._due if self._owner(item) == largest)
        self._forget(max(theirs, key=self._due.__getitem__))
        return True

    def _forget(self, item: T) -> None:
        owner = self._owner(item)
        del self._due[item]
        self._of[owner] -= 1
        if not self._of[owner]:
            del self._of[owner]

    def close(self) -> None:
        """Stop; what is still scheduled is left undone."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(self._closing_s)

    def _loop(self) -> None:
        while (step := self._next()) is not None:
            began = self._clock()
            step()
            ended = self._clock()
            self._rested = ended + limits.FIT_REST * (ended - began)

    def _next(self) -> Callable[[], None] | None:
        """Wait until there is something to do; None once closed."""
        with self._changed:
            while not self._closed:
                now = self._clock()
                others_at = self._others_at if len(self._due) <= self._most // 2 else math.inf
                first = min(self._due.values(), default=math.inf)
                left_s = max(min(first, others_at), self._rested) - now
                if left_s <= 0:
                    return self._remember_others if others_at <= now else self._taken(now)
                self._changed.wait(None if left_s == math.inf else left_s)
        return None

    def _taken(self, now: float) -> Callable[[], None]:
        item = self._longest_waiting(now)
        self._forget(item)
        return partial(self._run_one, item)

    def _run_one(self, item: T) -> None:
        with self._failing("a refit failed", lambda: self.schedule(item, self._retry_s)):
            self._run(item)
        self._ran_at[self._owner(item)] = self._clock()

    def _remember_others(self) -> None:
        self._others_at = math.inf
        with self._failing("what is to be fitted was not found", self._look_again):
            # With one too many, so that it is known where there are more.
            for item in self._left_out(self._most + 1):
                self.schedule(item, self._retry_s)

    def _look_again(self) -> None:
        self._others_at = self._clock() + self._retry_s

    @contextmanager
    def _failing(self, message: str, then: Callable[[], None]) -> Iterator[None]:
        """One failure must not end the thread.

        Once closed, what goes on finds the database closed, which is no failure to tell of.
        """
        try:
            yield
        except Exception:
            if not self._closed:
                log.exception(message)
                then()

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
