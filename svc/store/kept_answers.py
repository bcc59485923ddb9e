"""Answers of requests that callers may repeat, kept for a day."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass

from svc import limits
from svc.store.database import Database

# What may be deleted besides as much again as comes, so that the old is gone in the end.
_SWEPT = 16

_FIND = "SELECT place, sent, answer, decision_id FROM kept_answers WHERE place = ? AND kept_at > ?"
_KEEP = (
    "INSERT OR REPLACE INTO kept_answers (place, sent, answer, decision_id, kept_at) "
    "VALUES (?, ?, ?, ?, ?)"
)
_FORGET = (
    "DELETE FROM kept_answers WHERE rowid IN "
    "(SELECT rowid FROM kept_answers WHERE kept_at <= ? ORDER BY kept_at LIMIT ?)"
)


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The body of the answer to a request, by hashes of whose request it was and of what was sent.

    `answer` is None where the answer may not be kept, and `decision_id` then names its decision.
    """

    place: bytes
    sent: bytes
    answer: bytes | None
    decision_id: str | None = None


class KeptAnswers:
    """Keeps answers for `limits.IDEMPOTENCY_KEPT_S` seconds."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since the epoch."""
        self._database = database
        self._clock = clock

    def find(self, place: bytes) -> KeptAnswer | None:
        """What was kept there in the last day. Raises `StorageError`."""
        rows = self._database.rows(_FIND, place, _too_old(self._now()))
        return KeptAnswer(*rows[0]) if rows else None

    def keep(self, answer: KeptAnswer) -> None:
        """Keep an answer, in place of an older one. Raises `StorageError`."""
        self._database.write_grouped(self._insert, answer)

    def _insert(
        self, connection: sqlite3.Connection, answers: Sequence[KeptAnswer]
    ) -> Sequence[None]:
        keep(connection, answers, self._now())
        return [None] * len(answers)

    def _now(self) -> int:
        return int(self._clock() * 1000)


def keep(connection: sqlite3.Connection, answers: Sequence[KeptAnswer], now_ms: int) -> None:
    """Keep answers, in place of older ones, inside the transaction of what they tell of."""
    connection.executemany(_KEEP, [(*astuple(answer), now_ms) for answer in answers])
    forget_old(connection, now_ms, 2 * len(answers) + _SWEPT)


def forget_old(connection: sqlite3.Connection, now_ms: int, most: int) -> None:
    """Delete at most so many answers that are kept no longer, the oldest first."""
    connection.execute(_FORGET, (_too_old(now_ms), most))


def _too_old(now_ms: int) -> int:
    return now_ms - limits.IDEMPOTENCY_KEPT_S * 1000
