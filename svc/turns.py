"""How many requests of each API key are under way, over all processes of a server."""

from __future__ import annotations

import hashlib
import mmap
import os
import threading
import time
from collections.abc import Callable

from svc import limits
from svc.sharing import ProcessLock, is_running

# The keys that are told apart. Of any beyond each process counts its own requests alone.
KEYS = 4_096

# The processes that have a row of their own. Any beyond share the last.
PROCESSES = 128

# A row has the id of its process, and then the requests of each key.
_WIDTH = 1 + KEYS


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
        self._rows = memoryview(mmap.mmap(-1, PROCESSES * _WIDTH * 4)).cast("I")
        # Where this process's row begins.
        self._own: int | None = None
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
            self._rows[own + column] += 1
            passed = self._passed(key_id, column, most)
            if passed is not None:
                self._rows[own + column] -= 1
                raise AllTaken(passed, self._wait_s(key_id))
            self._next += 1
            self._began.setdefault(key_id, {})[self._next] = self._clock()
            return self._next

    def give_back(self, key_id: str, turn: int) -> None:
        """The request has ended."""
        with self._threads:
            began = self._began[key_id]
            self._took[key_id] = self._clock() - began.pop(turn)
            self._rows[self._own_row() + self._column(key_id)] -= 1

    def close(self) -> None:
        """Release it in this process."""
        self._processes.close()

    def _passed(self, key_id: str, column: int, most: int | None) -> int | None:
        """The bound that the key's requests pass, this one counted; None where they pass none."""
        allowed = self._usual if most is None else most
        if column == KEYS:
            return allowed if len(self._began.get(key_id, ())) >= allowed else None
        if self._sum(column) <= allowed:
            return None
        running = self._running()
        if most is None:
            allowed *= len(running)
        return allowed if sum(self._rows[row + column] for row in running) > allowed else None

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

    def _sum(self, column: int) -> int:
        total = 0
        for row in range(0, len(self._rows), _WIDTH):
            if not self._rows[row]:
                # Rows are taken in order, so that no later one was ever taken.
                break
            total += self._rows[row + column]
        return total

    def _running(self) -> list[int]:
        """The rows of processes that run."""
        rows = range(0, len(self._rows), _WIDTH)
        return [row for row in rows if self._rows[row] and is_running(self._rows[row])]

    def _column(self, key_id: str) -> int:
        """The column of a key, its first one where it has none yet."""
        column = self._columns.get(key_id)
        if column is None:
            digest = int.from_bytes(hashlib.blake2b(key_id.encode(), digest_size=8).digest()) or 1
            with self._processes:
                known = self._digests.tolist()
                place = next((n for n, one in enumerate(known) if one in (0, digest)), KEYS - 1)
                self._digests[place] = digest
            column = self._columns[key_id] = 1 + place
        return column

    def _own_row(self) -> int:
        """Where this process's row begins: the first that no running process has."""
        if self._own is None:
            with self._processes:
                rows = range(0, len(self._rows), _WIDTH)
                row = next((row for row in rows if not is_running(self._rows[row])), rows[-1])
                self._rows[row + 1 : row + _WIDTH] = memoryview(bytes(4 * KEYS)).cast("I")
                self._rows[row] = os.getpid()
                self._own = row
        return self._own
