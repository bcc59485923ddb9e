"""The one thread that writes: waiting writes share a transaction and one sync to the disk."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import groupby, pairwise
from operator import attrgetter
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from svc import processor_time
from svc.store.connections import (
    BUSY_TIMEOUT_S,
    error_name,
    execute_patiently,
    primary_code,
    storage_error,
)
from svc.store.errors import StorageError, WriteTimedOut
from svc.store.opened_file import OpenedLog

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

Handler = Callable[[sqlite3.Connection, Sequence[ItemT]], Sequence[ResultT]]

# What is larger than the first gives way to what is small, and shares a transaction with others up
# to the second: a decision of a thousand questions takes a hundred times as long as a small one.
SMALL, TOGETHER = 16, 256

NO_TURN = contextlib.nullcontext()
_BEGIN = "BEGIN IMMEDIATE"

log = logging.getLogger(__name__)


class _Queued:
    """An item on its way to the writer, and its result or error.

    `size` is how much it is beside others, and `worked_s` what the writer used for it, in seconds
    of a processor.

    The callers that shared a transaction wake each other one by one. When all wake at once, they
    compete for the interpreter's lock, which cost a third of the decisions a second.
    """

    __slots__ = (
        "_claim",
        "_done",
        "error",
        "handler",
        "item",
        "next",
        "result",
        "size",
        "worked_s",
    )

    def __init__(self, handler: Handler[Any, Any], item: Any, size: int = 1) -> None:
        self.handler, self.item, self.size = handler, item, size
        self.worked_s = 0.0
        self.result: Any = None
        self.error: BaseException | None = None
        self.next: _Queued | None = None
        self._done = threading.Lock()
        self._done.acquire()
        # Taken by the thread that wakes the waiting one, or by the waiting one when it gives up.
        self._claim = threading.Lock()

    def wait(self, timeout_s: float) -> Any:
        """Return the result or raise the error, after waking the next in line."""
        answered = False
        try:
            answered = self._done.acquire(timeout=timeout_s)
        finally:
            # A claim that is taken means that the answer came after all: wake the next in line.
            answered = answered or not self._claim.acquire(blocking=False)
            if answered:
                wake(self.next)
        if not answered:
            raise WriteTimedOut(f"the database took no record within {timeout_s:g} s")
        processor_time.add(self.worked_s)
        if self.error is not None:
            raise self.error
        return self.result

    def give_up(self) -> None:
        """Nobody waits for this."""
        self._claim.acquire()

    def wake(self) -> bool:
        """Wake the thread that waits for this; False where it has given up."""
        if not self._claim.acquire(blocking=False):
            return False
        self._done.release()
        return True


def wake(job: _Queued | None) -> None:
    """Wake the first in line that still waits."""
    while job is not None and not job.wake():
        job = job.next


class LongWrite(Generic[ResultT]):
    """Writes much, for which all others wait, also while it waits for the disk.

    So the time from its beginning until its caller hears of the end, where it is stored, counts as
    processor time of the caller's thread.
    """

    def __init__(self, write: Callable[[sqlite3.Connection], ResultT]) -> None:
        self._write = write
        self._began = self._worked_s = 0.0

    def __call__(self, connection: sqlite3.Connection) -> ResultT:
        self._began, began = time.monotonic(), time.thread_time()
        result = self._write(connection)
        self._worked_s = time.thread_time() - began
        return result

    def charge(self) -> None:
        """Have the caller's thread pay for what the writing itself has not counted."""
        processor_time.add(max(0.0, time.monotonic() - self._began - self._worked_s))


