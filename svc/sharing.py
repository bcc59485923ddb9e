"""What the processes of one server share: locks, and how many connections each has."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import tempfile
import time
import weakref

# Any workers beyond this number share the last row.
MAX_WORKERS = 1_024

# The pause before a lock is tried again that was refused as a deadlock.
DEADLOCK_RETRY_S = 0.001


class ProcessLock:
    """A lock that processes forked after it was made share; in each, for one thread at a time.

    The operating system releases it when the process that holds it ends, in whatever way.
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
                # The kernel knows only processes, not threads. Where one thread of each of two
                # processes holds a lock that another thread of the other one waits for, it wrongly
                # sees a deadlock.
                if error.errno != errno.EDEADLK:
                    raise
                time.sleep(DEADLOCK_RETRY_S)
            else:
                return

    def __exit__(self, *_: object) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN)


class FairLock:
    """A lock of processes that none gets twice in a row while another waits for it.

    The process that is next in line holds the gate while it waits for the lock. A process that has
    just released the lock must pass the gate again, so it cannot overtake the one that waits.
    """

    def __init__(self) -> None:
        self._gate, self._lock = ProcessLock(), ProcessLock()

    def __enter__(self) -> None:
        with self._gate:
            self._lock.__enter__()

    def __exit__(self, *_: object) -> None:
        self._lock.__exit__()

    def close(self) -> None:
        """Release it in this process."""
        self._gate.close()
        self._lock.close()


class WorkerLoads:
    """How many connections each worker has, for all of them to see.

    A worker that has ended, in whatever way, is not counted.
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
                # Rows are taken in order, so that no later one was ever taken.
                break
            if row != self._own and _is_running(pid):
                loads.append(self._rows[row + 1])
        return min(loads, default=None)

    def close(self) -> None:
        """Release it in this process."""
        self._lock.close()

    def _take_row(self) -> int:
        """The first row that no running process has, or the last row where all are taken."""
        with self._lock:
            rows = range(0, len(self._rows), 2)
            row = next((row for row in rows if not _is_running(self._rows[row])), rows[-1])
            self._rows[row], self._rows[row + 1] = os.getpid(), 0
            return row


def _is_running(pid: int) -> bool:
    """Whether there is such a process; 0 stands for no process."""
    if pid == 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
