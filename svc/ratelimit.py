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

    @property
    def full(self) -> bool:
        """Whether nothing would be lost with it: a new bucket is as good."""
        return self._full_at <= self._clock()


class TokenBuckets:
    """A bucket for each name; full ones are forgotten, so those who stay away cost nothing."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[str, tuple[float, TokenBucket]] = {}  # by name, with its rate
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, name: str, per_minute: float) -> None:
        """Take a slot of `name` now; a rate that differs from the last one counts at once.

        Raises `Exceeded`, and takes nothing, when there is none.
        """
        with self._lock:
            rate, bucket = self._buckets.get(name, (0.0, None))
            if bucket is None or rate != per_minute:
                bucket = self._add(name, per_minute)
            bucket.reserve()

    def _add(self, name: str, per_minute: float) -> TokenBucket:
        kept = {other: held for other, held in self._buckets.items() if not held[1].full}
        bucket = TokenBucket(per_minute, self._clock)
        self._buckets = {**kept, name: (per_minute, bucket)}
        return bucket
