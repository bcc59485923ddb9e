"""Events that wait to be delivered to hooks, each once for a hook, in order by subject."""

from __future__ import annotations

import logging
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from svc import limits
from svc.store.database import Database
from svc.store.hooks import forget_unwanted
from svc.store.jobs import DAY_MS

# What the id of an event begins with, and how many random bytes follow.
ID_PREFIX, ID_BYTES = "evt_", 12

# A settled event is remembered for longer than what it told of can be found in the database.
REMEMBERED_DAYS = limits.JOB_KEPT_DAYS + 1

# How many events of a hook are looked at together, and how many are deleted together.
OF_A_HOOK = 4
DELETED_TOGETHER, DELETIONS = 1_000, 20

# After each deletion there is none for so many times as long as it took.
REST = 3.0

# A clock that was set back has nobody wait for longer than any pause lasts.
LONGEST_PAUSE_MS = DAY_MS

# The most jobs that are told of in one transaction.
_JOBS_TOGETHER = 200

# Later than anything.
_LAST = 2**63 - 1


class NewEvent(NamedTuple):
    """An event for the hook in the row `hook`, told once for each `key`; `created_at` in ms."""

    hook: int
    key: str
    subject: str
    body: str
    created_at: int


@dataclass(frozen=True, slots=True)
class DueEvent:
    """An event that is to be sent now; `tried_at` is when it was sent first, None before that."""

    seq: int
    id: str
    hook: int
    hook_id: str
    project: str
    body: str
    attempts: int
    tried_at: int | None


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A job of which the hook in the row `hook` is still to be told; times in unix milliseconds."""

    hook: int
    project: str
    id: str
    status: str
    rows: int
    answered: int
    failed: int
    cost_usd: float
    created_at: int
    ended_at: int


class EndedJobs(NamedTuple):
    """Jobs to tell of, and when those ended with which to go on; None where they begin anew.

    `are_more` says whether the same look would find others, once these are told.
    """

    jobs: list[EndedJob]
    before: int | None
    are_more: bool


# A new event is due whatever the clock says: one that is ahead now may come back.
_ADD = (
    "INSERT OR IGNORE INTO hook_events (hook, id, key, subject, body, created_at, next_at) "
    "SELECT seq, ?2, ?3, ?4, ?5, ?6, 0 FROM hooks WHERE seq = ?1"
)
_WAITING = "SELECT count(*) FROM hook_events WHERE hook = ? AND settled_at IS NULL"
_OLDEST = "SELECT seq FROM hook_events WHERE hook = ? AND settled_at IS NULL ORDER BY seq LIMIT ?"
# The oldest of each subject, those of hooks that answer before those of others.
_DUE = """
SELECT seq, id, hook, hook_id, project, body, attempts, tried_at FROM (
    SELECT event.*, hooks.id AS hook_id, project, failing_since IS NOT NULL AS failing,
        row_number() OVER (PARTITION BY hook ORDER BY event.seq) AS place
    FROM hook_events AS event JOIN hooks ON hooks.seq = hook
    WHERE settled_at IS NULL AND disabled IS NULL
    AND (next_at <= :now OR next_at > :now + :longest)
    AND NOT EXISTS (
        SELECT 1 FROM hook_events AS earlier WHERE earlier.hook = event.hook
        AND earlier.subject = event.subject AND earlier.seq < event.seq
        AND earlier.settled_at IS NULL
    )
) WHERE place <= :most ORDER BY failing, seq
"""
_SETTLE = (
    "UPDATE hook_events SET settled_at = ?, attempts = attempts + 1, body = '' "
    "WHERE seq = ? AND settled_at IS NULL RETURNING hook"
)
_DELIVERED = "UPDATE hooks SET delivered_at = ?, failing_since = NULL, failure = NULL WHERE seq = ?"
_AGAIN = (
    "UPDATE hook_events SET attempts = attempts + 1, tried_at = coalesce(tried_at, ?), next_at = ? "
    "WHERE seq = ? RETURNING hook"
)
_LATER = "UPDATE hook_events SET next_at = ? WHERE seq = ? RETURNING hook"
_FAILING = "UPDATE hooks SET failing_since = coalesce(failing_since, ?), failure = ? WHERE seq = ?"
_GIVE_UP = "UPDATE hook_events SET settled_at = ?, body = '' WHERE seq = ?"
_GIVEN_UP = "UPDATE hooks SET given_up = given_up + ? WHERE seq = ?"
_DISABLE = "UPDATE hooks SET disabled = ? WHERE seq = ?"
_FORGET = (
    "DELETE FROM hook_events WHERE seq IN ("
    "SELECT seq FROM hook_events WHERE settled_at < ? "
    "AND key NOT IN (SELECT key FROM hook_alarms) LIMIT ?)"
)
_ENDED = """
    SELECT seq, ended_at FROM jobs INDEXED BY jobs_ended
    WHERE ended_at > :since AND ended_at <= :before ORDER BY ended_at DESC LIMIT :most
