"""The one thread that writes: what is waiting shares a transaction and its trip to the disk."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from svc.errors import StorageError
from svc.store.connections import primary_code, storage_error

T = TypeVar("T")


class _Job:
    """A function on its way to the writer, and what came of it.

    A bare lock tells the waiting thread: of all there is, it costs the least for each hand-off.
    """

    __slots__ = ("done", "error", "fn", "result")

    def __init__(self, fn: Callable[[sqlite3.Connection], Any]) -> None:
        self.fn = fn
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()

    def fail(self, error: BaseException) -> None:
        self.error = storage_error(error) if isinstance(error, sqlite3.Error) else error
        self.done.release()


class Writer:
    """Group commit over one connection, which is opened again when it breaks."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], batch: int) -> None:
        """At most `batch` functions share a transaction."""
        self._connect = connect
        self._connection: sqlite3.Connection | None = None
        self._batch = batch
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()  # None is the last that it holds
        self._gate = threading.Lock()  # nothing is put after the None
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def write(self, fn: Callable[[sqlite3.Connection], T], timeout: float) -> T:
        """See `Database.write`."""
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                "a function that is being written must not write; use its connection"
            )
        job = _Job(fn)
        with self._gate:
            if self._closed:
                raise StorageError("the database is closed")
            self._jobs.put(job)
        if not job.done.acquire(timeout=timeout):
            raise StorageError(f"the database took no record within {timeout:g} s")
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def close(self) -> None:
        """Write what is waiting, then stop."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        closing = False
        while not closing:
            waiting = [self._jobs.get()]
            more = min(self._jobs.qsize(), self._batch - 1)
            waiting += [self._jobs.get_nowait() for _ in range(more)]
            closing = waiting[-1] is None
            jobs = [job for job in waiting if job is not None]
            if jobs:
                self._settle(jobs)
        self._finish()

    def _settle(self, jobs: list[_Job]) -> None:
        """Commit and answer `jobs`; where one fails, halve them until it stands alone."""
        try:
            connection = self._begin()
        except Exception as error:  # noqa: BLE001 - the thread outlives whatever it meets
            for job in jobs:
                job.fail(error)
            return
        try:
            for job in jobs:
                job.result = job.fn(connection)
            connection.execute("COMMIT")
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever asked
            self._roll_back(connection)
            self._settle_apart(jobs, error)
            return
        for job in jobs:
            job.done.release()

    def _settle_apart(self, jobs: list[_Job], error: BaseException) -> None:
        if len(jobs) == 1:
            jobs[0].fail(error)
            return
        half = len(jobs) // 2
        self._settle(jobs[:half])
        self._settle(jobs[half:])

    def _begin(self) -> sqlite3.Connection:
        """A connection inside a new transaction; one that is broken is replaced."""
        if self._connection is not None:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                return self._connection
            except sqlite3.Error as error:
                if primary_code(error) == sqlite3.SQLITE_BUSY:
                    raise
                self._drop()
        self._connection = self._connect()
        self._connection.execute("BEGIN IMMEDIATE")
        return self._connection

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        try:
            if connection.in_transaction:  # some errors have rolled back already
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None

    def _finish(self) -> None:
        """Leave everything in the one file, as far as other processes let go of the log."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._drop()
