"""Remembers answers, and lets equal requests that come at the same time share one answer."""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import Generic, NamedTuple, TypeVar

from svc.deadline import Deadline
from svc.errors import DollarsSpent, NoSlotInTime, OutOfCalls, Timeout
from svc.recent import Recent

T = TypeVar("T")

# So long a caller waits for the value of another one, who may stand in a long line at a provider.
PATIENCE_S = 5.0

# A request whose deadline is so many seconds later may have its turn at a provider where another's
# came too late. Those of one caller, who has one line there, would else try one after the other.
_LATER_S = 1.0


class _Led(NamedTuple, Generic[T]):
    """A value that is being made, by whom, and until when."""

    value: Future[T]
    leader: str | None
    deadline: Deadline


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
        # By mode and key, and by who makes the value.
        self._under_way: dict[tuple[str, bytes], dict[str | None, _Led[T]]] = {}
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
        Where it takes over `patience_s`, or runs out of its own time, calls or budget, the others
        wait for it no more: one of them makes the value next. Raises what `make` raises, and
        `Timeout`.
        """
        if self._size == 0:
            return make(), False
        avoided: set[str | None] = set()
        while True:
            with self._lock:
                value = self._used(mode, key, owner)
                if value is not None:
                    return value, True
                led = self._led(mode, key, caller, avoided)
                if led is None:
                    own: _Led[T] = _Led(Future(), caller, deadline)
                    self._under_way.setdefault((mode, key), {})[caller] = own
                    break
            is_ours = caller == led.leader
            # Who asks the same and leaves, again and again, or stands in a long line at a provider,
            # would keep others from their answer.
            avoided.add(led.leader)
            if not _wait(led.value, deadline, math.inf if is_ours else self._patience_s):
                continue
            try:
                return led.value.result(), True
            except (Timeout, NoSlotInTime, OutOfCalls, DollarsSpent) as error:
                is_as_late = is_ours and deadline.at < led.deadline.at + _LATER_S
                if isinstance(error, NoSlotInTime) and is_as_late:
                    raise
                deadline.check()
        return self._make(mode, key, own, make, owner), False

    def _led(
        self, mode: str, key: bytes, caller: str | None, avoided: Collection[str | None]
    ) -> _Led[T] | None:
        """What is being made that this caller waits for, its own before that of others."""
        under_way = self._under_way.get((mode, key), {})
        others = (led for leader, led in under_way.items() if leader not in avoided)
        return under_way.get(caller) or next(others, None)

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
        mode: str,
        key: bytes,
        own: _Led[T],
        make: Callable[[], T],
        owner: str,
    ) -> T:
        try:
            value = make()
        except BaseException as error:
            with self._lock:
                self._end(mode, key, own)
            own.value.set_exception(error)
            raise
        with self._lock:
            self._end(mode, key, own)
            self._keep(mode, key, value, owner, own.leader)
        own.value.set_result(value)
        return value

    def _end(self, mode: str, key: bytes, own: _Led[T]) -> None:
        under_way = self._under_way[mode, key]
        del under_way[own.leader]
        if not under_way:
            del self._under_way[mode, key]

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
