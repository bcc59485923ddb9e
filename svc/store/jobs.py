"""Jobs of many rows: how far each is, and what became of its rows.

The rows that are still to be asked wait in a spool beside the database, see `spool.py`.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from svc import limits
from svc.records import Decision
from svc.store import job_results, numbers, shown
from svc.store.database import Database
from svc.store.errors import RowSettled, TooManyJobs, UnknownJob
from svc.store.job_results import DELETED_ROW, DELETED_ROW_BYTES, RowResult
from svc.store.kept_answers import KeptAnswer, keep
from svc.store.project_sizes import JOB_BYTES, JOB_ROW_BYTES, JOB_ROW_SIZE, Room, free, full

# What the id of a job begins with, and how many random bytes follow.
ID_PREFIX, ID_BYTES = "job_", 12

DAY_MS = 86_400_000

# So many rows of old jobs are deleted in one transaction, for which all others wait that store
# anything.
ROWS_SWEPT = 1_000


class JobStatus(StrEnum):
    """How far a job is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job in the row `seq`, which is 0 before it is stored. Times are in unix milliseconds.

    `reason` says why it failed, `waiting_for` why nothing moves; `ends_at` is an estimate. Of its
    `rows`, `answered` have a decision and `failed` an error.
    `budget_usd` is what it may cost.
    """

    seq: int = 0
    id: str
    project: str
    api_key: str | None
    status: JobStatus = JobStatus.WAITING
    reason: str | None = None
    waiting_for: str | None = None
    created_at: int
    expires_at: int
    ended_at: int | None = None
    ends_at: int | None = None
    rows: int
    answered: int = 0
    failed: int = 0
    cost_usd: float = 0.0
    budget_usd: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether rows of it may still be asked."""
        return self.status in (JobStatus.WAITING, JobStatus.RUNNING)


@dataclass(frozen=True, slots=True)
class JobRow:
    """A row of the job in the row `job`: its number, from 1, and the caller's id of it."""

    job: int
    number: int
    id: str


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs, newest first, and the id of the job after which there may be older ones."""

    jobs: list[Job]
    next_before: str | None


_COLUMNS = (
    "seq, id, project, api_key, status, reason, waiting_for, created_at, expires_at, ended_at, "
    "ends_at, rows, answered, failed, cost_usd, nanodollars / 1e9 AS budget_usd"
)
_OPEN = "status IN ('waiting', 'running')"
_ADD = (
    "INSERT INTO jobs (seq, id, project, api_key, status, created_at, expires_at, rows, "
    "nanodollars) VALUES (?, ?, ?, ?, ?, ?, ?, ?, CAST(round(? * 1e9) AS INTEGER))"
)
_COUNT_OPEN = f"SELECT count(*), coalesce(sum(api_key IS ?), 0) FROM jobs WHERE {_OPEN}"
# A job that ended before a given time is not there any more, also where it is not deleted yet.
_KEPT = "(ended_at IS NULL OR ended_at > ?)"
_GET = f"SELECT {_COLUMNS} FROM jobs WHERE id = ? AND {_KEPT}"
_ALL_OPEN = f"SELECT {_COLUMNS} FROM jobs WHERE {_OPEN} ORDER BY seq"
_BACKLOG = (
    "SELECT count(*) AS jobs, coalesce(sum(rows - answered - failed), 0) AS rows "
    f"FROM jobs WHERE {_OPEN}"
)
_PAGE = (
    f"SELECT {_COLUMNS} FROM jobs WHERE project = ? AND seq < ? AND {_KEPT} "
    "ORDER BY seq DESC LIMIT ?"
)
_SEQ = f"SELECT seq FROM jobs WHERE id = ? AND project = ? AND {_KEPT}"
_OLDEST = "SELECT seq, project FROM jobs WHERE ended_at <= ? ORDER BY ended_at LIMIT 1"
_OLD_ROWS = f"SELECT row, {JOB_ROW_SIZE} AS bytes FROM job_rows WHERE job = ? ORDER BY row LIMIT ?"
_DELETE_ROWS = "DELETE FROM job_rows WHERE job = ? AND row <= ?"
_DELETE = "DELETE FROM jobs WHERE seq = ?"
_PROJECT = "SELECT project FROM jobs WHERE seq = ?"
_END = (
    "UPDATE jobs SET status = ?, reason = ?, ended_at = ?, waiting_for = NULL, ends_at = NULL "
    f"WHERE id = ? AND {_OPEN}"
)
_NOTE = f"UPDATE jobs SET status = 'running', waiting_for = ?, ends_at = ? WHERE id = ? AND {_OPEN}"
_ANSWER = (
    "INSERT INTO job_rows (job, row, id, decision_seq, debiased) "
    "SELECT ?, ?, ?, seq, ? FROM decisions WHERE id = ?"
)
_FAIL = "INSERT INTO job_rows (job, row, id, error) VALUES (?, ?, ?, ?)"
_LAST = f"{_OPEN} AND answered + failed + :answered + :failed >= rows"
_COUNT = f"""
UPDATE jobs SET
    answered = answered + :answered,
    failed = failed + :failed,
    cost_usd = cost_usd + :cost_usd,
    status = CASE WHEN {_LAST} THEN 'done' WHEN {_OPEN} THEN 'running' ELSE status END,
    ended_at = CASE WHEN {_LAST} THEN :now ELSE ended_at END,
    waiting_for = CASE WHEN {_LAST} THEN NULL ELSE waiting_for END,
    ends_at = CASE WHEN {_LAST} THEN NULL ELSE ends_at END
