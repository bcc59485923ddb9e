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

# The most buckets that are less than full at the same time.
SLOTS = 16_384

# The slots in which a name may stand.
_PROBES = 32

# Sums of intervals may be wrong by this.
_ROUNDING_S = 1e-6

# A call that waits behind its caller's others asks after so long, however many they are: some of
# them may have given up.
ASKS_S = 5.0

# The digest of the name, the rate a minute, and the time at which the bucket is full again.
_SLOT = struct.Struct("=Qdd")

# A moment on the clock.
_MOMENT = struct.Struct("=d")


class Exceeded(Exception):
    """The next slot is further away than the caller would wait; none was reserved."""

    def __init__(self, retry_after: float) -> None:
        """`retry_after` is in seconds from now."""
        super().__init__(f"rate limit exceeded, next slot in {retry_after:.3f} s")
        self.retry_after = retry_after


class Pauses:
    """For how long calls wait for rate limits; processes forked after this was made share it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` must be the same for all processes."""
        self._clock = clock
        self._memory = mmap.mmap(-1, _MOMENT.size)
        self.close = self._memory.close

    def note(self, wait_s: float) -> None:
        """Note that a call waits for so many seconds from now."""
        until = self._clock() + wait_s
        # Without a lock: of two waits that are noted at once either one tells enough.
        if until > self._until():
            _MOMENT.pack_into(self._memory, 0, until)

    def left(self) -> float:
        """The seconds until the last call that waits may be made; 0.0 where none waits."""
        return max(0.0, self._until() - self._clock())

    def _until(self) -> float:
        (until,) = _MOMENT.unpack_from(self._memory)
        return float(until)


class Buckets:
    """A bucket for each name; processes forked after this was made share them.

    A bucket lets its rate through, and at once as much as the rate allows in `limits.BURST_S`
    seconds, at least one. Full buckets are forgotten, so that absent callers cost nothing.

    This is the generic cell rate algorithm (ITU-T I.371), in which the time at which a bucket will
    be full again is its whole state. These times stand in shared memory. The lock is released when
    the process that holds it ends.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, slots: int = SLOTS) -> None:
        """`clock` must be the same for all processes."""
        self._clock, self._slots = clock, slots
        self._memory = mmap.mmap(-1, slots * _SLOT.size)
        self._processes, self._threads = ProcessLock(), threading.Lock()

    def reserve(
        self, name: str, per_minute: float, max_wait: float = 0.0, at_once: int | None = None
    ) -> float:
        """Take the next slot of `name` and return the seconds until it, 0.0 for now.

        With `at_once` the bucket lets so many through at once. A rate that differs from the last
        one applies with this call. Raises `Exceeded`, and takes nothing, when the slot lies more
        than `max_wait` seconds away.
        """
        digest = _digest(name)
        with self._threads, self._processes:
            now = self._clock()
            offset, rate, full_at = self._find(digest, now)
            if rate != per_minute:
                full_at = now
            burst = max(1, int(per_minute * limits.BURST_S / 60.0)) if at_once is None else at_once
            wait, full_at = _next_slot(per_minute, burst, full_at, now, max_wait)
            _SLOT.pack_into(self._memory, offset, digest, per_minute, full_at)
            return wait

    def fill(self, name: str, seconds: float) -> None:
        """Have the bucket of `name`, from which nothing is reserved, full in so many seconds."""
        digest = _digest(name)
        with self._threads, self._processes:
            now = self._clock()
            offset, _, _ = self._find(digest, now)
            _SLOT.pack_into(self._memory, offset, digest, 0.0, now + seconds)

    def full_in(self, name: str) -> float:
        """The seconds until the bucket of `name` is full, 0.0 for now."""
        with self._threads, self._processes:
            now = self._clock()
            _, _, full_at = self._find(_digest(name), now)
        left = full_at - now
        return left if left > _ROUNDING_S else 0.0

    def close(self) -> None:
        """Release the memory in this process."""
        self._processes.close()
        self._memory.close()

    def _find(self, digest: int, now: float) -> tuple[int, float, float]:
        """The bucket's offset, its rate (0 for a new one), and when it is full."""
        fullest, fullest_at = 0, float("inf")
        for probe in range(_PROBES):
            offset = (digest + probe) % self._slots * _SLOT.size
            slot_digest, rate, full_at = _SLOT.unpack_from(self._memory, offset)
            if slot_digest == digest:
                return offset, rate, full_at
            if full_at < fullest_at:
                fullest, fullest_at = offset, full_at
        # The new bucket replaces a full one, or else the one that will be full first.
        return fullest, 0.0, now


class InTurn:
    """Slots of the same buckets for callers who share a rate: they take turns.

    A caller waits in a line of its own, which moves at the whole rate, and takes a slot from the
    whole only when its last one has passed. So no caller keeps another waiting for more than a slot
    of each, however many calls it has.
    """

    def __init__(self, whole: Buckets) -> None:
        self._whole = whole

    def join(self, name: str, caller: str, per_minute: float, max_wait: float) -> float:
        """Take a place in the caller's line; seconds until it is there. Raises `Exceeded`."""
        return self._whole.reserve(f"{caller} at {name}", per_minute, max_wait)

    def ahead(self, name: str, caller: str, per_minute: float) -> float:
        """Seconds until a call may ask again, 0.0 where the last slot of its caller has passed.

        Calls of one caller ask one after the other, no more often than there are slots. Thousands
        that asked for each slot took a processor from all others.
        """
        left = self._whole.full_in(f"turn of {caller} at {name}")
        if not left:
            return 0.0
        try:
            asks_in = self._whole.reserve(f"{caller} asks {name}", per_minute, ASKS_S, at_once=1)
        except Exceeded:
            asks_in = ASKS_S
        return max(left, asks_in)

    def reserve(self, name: str, caller: str, per_minute: float, max_wait: float) -> float:
        """As `Buckets.reserve`, from the whole, for a caller who has none ahead."""
        wait = self._whole.reserve(name, per_minute, max_wait)
        if wait:
            self._whole.fill(f"turn of {caller} at {name}", wait)
        return wait


class HalfOf:
    """Slots of the same buckets for work that gives way: at most half of each rate.

    It waits for its own turn first, and takes a slot from the whole only then: slots that it took
    in advance would keep others waiting.
    """

    def __init__(self, whole: Buckets, sleep: Callable[[float], None] = time.sleep) -> None:
        """`sleep` takes seconds."""
        self._whole, self._sleep = whole, sleep

    def reserve(self, name: str, per_minute: float, max_wait: float = 0.0) -> float:
        """As `Buckets.reserve`, after a wait for a slot of the half."""
        waited = self._whole.reserve(f"half of {name}", per_minute / 2, max_wait)
        self._sleep(waited)
        return self._whole.reserve(name, per_minute, max_wait - waited)


def _digest(name: str) -> int:
    """Never 0, which stands in a slot that was not used yet."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) or 1


def _next_slot(
    per_minute: float, burst: int, full_at: float, now: float, max_wait: float
) -> tuple[float, float]:
    """Seconds until the next slot, and when the bucket is full again after it is taken."""
    interval_s = 60.0 / per_minute
    full_at = max(full_at, now)
    wait = full_at - (burst - 1) * interval_s - now
    if wait <= _ROUNDING_S:
        wait = 0.0
    elif wait > max_wait:
        raise Exceeded(wait)
    return wait, full_at + interval_s
