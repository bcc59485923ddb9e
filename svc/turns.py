"""How many requests of each API key are under way, over all processes of a server."""

from __future__ import annotations

import hashlib
import mmap
import threading
import time
from collections.abc import Callable, Iterable

from svc import limits
from svc.sharing import ProcessLock, ProcessPlaces

# The keys that are told apart. Of any beyond each process counts its own requests alone.
KEYS = 4_096
_OTHERS = KEYS - 1

# The processes that see each other's requests. Any beyond count their own alone.
PROCESSES = 128


class AllTaken(Exception):
    """The key has as many requests under way as it may."""

    def __init__(self, most: int, retry_after: float) -> None:
        """`retry_after` is in seconds from now."""
        super().__init__(f"{most} requests are under way")
        self.most, self.retry_after = most, retry_after


class Turns:
    """Counts that processes forked after this was made share.

    Each process writes a row of its own and any of them sums them up, so that a request needs no
    lock of the system. The requests of a process that ended do not count.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, usual: int = limits.KEY_CONCURRENCY
    ) -> None:
        """A key without a bound of its own may have `usual` requests for each process."""
        self._clock, self._usual = clock, usual
        self._processes, self._threads = ProcessLock(), threading.Lock()
        self._digests = memoryview(mmap.mmap(-1, KEYS * 8)).cast("Q")
        # A row for each place, with the requests of each key.
        self._places = ProcessPlaces(PROCESSES)
        self._rows = memoryview(mmap.mmap(-1, PROCESSES * KEYS * 4)).cast("I")
        # This process's row, and whether others see it.
        self._own: memoryview[int] | None = None
        self._is_seen = True
        self._columns: dict[str, int] = {}
        # Of each key the times at which its requests of this process began, oldest first, and how
        # long the last one took that ended.
        self._began: dict[str, dict[int, float]] = {}
        self._took: dict[str, float] = {}
        self._next = 0

    def take(self, key_id: str, most: int | None) -> int:
        """Begin a request of a key that may have `most` at a time; what to give back at its end.

        None stands for what is usual, for each process. Raises `AllTaken`.
        """
        with self._threads:
            own, column = self._own_row(), self._column(key_id)
            # It is counted first, so that of two processes at the same time not both go on.
            own[column] += 1
            passed = self._passed(key_id, column, most)
            if passed is not None:
                own[column] -= 1
                raise AllTaken(passed, self._wait_s(key_id))
            self._next += 1
            self._began.setdefault(key_id, {})[self._next] = self._clock()
            return self._next

    def give_back(self, key_id: str, turn: int) -> None:
        """The request has ended."""
        with self._threads:
            began = self._began[key_id]
            self._took[key_id] = self._clock() - began.pop(turn)
            self._own_row()[self._column(key_id)] -= 1

    def close(self) -> None:
        """Release it in this process."""
        self._processes.close()
        self._places.close()

    def _passed(self, key_id: str, column: int, most: int | None) -> int | None:
        """The bound that the key's requests pass, this one counted; None where they pass none."""
        allowed = self._usual if most is None else most
        if column == _OTHERS or not self._is_seen:
            return allowed if len(self._began.get(key_id, ())) >= allowed else None
        if self._sum(column, range(self._places.taken)) <= allowed:
            return None
        running = self._places.running()
        if most is None:
            allowed *= len(running)
        return allowed if self._sum(column, running) > allowed else None

    def _wait_s(self, key_id: str) -> float:
        """Until the request that began first is expected to end.

        It will have taken as long as the last one did, or twice what it has, and it ends at its
        deadline at the latest.
        """
        began = self._began.get(key_id)
        if not began:
            # They are all in other processes.
            return self._took.get(key_id, 0.0)
        age_s = self._clock() - next(iter(began.values()))
        expected_s = max(self._took.get(key_id, 0.0), 2 * age_s)
        return max(0.0, min(expected_s, limits.REQUEST_DEADLINE_S) - age_s)

    def _sum(self, column: int, places: Iterable[int]) -> int:
        return sum(self._rows[place * KEYS + column] for place in places)

    def _column(self, key_id: str) -> int:
        """The column of a key, its first one where it has none yet."""
        column = self._columns.get(key_id)
        if column is None:
            digest = int.from_bytes(hashlib.blake2b(key_id.encode(), digest_size=8).digest()) or 1
            with self._processes:
                known = self._digests.tolist()
                place = next((n for n, one in enumerate(known) if one in (0, digest)), _OTHERS)
                self._digests[place] = digest
            column = self._columns[key_id] = place
        return column

    def _own_row(self) -> memoryview[int]:
        if self._own is None:
            none_yet = memoryview(bytearray(4 * KEYS)).cast("I")
            place = self._places.take()
            self._is_seen = place is not None
            self._own = none_yet if place is None else self._rows[place * KEYS :][:KEYS]
            # A process that ended may have left the counts of what it had under way.
            self._own[:] = none_yet
        return self._own
