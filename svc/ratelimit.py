"""Token buckets by name, for the callers' keys and for the providers alike, over all processes."""

from __future__ import annotations

import hashlib
import mmap
import struct
import threading
import time
from collections.abc import Callable

from svc import limits
from svc.sharing import ProcessLock

SLOTS = 16_384  # buckets that may owe something at the same time
_PROBES = 32  # slots that a name may stand in
_ROUNDING_S = 1e-6  # what sums of intervals may be off by
_SLOT = struct.Struct("=Qdd")  # digest of the name, slots a minute, when the bucket is full again


class Exceeded(Exception):
    """The next slot lies further away than the caller would wait; none was reserved."""

    def __init__(self, retry_after: float) -> None:
        """`retry_after` is in seconds from now."""
        super().__init__(f"rate limit exceeded, next slot in {retry_after:.3f} s")
        self.retry_after = retry_after


class Buckets:
    """A bucket for each name; processes forked after this was made share them.

    A bucket lets its rate through, and a burst of `limits.BURST_S` seconds' worth, at least one.
    Full ones are forgotten, so those who stay away cost nothing.

    The generic cell rate algorithm (ITU-T I.371): one number, the time at which the bucket would
    be full again, says all there is to know. The numbers lie in shared memory; the lock is one
    that ends with the process that holds it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, slots: int = SLOTS) -> None:
        """`clock` has to be the same for all processes."""
        self._clock, self._slots = clock, slots
        self._memory = mmap.mmap(-1, slots * _SLOT.size)
        self._processes, self._threads = ProcessLock(), threading.Lock()

    def reserve(self, name: str, per_minute: float, max_wait: float = 0.0) -> float:
        """Take the next slot of `name` and return the seconds until it, 0.0 for now.

        A rate that differs from the last one counts at once. Raises `Exceeded`, and takes
        nothing, when the slot lies more than `max_wait` seconds away.
        """
        digest = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) or 1
        with self._threads, self._processes:
            now = self._clock()
            at, rate, full_at = self._find(digest, now)
            if rate != per_minute:
                full_at = now
            wait, full_at = _next_slot(per_minute, full_at, now, max_wait)
            _SLOT.pack_into(self._memory, at, digest, per_minute, full_at)
            return wait

    def close(self) -> None:
        """Let go of them in this process."""
        self._processes.close()
        self._memory.close()

    def _find(self, digest: int, now: float) -> tuple[int, float, float]:
        """Where the bucket stands, its rate, and when it is full; of a new one the rate is 0."""
        best, best_full_at = 0, float("inf")
        for probe in range(_PROBES):
            at = (digest + probe) % self._slots * _SLOT.size
            held, rate, full_at = _SLOT.unpack_from(self._memory, at)
            if held == digest:
                return at, rate, full_at
            if full_at < best_full_at:
                best, best_full_at = at, full_at
        # A full bucket's place; where nearly all of them owe something, the one that owes least.
        return best, 0.0, now


def _next_slot(
    per_minute: float, full_at: float, now: float, max_wait: float
) -> tuple[float, float]:
    """Seconds until the next slot, and when the bucket is full again once that is taken."""
    interval = 60.0 / per_minute  # seconds a slot
    burst = max(1, int(per_minute * limits.BURST_S / 60.0))
    full_at = max(full_at, now)
    wait = full_at - (burst - 1) * interval - now
    if wait <= _ROUNDING_S:
        wait = 0.0
    elif wait > max_wait:
        raise Exceeded(wait)
    return wait, full_at + interval
