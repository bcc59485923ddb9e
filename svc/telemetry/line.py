"""The socket through which workers pass spans to the process that exports them.

It has no name, and only forks of the server inherit it, so that no other program can write into it.
The reading process may end at any time, and the next one goes on where it stopped.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import marshal
import os
import select
import socket
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence

from svc import files
from svc.telemetry.spans import Record

# The send buffer in bytes: what may lie in the line unread. Linux doubles it, counts its own
# bookkeeping too, and takes no block that is larger than the result.
HELD = 128 * 1024
_LARGEST_BLOCK = 2 * HELD

# The pause between two looks at whether the reader is to stop, in seconds.
LOOK_S = 0.25

_NO_ROOM = (errno.EAGAIN, errno.ENOBUFS)


class Line:
    """Carries blocks of spans from many processes to one; made before these are forked."""

    def __init__(self) -> None:
        self._reading, self._writing = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        for end in (self._reading, self._writing):
            end.setblocking(False)
        self._writing.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, HELD)
        # Each writer holds a shared lock on this file, which the system releases however the
        # writer ends.
        self._file = files.nameless()
        self._close_file = weakref.finalize(self, os.close, self._file)

    def open(self) -> None:
        """Count this process as a writer, until it ends."""
        # The exclusive lock belongs to a reader that is about to end: its writers come too late.
        with contextlib.suppress(OSError):
            fcntl.lockf(self._file, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def send(self, block: Sequence[Record]) -> bool:
        """Write a block; False where there is no room for it now. Never waits.

        Raises `OSError` for a block that is too large for the line, and `ValueError` for a value
        that `marshal` does not take.
        """
        try:
            self._writing.send(marshal.dumps(list(block)))
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            return False
        return True

    def blocks(
        self, stop: threading.Event, looked: Callable[[], object] = lambda: None
    ) -> Iterator[Sequence[Record]]:
        """The blocks as they arrive, until `stop` is set and every other writer has ended.

        `looked` is called after each look at the line, whether one had arrived or not.
        """
        while not (stop.is_set() and self._is_alone()):
            select.select([self._reading], [], [], LOOK_S)
            yield from self._arrived()
            looked()
        yield from self._arrived()

    def close(self) -> None:
        """Release it in this process."""
        self._reading.close()
        self._writing.close()
        self._close_file()

    def _arrived(self) -> Iterator[Sequence[Record]]:
        """The blocks that lie in the line now."""
        with contextlib.suppress(BlockingIOError):
            while True:
                # `marshal` is unsafe for foreign data; only processes of this server write here.
                yield marshal.loads(self._reading.recv(_LARGEST_BLOCK))

    def _is_alone(self) -> bool:
        """Whether no other process writes any more."""
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
