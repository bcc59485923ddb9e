"""A small pool of read-only connections, lent to any thread."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from queue import Empty, LifoQueue

from svc.store.connections import error_name, storage_error
from svc.store.errors import StorageError

# The most connections that read; each holds a page cache of its own.
READERS = 8

# The longest wait for a free connection.
READ_WAIT_S = 10.0

log = logging.getLogger(__name__)


class Readers:
    """Lends connections, which are opened when first needed; the last used is lent first."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        size: int = READERS,
        wait_s: float = READ_WAIT_S,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """At most `size` connections are open, and `lend` waits `wait_s` seconds for one.

        `check` raises `StorageError` where nothing may be read.
        """
        self._connect = connect
        self._check = check
        self._wait_s = wait_s
        # None stands for a connection that is yet to be opened.
        self._idle: LifoQueue[sqlite3.Connection | None] = LifoQueue()
        for _ in range(size):
            self._idle.put(None)
        # Lets nothing go back to the pool once it is closed.
        self._lock = threading.Lock()
        self._closed = False

    @contextlib.contextmanager
    def lend(self, transaction: bool = True) -> Iterator[sqlite3.Connection]:
        """See `Database.read`; one statement alone needs no `transaction`."""
        self._check()
        connection = self._take()
        try:
            if connection is None:
                connection = self._connect()
            if not transaction:
                yield connection
                return
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            # It may be broken, so that the next borrower gets a new one.
            _close(connection)
            connection = None
            log.error("the database refused a read: %s", error_name(error))
            raise storage_error(error) from error
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """Close the idle connections now, and the lent ones when they come back."""
        with self._lock:
            self._closed = True
            while not self._idle.empty():
                _close(self._idle.get())

    def _take(self) -> sqlite3.Connection | None:
        if self._closed:
            raise StorageError("the database is closed")
        try:
            return self._idle.get(timeout=self._wait_s)
        except Empty:
            raise StorageError("the database is busy with other reads") from None

    def _give_back(self, connection: sqlite3.Connection | None) -> None:
        with self._lock:
            if self._closed:
                _close(connection)
            else:
                self._idle.put(connection)


def _close(connection: sqlite3.Connection | None) -> None:
    if connection is not None:
        with contextlib.suppress(sqlite3.Error):
            connection.close()
