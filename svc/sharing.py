"""What the processes of one server share: locks, and how many connections each has."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import tempfile
import time
import weakref

# Further workers share one row.
MAX_WORKERS = 1_024

# The pause before a lock is tried again that was refused as a deadlock.
DEADLOCK_RETRY_S = 0.001


class ProcessLock:
    """A lock that processes forked after it was made share; in each, for one thread at a time.

    It is the operating system's, so it ends with the process that holds it, however that ends.
    """

    def __init__(self) -> None:
        self._file, path = tempfile.mkstemp()
        # Without a name nobody else can open it.
        os.unlink(path)
        self.close = weakref.finalize(self, os.close, self._file)

    def __enter__(self) -> None:
        while True:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX)
            except OSError as error:
                # The kernel knows processes alone: where one thread of each holds what another
                # thread of the other one waits for, it sees a deadlock that is none.
                if error.errno != errno.EDEADLK:
                    raise
                time.sleep(DEADLOCK_RETRY_S)
            else:
                return

    def __exit__(self, *_: object) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN)


class FairLock:
    """A lock of processes that nobody has twice in a row while another waits.

    Who waits for the lock holds the gate. A process that has just released the lock has to pass the
    gate again, so it cannot overtake who stands there.
    """

    def __init__(self) -> None:
        self._gate, self._lock = ProcessLock(), ProcessLock()

    def __enter__(self) -> None:
        with self._gate:
            self._lock.__enter__()

    def __exit__(self, *_: object) -> None:
        self._lock.__exit__()

    def close(self) -> None:
        """Let go of it in this process."""
        self._gate.close()
        self._lock.close()


class WorkerLoads:
    """How many connections each worker has, for all of them to see.

    A worker that is gone, however it ended, counts for nothing.
    """

    def __init__(self) -> None:
        self._lock = ProcessLock()
        # Each row is two 64-bit numbers: a process id and that process's load.
        self._rows = memoryview(mmap.mmap(-1, 2 * MAX_WORKERS * 8)).cast("q")
        self._own: int | None = None

    def publish(self, load: int) -> None:
        """Set the load of this process; the first call waits for a lock."""
        if self._own is None:
            self._own = self._take_row()
        self._rows[self._own + 1] = load

    def least_of_others(self) -> int | None:
        """The least load of another process; None where there is no other."""
        loads = []
        for row in range(0, len(self._rows), 2):
            pid = self._rows[row]
            if pid == 0:
                # Rows are taken from the first on, so nobody ever came so far.
                break
            if row != self._own and _is_running(pid):
                loads.append(self._rows[row + 1])
        return min(loads, default=None)

    def close(self) -> None:
        """Let go of it in this process."""
        self._lock.close()

    def _take_row(self) -> int:
        """The first row of no running process; in a crowd beyond all rows, the last."""
        with self._lock:
            rows = range(0, len(self._rows), 2)
            row = next((row for row in rows if not _is_running(self._rows[row])), rows[-1])
            self._rows[row], self._rows[row + 1] = os.getpid(), 0
            return row


def _is_running(pid: int) -> bool:
    """Whether there is such a process; 0 is none."""
    if pid == 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
