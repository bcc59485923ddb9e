"""The way that spans go from the processes that make them to the one that sends them on.

Its ends have no name, and pass to forks alone: nobody else can write into it. A process that reads
from it may end at any time, and another one goes on where it stopped.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import marshal
import os
import select
import socket
import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence

from svc.telemetry.spans import Record

# How much may lie in the line before it takes nothing more, of which a block is always a part, in
# bytes. Linux makes twice as much of it, and counts what it needs itself.
HELD = 128 * 1024
_BLOCK = 2 * HELD

# The pause between two looks at whether the reader is to stop.
LOOK_S = 0.25

_FULL = (errno.EAGAIN, errno.ENOBUFS)


class Line:
    """Blocks of spans on their way; made before the processes are forked that share it."""

    def __init__(self) -> None:
        self._reading, self._writing = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        for end in (self._reading, self._writing):
            end.setblocking(False)
        self._writing.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, HELD)
        # A lock that each writer has a share of, which the system gives back when it ends in
        # whatever way. Without a name nobody else can open its file.
        self._file, path = tempfile.mkstemp()
        os.unlink(path)
        self._close_file = weakref.finalize(self, os.close, self._file)

    def open(self) -> None:
        """Say that this process writes, until it ends."""
        # The lock is held by a reader only that ends, and whoever comes then is too late.
        with contextlib.suppress(OSError):
            fcntl.lockf(self._file, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def send(self, block: Sequence[Record]) -> bool:
        """Whether there was room for a block; it never waits.

        Raises `OSError` for one that never has room, `ValueError` for what cannot be sent.
        """
        try:
            self._writing.send(marshal.dumps(list(block)))
        except OSError as error:
            if error.errno not in _FULL:
                raise
            return False
        return True

    def blocks(self, stop: threading.Event) -> Iterator[Sequence[Record]]:
        """What comes, until it is to stop and all others that write have ended."""
        while not (stop.is_set() and self._is_left()):
            select.select([self._reading], [], [], LOOK_S)
            yield from self._come()
        yield from self._come()

    def close(self) -> None:
        """Release it in this process."""
        self._reading.close()
        self._writing.close()
        self._close_file()

    def _come(self) -> Iterator[Sequence[Record]]:
        with contextlib.suppress(BlockingIOError):
            while True:
                # It comes from processes of this server: `marshal` is for what one trusts.
                yield marshal.loads(self._reading.recv(_BLOCK))

    def _is_left(self) -> bool:
        """Whether no other process writes any more."""
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
