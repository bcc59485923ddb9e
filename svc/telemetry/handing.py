"""Hands spans over from a thread of its own, so that no decision waits for it.

Spans wait in a queue of bounded size until they are taken. What comes while it is full is dropped,
and the log says how much that was.
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

# Whether a block of spans was taken; where it was not, it is offered again.
Send = Callable[[Sequence[Record]], bool]


class Recorded(Protocol):
    """A span that has ended."""

    def record(self) -> Record: ...


# How many spans may wait: those of two seconds of a busy worker, in about 4 MiB.
WAITING = 4_096

# The spans of a block: some 50 KiB, of which the line holds several, or 200 KiB where all names in
# them are as long as they may be, of which it holds one.
BLOCK = 256

# The pause between two looks at what has come. To be woken by each span would cost more.
PAUSE_S = 0.2

# How long a process that ends tries to have its last spans taken, which is a part of the time that
# its master gives it, and the pause between two of these tries.
LAST_S = 2.0
LAST_PAUSE_S = 0.01

log = logging.getLogger(__name__)


class HandedTraces(OwnTraces):
    """See `svc.tracing.Traces`; made after the fork."""

    def __init__(
        self, send: Send, sampling: Sampling, close: Callable[[], None] = lambda: None
    ) -> None:
        """Spans are offered to `send`, and after the last one there is `close` to be called."""
        self._handing, self._close = Handing(send), close
        super().__init__(self._handing.take, sampling)

    def close(self) -> None:
        """See `svc.tracing.Traces`."""
        self._handing.close()
        self._close()


class Handing:
    """Spans of this process on their way."""

    def __init__(self, send: Send, waiting: int = WAITING) -> None:
        """Begin; up to `waiting` spans wait until `send` takes them."""
        self._send, self._most = send, waiting
        self._waiting: deque[Recorded] = deque()
        self._lost, self._counting, self._lines = 0, threading.Lock(), Sparingly(1)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="traces", daemon=True)
        self._thread.start()

    def take(self, span: Recorded) -> None:
        """Have a span handed over; it never waits, and is dropped where too many do."""
        if len(self._waiting) < self._most:
            self._waiting.append(span)
        else:
            self._lose(1)

    def close(self) -> None:
        """Hand over what waits, as far as that takes little time."""
        self._ending.set()
        self._thread.join(LAST_S + PAUSE_S)

    def _run(self) -> None:
        while not self._ending.wait(PAUSE_S):
            self._hand_over()
            self._say()
        give_up_at = time.monotonic() + LAST_S
        while not self._hand_over() and time.monotonic() < give_up_at:
            time.sleep(LAST_PAUSE_S)
        self._lose(len(self._waiting))
        self._say()

    def _hand_over(self) -> bool:
        """Offer all that waits, block by block; whether it was taken."""
        waiting = self._waiting
        while waiting:
            # This thread alone takes away from the queue.
            block = [waiting[n].record() for n in range(min(BLOCK, len(waiting)))]
            if not self._taken(block):
                return False
            for _ in block:
                waiting.popleft()
        return True

    def _taken(self, block: Sequence[Record]) -> bool:
        try:
            return self._send(block)
        except Exception:  # noqa: BLE001 - spans are not worth a thread; it may quote what they hold
            self._lose(len(block))
            return True

    def _lose(self, spans: int) -> None:
        with self._counting:
            self._lost += spans

    def _say(self) -> None:
        if self._lost and self._lines.take():
            with self._counting:
                lost, self._lost = self._lost, 0
            log.warning("%d spans of traces could not be handed over, and are lost", lost)
