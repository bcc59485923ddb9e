"""What calls of one caller's to one provider take of a processor together, while they last."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, MutableMapping

from svc import limits
from svc.meter import SpareOfPeer
from svc.providers.long_replies import ComingReply

# What a call has taken beyond what is usual, in seconds, before it is cut off for others.
NOTICED_S = 0.02

# A provider, and who calls it.
Peer = tuple[str, str | None]


class BusyCall:
    """What one call takes beyond what is usual, of what all of its peer's may.

    Hundreds of calls at the same time, each of which takes little, would take a processor for as
    long as they last if that was counted at their ends.
    """

    __slots__ = ("_began", "_clock", "_coming", "_counted_s", "_ended", "_lock", "_peer", "_peers")

    def __init__(
        self,
        peers: MutableMapping[Peer, SpareOfPeer],
        peer: Peer,
        coming: ComingReply,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`peers` has what is left to those of which a call took more than usual."""
        self._peers, self._peer, self._coming = peers, peer, coming
        self._clock, self._began = clock, clock()
        self._counted_s, self._ended, self._lock = 0.0, False, threading.Lock()

    def is_too_busy(self) -> bool:
        """Count what its meter has seen, from any thread; whether nothing is left for it."""
        beyond_s = self._count()
        return beyond_s > NOTICED_S and not self._peers[self._peer].has_left()

    def end(self) -> None:
        """Count for the last time: what its thread does from now on is for something else."""
        self._count(ends=True)

    def _count(self, ends: bool = False) -> float:
        """What it takes beyond what is usual, in seconds; 0 once it has ended."""
        coming = self._coming
        usual_s = limits.EXCHANGE_PROCESSOR_S + coming.came * limits.EXCHANGE_BYTE_S
        lasted_s = self._clock() - self._began
        with self._lock:
            if self._ended:
                return 0.0
            self._ended = ends
            usual_s += lasted_s * limits.CALL_SECOND_S
            beyond_s = max(0.0, coming.meter.busy_s - usual_s)
            # As long as it only waits, it comes back to what is usual.
            if (more_s := beyond_s - self._counted_s) != 0:
                self._counted_s = beyond_s
                self._peers.setdefault(self._peer, SpareOfPeer()).use(more_s)
        return beyond_s
