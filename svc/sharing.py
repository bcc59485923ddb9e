"""Locks between the processes of one server."""

from __future__ import annotations

import fcntl
import os
import tempfile
import weakref


class ProcessLock:
    """A lock that processes forked after it was made share; in each, for one thread at a time.

    It is the operating system's, so it ends with the process that holds it, however that ends.
    """

    def __init__(self) -> None:
        self._file, path = tempfile.mkstemp()
        os.unlink(path)  # nobody else can come to it
        self.close = weakref.finalize(self, os.close, self._file)

    def __enter__(self) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_EX)

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
