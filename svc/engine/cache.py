"""Remembers answers, and lets equal requests that come at the same time share one answer."""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from svc.deadline import Deadline
from svc.errors import DollarsSpent, NoSlotInTime, OutOfCalls, Timeout
from svc.recent import Recent

T = TypeVar("T")

# So long a caller waits for the value of another one, who may stand in a long line at a provider.
PATIENCE_S = 5.0

# A mode and a key, and the caller whose requests alone wait for the value; None where all do.
_Place = tuple[str, bytes, str | None]

# A request whose deadline is so many seconds later may have its turn at a provider where another's
# came too late. Those of one caller, who has one line there, would else try one after the other.
_LATER_S = 1.0


class DecisionCache(Generic[T]):
    """The `size` values used last, for each mode; size 0 remembers and shares nothing.

    They are fewer where `weigh` gives those of all modes more than `most` together, in whatever
    unit. A caller that brought more than half of either gives up its own for further ones, and so
    does an owner whose callers are unknown.
    """

    def __init__(
        self,
        size: int,
        weigh: Callable[[T], int] = lambda _: 1,
        most: float = math.inf,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._size, self._weigh, self._patience_s = size, weigh, patience_s
        self._kept: dict[str, Recent[str, bytes, T]] = {}
        # What those of all modes weigh.
        self._weights: Recent[str, tuple[str, bytes], int] = Recent(most, int)
        # With who makes the value, and until when.
        self._under_way: dict[_Place, tuple[Future[T], str | None, Deadline]] = {}
        self._lock = threading.Lock()

    def fetch(
        self,
        mode: str,
        key: bytes,
        deadline: Deadline,
        make: Callable[[], T],
        owner: str = "",
        caller: str | None = None,
    ) -> tuple[T, bool]:
        """The value for `key`, and whether it came without this `caller` making it.

        It is the `owner`'s, whose keys are no one else's.

        Of several callers at the same time one makes the value, and the others get its failure too.
        Where it takes over `patience_s`, or runs out of its own time, calls or budget, each other
        caller makes the value, once for all that it asks at that time. Raises what `make` raises,
        and `Timeout`.
        """
        if self._size == 0:
            return make(), False
        place: _Place = mode, key, None
        while True:
            with self._lock:
                value = self._used(mode, key, owner)
                if value is not None:
                    return value, True
                under_way = self._under_way.get(place)
                if under_way is None:
                    own: Future[T] = Future()
                    self._under_way[place] = own, caller, deadline
                    break
            shared, leader, leading = under_way
            if not _wait(shared, deadline, math.inf if caller == leader else self._patience_s):
                place = mode, key, caller
                continue
            try:
                return shared.result(), True
            except (Timeout, NoSlotInTime, OutOfCalls, DollarsSpent) as error:
                # Who made the value ran out of its own time, calls or budget, or has left. Another
                # caller waits for it no more: who asks the same and leaves, again and again, would
                # keep it from its answer.
                if caller != leader:
                    place = mode, key, caller
                is_as_late = caller == leader and deadline.at < leading.at + _LATER_S
                if isinstance(error, NoSlotInTime) and is_as_late:
                    raise
                deadline.check()
        return self._make(place, own, make, owner, caller), False

    def kept(self, mode: str, key: bytes, owner: str = "") -> T | None:
        """The value that is kept for `key`, which counts as used; None where there is none."""
        with self._lock:
            return self._used(mode, key, owner)

    def _used(self, mode: str, key: bytes, owner: str) -> T | None:
        self._weights.get(owner, (mode, key))
        kept = self._kept.get(mode)
        return None if kept is None else kept.get(owner, key)

    def _make(
        self,
        place: _Place,
        own: Future[T],
        make: Callable[[], T],
        owner: str,
        caller: str | None,
    ) -> T:
        try:
            value = make()
        except BaseException as error:
            with self._lock:
                del self._under_way[place]
            own.set_exception(error)
            raise
        mode, key, _ = place
        with self._lock:
            del self._under_way[place]
            self._keep(mode, key, value, owner, caller)
        own.set_result(value)
        return value

    def _keep(self, mode: str, key: bytes, value: T, owner: str, caller: str | None) -> None:
        kept = self._kept.setdefault(mode, Recent(self._size))
        for others, gone in kept.put(owner, key, value, caller):
            self._weights.remove(others, (mode, gone))
        weight = self._weigh(value)
        for others, (its_mode, gone) in self._weights.put(owner, (mode, key), weight, caller):
            self._kept[its_mode].remove(others, gone)


def _wait(shared: Future[T], deadline: Deadline, most_s: float) -> bool:
    """Wait until it is done, so long at most; whether it is.

    Raises `Timeout` when the deadline passes or is cancelled first.
    """
    done_or_cancelled = threading.Event()
    shared.add_done_callback(lambda _: done_or_cancelled.set())
    with deadline.interrupting(done_or_cancelled.set):
        left_s = max(0.0, deadline.left())
        ended = done_or_cancelled.wait(min(left_s, most_s))
    if shared.done():
        return True
    if ended or left_s <= most_s:
        raise Timeout("the request exceeded its deadline")
    return False


def cache_key(*parts: str) -> bytes:
    """A digest of all parts; no two lists of parts share one."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.digest()
