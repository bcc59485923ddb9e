"""Exact questions, each stored once, and which of them a project's key means now."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from svc.store.database import Database
from svc.store.kept_names import NAME_CHARS
from svc.store.numbers import Numbered, last_number

_FIND = (
    "SELECT questions.id, asked.question_id FROM questions "
    "LEFT JOIN asked ON project = ? AND key = ? WHERE digest = ?"
)
_NEW = "INSERT INTO questions (id, digest, definition, brought_by) VALUES (?, ?, ?, ?)"
_STORED = "SELECT 1 FROM questions WHERE digest = ?"
_ASKED = "SELECT 1 FROM asked WHERE project = ? AND key = ?"
_SET_LATEST = (
    "INSERT INTO asked (project, key, question_id) VALUES (?, ?, ?) "
    "ON CONFLICT DO UPDATE SET question_id = excluded.question_id"
)
_NOTE = (
    "UPDATE asked SET last_at = ? WHERE project = ? AND key = ? "
    "AND (last_at IS NULL OR last_at NOT BETWEEN ? AND ?)"
)
_LATEST = (
    "SELECT id, digest, definition FROM asked JOIN questions ON id = question_id "
    "WHERE project = ? AND key = ?"
)
# A key may be as long as a state, and these are read by the hundred.
_RECENT = (
    "SELECT key, question_id FROM asked WHERE project = ? AND last_at >= ? "
    f"AND length(key) <= {NAME_CHARS} ORDER BY last_at DESC LIMIT ?"
)
_LABELLED = (
    "SELECT key, asked.question_id, revision, tried, fitted_at FROM asked "
    "JOIN questions ON questions.id = asked.question_id "
    "JOIN learned ON learned.project = asked.project AND learned.digest = questions.digest "
    "WHERE asked.project = ? AND labels >= ? "
    f"AND length(key) <= {NAME_CHARS} ORDER BY labels DESC LIMIT ?"
)
_BY_DIGEST = "SELECT id, digest, definition FROM questions WHERE digest = ?"
_DEFINITIONS = "SELECT id, definition FROM questions WHERE id IN (SELECT value FROM json_each(?))"
_BY_ID = "SELECT id, digest, definition FROM questions WHERE id = ?"

# How old the noted time of a question may be, so that not every decision writes it anew.
NOTED_EVERY_MS = 60_000

# Of how many questions a process remembers when it noted them.
REMEMBERED = 10_000


class LabelledQuestion(NamedTuple):
    """A question's row, and what changes with its labels or with a fit to them."""

    question_id: int
    revision: int
    tried: int
    fitted_at: int | None


@dataclass(frozen=True, slots=True)
class QuestionVersion:
    """An exact question: its row, its SHA-256 and its JSON."""

    question_id: int
    digest: bytes
    definition: str


class QuestionVersions:
    """Finds exact questions again."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def latest(self, project: str, key: str) -> QuestionVersion | None:
        """The most recent wording of a project's question. Raises `StorageError`."""
        return self._one(_LATEST, project, key)

    def get(self, question_id: int) -> QuestionVersion | None:
        """The wording in this row. Raises `StorageError`."""
        return self._one(_BY_ID, question_id)

    def definitions(self, question_ids: str) -> dict[int, str]:
        """The JSON of the wordings in these rows, by row; `question_ids` is a JSON array of them.

        Raises `StorageError`.
        """
        return dict(map(tuple, self._database.rows(_DEFINITIONS, question_ids)))

    def by_digest(self, digest: bytes) -> QuestionVersion | None:
        """The exact question with this SHA-256. Raises `StorageError`."""
        return self._one(_BY_DIGEST, digest)

    def recent(self, project: str, since_ms: int, most: int) -> dict[str, int]:
        """The rows of a project's questions by key, of the `most` that were asked last.

        They were asked at `since_ms` or later, and none has a longer key than `NAME_CHARS`.
        Raises `StorageError`.
        """
        return dict(map(tuple, self._database.rows(_RECENT, project, since_ms, most)))

    def labelled(self, project: str, labels: int, most: int) -> dict[str, LabelledQuestion]:
        """The `most` questions with the most labels by key, of those with so many at least.

        None has a longer key than `NAME_CHARS`. Raises `StorageError`.
        """
        rows = self._database.rows(_LABELLED, project, labels, most)
        return {key: LabelledQuestion(*rest) for key, *rest in rows}

    def _one(self, query: str, *values: object) -> QuestionVersion | None:
        rows = self._database.rows(query, *values)
        return QuestionVersion(*rows[0]) if rows else None


def record(
    connection: sqlite3.Connection, project: str, key: str, digest: bytes, definition: str
) -> int:
    """Make this exact question the most recent wording of its key; returns its row."""
    row = connection.execute(_FIND, (project, key, digest)).fetchone()
    if row is None:
        number = last_number(connection, Numbered.QUESTIONS) + 1
        connection.execute(_NEW, (number, digest, definition, project))
        row = connection.execute(_FIND, (project, key, digest)).fetchone()
    question_id, recent = row
    if recent != question_id:
        connection.execute(_SET_LATEST, (project, key, question_id))
    return int(question_id)


def unstored(connection: sqlite3.Connection, exact: Mapping[bytes, str]) -> list[str]:
    """Those of the definitions, by digest, that have no row yet."""
    return [
        definition
        for digest, definition in exact.items()
        if connection.execute(_STORED, (digest,)).fetchone() is None
    ]


def unasked(connection: sqlite3.Connection, project: str, keys: Iterable[str]) -> list[str]:
    """Those of the keys that no question of the project ever had, or that were deleted since."""
    return [key for key in keys if connection.execute(_ASKED, (project, key)).fetchone() is None]


class AskedTimes:
    """Notes when questions were asked last; the writer's thread alone uses it."""

    def __init__(self) -> None:
        # When this process last noted a project's question, by the hash of both names, which may be
        # long. Where that transaction was undone, and for one of two names with the same hash, the
        # next note comes a little later.
        self._noted: dict[int, int] = {}

    def note(
        self, connection: sqlite3.Connection, places: Iterable[tuple[str, str]], now_ms: int
    ) -> None:
        """Note that these questions, each a project and a key, were asked now."""
        fresh = range(now_ms - NOTED_EVERY_MS, now_ms + 1)
        due = [place for place in places if self._noted.get(hash(place), -1) not in fresh]
        if len(self._noted) > REMEMBERED:
            self._noted.clear()
        self._noted.update(dict.fromkeys(map(hash, due), now_ms))
        connection.executemany(_NOTE, [(now_ms, *place, fresh[0], now_ms) for place in due])
