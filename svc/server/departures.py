"""Callers who close their side of the connection before they have an answer."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial

# The seconds between two looks at them.
LOOK_S = 0.5

# What a poll says of a connection whose other side is closed; only Linux tells.
_CLOSED = getattr(select, "POLLRDHUP", 0)


class Departure:
    """What to do once one caller has left; any thread may ask for it."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[[], None]] = []
        self._is_over = False
        self._lock = threading.Lock()

    @property
    def is_over(self) -> bool:
        """Whether it has happened."""
        return self._is_over

    def call(self, callback: Callable[[], None]) -> None:
        """Call this in another thread when the caller has left, or now if it has."""
        with self._lock:
            if not self._is_over:
                self._callbacks.append(callback)
                return
        callback()

    def happen(self) -> None:
        """The caller has left."""
        with self._lock:
            self._is_over = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()


class Departures:
    """Those of all requests that are being answered."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._awaited: dict[socket.socket, Departure] = {}
        self._next_look_at = 0.0

    @contextlib.contextmanager
    def awaited(self, sock: socket.socket) -> Iterator[Departure]:
        """Inside the block a request of this connection is answered."""
        self._awaited[sock] = departure = Departure()
        try:
            yield departure
        finally:
            del self._awaited[sock]

    def look(self) -> None:
        """In the polling thread: find who has left, every half a second at most.

        What is to be done then is done in another thread, since it may wait for locks that many
        threads want, and nobody is answered while the polling thread waits.
        """
        now = self._clock()
        if now < self._next_look_at or not self._awaited:
            return
        self._next_look_at = now + LOOK_S
        poller, by_file = select.poll(), {}
        # To list pairs may collect garbage, in which other threads go on and change them.
        for sock in list(self._awaited):
            departure, file = self._awaited.get(sock), sock.fileno()
            if departure is not None and file >= 0:
                poller.register(file, _CLOSED)
                by_file[file] = departure
        closed = [by_file[file] for file, _ in poller.poll(0)]
        left = [departure for departure in closed if not departure.is_over]
        if left:
            _in_another_thread(partial(_happen, left))


def _happen(left: Iterable[Departure]) -> None:
    for departure in left:
        departure.happen()


def _in_another_thread(work: Callable[[], None]) -> None:
    try:
        threading.Thread(target=work, name="departures", daemon=True).start()
    except RuntimeError:
        # The system allows no further thread.
        work()