class Writer:
    """Group commit over one connection, which is opened again when it breaks."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        batch: int,
        patience_s: float = BUSY_TIMEOUT_S,
        turn: AbstractContextManager[None] = NO_TURN,
        check: Callable[[], None] = lambda: None,
        opened_log: OpenedLog | None = None,
    ) -> None:
        """At most `batch` items share a transaction.

        `patience_s` is how long to wait for other programs that hold the file. `turn` is held
        during each transaction, so that processes with the same turns never wait for the file.
        `check` raises `StorageError` where nothing may be written. `opened_log` is the log that the
        connection has open.
        """
        self._connect = connect
        self._check = check
        self._opened_log = opened_log
        self._turn = turn
        self._patience_s = patience_s
        self._connection: sqlite3.Connection | None = None
        self._batch = batch
        # The last item is None, and the gate lets nothing be put after it.
        self._jobs: SimpleQueue[_Queued | None] = SimpleQueue()
        # What was taken from these and has to give way; the writer's thread alone uses it.
        self._large: deque[_Queued] = deque()
        self._gate = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def write(
        self, handler: Handler[ItemT, ResultT], item: ItemT, timeout_s: float, size: int = 1
    ) -> ResultT:
        """See `Database.write_grouped`."""
        if threading.current_thread() is self._thread:
            raise RuntimeError("a write inside a write would wait for itself; use the connection")
        job = _Queued(handler, item, size)
        with self._gate:
            if self._closed:
                raise StorageError("the database is closed")
            self._jobs.put(job)
        result: ResultT = job.wait(timeout_s)
        return result

    def note(self, handler: Handler[ItemT, ResultT], item: ItemT) -> None:
        """See `Database.note`."""
        job = _Queued(handler, item)
        job.give_up()
        with self._gate:
            if not self._closed:
                self._jobs.put(job)

    def close(self) -> None:
        """Write what is waiting, then stop."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        closing = False
        while not closing or self._large:
            # Nothing comes after the last item.
            waiting = [] if self._large or closing else [self._jobs.get()]
            more = min(self._jobs.qsize(), self._batch - len(waiting))
            waiting += [self._jobs.get_nowait() for _ in range(more)]
            jobs = [job for job in waiting if job is not None]
            closing = closing or len(jobs) < len(waiting)
            self._large += [job for job in jobs if job.size > SMALL]
            self._settle([job for job in jobs if job.size <= SMALL])
            self._settle(self._some_large())
        self._finish()

    def _some_large(self) -> list[_Queued]:
        """Those that wait longest of what is large, as many as share a transaction."""
        jobs: list[_Queued] = []
        left = TOGETHER
        while self._large and (not jobs or left >= self._large[0].size):
            jobs.append(self._large.popleft())
            left -= jobs[-1].size
        return jobs

    def _settle(self, jobs: list[_Queued]) -> None:
        """Commit and answer `jobs`; where one fails, halve them until it stands alone."""
        if not jobs:
            return
        try:
            with self._turn:
                self._check()
                failure = self._commit(self._begin(), jobs)
            if failure is None:
                # What went into a file that was taken away meanwhile is not answered as stored.
                self._check()
        except Exception as error:  # noqa: BLE001 - the thread must survive every error
            _fail(jobs, error)
            self._save_log()
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
        """Run and commit all of them, or none; returns the error for the callers that wait."""
        try:
            _run_all(connection, jobs)
            began = time.thread_time()
            connection.execute("COMMIT")
            _charge(jobs, time.thread_time() - began)
        except BaseException as error:  # noqa: BLE001 - see above
            self._roll_back(connection)
            return error
        return None

    def _begin(self) -> sqlite3.Connection:
        """A connection inside a new transaction; one that is broken is replaced."""
        if self._connection is not None:
            try:
                execute_patiently(self._connection, _BEGIN, self._patience_s)
                return self._connection
            except sqlite3.Error as error:
                if primary_code(error) == sqlite3.SQLITE_BUSY:
                    raise
                self._drop()
        self._connection = self._connect()
        execute_patiently(self._connection, _BEGIN, self._patience_s)
        self._note_log()
        return self._connection

    def _note_log(self) -> None:
        if self._opened_log is not None:
            try:
                self._opened_log.note()
            except StorageError:
                # Its transaction would lock out every other writer.
                self._drop()
                raise

    def _save_log(self) -> None:
        """Move what a deleted log holds into the file, as long as the connection has it open."""
        lost = self._opened_log is not None and self._opened_log.is_deleted
        if lost and self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        try:
            # Some errors have rolled back already.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None
        if self._opened_log is not None:
            self._opened_log.forget()

    def _finish(self) -> None:
        """Move the log into the file, as far as other processes do not use it.

        The log beside a file that took this one's place belongs to that file.
        """
        with contextlib.suppress(sqlite3.Error, StorageError):
            self._check()
            if self._connection is None:
                self._connection = self._connect()
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._save_log()
        self._drop()


def _run_all(connection: sqlite3.Connection, jobs: list[_Queued]) -> None:
    """Pass neighbouring jobs that have the same handler to it together."""
    for handler, group in groupby(jobs, key=attrgetter("handler")):
        together = list(group)
        began = time.thread_time()
        results = handler(connection, [job.item for job in together])
        _charge(together, time.thread_time() - began)
        for job, result in zip(together, results, strict=True):
            job.result = result


def _charge(jobs: Sequence[_Queued], worked_s: float) -> None:
    """Count so many seconds of a processor for all of them together."""
    each_s = worked_s / sum(job.size for job in jobs)
    for job in jobs:
        job.worked_s += job.size * each_s


def _fail(jobs: list[_Queued], error: BaseException) -> None:
    if isinstance(error, sqlite3.Error):
        log.error("the database refused a write: %s", error_name(error))
    for job in jobs:
        job.error = storage_error(error) if isinstance(error, sqlite3.Error) else error
    _answer(jobs)


def _answer(jobs: list[_Queued]) -> None:
    """Link the jobs in a line and wake the first."""
    for job, following in pairwise(jobs):
        job.next = following
    wake(jobs[0])
