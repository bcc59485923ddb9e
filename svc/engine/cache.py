"""Remembers answers, and lets equal requests that come at the same time share one answer."""

from __future__ import annotations

import hashlib
import math
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import Generic, TypeVar

from svc.deadline import Deadline
from svc.errors import DollarsSpent, OutOfCalls, Timeout

T = TypeVar("T")


class DecisionCache(Generic[T]):
    """The `size` values used last, for each mode; size 0 remembers and shares nothing.

    They are fewer where `weigh` gives those of all modes more than `most` together, in whatever
    unit.
    """

    def __init__(
        self, size: int, weigh: Callable[[T], int] = lambda _: 1, most: float = math.inf
    ) -> None:
        self._size, self._weigh, self._most = size, weigh, most
        self._weight = 0
        # For each mode in the order of their last use, which has a number over all modes.
        self._kept: dict[str, OrderedDict[bytes, tuple[int, T]]] = {}
        self._uses = count()
        self._under_way: dict[tuple[str, bytes], Future[T]] = {}
        self._lock = threading.Lock()

    def fetch(
        self, mode: str, key: bytes, deadline: Deadline, make: Callable[[], T]
    ) -> tuple[T, bool]:
        """The value for `key`, and whether it came without this caller making it.

        Of several callers at the same time one makes the value, and the others get its failure too,
        unless it ran out of its own time, calls or budget. Raises what `make` raises, and
        `Timeout`.
        """
        if self._size == 0:
            return make(), False
        while True:
            with self._lock:
                kept = self._kept.setdefault(mode, OrderedDict())
                if key in kept:
                    return self._used(kept, key), True
                shared = self._under_way.get((mode, key))
                if shared is None:
                    own = self._under_way[mode, key] = Future()
                    break
            _wait(shared, deadline)
            try:
                return shared.result(), True
            except (Timeout, OutOfCalls, DollarsSpent):
                # Who made the value ran out of its own time, calls or budget: another caller makes
                # it now.
                deadline.check()
        return self._make(mode, key, own, make), False

    def kept(self, mode: str, key: bytes) -> T | None:
        """The value that is kept for `key`, which counts as used; None where there is none."""
        with self._lock:
            kept = self._kept.get(mode)
            if kept is None or key not in kept:
                return None
            return self._used(kept, key)

    def _used(self, kept: OrderedDict[bytes, tuple[int, T]], key: bytes) -> T:
        _, value = kept.pop(key)
        kept[key] = next(self._uses), value
        return value

    def _make(self, mode: str, key: bytes, own: Future[T], make: Callable[[], T]) -> T:
        try:
            value = make()
        except BaseException as error:
            with self._lock:
                del self._under_way[mode, key]
            own.set_exception(error)
            raise
        with self._lock:
            del self._under_way[mode, key]
            self._keep(mode, key, value)
        own.set_result(value)
        return value

    def _keep(self, mode: str, key: bytes, value: T) -> None:
        kept = self._kept[mode]
        kept[key] = next(self._uses), value
        self._weight += self._weigh(value)
        if len(kept) > self._size:
            self._forget_oldest(kept)
        while self._weight > self._most:
            self._forget_oldest(min(filter(None, self._kept.values()), key=_last_use_of_oldest))

    def _forget_oldest(self, kept: OrderedDict[bytes, tuple[int, T]]) -> None:
        _, (_, value) = kept.popitem(last=False)
        self._weight -= self._weigh(value)


def _last_use_of_oldest(kept: OrderedDict[bytes, tuple[int, T]]) -> int:
    return next(iter(kept.values()))[0]


def _wait(shared: Future[T], deadline: Deadline) -> None:
    """Wait until it is done. Raises `Timeout` when the deadline passes or is cancelled first."""
    done_or_cancelled = threading.Event()
    shared.add_done_callback(lambda _: done_or_cancelled.set())
    with deadline.interrupting(done_or_cancelled.set):
        done_or_cancelled.wait(max(0.0, deadline.left()))
    if not shared.done():
        raise Timeout("the request exceeded its deadline")


def cache_key(*parts: str) -> bytes:
    """A digest of all parts; no two lists of parts share one."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.digest()
