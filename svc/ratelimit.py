"""A token bucket, for the callers' keys and for the providers alike."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from svc import limits

_ROUNDING_S = 1e-6  # what sums of intervals may be off by


class Exceeded(Exception):
    """The next slot lies further away than the caller would wait; none was reserved."""

    def __init__(self, retry_after: float) -> None:
        """`retry_after` is in seconds from now."""
        super().__init__(f"rate limit exceeded, next slot in {retry_after:.3f} s")
        self.retry_after = retry_after


class TokenBucket:
    """Lets `per_minute` through, and a burst of `limits.BURST_S` seconds' worth, at least one.

    The generic cell rate algorithm (ITU-T I.371): one number, the time at which the bucket would
    be full again, says all there is to know.
    """

    def __init__(self, per_minute: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval = 60.0 / per_minute  # seconds a slot
        burst = max(1, int(per_minute * limits.BURST_S / 60.0))
        self._tolerance = (burst - 1) * self._interval
        self._clock = clock
        self._full_at = clock()
        self._lock = threading.Lock()

    def reserve(self, max_wait: float = 0.0) -> float:
        """Take the next slot and return the seconds until it, 0.0 for now.

        Raises `Exceeded`, and takes nothing, when it lies more than `max_wait` seconds away.
        """
        with self._lock:
            now = self._clock()
            full_at = max(self._full_at, now)
            wait = full_at - self._tolerance - now
            if wait <= _ROUNDING_S:
                wait = 0.0
            elif wait > max_wait:
                raise Exceeded(wait)
            self._full_at = full_at + self._interval
            return wait
