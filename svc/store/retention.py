"""For how long decisions of projects are kept, and the deletion of those that are older."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from svc.store import eras, ids, kept_answers, wordings
from svc.store.database import Database
from svc.store.erasing import TOGETHER, erase
from svc.store.project_sizes import JOB_ROW_SIZE, free

DAY_MS = 86_400_000

_ALL = "SELECT project, days FROM retention ORDER BY project"
_SET = (
    "INSERT INTO retention (project, days) VALUES (?, ?) "
    "ON CONFLICT DO UPDATE SET days = excluded.days"
)
_REMOVE = "DELETE FROM retention WHERE project = ?"
_DAYS = "SELECT days FROM retention WHERE project = ?"
# Decisions stand in the order of their ids, and an id begins with its time.
_FIRST_KEPT = "SELECT seq FROM decisions WHERE id >= ? ORDER BY id LIMIT 1"
_OLD = "SELECT seq FROM decisions WHERE project = ? AND seq < ? ORDER BY seq LIMIT ?"
_END = 2**63 - 1
_OLD_ROWS = (
    "SELECT job, row FROM jobs INDEXED BY jobs_by_project CROSS JOIN job_rows ON job = jobs.seq "
    "WHERE project = ? AND jobs.seq >= ? AND ended_at < ? ORDER BY jobs.seq LIMIT ?"
)
_DROP_ROW = f"DELETE FROM job_rows WHERE job = ? AND row = ? RETURNING {JOB_ROW_SIZE}"


# Deletes so many at most; False where there were none.
Step = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class Retention:
    """For how many days the decisions of a project are kept."""

    project: str
    days: int


class Retentions:
    """Sets and finds them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def set(self, project: str, days: int) -> None:
        """Keep decisions of a project for so long. Raises `StorageError`."""
        with self._database.changing():
            self._database.write(lambda connection: _change(connection, _SET, project, days))

    def remove(self, project: str) -> bool:
        """Keep decisions of a project for ever; False where they are. Raises `StorageError`."""
        with self._database.changing():
            return self._database.write(lambda connection: _change(connection, _REMOVE, project))

    def all(self) -> list[Retention]:
        """The projects that have one, by name. Raises `StorageError`."""
        return [Retention(*row) for row in self._database.rows(_ALL)]


def _change(connection: sqlite3.Connection, statement: str, *values: object) -> bool:
    """Whether a row was changed. Answers are remembered no longer, as of those deleted before."""
    eras.begin(connection)
    return connection.execute(statement, values).rowcount == 1


class Sweeping:
    """Deletes what is older than it may be, in steps that others hardly notice."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since the epoch."""
        self._database, self._clock = database, clock

    def decisions(self, project: str, most: int = TOGETHER) -> bool:
        """Delete the `most` oldest decisions of a project that may go; False where there are none.

        Raises `StorageError`.
        """
        step = partial(_erase_old, project, self._now_ms(), most)
        with self._database.changing():
            return self._database.write(step)

    def job_rows(self, project: str) -> Step:
        """The same for rows of jobs that ended before the decisions that are kept, as a step.

        Steps go on from the job at which the last one ended.
        """
        first = 0

        def step(most: int) -> bool:
            nonlocal first
            # The look goes through jobs of the project, so it is taken outside of the write lock.
            # Where rows are to be kept longer meanwhile, these few go all the same.
            with self._database.read() as connection:
                since = _kept_since(connection, project, self._now_ms())
                if since is None:
                    return False
                found = connection.execute(_OLD_ROWS, (project, first, since, most))
                rows = [tuple(row) for row in found]
            if rows:
                first = rows[-1][0]
                self._database.write(partial(_drop_rows, project, rows))
            return bool(rows)

        return step

    def kept_answers(self, most: int = TOGETHER) -> bool:
        """The same for answers that no repeat of a request gets any more."""
        now_ms = self._now_ms()
        return self._database.write(
            lambda connection: kept_answers.forget_old(connection, now_ms, most) == most
        )

    def wordings(self, goes_on: Callable[[], bool] = lambda: True) -> int:
        """Delete keys and wordings of questions that nothing refers to; how many wordings.

        That may take looking through all decisions, so that it is done once an hour at most.
        `goes_on` is called after each few, may rest, and says whether others are to go too. Raises
        `StorageError`.
        """
        now_ms = self._now_ms()
        if self._database.write(partial(wordings.is_due, now_ms)):
            wordings.drop_keys(self._database, now_ms, goes_on)
            return wordings.drop_unused(self._database, goes_on)
        return 0

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


def _kept_since(connection: sqlite3.Connection, project: str, now_ms: int) -> int | None:
    """From when on decisions are kept, in unix milliseconds; None where all are."""
    found = connection.execute(_DAYS, (project,)).fetchone()
    return None if found is None else now_ms - int(found[0]) * DAY_MS


def _erase_old(project: str, now_ms: int, most: int, connection: sqlite3.Connection) -> bool:
    since = _kept_since(connection, project, now_ms)
    if since is None:
        return False
    first = connection.execute(_FIRST_KEPT, (ids.earliest(since),)).fetchone()
    place = (project, _END if first is None else first[0], most)
    seqs = [row[0] for row in connection.execute(_OLD, place)]
    erase(connection, seqs)
    return bool(seqs)


def _drop_rows(
    project: str, rows: Iterable[tuple[int, ...]], connection: sqlite3.Connection
) -> None:
    dropped = [size for row in rows for (size,) in connection.execute(_DROP_ROW, row).fetchall()]
    free(connection, project, sum(dropped))