WHERE seq = :job
"""
_IS_OPEN = f"SELECT 1 FROM jobs WHERE seq = ? AND {_OPEN}"
_SETTLED = "SELECT row FROM job_rows WHERE job = ?"
_DROP_FAILED = (
    "DELETE FROM job_rows WHERE job = ? AND row IN (SELECT value FROM json_each(?)) "
    f"AND error IS NOT NULL RETURNING {JOB_ROW_SIZE}"
)
_FORGET = "INSERT OR IGNORE INTO job_rows (job, row, id, error) VALUES (?, ?, '', ?)"
_FAILED = "SELECT row FROM job_rows WHERE job = ? AND error <> ?"
_FAILED_AS = (
    "SELECT job, row FROM jobs JOIN job_rows ON job = jobs.seq "
    "WHERE project = ? AND ended_at IS NOT NULL AND job_rows.id = ? AND error IS NOT NULL"
)
_IS_SETTLED = "SELECT 1 FROM job_rows WHERE job = ? AND row = ?"
# A seq after every other.
_NEWEST = 2**63 - 1


def new_id() -> str:
    """An id that no job has."""
    return ID_PREFIX + secrets.token_hex(ID_BYTES)


class Jobs:
    """Stores jobs and finds them again."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], float] = time.time,
        most_open: int = limits.JOBS_OPEN,
        most_of_all: int = limits.ALL_JOBS_OPEN,
    ) -> None:
        """`clock` gives seconds since the epoch.

        A key may have `most_open` jobs at a time, and all of them together `most_of_all`.
        """
        self._database, self._clock = database, clock
        self._most_open, self._most_of_all = most_open, most_of_all

    def check_room(self, key_id: str | None) -> None:
        """Raise `TooManyJobs` where `add` would now; raises `StorageError`."""
        with self._database.read() as connection:
            self._check_room(connection, key_id)

    def add(self, job: Job, kept: KeptAnswer | None = None) -> None:
        """Store a job, and with it the answer for repeats of its request.

        Raises `TooManyJobs` where its key, or all of them, have as many open ones as they may,
        `ProjectFull`, and `StorageError`.
        """

        def write(connection: sqlite3.Connection) -> None:
            self._check_room(connection, job.api_key)
            if not Room(connection).takes(job.project, row_bytes=JOB_BYTES):
                raise full(job.project)
            bounds = (job.created_at, job.expires_at, job.rows, job.budget_usd)
            values = (job.id, job.project, job.api_key, job.status.value, *bounds)
            connection.execute(
                _ADD, (numbers.last_number(connection, numbers.Numbered.JOBS) + 1, *values)
            )
            if kept is not None:
                keep(connection, [kept], self._now())

        self._database.write(write)

    def get(self, job_id: str) -> Job:
        """The job with this id. Raises `UnknownJob` and `StorageError`."""
        rows = self._database.rows(_GET, job_id, self._too_old())
        if not rows:
            raise UnknownJob("there is no such job")
        return _job(rows[0])

    def open(self) -> list[Job]:
        """Every job that has not ended, oldest first. Raises `StorageError`."""
        return [_job(row) for row in self._database.rows(_ALL_OPEN)]

    def backlog(self) -> tuple[int, int]:
        """How many jobs are open, and how many rows they still have. Raises `StorageError`."""
        (found,) = self._database.rows(_BACKLOG)
        return found["jobs"], found["rows"]

    def page(self, project: str, limit: int, before: str | None = None) -> JobPage:
        """At most `limit` jobs of a project, newest first, older than the one named `before`.

        Raises `UnknownJob` where the project has no job `before`, and `StorageError`.
        """
        with self._database.read() as connection:
            start = _NEWEST
            if before is not None:
                row = connection.execute(_SEQ, (before, project, self._too_old())).fetchone()
                if row is None:
                    raise UnknownJob("the project has no such job")
                start = row["seq"]
            values = (project, start, self._too_old(), limit + 1)
            rows = connection.execute(_PAGE, values).fetchall()
        jobs = [_job(row) for row in rows[:limit]]
        return JobPage(jobs, jobs[-1].id if len(rows) > limit else None)

    def end(self, job_id: str, status: JobStatus, reason: str | None = None) -> bool:
        """End a job in this way; False where it had ended already. Raises `StorageError`."""
        values = (status.value, reason, self._now(), job_id)
        return self._database.write(
            lambda connection: connection.execute(_END, values).rowcount == 1
        )

    def note(self, job_id: str, waiting_for: str | None, ends_at: int | None) -> None:
        """Note that a job runs, what it waits for, and when it may end. Raises `StorageError`."""
        values = (waiting_for, ends_at, job_id)
        self._database.write(lambda connection: connection.execute(_NOTE, values).rowcount)

    def fail(self, row: JobRow, error: str) -> None:
        """Store that a row has no answer, with the JSON of why.

        Raises `ProjectFull` where its project has stored as much as it may, and `StorageError`.
        """
        no_room_in = self._database.write_grouped(self._insert_failures, (row, error))
        if no_room_in is not None:
            raise full(no_room_in)

    def forget(self, seq: int, numbers: Sequence[int]) -> int:
        """Settle rows of the job in this row as deleted, so that they are never asked.

        Those that have failed lose their ids and errors; those that have answers go with these.
        Returns how many were not settled before. Raises `StorageError`.
        """

        def write(connection: sqlite3.Connection) -> int:
            failed = _drop_failed(connection, seq, numbers)
            rows = [(seq, number, DELETED_ROW) for number in numbers]
            count = connection.executemany(_FORGET, rows).rowcount
            (project,) = connection.execute(_PROJECT, (seq,)).fetchone()
            free(connection, project, -count * DELETED_ROW_BYTES)
            _count(connection, self._now(), seq, failed=count - failed)
            return count - failed

        return self._database.write(write)

    def failed(self, job: Job) -> set[int]:
        """The numbers of a job's rows that failed and are not deleted. Raises `StorageError`."""
        with self._database.read() as connection:
            rows = connection.execute(_FAILED, (job.seq, DELETED_ROW))
            return {number for (number,) in rows}

    def failed_as(self, project: str, row_id: str) -> list[JobRow]:
        """The rows with this id that failed, of the project's jobs that have ended.

        Raises `StorageError`.
        """
        with self._database.read() as connection:
            rows = connection.execute(_FAILED_AS, (project, row_id))
            return [JobRow(job, number, row_id) for job, number in rows]

    def drop_failed(self, rows: Iterable[JobRow]) -> None:
        """Delete rows that failed. Raises `StorageError`."""
        for row in rows:
            self._database.write(partial(_drop_failed, job=row.job, numbers=[row.number]))

    def is_open(self, seq: int) -> bool:
        """Whether rows of the job in this row may still be asked. Raises `StorageError`."""
        return bool(self._database.rows(_IS_OPEN, seq))

    def is_settled(self, row: JobRow) -> bool:
        """Whether a row has its answer or its error. Raises `StorageError`."""
        return bool(self._database.rows(_IS_SETTLED, row.job, row.number))

    def settled(self, job: Job) -> bytearray:
        """By the number of each row of a job 1 where it is settled. Raises `StorageError`."""
        numbers = bytearray(job.rows + 1)
        with self._database.read() as connection:
            for (number,) in connection.execute(_SETTLED, (job.seq,)):
                numbers[number] = 1
        return numbers

    def results(
        self, job_id: str, after: int, most_bytes: int, shape: shown.Shape
    ) -> tuple[list[RowResult], int | None]:
        """What became of the rows after a number, in order; and the number that leads on, if any.

        Of an open job they end before the first row that is not settled. They have `most_bytes`
        together at most, but for the first. `shape` makes JSON of a decision.
        Raises `UnknownJob` and `StorageError`.
        """
        with self._database.read() as connection:
            found = connection.execute(_GET, (job_id, self._too_old())).fetchone()
            if found is None:
                raise UnknownJob("there is no such job")
            job = _job(found)
            return job_results.page(connection, job.seq, job.is_open, after, most_bytes, shape)

    def forget_old(self) -> bool:
        """Delete some rows of jobs that ended too long ago, and with the last of each the job.

        Their decisions stay. Whether there may be more to delete. Raises `StorageError`.
        """
        if not self._database.rows(_OLDEST, self._too_old()):
            return False
        self._database.write(self._delete_some)
        return True

    def _delete_some(self, connection: sqlite3.Connection) -> None:
        left, before = ROWS_SWEPT, self._too_old()
        while left > 0 and (oldest := connection.execute(_OLDEST, (before,)).fetchone()):
            seq, project = oldest
            rows = connection.execute(_OLD_ROWS, (seq, left)).fetchall()
            if rows:
                connection.execute(_DELETE_ROWS, (seq, rows[-1][0]))
                free(connection, project, sum(size for _, size in rows))
            if len(rows) < left:
                numbers.note_last(connection, numbers.Numbered.JOBS)
                connection.execute(_DELETE, (seq,))
                free(connection, project, JOB_BYTES)
            # A job counts as one more row.
            left -= len(rows) + 1

    def _check_room(self, connection: sqlite3.Connection, key_id: str | None) -> None:
        of_all, of_key = connection.execute(_COUNT_OPEN, (key_id,)).fetchone()
        if of_key >= self._most_open:
            raise TooManyJobs(f"{of_key} jobs have not ended yet, as many as a key may have")
        if of_all >= self._most_of_all:
            raise TooManyJobs(
                f"{of_all} jobs of all keys have not ended yet, as many as the server takes"
            )

    def _insert_failures(
        self, connection: sqlite3.Connection, failures: Sequence[tuple[JobRow, str]]
    ) -> Sequence[str | None]:
        """The project of each row that does not fit into it, None for those that are stored."""
        room = Room(connection)
        no_room: list[str | None] = []
        for row, error in failures:
            (project,) = connection.execute(_PROJECT, (row.job,)).fetchone()
            fits = room.takes(project, row.id, error, row_bytes=JOB_ROW_BYTES)
            no_room.append(None if fits else project)
            if fits:
                _settle(connection, _FAIL, (row.job, row.number, row.id, error))
                _count(connection, self._now(), row.job, failed=1)
        return no_room

    def _too_old(self) -> int:
        """A job that ended then or before is not kept any more."""
        return self._now() - limits.JOB_KEPT_DAYS * DAY_MS

    def _now(self) -> int:
        return int(self._clock() * 1000)


