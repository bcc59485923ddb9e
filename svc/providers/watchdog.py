"""Bounds whole calls: a socket that is still in use when its call's time is over is shut down.

So is one that keeps its thread busy beyond what the call may take of a processor.

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
from svc.meter import Meter
from svc.providers.reply_pace import LINE_PACE, PIECE_PACE, ReplyPace

# The seconds between two looks at what calls under way take of a processor, and while there are
# some of which nothing is left to take.
LOOK_S, SHORT_LOOK_S = 0.1, 0.01

# What is dropped of what has come for a call that was cut off: so many bytes, so many times.
_DROPPED_BYTES, _DROPS = 262_144, 64

_current = threading.local()


class Watch:
    """The time of one call, what may be read for its request, and the socket that it uses now."""

    __slots__ = (
        "_clock",
        "_effort",
        "_handle",
        "_is_too_busy",
        "_lock",
        "_meter",
        "_provider",
        "_sock",
        "asked",
        "at",
        "cancelled",
        "expired",
        "kept_busy",
    )

    def __init__(
        self,
        at: float,
        clock: Callable[[], float],
        effort: Effort | None,
        provider: str,
        meter: Meter | None,
        is_too_busy: Callable[[], bool],
    ) -> None:
        self.at = at
        self._clock = clock
        self._effort, self._provider, self._meter = effort, provider, meter
        self._is_too_busy = is_too_busy
        self.expired = False
        self.cancelled = False
        # Whether the provider may have any of it.
        self.asked = False
        # Whether it was cut off because it took too much of a processor.
        self.kept_busy = False
        self._sock: Any = None
        self._handle: socket.socket | None = None
        # Its own: hundreds of calls that wanted one lock would wait for each other, and for the
        # interpreter, many times over.
        self._lock = threading.Lock()

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

    def may_shake_hands(self) -> None:
        """Raise `TimeoutError`, and end the call, where nothing of a processor is left for that."""
        if self.is_short:
            self._end_as_busy()
        self.left()

    def connected(self) -> None:
        """Note that a connection is there: what its thread does now is for a handshake."""
        if self._meter is not None:
            self._meter.go_on()

    def sending(self) -> None:
        """Note that the call is sent from now on."""
        with self._lock:
            # A socket that is shut down while it connects seems to be connected.
            self.asked = not self.ended
        if self._meter is not None:
            self._meter.pause()

    def sent(self) -> None:
        """Note that the call was sent, or cut off: what its thread does now is for the reply."""
        if self._meter is not None:
            self._meter.go_on()

    @property
    def is_short(self) -> bool:
        """Whether nothing of a processor is left that the call may take."""
        return self._meter is not None and self._meter.is_short

    def look(self) -> None:
        """Cut the call off where it takes more of a processor than there is."""
        if self.ended or self._meter is None:
            return
        if self._meter.look() or self._is_too_busy():
            self._end_as_busy()

    def cancel(self) -> None:
        """Cut this one call off, from any thread."""
        self._cut(cancelled=True)

    def expire(self) -> None:
        """The same, because its time is over."""
        self._cut(cancelled=False)

    def take_lines(self, lines: int) -> bool:
        """Take lines of a reply from those of all replies to the request, once it is their turn.

        False where there are none left, or where the call has ended: what has come of its reply is
        left unread.
        """
        if self._effort is not None and not self._effort.lines.take(lines):
            return False
        self._wait_for(LINE_PACE, lines)
        return not self.ended

    def next_piece(self) -> None:
        """Wait for the turn of one more read. Raises `TimeoutError` where the call has ended."""
        self._wait_for(PIECE_PACE, 1)
        self.left()

    def _wait_for(self, pace: ReplyPace, count: int) -> None:
        """Wait for the turn of so many lines or pieces, as long as the call has not ended."""
        caller = None if self._effort is None else self._effort.caller
        pace.wait(count, caller, self._provider, lambda: not self.ended, self.at)

    def finish(self) -> None:
        """Let go of the socket."""
        with self._lock:
            self._release()

    def _end_as_busy(self) -> None:
        self.kept_busy = True
        self.expire()

    def _cut(self, cancelled: bool) -> None:
        with self._lock:
            self.cancelled, self.expired = cancelled, not cancelled
            self._shut_if_ended()

    def _release(self) -> None:
        if self._handle is not None:
            self._handle.close()
        self._sock = self._handle = None

    def _shut_if_ended(self) -> None:
        if self.ended and self._sock is not None:
            # Those of a plain socket: the shutdown of a TLS socket would also drop its decryption.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._sock, socket.SHUT_RDWR)
            _drop_received(self._sock)


class Watchdog:
    """Looks after the calls under way; its thread starts with the first of them, or before."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # Changed without a lock, and copied before it is gone through.
        self._watches: set[Watch] = set()
        self._changed = threading.Condition()
        # When the thread looks next; a call that ends before has to wake it.
        self._wakes_at = math.inf
        self._closed = False
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start its thread. Raises `RuntimeError` where the system allows no further one."""
        with self._changed:
            self._begin()

    @contextlib.contextmanager
    def watching(
        self,
        seconds: float,
        deadline: Deadline | None = None,
        provider: str = "",
        meter: Meter | None = None,
        is_too_busy: Callable[[], bool] = lambda: False,
    ) -> Iterator[Watch]:
        """Bound what this thread does inside the block, as far as it is done over sockets.

        It ends early when `deadline` is cancelled, and where it takes more of a processor than the
        `meter` allows, or others with it, as `is_too_busy` says. `provider` is the name of the one
        that is asked.
        """
        effort = deadline.effort if deadline else None
        watch = Watch(self._clock() + seconds, self._clock, effort, provider, meter, is_too_busy)
        _current.watch = watch
        try:
            self._add(watch)
            with deadline.interrupting(watch.cancel) if deadline else contextlib.nullcontext():
                yield watch
        finally:
            _current.watch = None
            self._watches.discard(watch)
            watch.finish()

    def cancel_all(self) -> None:
        """Cut off every call that is under way."""
        for watch in list(self._watches):
            watch.cancel()

    def close(self) -> None:
        """Cut off every call, those to come too, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
            thread = self._thread
        self.cancel_all()
        if thread is not None:
            thread.join()

    def _add(self, watch: Watch) -> None:
        self._watches.add(watch)
        is_sooner = watch.is_short or watch.at < self._wakes_at
        if self._thread is None or self._closed or is_sooner:
            with self._changed:
                # Who closes it after this finds the call among the others.
                watch.cancelled |= self._closed
                self._begin()
                self._changed.notify()

    def _begin(self) -> None:
        if self._thread is None and not self._closed:
            thread = threading.Thread(target=self._run, name="calls", daemon=True)
            thread.start()
            # Only now, since the system may allow no further thread; the next call tries anew.
            self._thread = thread

    def _run(self) -> None:
        with self._changed:
            while not self._closed:
                # A call that comes from now on wakes it, unless it is seen below.
                self._wakes_at = math.inf
                now, watches = self._clock(), list(self._watches)
                for watch in watches:
                    if watch.at <= now and not watch.ended:
                        watch.expire()
                    watch.look()
                running = [watch for watch in watches if not watch.ended]
                self._wakes_at = min((watch.at for watch in running), default=math.inf)
                if running:
                    look_s = SHORT_LOOK_S if any(one.is_short for one in running) else LOOK_S
                    self._wakes_at = min(self._wakes_at, now + look_s)
                wait = None if math.isinf(self._wakes_at) else max(0.0, self._wakes_at - now)
                self._changed.wait(wait)


def _drop_received(sock: Any) -> None:
    """Drop what has come on a socket that is shut down.

    It would still be read, and records of TLS keep the thread that reads them busy.
    """
    with contextlib.suppress(OSError):
        for _ in range(_DROPS):
            if not socket.socket.recv(sock, _DROPPED_BYTES, socket.MSG_DONTWAIT):
                return


def current_watch() -> Watch:
    """The watch of the call that this thread makes."""
    watch: Watch = _current.watch
    return watch
