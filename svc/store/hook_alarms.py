"""What lasts and hooks are told of, such as drift: each from when it was seen first to its end.

An alarm that has ended and comes again soon is the same one, so that what comes and goes is told
once an hour at most.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from svc.jsontext import JsonObject
from svc.store.database import Database
from svc.store.hook_events import NewEvent, add_events

# For so long after its beginning an alarm that ended may begin again as the same one.
SAME_FOR_MS = 3_600_000


class Place(NamedTuple):
    """What an alarm is about: the subject by which events are in order, and what of it."""

    subject: str
    name: str


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that lasts, with its figures; `since` is in unix milliseconds."""

    project: str
    kind: str
    subject: str
    key: str
    since: int
    data: str


# Makes the body of an event.
Shape = Callable[[Alarm], str]

_ALL = "SELECT subject, name, since, over FROM hook_alarms WHERE project = ? AND kind = ?"
_BEGIN = (
    "REPLACE INTO hook_alarms (project, kind, subject, name, key, since, data) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_GO_ON = (
    "UPDATE hook_alarms SET over = 0 WHERE project = ? AND kind = ? AND subject = ? AND name = ?"
)
_PAUSE = (
    "UPDATE hook_alarms SET over = 1 WHERE project = ? AND kind = ? AND subject = ? AND name = ?"
)
_END = "DELETE FROM hook_alarms WHERE project = ? AND kind = ? AND subject = ? AND name = ?"
_UNTOLD = (
    "SELECT hooks.seq, project, alarm.kind, alarm.subject, alarm.key, alarm.since, alarm.data "
    "FROM hook_alarms AS alarm JOIN hooks USING (project) "
    "WHERE NOT over AND disabled IS NULL AND instr(kinds, '\"' || alarm.kind || '\"') "
    "AND NOT EXISTS (SELECT 1 FROM hook_events "
    "WHERE hook = hooks.seq AND hook_events.key = alarm.key) "
    "ORDER BY alarm.since, alarm.subject, alarm.name"
)
_LOOKED = "SELECT 1 FROM hook_looks WHERE project = ? AND day = ?"
_LOOK = "REPLACE INTO hook_looks (project, day) VALUES (?, ?)"


class HookAlarms:
    """Notes what begins and ends, and with that stores the events for hooks."""

    def __init__(
        self, database: Database, shape: Shape, clock: Callable[[], float] = time.time
    ) -> None:
        """`clock` gives seconds since the epoch."""
        self._database, self._shape, self._clock = database, shape, clock

    def known(self, project: str, kind: str) -> set[Place]:
        """What lasts, or has just ended. Raises `StorageError`."""
        return {Place(row[0], row[1]) for row in self._database.rows(_ALL, project, kind)}

    def note(
        self,
        project: str,
        found: Mapping[str, Mapping[Place, JsonObject]],
        day: str | None = None,
        unknown: Collection[str] = (),
    ) -> None:
        """Note all that holds now, by kind, and with `day` that it was looked for on that day.

        What did not hold before begins, and hooks are told in the same transaction. Of the subjects
        in `unknown` all stays as it was. Raises `StorageError`.
        """
        now_ms = int(self._clock() * 1000)
        steps = {
            kind: partial(_steps, project, kind, held, unknown, now_ms)
            for kind, held in found.items()
        }
        if day is None:
            # Mostly nothing has changed, and nobody has to wait for a transaction.
            with self._database.read() as connection:
                if not any(True for step in steps.values() for _ in step(connection)):
                    return

        def write(connection: sqlite3.Connection) -> None:
            for step in steps.values():
                for statement, values in list(step(connection)):
                    connection.execute(statement, values)
            if day is not None:
                connection.execute(_LOOK, (project, day))
            self._tell(connection)

        self._database.write(write)

    def tell(self) -> None:
        """Store events for hooks that were added while something lasts. Raises `StorageError`."""
        with self._database.read() as connection:
            untold = connection.execute(_UNTOLD).fetchone() is not None
        if untold:
            self._database.write(self._tell)

    def looked(self, project: str, day: str) -> bool:
        """Whether `note` was called with this day. Raises `StorageError`."""
        return bool(self._database.rows(_LOOKED, project, day))

    def _tell(self, connection: sqlite3.Connection) -> None:
        events = []
        for hook, *columns in connection.execute(_UNTOLD).fetchall():
            alarm = Alarm(*columns)
            body = self._shape(alarm)
            events.append(NewEvent(hook, alarm.key, alarm.subject, body, alarm.since))
        add_events(connection, events, int(self._clock() * 1000))


def _steps(
    project: str,
    kind: str,
    held: Mapping[Place, JsonObject],
    unknown: Collection[str],
    now_ms: int,
    connection: sqlite3.Connection,
) -> Iterable[tuple[str, tuple[object, ...]]]:
    """The statements that make what is noted true."""
    known = {
        Place(subject, name): (since, over)
        for subject, name, since, over in connection.execute(_ALL, (project, kind))
        if subject not in unknown
    }
    for place, (since, over) in known.items():
        is_recent = 0 <= now_ms - since < SAME_FOR_MS
        if place not in held and not is_recent:
            yield _END, (project, kind, *place)
        elif place not in held and not over:
            yield _PAUSE, (project, kind, *place)
        elif place in held and over and is_recent:
            yield _GO_ON, (project, kind, *place)
    for place, data in held.items():
        since, over = known.get(place, (0, True))
        if place not in known or (over and not 0 <= now_ms - since < SAME_FOR_MS):
            key = " ".join((kind, *place, str(now_ms)))
            yield _BEGIN, (project, kind, *place, key, now_ms, json.dumps(data))