"""
_ENDED_JOBS = f"""
WITH ended AS MATERIALIZED ({_ENDED})
SELECT hook, project, id, status, rows, answered, failed, cost_usd, created_at, ended_at FROM (
    SELECT hooks.seq AS hook, jobs.seq AS job,
        row_number() OVER (PARTITION BY jobs.project ORDER BY jobs.ended_at) AS place
    FROM ended CROSS JOIN jobs USING (seq) CROSS JOIN hooks ON hooks.project = jobs.project
    WHERE jobs.ended_at >= hooks.created_at
    AND disabled IS NULL AND instr(kinds, '"batch.done"') AND NOT EXISTS (
        SELECT 1 FROM hook_events WHERE hook = hooks.seq AND key = 'batch.done ' || jobs.id
    )
) JOIN jobs ON seq = job ORDER BY place, ended_at LIMIT {_JOBS_TOGETHER}
"""
_ENDED_FIRST = f"SELECT min(ended_at), count(*) FROM ({_ENDED})"

log = logging.getLogger(__name__)


class HookEvents:
    """Stores events for hooks, and what became of attempts to deliver them."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since the epoch."""
        self._database, self._clock = database, clock

    def add(self, events: Iterable[NewEvent]) -> None:
        """Store events; one whose key its hook had before is left out. Raises `StorageError`."""
        now_ms, events = self.now_ms(), list(events)
        if events:
            self._database.write(lambda connection: add_events(connection, events, now_ms))

    def due(self) -> list[DueEvent]:
        """What may be sent now: of each hook and subject the oldest event. Raises `StorageError`.

        Of a hook some of them.
        """
        values = {"now": self.now_ms(), "longest": LONGEST_PAUSE_MS, "most": OF_A_HOOK}
        with self._database.read() as connection:
            return [DueEvent(*row) for row in connection.execute(_DUE, values)]

    def delivered(self, event: DueEvent) -> None:
        """Note that a receiver took an event. Raises `StorageError`."""
        now_ms = self.now_ms()

        def write(connection: sqlite3.Connection) -> None:
            for (hook,) in connection.execute(_SETTLE, (now_ms, event.seq)).fetchall():
                connection.execute(_DELIVERED, (now_ms, hook))

        self._database.write(write)

    def failed(self, event: DueEvent, failure: str, again_in_s: float | None) -> None:
        """Note that an attempt failed, and when the next one is; None gives the event up.

        Raises `StorageError`.
        """
        now_ms = self.now_ms()

        def write(connection: sqlite3.Connection) -> None:
            next_at = now_ms + int((again_in_s or 0.0) * 1000)
            for (hook,) in connection.execute(_AGAIN, (now_ms, next_at, event.seq)).fetchall():
                connection.execute(_FAILING, (now_ms, failure, hook))
                if again_in_s is None:
                    _give_up(connection, hook, [event.seq], now_ms)

        self._database.write(write)

    def postponed(self, event: DueEvent, failure: str, again_in_s: float) -> None:
        """Note why an event could not even be sent; it counts as no attempt.

        Raises `StorageError`.
        """
        now_ms = self.now_ms()

        def write(connection: sqlite3.Connection) -> None:
            next_at = now_ms + int(again_in_s * 1000)
            for (hook,) in connection.execute(_LATER, (next_at, event.seq)).fetchall():
                connection.execute(_FAILING, (now_ms, failure, hook))

        self._database.write(write)

    def disable(self, hook: int, reason: str) -> None:
        """Send nothing more to the hook in this row. Raises `StorageError`."""

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(_DISABLE, (reason, hook))
            forget_unwanted(connection)

        self._database.write(write)

    def ended_jobs(
        self, most: int, days: float = limits.JOB_KEPT_DAYS, before: int | None = None
    ) -> EndedJobs:
        """Jobs that ended within `days`, after a hook was added which was not told.

        The last `most` are looked at, which may be told or nobody's, or those that ended at
        `before` or earlier. Of each project in turn the oldest, and some of them where there are
        many. Raises `StorageError`.
        """
        since = self.now_ms() - int(days * DAY_MS)
        place = {"since": since, "before": _LAST if before is None else before, "most": most}
        with self._database.read() as connection:
            jobs = [EndedJob(*row) for row in connection.execute(_ENDED_JOBS, place)]
            first_at, count = connection.execute(_ENDED_FIRST, place).fetchone()
        if len(jobs) == _JOBS_TOGETHER:
            return EndedJobs(jobs, before, are_more=True)
        # Many may have ended at the same time.
        after = None if count < most else first_at - (first_at == before)
        return EndedJobs(jobs, after, are_more=False)

    def forget_old(self) -> None:
        """Delete some events that were settled long ago. Raises `StorageError`."""
        old = (self.now_ms() - REMEMBERED_DAYS * DAY_MS, DELETED_TOGETHER)
        for _ in range(DELETIONS):
            began = time.monotonic()
            deleted = self._database.write(
                lambda connection: connection.execute(_FORGET, old).rowcount
            )
            if deleted < DELETED_TOGETHER:
                return
            # Others store decisions meanwhile.
            time.sleep(REST * (time.monotonic() - began))

    def now_ms(self) -> int:
        """Now, in unix milliseconds."""
        return int(self._clock() * 1000)


def add_events(connection: sqlite3.Connection, events: Iterable[NewEvent], now_ms: int) -> None:
    """Store events inside a transaction. Of a hook with too many the oldest are given up."""
    for event in events:
        event_id = ID_PREFIX + secrets.token_hex(ID_BYTES)
        hook, *rest = event
        if not connection.execute(_ADD, (hook, event_id, *rest)).rowcount:
            continue
        (waiting,) = connection.execute(_WAITING, (hook,)).fetchone()
        if waiting > limits.HOOK_WAITING:
            over = waiting - limits.HOOK_WAITING
            oldest = [seq for (seq,) in connection.execute(_OLDEST, (hook, over))]
            _give_up(connection, hook, oldest, now_ms)
            log.warning("too many events wait for a hook: the oldest is given up")


def _give_up(connection: sqlite3.Connection, hook: int, seqs: list[int], now_ms: int) -> None:
    connection.executemany(_GIVE_UP, [(now_ms, seq) for seq in seqs])
    connection.execute(_GIVEN_UP, (len(seqs), hook))
