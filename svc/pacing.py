"""Paced work of an API key: what its requests do side by side, as they may wait for others.

A key that is alone has the whole of each worker. Beside another one it has less than half of it:
where more than half of the time is taken, the median of others grows. Where others ask only now and
then it has more, but not the whole, so that they find room too.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

from svc import processor_time
from svc.costly import CostlyWork
from svc.deadline import Deadline
from svc.rests import Company, Rests

# How many seconds ago another key asked for something at most, and what share of a processor a key
# has then: in company, and where others come now and then.
COMPANY, VISITORS = (10.0, 0.4), (600.0, 0.7)

# The seconds that count in advance of a request at most, as it may take less than others of its
# kind, and of the first one; after so many seconds half of what one took is remembered.
IN_ADVANCE_S, FIRST_S, HALF_LIFE_S = 0.1, 0.02, 60.0

# A key, and the binary digits of the number of bytes that its request has.
_Kind = tuple[str, int]

# For callers without a key, who are everybody.
_UNPACED = contextlib.nullcontext()


class Pacing:
    """Has each key pause for what its paced work takes beyond its share.

    With the share `s`, work of `w` seconds uses up `w / s` seconds from when it began, and the
    key's next waits until they are over, but for the lenience of its rests: the generic cell rate
    algorithm, ITU-T I.371.
    """

    def __init__(
        self,
        rests: Rests,
        unnoticed_s: float = 0.0,
        company: Company | None = None,
        processor: Callable[[], float] = processor_time.used_s,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[Deadline, float], None] = Deadline.pause,
    ) -> None:
        """The first `unnoticed_s` seconds of each request do not count.

        `company` says whether a key is alone. The others give seconds, and wait some while a
        deadline is not cancelled.
        """
        self._rests, self._unnoticed_s = rests, unnoticed_s
        self.company = company or Company(clock)
        self.processor, self._clock = processor, clock
        # What requests of each kind took of late, in seconds, and when.
        self._usual: dict[_Kind, tuple[float, float]] = {}
        # How many requests of each key wait until they may begin.
        self._line, self._in_line = Counter[str](), threading.Lock()
        self._turns = CostlyWork(0, processor, clock, sleep, pause=0.0, rests=rests)

    def paced(
        self, key_id: str | None, deadline: Deadline, size: int = 0
    ) -> contextlib.AbstractContextManager[None]:
        """What is done for the request in the block counts; it begins after the key's pauses.

        It has `size` bytes. Raises `Timeout` where the pauses last beyond the deadline.
        """
        return _UNPACED if key_id is None else _Paced(self, (key_id, size.bit_length()), deadline)

    def begin(self, kind: _Kind, deadline: Deadline) -> float:
        """Wait while the key has a pause; the seconds that count in advance.

        They are as many as requests of about this size took of late: of many that wait for the end
        of a pause one begins after the other. `Timeout` is raised where the pause lasts beyond the
        deadline.
        """
        key_id, _ = kind
        self.company.came(key_id)
        if self.pause_s(key_id) > 0 or self._line[key_id]:
            # Nor does one overtake those that wait.
            with self._waiting(key_id), self._turns.turn(key_id, 1, deadline):
                return self._in_advance(kind)
        return self._in_advance(kind)

    def end(self, kind: _Kind, counted_s: float, worked_s: float) -> None:
        """A request of which `counted_s` were counted took `worked_s`, which may be less."""
        key_id, _ = kind
        before_s = self._usual_s(kind) if kind in self._usual else 0.0
        self._usual[kind] = max(worked_s, before_s), self._clock()
        if worked_s < counted_s:
            self._rests.take_back(key_id, (counted_s - worked_s) / self._share(key_id))

    def noticed_s(self, worked_s: float) -> float:
        """What counts of so many seconds that one request took."""
        return max(0.0, worked_s - self._unnoticed_s)

    def book(self, key_id: str, worked_s: float) -> None:
        """Count so much that was done until now, unless the key is alone."""
        self._count(key_id, self._clock() - worked_s, worked_s)

    def pause_s(self, key_id: str) -> float:
        """Seconds for which the key's next work waits."""
        return max(0.0, self._rests.until(key_id) - self._clock())

    @contextlib.contextmanager
    def _waiting(self, key_id: str) -> Iterator[None]:
        """In the block a request of the key waits until it may begin."""
        with self._in_line:
            self._line[key_id] += 1
        try:
            yield
        finally:
            with self._in_line:
                self._line[key_id] -= 1

    def _in_advance(self, kind: _Kind) -> float:
        """Count for a request that begins what others took of late; how many seconds that is."""
        usual_s = min(IN_ADVANCE_S, self._usual_s(kind))
        return usual_s if self._count(kind[0], self._clock(), usual_s) else 0.0

    def _usual_s(self, kind: _Kind) -> float:
        """What such a request takes, as far as is known: a cheap one hides no other."""
        if kind not in self._usual:
            return FIRST_S
        worked_s, noted_at = self._usual[kind]
        return float(worked_s * 0.5 ** ((self._clock() - noted_at) / HALF_LIFE_S))

    def _count(self, key_id: str, since: float, worked_s: float) -> bool:
        """Have the key pause for so much; False where nothing counts."""
        share = self._share(key_id)
        counts = worked_s > 0 and share < 1
        if counts:
            self._rests.add(key_id, since, worked_s / share)
        return counts

    def _share(self, key_id: str) -> float:
        away_s = self.company.away_s(key_id)
        return next((share for most_s, share in (COMPANY, VISITORS) if away_s < most_s), 1.0)


class _Paced:
    """A block of paced work; every request has one, and a generator would take twice as long."""

    __slots__ = (
        *("_began", "_booked_s", "_deadline", "_key_id", "_kind", "_lock", "_own_s"),
        "_pacing",
    )

    def __init__(self, pacing: Pacing, kind: _Kind, deadline: Deadline) -> None:
        self._pacing, self._kind, self._deadline = pacing, kind, deadline
        self._key_id, _ = kind
        self._lock, self._booked_s, self._own_s = threading.Lock(), 0.0, 0.0

    def __enter__(self) -> None:
        self._booked_s = self._pacing.begin(self._kind, self._deadline)
        self._began = self._pacing.processor()
        self._deadline.effort.pause_s = self._pause_s
        # Also once the request is over, since calls that were cut off end after it.
        self._deadline.effort.noted = self._book
        self._deadline.effort.own_noted = self._book_own

    def __exit__(self, *_: object) -> None:
        self._book_own()
        with self._lock:
            counted_s, self._booked_s = self._booked_s, self._noticed_s()
        self._pacing.end(self._kind, counted_s, self._booked_s)

    def _book_own(self) -> None:
        """In the request's own thread: the same with what this has taken until now."""
        self._own_s = self._pacing.processor() - self._began
        self._book()

    def _pause_s(self) -> float:
        """Seconds for which the request's next call waits, after what its calls have taken."""
        self._book()
        return self._pacing.pause_s(self._key_id)

    def _book(self) -> None:
        """Have the key pause for what the request took since this was last done.

        The seconds of its own thread are known when that says so, and at its end.
        """
        with self._lock:
            noticed_s = max(self._booked_s, self._noticed_s())
            new_s, self._booked_s = noticed_s - self._booked_s, noticed_s
        self._pacing.book(self._key_id, new_s)

    def _noticed_s(self) -> float:
        """What counts of what the request has taken."""
        return self._pacing.noticed_s(self._own_s + self._deadline.effort.worked_s)
