"""A small pool of read-only connections, lent to any thread."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from queue import Empty, LifoQueue

from svc.errors import StorageError
from svc.store.connections import error_name, storage_error

READERS = 8  # connections; each holds a page cache of its own
READ_WAIT_S = 10.0  # seconds until one comes free

log = logging.getLogger(__name__)


class Readers:
    """Lends connections; they are opened when first needed, the last used is lent first."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        size: int = READERS,
        wait: float = READ_WAIT_S,
    ) -> None:
        """`wait` is in seconds."""
        self._connect = connect
        self._wait = wait
        self._idle: LifoQueue[sqlite3.Connection | None] = LifoQueue()  # None: yet to be opened
        for _ in range(size):
            self._idle.put(None)
        self._lock = threading.Lock()  # nothing goes back to the pool once it is closed
        self._closed = False

    @contextlib.contextmanager
    def lend(self, transaction: bool = True) -> Iterator[sqlite3.Connection]:
        """See `Database.read`; one statement alone needs no `transaction`."""
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
            _close(connection)  # whatever is wrong with it, the next borrower gets a new one
            connection = None
            log.error("the database refused a read: %s", error_name(error))
            raise storage_error(error) from error
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """Close what is idle now, and what is lent when it comes back."""
        with self._lock:
            self._closed = True
            while not self._idle.empty():
                _close(self._idle.get())

    def _take(self) -> sqlite3.Connection | None:
        if self._closed:
            raise StorageError("the database is closed")
        try:
            return self._idle.get(timeout=self._wait)
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
