"""What the processes of one server share: locks, and how much each has to do."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import tempfile
import time
import weakref

ROWS = 1_024  # processes at once whose loads are known
AGAIN_S = 0.001  # seconds before a lock is tried again that was refused as a deadlock


class ProcessLock:
    """A lock that processes forked after it was made share; in each, for one thread at a time.

    It is the operating system's, so it ends with the process that holds it, however that ends.
    """

    def __init__(self) -> None:
        self._file, path = tempfile.mkstemp()
        os.unlink(path)  # nobody else can come to it
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
                time.sleep(AGAIN_S)
            else:
                return

    def __exit__(self, *_: object) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN)


class Turns:
    """A lock that nobody has twice while another waits.

    Who waits stands in the gate: a process that has just had its turn cannot have the next one
    before who stands there.
    """

    def __init__(self) -> None:
        self._gate, self._turn = ProcessLock(), ProcessLock()

    def __enter__(self) -> None:
        with self._gate:
            self._turn.__enter__()

    def __exit__(self, *_: object) -> None:
        self._turn.__exit__()

    def close(self) -> None:
        """Let go of it in this process."""
        self._gate.close()
        self._turn.close()


class Loads:
    """How much each process has to do, for all of them to see.

    One that is gone, however it ended, counts for nothing.
    """

    def __init__(self) -> None:
        self._lock = ProcessLock()
        self._rows = memoryview(mmap.mmap(-1, 2 * ROWS * 8)).cast("q")  # of each: pid, load
        self._own: int | None = None

    def tell(self, load: int) -> None:
        """Say what this process has to do now."""
        if self._own is None:
            self._own = self._take_row()
        self._rows[self._own + 1] = load

    def least_of_others(self) -> int | None:
        """The least load of another process; None where there is no other."""
        loads = []
        for row in range(0, len(self._rows), 2):
            pid = self._rows[row]
            if pid == 0:
                break  # nobody ever came so far
            if row != self._own and _runs(pid):
                loads.append(self._rows[row + 1])
        return min(loads, default=None)

    def close(self) -> None:
        """Let go of it in this process."""
        self._lock.close()

    def _take_row(self) -> int:
        """The first row of no running process; in a crowd beyond all rows, the last."""
        with self._lock:
            rows = range(0, len(self._rows), 2)
            row = next((row for row in rows if not _runs(self._rows[row])), rows[-1])
            self._rows[row], self._rows[row + 1] = os.getpid(), 0
            return row


def _runs(pid: int) -> bool:
    """Whether there is such a process; 0 is none."""
    if pid == 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
