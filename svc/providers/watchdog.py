"""Bounds whole calls: a socket that is still in use when its call's time is over is shut down.

The timeouts of a socket bound one operation, so a peer that sends a byte now and then could hold
a call for ever. One thread looks after all calls; shutting a socket down wakes whoever waits on it.
"""

from __future__ import annotations

import contextlib
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from svc.deadline import Deadline, Effort

_current = threading.local()


class Watch:
    """The time of one call, what may be read for its request, and the socket that it uses now."""

    __slots__ = ("_clock", "_handle", "_lock", "_sock", "at", "cancelled", "effort", "expired")

    def __init__(
        self,
        at: float,
        lock: threading.Lock,
        clock: Callable[[], float],
        effort: Effort | None,
    ) -> None:
        self.at, self.effort = at, effort
        self._clock = clock
        self.expired = False
        self.cancelled = False
        self._sock: Any = None
        self._handle: socket.socket | None = None
        self._lock = lock

    @property
    def ended(self) -> bool:
        """Whether the call was cut off; whatever came of it then counts for nothing."""
        return self.expired or self.cancelled

    def left(self) -> float:
        """Seconds left for connecting; raises `TimeoutError` once the call has ended."""
        left = self.at - self._clock()
        if left <= 0 or self.ended:
            raise TimeoutError("the call has ended")
        return left

    def hold(self, sock: socket.socket) -> None:
        """Watch a new connection by a duplicate: the TLS handshake takes the socket itself away."""
        with self._lock:
            self._release()
            self._sock = self._handle = sock.dup()
            self._shut_if_ended()

    def follow(self, sock: Any) -> None:
        """Watch an open connection; inside a TLS proxy the socket is one layer further down."""
        with self._lock:
            self._release()
            self._sock = getattr(sock, "socket", sock)
            self._shut_if_ended()

    def cancel(self) -> None:
        """Cut this one call off, from any thread."""
        with self._lock:
            self.cut(cancelled=True)

    def cut(self, cancelled: bool) -> None:
        """Shut the call's socket down; the caller holds the lock."""
        self.cancelled, self.expired = cancelled, not cancelled
        self._shut_if_ended()

    def finish(self) -> None:
        """Let go of the socket; the caller holds the lock."""
        self._release()

    def _release(self) -> None:
        if self._handle is not None:
            self._handle.close()
        self._sock = self._handle = None

    def _shut_if_ended(self) -> None:
        if self.ended and self._sock is not None:
            with contextlib.suppress(OSError):
                # The plain shutdown: that of a TLS socket would also drop its decryption.
                socket.socket.shutdown(self._sock, socket.SHUT_RDWR)


class Watchdog:
    """Looks after the calls under way; its thread starts with the first of them, or before."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._watches: set[Watch] = set()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._wakes_at = math.inf
        self._closed = False
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start its thread. Raises `RuntimeError` where the system allows no further one."""
        with self._lock:
            self._begin()

    @contextlib.contextmanager
    def watching(self, seconds: float, deadline: Deadline | None = None) -> Iterator[Watch]:
        """Bound what this thread does inside the block, as far as it is done over sockets.

        It ends early when `deadline` is cancelled.
        """
        effort = deadline.effort if deadline else None
        watch = Watch(self._clock() + seconds, self._lock, self._clock, effort)
        self._add(watch)
        _current.watch = watch
        try:
            with deadline.interrupting(watch.cancel) if deadline else contextlib.nullcontext():
                yield watch
        finally:
            _current.watch = None
            with self._lock:
                self._watches.discard(watch)
                watch.finish()

    def cancel_all(self) -> None:
        """Cut off every call that is under way."""
        with self._lock:
            for watch in self._watches:
                watch.cut(cancelled=True)

    def close(self) -> None:
        """Cut off every call, those to come too, and end the thread."""
        with self._lock:
            self._closed = True
            for watch in self._watches:
                watch.cut(cancelled=True)
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _add(self, watch: Watch) -> None:
        with self._lock:
            watch.cancelled = self._closed
            self._begin()
            self._watches.add(watch)
            if watch.at < self._wakes_at:
                self._changed.notify()

    def _begin(self) -> None:
        if self._thread is None and not self._closed:
            thread = threading.Thread(target=self._run, name="calls", daemon=True)
            thread.start()
            # Only now, since the system may allow no further thread; the next call tries anew.
            self._thread = thread

    def _run(self) -> None:
        with self._lock:
            while not self._closed:
                now = self._clock()
                for watch in self._watches:
                    if watch.at <= now and not watch.ended:
                        watch.cut(cancelled=False)
                running = (watch.at for watch in self._watches if not watch.ended)
                self._wakes_at = min(running, default=math.inf)
                wait = None if math.isinf(self._wakes_at) else max(0.0, self._wakes_at - now)
                self._changed.wait(wait)


def current_watch() -> Watch:
    """The watch of the call that this thread makes."""
    watch: Watch = _current.watch
    return watch
