"""The raw readings of all decisions of the last weeks on an exact question, labelled or not."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from svc import limits
from svc.store import weeks
from svc.store.audit_pages import ASKS, READINGS
from svc.store.database import Database

_DEEPEST = (
    "SELECT seq, created_at FROM decisions WHERE project = ? ORDER BY seq DESC LIMIT 1 OFFSET ?"
)
_ASKED = (
    f"SELECT seq, created_at, {READINGS}, question_ids FROM decisions "
    "WHERE project = ? AND seq >= ? "
    f"AND {ASKS} ORDER BY seq DESC LIMIT ?"
)


@dataclass(frozen=True, slots=True)
class Period:
    """What models said on an exact question; `p` are raw probabilities, newest first.

    `since` is when the period begins, in unix milliseconds, and no decision of it has a lower row
    than `first`. `cut` says that it begins later than asked for, as it has too many decisions.
    """

    p: list[array[float]]
    since: int
    first: int
    cut: bool


class Periods:
    """Reads them."""

    def __init__(
        self,
        database: Database,
        most: int = limits.RATES_DECISIONS,
        depth: int = limits.RATES_DEPTH,
        chars: int = limits.READINGS_CHARS,
    ) -> None:
        """At most `most` readings are read, out of the last `depth` decisions of their project.

        The whole readings of these decisions have no more than `chars` characters, but at least one
        decision is read.
        """
        self._database = database
        self._most, self._depth, self._chars = most, depth, chars

    def read(self, project: str, question_id: int, last_weeks: int, now_ms: int) -> Period:
        """The most recent decisions of the last weeks, this one included.

        Those whose question a rule answered, or that skipped it, are left out.
        Raises `StorageError`.
        """
        since = weeks.begins_at(weeks.number(now_ms) - last_weeks + 1)
        p: list[array[float]] = []
        left = self._chars
        with self._database.read() as connection:
            whole = (weeks.first_row(connection, since), since)
            begin = max(whole, self._deepest(connection, project))
            place = (project, begin[0], question_id, self._most)
            rows = connection.execute(_ASKED, place)
            for count, (seq, created_at, readings, question_ids) in enumerate(rows, 1):
                p += _raw(readings, question_ids, question_id)
                left -= len(readings)
                if count == self._most or len(p) >= self._most or left < 0:
                    begin = (seq, created_at)
                    break
        return Period(p, begin[1], begin[0], begin != whole)

    def _deepest(self, connection: sqlite3.Connection, project: str) -> tuple[int, int]:
        """The row from which on there are `depth` decisions of the project, and its time."""
        row = connection.execute(_DEEPEST, (project, self._depth - 1)).fetchone()
        return (0, 0) if row is None else (row[0], row[1])


def _raw(readings: str, question_ids: str, wanted: int) -> Iterator[array[float]]:
    """The probabilities of the wanted question, which may stand there under several keys."""
    rows = zip(json.loads(question_ids), json.loads(readings).values(), strict=True)
    for question_id, reading in rows:
        if question_id == wanted and reading is not None:
            yield array("d", reading["p"])
