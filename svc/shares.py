"""What callers may have at once of something that all of a process share."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator

from svc import limits
from svc.deadline import Deadline


class Shares:
    """Counts what is in use, so that no caller takes so much that others get nothing.

    A caller has a quarter of all there is, and more while less than half is in use. Who has no name
    is everybody, and has the whole.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._all = 0
        self._of: Counter[str | None] = Counter()
        self._lock = threading.Lock()

    @property
    def share(self) -> int:
        """What each caller may have in any case."""
        return max(1, self._most // 4)

    def take(self, caller: str | None, amount: int = 1) -> bool:
        """Take so much; False, and nothing is taken, where that is not there for the caller now.

        What is larger than a share is there where nothing else is in use.
        """
        with self._lock:
            if self._all and not self._fits(caller, amount):
                return False
            self._all += amount
            self._of[caller] += amount
            return True

    @contextlib.contextmanager
    def held(self, caller: str | None, amount: int, deadline: Deadline) -> Iterator[None]:
        """Have so much in the block, once it is there. Raises `Timeout`."""
        while not self.take(caller, amount):
            deadline.check()
            time.sleep(limits.ROOM_LOOK_S)
        try:
            yield
        finally:
            self.give_back(caller, amount)

    def give_back(self, caller: str | None, amount: int = 1) -> None:
        """Give back what was taken."""
        with self._lock:
            self._all -= amount
            self._of[caller] -= amount
            if not self._of[caller]:
                del self._of[caller]

    def take_with(self, other: Shares, caller: str | None, of_other: int) -> bool:
        """Take one of this, and so much of `other`; False, and neither, where one lacks."""
        if not other.take(caller, of_other):
            return False
        if self.take(caller):
            return True
        other.give_back(caller, of_other)
        return False

    def _fits(self, caller: str | None, amount: int) -> bool:
        after = self._all + amount
        if after > self._most:
            return False
        if caller is None or after <= self._most // 2:
            return True
        return self._of[caller] + amount <= self.share
