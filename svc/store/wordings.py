"""Wordings of questions that nothing refers to any more."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from functools import partial

from svc.store.database import Database
from svc.store.places import last_place
from svc.store.project_sizes import WORDING_SIZE, free

# The pause between two looks, in milliseconds.
LOOK_EVERY_MS = 3_600_000

_LOOKED_AT = (
    "INSERT INTO meta (name, value) VALUES ('wordings_swept_at', :now) ON CONFLICT (name) "
    "DO UPDATE SET value = :now WHERE value NOT BETWEEN :now - :interval + 1 AND :now"
)
# Neither the newest of a question nor with sums, labels or challengers.
_UNUSED = "SELECT id FROM questions WHERE " + " AND ".join(
    f"id NOT IN (SELECT question_id FROM {table})"
    for table in (
        *("asked", "weeks", "learned", "labels", "judgements"),
        *("review_frames", "review_rounds", "review_levels", "review_items", "challengers"),
    )
)
_ASKED = "SELECT DISTINCT question_ids FROM decisions WHERE seq > ?"
_CHALLENGED = "SELECT question_id FROM challengers"
_COUNTED = "SELECT coalesce(sum(decisions), 0) FROM weeks WHERE question_id = ?"
_OF_ROUNDS = "round IN (SELECT id FROM review_rounds WHERE question_id = ?)"
_DROP = "DELETE FROM questions WHERE id = ?"
_COUNTED_BY = f"SELECT brought_by, {WORDING_SIZE} FROM questions WHERE id = ?"
_WITH_SUMS = ("review_rounds", "review_levels", "review_frames", "weeks", "learned", "asked")
_DROP_SUMS = (
    f"DELETE FROM review_chances WHERE {_OF_ROUNDS}",
    *(f"DELETE FROM {table} WHERE question_id = ?" for table in _WITH_SUMS),
)


def is_due(now_ms: int, connection: sqlite3.Connection) -> bool:
    """Whether nobody has looked for so long; then this is a look."""
    values = {"now": now_ms, "interval": LOOK_EVERY_MS}
    return connection.execute(_LOOKED_AT, values).rowcount == 1


def drop_unused(database: Database) -> int:
    """Delete those without sums that no decision has; how many. Raises `StorageError`."""
    with database.read() as connection:
        unused = {row[0] for row in connection.execute(_UNUSED)}
        last, _ = last_place(connection)
        unused -= _asked_since(connection, 0) if unused else set()
    return sum(database.write(partial(_drop, one, last, (_DROP,))) for one in unused)


def drop_with_sums(database: Database, answers: Mapping[int, int]) -> int:
    """Delete those that only deleted decisions had, with their sums; how many.

    `answers` has how many answers of models to each wording were deleted just now. Where the sums
    count more, they are of others too, and stay. Raises `StorageError`.
    """
    with database.read() as connection:
        last, _ = last_place(connection)
        gone = answers.keys() - (_asked_since(connection, 0) if answers else set())
        gone -= {question_id for (question_id,) in connection.execute(_CHALLENGED)}
        alone = [one for one in gone if _counted(connection, one) <= answers[one]]
    drops = (*_DROP_SUMS, _DROP)
    return sum(database.write(partial(_drop, one, last, drops)) for one in alone)


def _counted(connection: sqlite3.Connection, question_id: int) -> int:
    (count,) = connection.execute(_COUNTED, (question_id,)).fetchone()
    return int(count)


def _asked_since(connection: sqlite3.Connection, seq: int) -> set[int]:
    """The wordings of all decisions after a row."""
    rows = connection.execute(_ASKED, (seq,))
    return {question_id for row in rows for question_id in json.loads(row[0])}


def _drop(
    question_id: int, last: int, statements: Iterable[str], connection: sqlite3.Connection
) -> int:
    """Delete a wording unless a decision after the row `last` has it."""
    if question_id in _asked_since(connection, last):
        return 0
    counted = connection.execute(_COUNTED_BY, (question_id,)).fetchall()
    dropped = [connection.execute(one, (question_id,)).rowcount for one in statements][-1]
    for project, size in counted:
        free(connection, project, size)
    return dropped
