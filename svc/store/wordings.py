"""Wordings and keys of questions that nothing refers to any more."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

from svc.store.database import Database
from svc.store.erasing import TOGETHER
from svc.store.numbers import Numbered, note_last
from svc.store.places import last_place
from svc.store.project_sizes import ASKED_SIZE, WORDING_SIZE, free
from svc.store.question_versions import NOTED_EVERY_MS

# The pause between two looks, in milliseconds.
LOOK_EVERY_MS = 3_600_000

# How many keys are found together, fewer where they have more characters, and how often a look
# finds some: an API key may make 2,000,000 an hour.
KEYS_TOGETHER, KEYS_CHARS, KEYS_FOUND = 50_000, 20_000_000, 50

# A key may make millions of wordings a day, so that they are looked at so many at a time, and so
# many decisions.
_WORDINGS_AT_ONCE, _DECISIONS_AT_ONCE = 10_000, 2_000

_LOOKED_AT = (
    "INSERT INTO meta (name, value) VALUES ('wordings_swept_at', :now) ON CONFLICT (name) "
    "DO UPDATE SET value = :now WHERE value NOT BETWEEN :now - :interval + 1 AND :now"
)
# Sums, labels, places in the review queue, and challengers.
_REFERRING = (
    *("weeks", "learned", "labels", "judgements"),
    *("review_frames", "review_rounds", "review_levels", "review_items", "challengers"),
)
# Neither the newest of a question nor with any of these.
_UNUSED = (
    "SELECT id FROM questions WHERE id > ? AND "
    + " AND ".join(
        f"id NOT IN (SELECT question_id FROM {table})" for table in ("asked", *_REFERRING)
    )
    + f" ORDER BY id LIMIT {_WORDINGS_AT_ONCE}"
)
# Those that were asked last before all decisions of their project, so that none has them: where
# nothing else of the project has the wording, or another key that was asked later has it.
_NO_MORE_ASKED = (
    "SELECT project, key, last_at FROM asked WHERE "
    "last_at < coalesce((SELECT created_at FROM decisions WHERE decisions.project = asked.project "
    "ORDER BY seq LIMIT 1), :now) - :noted_every AND ((project, question_id, last_at) NOT IN "
    "(SELECT project, question_id, max(last_at) FROM asked GROUP BY project, question_id) OR "
    + " AND ".join(
        f"(project, question_id) NOT IN (SELECT project, question_id FROM {table})"
        for table in _REFERRING
    )
    + ") AND (project, key) NOT IN (SELECT project, key FROM challengers) LIMIT :most"
)
_DROP_KEY = (
    "DELETE FROM asked WHERE project = ? AND key = ? AND last_at = ? "
    f"RETURNING project, {ASKED_SIZE}"
)
_ASKED = "SELECT question_ids FROM decisions WHERE seq > ?"
# From the rest of a project on, in the order of an index that has nothing else, since decisions may
# be long. SQLite does not find (project, seq) > (?, ?) by its second column.
_FURTHER = (
    "SELECT project, seq, question_ids FROM decisions INDEXED BY decisions_by_project "
    f"WHERE {{}} ORDER BY project, seq LIMIT {_DECISIONS_AT_ONCE}"
)
_ALL_ASKED = (
    f"SELECT * FROM ({_FURTHER.format('project = ?1 AND seq > ?2')}) UNION ALL "
    f"SELECT * FROM ({_FURTHER.format('project > ?1')}) LIMIT {_DECISIONS_AT_ONCE}"
)
# How many answers to a wording were deleted, as long as it is there: with those of a later run they
# may be all that its sums count.
_OWED = "forgotten_wording:"
_OWE = (
    f"INSERT INTO meta (name, value) VALUES ('{_OWED}' || ?, ?) "
    "ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"
)
_ALL_OWED = f"SELECT name, value FROM meta WHERE name GLOB '{_OWED}*'"
# Of a wording that is not there any more nothing is to be noted.
_SETTLE = (
    f"DELETE FROM meta WHERE name GLOB '{_OWED}*' "
    f"AND CAST(substr(name, {len(_OWED) + 1}) AS INTEGER) NOT IN (SELECT id FROM questions)"
)
_CHALLENGED = "SELECT question_id FROM challengers"
_COUNTED = "SELECT coalesce(sum(decisions), 0) FROM weeks WHERE question_id = ?"
_OF_ROUNDS = "round IN (SELECT id FROM review_rounds WHERE question_id = ?)"
# What is counted is returned, with the project that counts it.
_DROP = f"DELETE FROM questions WHERE id = ? RETURNING brought_by, {WORDING_SIZE}"
_WITH_SUMS = ("review_rounds", "review_levels", "review_frames", "weeks", "learned")
_DROP_SUMS = (
    f"DELETE FROM review_chances WHERE {_OF_ROUNDS}",
    *(f"DELETE FROM {table} WHERE question_id = ?" for table in _WITH_SUMS),
    f"DELETE FROM asked WHERE question_id = ? RETURNING project, {ASKED_SIZE}",
)


def is_due(now_ms: int, connection: sqlite3.Connection) -> bool:
    """Whether nobody has looked for so long; then this is a look."""
    values = {"now": now_ms, "interval": LOOK_EVERY_MS}
    return connection.execute(_LOOKED_AT, values).rowcount == 1


def drop_keys(
    database: Database, now_ms: int, goes_on: Callable[[], bool], most: int = KEYS_TOGETHER
) -> None:
    """Delete keys of questions that no decision has, `most` at a time.

    `goes_on` is called after each few, may rest, and says whether others are to go too. Raises
    `StorageError`.
    """
    values = {"now": now_ms, "noted_every": NOTED_EVERY_MS, "most": most}
    for _ in range(KEYS_FOUND):
        found = _no_more_asked(database, values)
        for start in range(0, len(found), TOGETHER):
            database.write(partial(_drop_keys, found[start : start + TOGETHER]))
            if not goes_on():
                return
        if not found:
            return


def _no_more_asked(database: Database, values: Mapping[str, int]) -> list[tuple[str, str, int]]:
    """Some of the keys that no decision has, each with its project and when it was asked last."""
    found: list[tuple[str, str, int]] = []
    chars = 0
    with database.read() as connection:
        for row in connection.execute(_NO_MORE_ASKED, values):
            found.append((row["project"], row["key"], row["last_at"]))
            chars += len(row["key"])
            if chars > KEYS_CHARS:
                break
    return found


def drop_unused(database: Database, goes_on: Callable[[], bool]) -> int:
    """Delete those without sums that no decision has; how many.

    `goes_on` is called after each few, may rest, and says whether others are to go too. Raises
    `StorageError`.
    """
    asked, dropped, after = _Asked(), 0, 0
    while unused := _unused(database, after):
        if not after and not asked.look_at_all(database, goes_on):
            break
        after = unused[-1]
        listed = [one for one in unused if one not in asked]
        # Where none of so many goes, there is a rest as well.
        for start in range(0, max(1, len(listed)), TOGETHER):
            with database.read() as connection:
                # What came meanwhile is looked through once, and not for each.
                asked.look(connection)
            some = [one for one in listed[start : start + TOGETHER] if one not in asked]
            if some:
                dropped += database.write(partial(_drop_some, some, asked.last, (_DROP,)))
            if not goes_on():
                return dropped
    return dropped


def _unused(database: Database, after: int) -> list[int]:
    with database.read() as connection:
        return [row[0] for row in connection.execute(_UNUSED, (after,))]


def note_deleted(connection: sqlite3.Connection, answers: Mapping[int, int]) -> None:
    """Note how many answers of models to each wording are deleted in this transaction.

    `drop_with_sums` looks at them later, also where this process ends before.
    """
    connection.executemany(_OWE, answers.items())


def drop_with_sums(database: Database) -> int:
    """Delete those that only deleted decisions had, with their sums; how many.

    Of each it is noted how many answers were deleted. Where the sums count more, they are of others
    too, and stay. Raises `StorageError`.
    """
    with database.read() as connection:
        owed = connection.execute(_ALL_OWED).fetchall()
    asked, answers = _Asked(), {int(name.removeprefix(_OWED)): count for name, count in owed}
    if answers:
        asked.look_at_all(database)
    with database.read() as connection:
        challenged = {question_id for (question_id,) in connection.execute(_CHALLENGED)}
        gone = [one for one in answers if one not in asked and one not in challenged]
        alone = [one for one in gone if _counted(connection, one) <= answers[one]]
    drops = (*_DROP_SUMS, _DROP)
    dropped = sum(database.write(partial(_drop_some, [one], asked.last, drops)) for one in alone)
    if owed:
        database.write(lambda connection: connection.execute(_SETTLE).rowcount)
    return dropped


def _counted(connection: sqlite3.Connection, question_id: int) -> int:
    (count,) = connection.execute(_COUNTED, (question_id,)).fetchone()
    return int(count)


class _Asked:
    """The wordings of all decisions up to the row `last`, with a bit for each wording there is."""

    def __init__(self) -> None:
        self.last = 0
        self._bits = bytearray()

    def look_at_all(self, database: Database, goes_on: Callable[[], bool] = lambda: True) -> bool:
        """Begin with all decisions there are; False where it was not to go on between some."""
        with database.read() as connection:
            self.last, _ = last_place(connection)
        place: tuple[object, ...] = ("", 0)
        while True:
            with database.read() as connection:
                rows = connection.execute(_ALL_ASKED, place).fetchall()
            for *_, question_ids in rows:
                self._add(json.loads(question_ids))
            if len(rows) < _DECISIONS_AT_ONCE:
                return True
            place = tuple(rows[-1][:2])
            if not goes_on():
                return False

    def look(self, connection: sqlite3.Connection) -> None:
        """Go on to the last decision."""
        first, (self.last, _) = self.last, last_place(connection)
        self._add(_asked_since(connection, first))

    def _add(self, question_ids: Iterable[int]) -> None:
        for question_id in question_ids:
            byte, bit = divmod(question_id, 8)
            if byte >= len(self._bits):
                self._bits.extend(bytes(byte + 1 - len(self._bits)))
            self._bits[byte] |= 1 << bit

    def __contains__(self, question_id: int) -> bool:
        byte, bit = divmod(question_id, 8)
        return byte < len(self._bits) and bool(self._bits[byte] >> bit & 1)


def _asked_since(connection: sqlite3.Connection, seq: int) -> Iterator[int]:
    """The wordings of all decisions after a row, some of them several times."""
    for row in connection.execute(_ASKED, (seq,)):
        yield from json.loads(row[0])


def _drop_some(
    wordings: Collection[int], last: int, statements: Sequence[str], connection: sqlite3.Connection
) -> int:
    """Delete wordings but for those that a decision after the row `last` has; how many."""
    asked = set(_asked_since(connection, last))
    gone = [(one,) for one in wordings if one not in asked]
    if not gone:
        return 0
    note_last(connection, Numbered.QUESTIONS)
    return sum([_freed(connection, one, it) for one in statements][-1] for it in gone)


def _drop_keys(keys: Iterable[tuple[object, ...]], connection: sqlite3.Connection) -> None:
    """Delete keys of projects unless they were asked since."""
    for key in keys:
        _freed(connection, _DROP_KEY, key)


def _freed(connection: sqlite3.Connection, statement: str, values: tuple[object, ...]) -> int:
    """Count what the statement returns no more in what projects fill; how many rows that are."""
    freed = connection.execute(statement, values).fetchall()
    for project, size in freed:
        free(connection, project, size)
    return len(freed)