def answered(
    connection: sqlite3.Connection, now_ms: int, rows: Iterable[tuple[JobRow, bytes, Decision]]
) -> None:
    """Store that rows were answered by decisions of these ULIDs, inside their transaction.

    Raises `RowSettled`, so that the transaction fails, where a row is settled already.
    """
    counts: dict[int, tuple[int, float]] = {}
    for row, ulid, decision in rows:
        _settle(connection, _ANSWER, (row.job, row.number, row.id, decision.debiased, ulid))
        count, cost_usd = counts.get(row.job, (0, 0.0))
        counts[row.job] = count + 1, cost_usd + decision.cost_usd
    for job, (count, cost_usd) in counts.items():
        _count(connection, now_ms, job, answered=count, cost_usd=cost_usd)


def _drop_failed(connection: sqlite3.Connection, job: int, numbers: Sequence[int]) -> int:
    """Delete those of a job's rows that failed, inside a transaction; how many."""
    values = (job, json.dumps(list(numbers)))
    sizes = [size for (size,) in connection.execute(_DROP_FAILED, values)]
    if sizes:
        (project,) = connection.execute(_PROJECT, (job,)).fetchone()
        free(connection, project, sum(sizes))
    return len(sizes)


def _settle(connection: sqlite3.Connection, insertion: str, values: tuple[object, ...]) -> None:
    try:
        connection.execute(insertion, values)
    except sqlite3.IntegrityError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
            raise
        raise RowSettled("the row is settled already") from None


def _count(
    connection: sqlite3.Connection,
    now_ms: int,
    job: int,
    answered: int = 0,
    failed: int = 0,
    cost_usd: float = 0.0,
) -> None:
    """Count rows of a job; with its last row it is done."""
    counted = {"answered": answered, "failed": failed, "cost_usd": cost_usd}
    connection.execute(_COUNT, {**counted, "now": now_ms, "job": job})


def _job(row: sqlite3.Row) -> Job:
    values = dict(zip(row.keys(), row, strict=True))
    return Job(**{**values, "status": JobStatus(values["status"])})
