"""Answers of requests that callers may repeat, kept for a day."""

from __future__ import annotations

import sqlite3
import time
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace

from svc import limits
from svc.store import ids
from svc.store.database import Database
from svc.store.project_sizes import KEPT_ROW_BYTES, Room, free, full

# Longer answers are compressed, in the fastest way: those of many options to a tenth.
_LONG_BYTES, _FAST = 2_000, 1

# How what zlib compressed begins, and JSON does not.
_PACKED = b"x"

# The old answers, of up to 80 KB each, that are deleted at most with each transaction of decisions,
# and besides as many again as come with each of answers, so that the old are gone in the end.
SWEPT = 16

_COLUMNS = "place, sent, answer, project, decision_id, debiased"
_FIND = f"SELECT {_COLUMNS} FROM kept_answers WHERE place = ? AND kept_at > ?"
_KEEP = f"INSERT INTO kept_answers ({_COLUMNS}, kept_at) VALUES (?, ?, ?, ?, ?, ?, ?)"
_IS_THERE = "SELECT 1 FROM decisions WHERE id = ?"
_DELETED = "RETURNING project, coalesce(length(answer), 0)"
_REPLACE = f"DELETE FROM kept_answers WHERE place = ? {_DELETED}"
_SIZE = "SELECT project, coalesce(length(answer), 0) FROM kept_answers WHERE place = ?"
_BLANK = (
    "UPDATE kept_answers SET sent = x'', answer = NULL, project = NULL, decision_id = NULL, "
    "debiased = NULL WHERE place = ?"
)
_FORGET = (
    "DELETE FROM kept_answers WHERE rowid IN "
    f"(SELECT rowid FROM kept_answers WHERE kept_at <= ? ORDER BY kept_at LIMIT ?) {_DELETED}"
)


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The body of the answer to a request, by hashes of whose request it was and of what was sent.

    `answer` is None where it is made again from what is stored: of the decision that `decision_id`
    names, and whether it was `debiased`, which stands nowhere else. Where that is None too, it may
    not be given again. A whole answer has the `decision_id` of the decision that it tells of, if
    any. It counts in what `project` fills, None for no project.
    Of one that was forgotten nothing but its place is kept; see `is_forgotten`.
    """

    place: bytes
    sent: bytes
    answer: bytes | None
    project: str | None = None
    decision_id: str | None = None
    debiased: bool | None = None

    @property
    def is_forgotten(self) -> bool:
        """Whether there was an answer of which nothing is kept any more."""
        return not self.sent


class KeptAnswers:
    """Keeps answers for `limits.IDEMPOTENCY_KEPT_S` seconds."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since the epoch."""
        self._database = database
        self._clock = clock

    def find(self, place: bytes) -> KeptAnswer | None:
        """What was kept there in the last day. Raises `StorageError`."""
        rows = self._database.rows(_FIND, place, _too_old(self._now()))
        if not rows:
            return None
        found = KeptAnswer(*rows[0])
        return found if found.answer is None else replace(found, answer=unpacked(found.answer))

    def keep(self, answer: KeptAnswer) -> None:
        """Keep an answer, in place of an older one. Raises `ProjectFull` and `StorageError`."""
        if answer.answer is not None and len(answer.answer) > _LONG_BYTES:
            answer = replace(answer, answer=zlib.compress(answer.answer, _FAST))
        if not self._database.write_grouped(self._insert, answer):
            raise full(answer.project or "")

    def _insert(
        self, connection: sqlite3.Connection, answers: Sequence[KeptAnswer]
    ) -> Sequence[bool]:
        return keep(connection, answers, self._now())

    def _now(self) -> int:
        return int(self._clock() * 1000)


def keep(
    connection: sqlite3.Connection, answers: Sequence[KeptAnswer], now_ms: int
) -> Sequence[bool]:
    """Keep answers, in place of older ones, inside the transaction of what they tell of.

    Of each whether it fits into the room of its project; others are not kept, and neither are those
    that tell of a decision which was deleted meanwhile.
    """
    forget_old(connection, now_ms, 2 * len(answers) + SWEPT)
    room, kept = Room(connection), []
    for answer in answers:
        _freed(connection, _REPLACE, (answer.place,))
        if _is_gone(connection, answer):
            kept.append(True)
            continue
        row_bytes = KEPT_ROW_BYTES + len(answer.answer or b"")
        fits = answer.project is None or room.takes(answer.project, row_bytes=row_bytes)
        if fits:
            connection.execute(_KEEP, (*astuple(answer), now_ms))
        kept.append(fits)
    return kept


def unpacked(stored: bytes) -> bytes:
    """The body of an answer as it was given, from how it is stored."""
    return zlib.decompress(stored) if stored.startswith(_PACKED) else stored


def _is_gone(connection: sqlite3.Connection, answer: KeptAnswer) -> bool:
    """Whether it tells of a decision that was deleted meanwhile."""
    if answer.decision_id is None or answer.debiased is not None:
        # It tells of none, or is stored together with it.
        return False
    found = connection.execute(_IS_THERE, (ids.parse(answer.decision_id),))
    return found.fetchone() is None


def forget_old(connection: sqlite3.Connection, now_ms: int, most: int) -> int:
    """Delete at most so many answers that are kept no longer, the oldest first; how many."""
    return _freed(connection, _FORGET, (_too_old(now_ms), most))


def forget(connection: sqlite3.Connection, places: Sequence[bytes]) -> int:
    """Keep of the answers at these places only that there was one; how many there were."""
    return sum(
        _freed(connection, _SIZE, (place,)) and connection.execute(_BLANK, (place,)).rowcount
        for place in places
    )


def _freed(connection: sqlite3.Connection, statement: str, values: tuple[object, ...]) -> int:
    """Count what the statement returns no more in what projects fill; how many rows that are."""
    deleted, freed = connection.execute(statement, values).fetchall(), Counter[str]()
    for project, size in deleted:
        if project is not None:
            freed[project] += KEPT_ROW_BYTES + size
    for project, size in freed.items():
        free(connection, project, size)
    return len(deleted)


def _too_old(now_ms: int) -> int:
    return now_ms - limits.IDEMPOTENCY_KEPT_S * 1000
