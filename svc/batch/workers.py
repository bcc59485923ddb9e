"""Work on the items of an iterator in several threads; the results come in the items' order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Generic, Self, TypeVar

from svc.batch.interruptions import Interruptions

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

# So many results for each thread may wait for the first one that is missing.
AHEAD = 16
# The length of one wait. A signal that came just before a wait is handled only after it.
LOOK_S = 0.5
# Results that have waited for an earlier one for so long are kept.
LATE_S = 1.0


@dataclass(frozen=True, slots=True)
class _Raised:
    error: BaseException


class Workers(Generic[ItemT, ResultT]):
    """Threads that take the next item themselves, at most a window ahead of the slowest.

    A context manager and an iterator of results. Leaving the block ends the work under way.
    A signal that comes inside the block is handled before the next result.
    """

    def __init__(
        self,
        items: Iterator[ItemT],
        work: Callable[[ItemT], ResultT],
        threads: int,
        cut: Callable[[], None],
        idle: Callable[[], None] = lambda: None,
        keep: Callable[[ResultT], None] = lambda _result: None,
        clear: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`cut` makes every `work` under way end soon; `idle` is called while no result comes.

        `keep` is told of results that wait for an earlier one which is late, or have not been
        given when the block ends, and `clear` once all of those have been given. `clock` gives
        seconds.
        """
        self._items, self._work, self._cut, self._idle = items, work, cut, idle
        self._keep, self._clear, self._clock = keep, clear, clock
        # Results that wait for an earlier one, the places of those that are kept, how many were
        # given, and when the last.
        self._early: dict[int, ResultT | _Raised] = {}
        self._kept: set[int] = set()
        self._given, self._given_at = 0, clock()
        # Held while an item is taken.
        self._lock = threading.Lock()
        self._taken = 0
        # Whether no further item is taken.
        self._ended = False
        self._reading = False
        self._room = threading.Semaphore(threads * AHEAD)
        self._done: SimpleQueue[tuple[int, ResultT | _Raised] | None] = SimpleQueue()
        self._interruptions = Interruptions(wake=lambda: self._done.put(None))
        self._threads = [
            threading.Thread(target=self._run, name=f"svc-row-{number}", daemon=True)
            for number in range(threads)
        ]

    def __enter__(self) -> Self:
        self._interruptions.__enter__()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._finish()
        finally:
            self._interruptions.__exit__(kind, error, trace)

    def __iter__(self) -> Iterator[ResultT]:
        """The results, each as soon as it and all before it are there. Raises errors of `work`."""
        while not (self._ended and self._given == self._taken):
            arrival = self._arrival()
            self._interruptions.check()
            if arrival is not None:
                self._early[arrival[0]] = arrival[1]
            held = bool(self._kept)
            yield from self._in_order()
            if held and not self._kept:
                self._clear()
            self._keep_late()

    def _in_order(self) -> Iterator[ResultT]:
        """The results that wait for none any more."""
        while self._given in self._early:
            result = self._early.pop(self._given)
            self._kept.discard(self._given)
            self._given += 1
            self._given_at = self._clock()
            self._room.release()
            if isinstance(result, _Raised):
                raise result.error
            yield result

    def _keep_late(self) -> None:
        """Keep what waits, where the result that it waits for is late."""
        if self._clock() - self._given_at > LATE_S:
            self._keep_early()

    def _keep_early(self) -> None:
        for place in sorted(self._early.keys() - self._kept):
            result = self._early[place]
            if not isinstance(result, _Raised):
                self._keep(result)
                self._kept.add(place)

    def _finish(self) -> None:
        self._ended = True
        self._room.release(len(self._threads))
        self._cut()
        # While a thread reads the input, which may never come, no thread is waited for.
        if not self._reading:
            for thread in self._threads:
                thread.join()
        with suppress(Empty):
            while True:
                if arrival := self._done.get_nowait():
                    self._early[arrival[0]] = arrival[1]
        self._keep_early()

    def _arrival(self) -> tuple[int, ResultT | _Raised] | None:
        while True:
            with suppress(Empty):
                return self._done.get(timeout=LOOK_S)
            self._idle()
            self._keep_late()

    def _run(self) -> None:
        while True:
            self._room.acquire()
            with self._lock:
                taken = None if self._ended else self._take()
            if taken is None:
                return
            place, item = taken
            self._done.put((place, self._outcome(item)))

    def _take(self) -> tuple[int, ItemT] | None:
        """The next item and its place, None at the end; the caller holds the lock."""
        self._reading = True
        try:
            item = next(self._items)
        except StopIteration:
            self._end(None)
            return None
        except BaseException as error:  # noqa: BLE001 - passed on to the thread that iterates
            self._taken += 1
            self._end((self._taken - 1, _Raised(error)))
            return None
        finally:
            self._reading = False
        self._taken += 1
        return self._taken - 1, item

    def _outcome(self, item: ItemT) -> ResultT | _Raised:
        try:
            return self._work(item)
        except BaseException as error:  # noqa: BLE001 - passed on to the thread that iterates
            return _Raised(error)

    def _end(self, last: tuple[int, ResultT | _Raised] | None) -> None:
        """Take no further item: wake the thread that iterates, and those that wait for room."""
        self._ended = True
        self._done.put(last)
        self._room.release(len(self._threads))
