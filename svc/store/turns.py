"""Whose turn it is to write: processes that share a database wait in the kernel, not by sleeping.

SQLite lets a second writer try again and again, and what it slept too long is lost. Locks of the
operating system wake the next one at once, and end with the process that held them.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from typing import BinaryIO

_GATE, _TURN = 0, 1  # bytes of the file that are locked


class Turns:
    """The turns of one process; for one thread at a time."""

    def __init__(self, file: BinaryIO) -> None:
        """`file` is one that all processes share and no one else locks; it stays empty."""
        self._file = file

    @contextlib.contextmanager
    def take(self) -> Iterator[None]:
        """Wait for this process's turn, and have it for the block.

        Who waits stands in the gate: a process that has just had its turn cannot have the next
        one before who stands there.
        """
        self._lock(_GATE)
        try:
            self._lock(_TURN)
        finally:
            self._unlock(_GATE)
        try:
            yield
        finally:
            self._unlock(_TURN)

    def _lock(self, byte: int) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, byte)

    def _unlock(self, byte: int) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, byte)
