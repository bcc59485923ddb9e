"""Passes ended spans on from a thread of its own, so that no decision waits for it.

Spans wait in a bounded queue. Those that end while it is full are dropped, and the log says how
many they were.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from svc.logs import Sparingly
from svc.telemetry.sampling import Sampling
from svc.telemetry.spans import OwnTraces, Record

# Takes a block of spans, or returns False where there is no room; then it is offered again.
Send = Callable[[Sequence[Record]], bool]


class Recorded(Protocol):
    """A span that has ended."""

    def record(self) -> Record: ...


# The most spans in the queue: what a busy worker makes in two seconds, about 4 MiB.
WAITING = 4_096

# The most spans of a block. They are some 50 KiB, and 200 KiB where every name in them is as long
# as it may be; the line has room for several of the former, and for one of the latter.
BLOCK = 256

# The pause between two looks into the queue, in seconds. To wake the thread for each span would
# cost more.
PAUSE_S = 0.2

# How long a process that ends tries to pass its last spans on, within the time that its master
# gives it to end, and the pause between two tries, both in seconds.
LAST_S = 2.0
LAST_PAUSE_S = 0.01

log = logging.getLogger(__name__)


class HandedTraces(OwnTraces):
    """See `svc.tracing.Traces`; made after the fork."""

    def __init__(
        self, send: Send, sampling: Sampling, close: Callable[[], None] = lambda: None
    ) -> None:
        """Offer ended spans to `send`, and call `close` after the last of them."""
        self._handing, self._close = Handing(send), close
        super().__init__(self._handing.take, sampling)

    def close(self) -> None:
        """See `svc.tracing.Traces`."""
        self._handing.close()
        self._close()


class Handing:
    """The queue of a process's ended spans, and the thread that empties it."""

    def __init__(self, send: Send, waiting: int = WAITING) -> None:
        """Start the thread; up to `waiting` spans wait until `send` takes them."""
        self._send, self._most = send, waiting
        self._queue: deque[Recorded] = deque()
        self._lost, self._counting, self._lines = 0, threading.Lock(), Sparingly(1)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traces", daemon=True)
        self._thread.start()

    def take(self, span: Recorded) -> None:
        """Queue a span, or drop it where the queue is full; never waits."""
        if len(self._queue) < self._most:
            self._queue.append(span)
        else:
            self._lose(1)

    def close(self) -> None:
        """Pass on what is queued, for `LAST_S` at most."""
        self._ending.set()
        self._thread.join(LAST_S + PAUSE_S)

    def _run(self) -> None:
        while not self._ending.wait(PAUSE_S):
            self._hand_over()
            self._say()
        give_up_at = time.monotonic() + LAST_S
        while not self._hand_over() and time.monotonic() < give_up_at:
            time.sleep(LAST_PAUSE_S)
        self._lose(len(self._queue))
        self._say()

    def _hand_over(self) -> bool:
        """Offer all that is queued, block by block; False where there was no room for it."""
        queue = self._queue
        while queue:
            # Only this thread removes spans, so that a block is still in front once it was taken.
            block = [queue[n].record() for n in range(min(BLOCK, len(queue)))]
            if not self._taken(block):
                return False
            for _ in block:
                queue.popleft()
        return True

    def _taken(self, block: Sequence[Record]) -> bool:
        try:
            return self._send(block)
        except Exception:  # noqa: BLE001 - the thread has to go on
            # The message may quote what a span holds. One that is too long, or holds what cannot be
            # sent, does not take the others of its block with it.
            alone = len(block) == 1
            self._lose(1 if alone else sum(not self._taken([record]) for record in block))
            return True

    def _lose(self, spans: int) -> None:
        with self._counting:
            self._lost += spans

    def _say(self) -> None:
        if self._lost and self._lines.take():
            with self._counting:
                lost, self._lost = self._lost, 0
            log.warning("%d spans of traces could not be handed over, and are lost", lost)
