"""Exact questions, each stored once, and which of them a project's key means now."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from svc.records import AskedQuestion, Decision
from svc.store.database import Database
from svc.store.kept_names import NAME_CHARS
from svc.store.numbers import Numbered, last_number
from svc.store.rows import execute, find

# A key of a project.
Place = tuple[str, str]

# How old the noted time of a question may be, so that not every decision writes it anew.
NOTED_EVERY_MS = 60_000

_FIND = (
    "WITH wanted (number, project, key, digest) AS (VALUES {}) "
    "SELECT json_group_array(json_array(number, id, question_id)) FROM wanted "
    "LEFT JOIN questions USING (digest) LEFT JOIN asked USING (project, key)"
)
_NEW = "INSERT INTO questions (id, digest, definition, brought_by) VALUES {}"
_NOTE = (
    "INSERT INTO asked (project, key, question_id, last_at) VALUES {} ON CONFLICT DO UPDATE "
    "SET question_id = excluded.question_id, last_at = excluded.last_at "
    "WHERE question_id <> excluded.question_id OR last_at IS NULL "
    f"OR last_at NOT BETWEEN excluded.last_at - {NOTED_EVERY_MS} AND excluded.last_at"
)
_LATEST = (
    "SELECT id, digest, definition FROM asked JOIN questions ON id = question_id "
    "WHERE project = ? AND key = ?"
)
# Of so many wordings with the most labels it is read how many they have, and so many keys of each.
LABELLED_WORDINGS, LABELLED_KEYS = 2_000, 100

# A key may be as long as a state, and these are read by the hundred.
_RECENT = (
    "SELECT key, question_id FROM asked WHERE project = ? AND last_at >= ? "
    f"AND length(key) <= {NAME_CHARS} ORDER BY last_at DESC LIMIT ?"
)


def keys_of(question_id: str, most: int, columns: str = "key") -> str:
    """The query for the first keys of a project that have a wording now, by name.

    `question_id` is an expression; the parameter is `project`. A caller may have asked one wording
    by millions of keys.
    """
    return (
        f"SELECT {columns} FROM asked INDEXED BY asked_by_question "
        f"WHERE asked.question_id = {question_id} AND asked.project = :project "
        f"ORDER BY key LIMIT {most}"
    )


_LABELLED = f"""
WITH labelled AS MATERIALIZED (
    SELECT question_id, revision, tried, fitted_at, labels FROM learned
    WHERE project = :project AND labels >= :labels ORDER BY labels DESC LIMIT {LABELLED_WORDINGS}
)
SELECT one.value, question_id, revision, tried, fitted_at
FROM labelled CROSS JOIN json_each((
    SELECT json_group_array(key) FROM ({keys_of("labelled.question_id", LABELLED_KEYS)})
    WHERE length(key) <= {NAME_CHARS}
)) AS one ORDER BY labels DESC LIMIT :most
"""
_BY_DIGEST = "SELECT id, digest, definition FROM questions WHERE digest = ?"
_DEFINITIONS = "SELECT id, definition FROM questions WHERE id IN (SELECT value FROM json_each(?))"
_BY_ID = "SELECT id, digest, definition FROM questions WHERE id = ?"

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

        None has a longer key than `NAME_CHARS`; of one wording there are `LABELLED_KEYS` at most.
        Raises `StorageError`.
        """
        values = {"project": project, "labels": labels, "most": most}
        with self._database.read() as connection:
            rows = connection.execute(_LABELLED, values).fetchall()
        return {key: LabelledQuestion(*rest) for key, *rest in rows}

    def _one(self, query: str, *values: object) -> QuestionVersion | None:
        rows = self._database.rows(query, *values)
        return QuestionVersion(*rows[0]) if rows else None


class AskedQuestions:
    """The questions of the decisions that one transaction stores, found and stored together.

    With statements for each of them the writer would wait for the interpreter thousands of times.
    """

    def __init__(self, connection: sqlite3.Connection, decisions: Iterable[Decision]) -> None:
        """Only these decisions are stored."""
        self._connection = connection
        # The rows of exact questions by digest, and those that keys of projects mean.
        self._rows: dict[bytes, int] = {}
        self._meant: dict[Place, int] = {}
        self._new: list[tuple[int, bytes, str, str]] = []
        self._asked: dict[Place, int] = {}
        wanted = list(
            dict.fromkeys(
                (decision.project, question.key, question.digest)
                for decision in decisions
                for question in decision.questions
            )
        )
        for number, row, meant in find(connection, _FIND, wanted):
            project, key, digest = wanted[number]
            if row is not None:
                self._rows[digest] = row
            if meant is not None:
                self._meant[project, key] = meant

    def brought(self, decision: Decision) -> tuple[list[str], list[str]]:
        """Those definitions and keys of the decision's questions that are not there yet."""
        exact = {question.digest: question.definition for question in decision.questions}
        places = [(decision.project, question.key) for question in decision.questions]
        new = [place for place in places if place not in self._meant and place not in self._asked]
        return (
            [definition for digest, definition in exact.items() if digest not in self._rows],
            [key for _, key in new],
        )

    def ask(self, decision: Decision) -> list[int]:
        """The rows of the decision's exact questions, which their keys mean from now on."""
        project, rows = decision.project, []
        for question in decision.questions:
            row = self._rows.get(question.digest) or self._numbered(project, question)
            self._asked[project, question.key] = row
            rows.append(row)
        return rows

    def store(self, times: AskedTimes, now_ms: int) -> None:
        """Write what is new, and note when it was asked."""
        execute(self._connection, _NEW, self._new)
        moved = [place for place, row in self._asked.items() if self._meant.get(place) != row]
        times.note(self._connection, self._asked, moved, now_ms)

    def _numbered(self, project: str, question: AskedQuestion) -> int:
        """The row that an exact question will have which no decision had before."""
        if self._new:
            row = self._new[-1][0] + 1
        else:
            row = last_number(self._connection, Numbered.QUESTIONS) + 1
        self._new.append((row, question.digest, question.definition, project))
        self._rows[question.digest] = row
        return row


class AskedTimes:
    """Notes when questions were asked last; the writer's thread alone uses it."""

    def __init__(self) -> None:
        # When this process last noted a project's question, by the hash of both names, which may be
        # long. Where that transaction was undone, and for one of two names with the same hash, the
        # next note comes a little later.
        self._noted: dict[int, int] = {}

    def note(
        self,
        connection: sqlite3.Connection,
        asked: Mapping[Place, int],
        moved: Iterable[Place],
        now_ms: int,
    ) -> None:
        """Note that these questions were asked now, in these rows; some were `moved` there."""
        fresh = range(now_ms - NOTED_EVERY_MS, now_ms + 1)
        due = {place for place in asked if self._noted.get(hash(place), -1) not in fresh}
        due.update(moved)
        if len(self._noted) > REMEMBERED:
            self._noted.clear()
        self._noted.update(dict.fromkeys(map(hash, due), now_ms))
        # In the order of the index, so that its pages are changed one after the other.
        execute(connection, _NOTE, [(*place, asked[place], now_ms) for place in sorted(due)])
