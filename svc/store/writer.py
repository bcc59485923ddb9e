"""The one thread that writes: what is waiting shares a transaction and its trip to the disk."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import groupby, pairwise
from operator import attrgetter
from queue import SimpleQueue
from typing import Any, TypeVar

from svc.errors import StorageError
from svc.store.connections import (
    BUSY_TIMEOUT_S,
    error_name,
    execute_patiently,
    primary_code,
    storage_error,
)

I = TypeVar("I")  # noqa: E741 - item
R = TypeVar("R")

Handler = Callable[[sqlite3.Connection, Sequence[I]], Sequence[R]]

NO_TURN = contextlib.nullcontext()
_BEGIN = "BEGIN IMMEDIATE"

log = logging.getLogger(__name__)


class _Queued:
    """An item on its way to the writer, and what came of it.

    Those that shared a transaction wake each other one by one: when all wake at once, they fight
    for the interpreter's lock, which cost a third of the decisions a second.
    """

    __slots__ = ("_claim", "_done", "error", "handler", "item", "next", "result")

    def __init__(self, handler: Handler[Any, Any], item: Any) -> None:
        self.handler, self.item = handler, item
        self.result: Any = None
        self.error: BaseException | None = None
        self.next: _Queued | None = None
        self._done = threading.Lock()
        self._done.acquire()
        self._claim = threading.Lock()  # taken by whoever wakes the waiter, or by one who leaves

    def wait(self, timeout: float) -> Any:
        """The result, or the error raised; the next in line is woken first."""
        answered = False
        try:
            answered = self._done.acquire(timeout=timeout)
        finally:
            # A claim that is gone: the answer is here, and the line relies on this thread.
            answered = answered or not self._claim.acquire(blocking=False)
            if answered:
                wake(self.next)
        if not answered:
            raise StorageError(f"the database took no record within {timeout:g} s")
        if self.error is not None:
            raise self.error
        return self.result

    def wake(self) -> bool:
        """Whether somebody still waited for this."""
        if not self._claim.acquire(blocking=False):
            return False
        self._done.release()
        return True


def wake(job: _Queued | None) -> None:
    """Wake the first in line that still waits."""
    while job is not None and not job.wake():
        job = job.next


class Writer:
    """Group commit over one connection, which is opened again when it breaks."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        batch: int,
        patience: float = BUSY_TIMEOUT_S,
        turn: AbstractContextManager[None] = NO_TURN,
    ) -> None:
        """At most `batch` items share a transaction.

        `patience` is for programs that hold the file, in seconds; `turn` is taken for each
        transaction, so that processes that share turns need none.
        """
        self._connect = connect
        self._turn = turn
        self._patience = patience
        self._connection: sqlite3.Connection | None = None
        self._batch = batch
        self._jobs: SimpleQueue[_Queued | None] = SimpleQueue()  # None is the last that it holds
        self._gate = threading.Lock()  # so that nothing is put after the None
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def write(self, handler: Handler[I, R], item: I, timeout: float) -> R:
        """See `Database.write_grouped`."""
        if threading.current_thread() is self._thread:
            raise RuntimeError("a write inside a write would wait for itself; use the connection")
        job = _Queued(handler, item)
        with self._gate:
            if self._closed:
                raise StorageError("the database is closed")
            self._jobs.put(job)
        result: R = job.wait(timeout)
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
            self._settle([job for job in waiting if job is not None])
        self._finish()

    def _settle(self, jobs: list[_Queued]) -> None:
        """Commit and answer `jobs`; where one fails, halve them until it stands alone."""
        if not jobs:
            return
        try:
            with self._turn:
                failure = self._commit(self._begin(), jobs)
        except Exception as error:  # noqa: BLE001 - the thread outlives whatever it meets
            _fail(jobs, error)
            return
        if failure is None:
            _answer(jobs)
        elif len(jobs) == 1:
            _fail(jobs, failure)
        else:
            half = len(jobs) // 2
            self._settle(jobs[:half])
            self._settle(jobs[half:])

    def _commit(self, connection: sqlite3.Connection, jobs: list[_Queued]) -> BaseException | None:
        """Run and commit all of them, or none; what went wrong belongs to those who wait."""
        try:
            _run_all(connection, jobs)
            connection.execute("COMMIT")
        except BaseException as error:  # noqa: BLE001 - see above
            self._roll_back(connection)
            return error
        return None

    def _begin(self) -> sqlite3.Connection:
        """A connection inside a new transaction; one that is broken is replaced."""
        if self._connection is not None:
            try:
                execute_patiently(self._connection, _BEGIN, self._patience)
                return self._connection
            except sqlite3.Error as error:
                if primary_code(error) == sqlite3.SQLITE_BUSY:
                    raise
                self._drop()
        self._connection = self._connect()
        execute_patiently(self._connection, _BEGIN, self._patience)
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
        with contextlib.suppress(sqlite3.Error):
            if self._connection is None:
                self._connection = self._connect()
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._drop()


def _run_all(connection: sqlite3.Connection, jobs: list[_Queued]) -> None:
    """Neighbours with the same handler go to it together."""
    for handler, group in groupby(jobs, key=attrgetter("handler")):
        together = list(group)
        results = handler(connection, [job.item for job in together])
        for job, result in zip(together, results, strict=True):
            job.result = result


def _fail(jobs: list[_Queued], error: BaseException) -> None:
    if isinstance(error, sqlite3.Error):
        log.error("the database refused a write: %s", error_name(error))
    for job in jobs:
        job.error = storage_error(error) if isinstance(error, sqlite3.Error) else error
    _answer(jobs)


def _answer(jobs: list[_Queued]) -> None:
    """Put them in line and wake the first."""
    for job, following in pairwise(jobs):
        job.next = following
    wake(jobs[0])
