"""The audit log: what was asked, read and answered, never the state itself."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from svc import jsontext
from svc.records import FACTS, Answer, Decision, DecisionFacts
from svc.store import ids, question_versions, weeks
from svc.store.database import Database
from svc.store.errors import UnknownDecision


@dataclass(frozen=True, slots=True)
class StoredReading:
    """The raw reading of one question, and the row of its exact wording."""

    question_id: int
    reading: Any


@dataclass(frozen=True, slots=True)
class StoredDecision:
    """A decision as feedback reads it, in the row `seq`; answers and readings by question key."""

    seq: int
    facts: DecisionFacts
    answers: Mapping[str, Answer]
    readings: Mapping[str, StoredReading]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A decision as the audit log shows it, with its answers and images as JSON.

    `created_at` is in unix milliseconds.
    """

    id: str
    created_at: int
    facts: DecisionFacts
    answers: str
    images: str | None


# The columns of one row, from the facts to the images.
_Columns = tuple[Any, ...]
# The digest and the row of the question that a project and a key meant last.
_Recent = dict[tuple[str, str], tuple[bytes, int]]

_facts_of = attrgetter(*FACTS)
_COLUMNS = ("id", "created_at", "question_ids", *FACTS, "answers", "readings", "images")
_LISTED = ", ".join(_COLUMNS)
_INSERT = f"INSERT INTO decisions ({_LISTED}) VALUES ({', '.join('?' * len(_COLUMNS))})"
_BY_ID = f"SELECT seq, {_LISTED} FROM decisions WHERE id = ?"
_PAGE = (
    f"SELECT id, created_at, answers, images, {', '.join(FACTS)} "
    "FROM decisions WHERE project = ? AND seq < ? ORDER BY seq DESC LIMIT ?"
)
_ANY = "SELECT 1 FROM decisions WHERE project = ? LIMIT 1"
_LAST_ID = "SELECT id FROM decisions ORDER BY seq DESC LIMIT 1"
_SEQ = "SELECT seq FROM decisions WHERE id = ? AND project = ?"
# A seq after every other.
_END = 2**63 - 1


class Decisions:
    """Stores decisions and finds them again."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since the epoch."""
        self._database = database
        self._clock = clock

    def add(self, decision: Decision) -> str:
        """Store `decision`; its new id, above every other in the file, once it is durable.

        Raises `StorageError`.
        """
        # Encoded here, not in the writer's thread, which all decisions share.
        ulid = self._database.write_grouped(self._insert, (decision, _encode(decision)))
        return ids.text(ulid)

    def get(self, decision_id: str) -> StoredDecision | None:
        """The decision with this id. Raises `StorageError`."""
        ulid = ids.parse(decision_id)
        if ulid is None:
            return None
        with self._database.read() as connection:
            row = connection.execute(_BY_ID, (ulid,)).fetchone()
        return None if row is None else _decode(row)

    def any_of(self, project: str) -> bool:
        """Whether there are decisions of a project. Raises `StorageError`."""
        with self._database.read() as connection:
            return connection.execute(_ANY, (project,)).fetchone() is not None

    def page(self, project: str, limit: int, before: str | None = None) -> list[AuditEntry]:
        """At most `limit` decisions of `project`, newest first, older than the one named `before`.

        Raises `UnknownDecision` where the project has no decision `before`, and `StorageError`.
        """
        with self._database.read() as connection:
            seq = _END if before is None else _seq(connection, project, before)
            rows = connection.execute(_PAGE, (project, seq, limit)).fetchall()
        return [_entry(*row) for row in rows]

    def _insert(
        self,
        connection: sqlite3.Connection,
        items: Sequence[tuple[Decision, _Columns]],
    ) -> list[bytes]:
        """Give every decision an id above the last one stored, and store them all."""
        created_at = int(self._clock() * 1000)
        last = connection.execute(_LAST_ID).fetchone()
        ulids = ids.following(last and last[0], created_at, len(items))
        recent: _Recent = {}
        rows, answered = [], []
        for ulid, (decision, columns) in zip(ulids, items, strict=True):
            question_ids = _question_ids(connection, decision, recent)
            rows.append((ulid, created_at, _json(question_ids), *columns))
            answered += [
                (decision.project, row, question.top, question.confidence)
                for row, question in zip(question_ids, decision.questions, strict=True)
                if question.reading is not None
            ]
        connection.executemany(_INSERT, rows)
        weeks.add(connection, weeks.number(created_at), answered)
        return ulids


def _question_ids(connection: sqlite3.Connection, decision: Decision, recent: _Recent) -> list[int]:
    """The rows of the decision's exact questions; `recent` saves most of the look-ups."""
    project, rows = decision.project, []
    for question in decision.questions:
        place = (project, question.key)
        digest, row = recent.get(place, (None, 0))
        if digest != question.digest:
            exact = (question.key, question.digest, question.definition)
            row = question_versions.record(connection, project, *exact)
            recent[place] = (question.digest, row)
        rows.append(row)
    return rows


def _seq(connection: sqlite3.Connection, project: str, decision_id: str) -> int:
    row = connection.execute(_SEQ, (ids.parse(decision_id), project)).fetchone()
    if row is None:
        raise UnknownDecision("the project has no such decision")
    return int(row[0])


def _encode(decision: Decision) -> _Columns:
    return (
        *_facts_of(decision),
        _json({key: answer.fields for key, answer in decision.answers.items()}),
        _json({question.key: question.reading for question in decision.questions}),
        _json([image.hex() for image in decision.images]) if decision.images else None,
    )


def _json(value: Any) -> str:
    """Compact JSON; half a surrogate pair, which a model may reply, stays as its escape."""
    return jsontext.dumps(value).encode("utf-8", "backslashreplace").decode()


def _facts(row: Sequence[Any]) -> DecisionFacts:
    facts = dict(zip(FACTS, row, strict=True))
    return DecisionFacts(**{**facts, "cached": bool(facts["cached"])})


def _entry(ulid: bytes, created_at: int, answers: str, images: str | None, *row: Any) -> AuditEntry:
    return AuditEntry(ids.text(ulid), created_at, _facts(row), answers, images)


def _decode(row: sqlite3.Row) -> StoredDecision:
    answers = json.loads(row["answers"])
    return StoredDecision(
        seq=row["seq"],
        facts=_facts([row[name] for name in FACTS]),
        answers={key: Answer.kept(fields) for key, fields in answers.items()},
        readings=_readings(json.loads(row["readings"]), json.loads(row["question_ids"])),
    )


def _readings(raw: Mapping[str, Any], question_ids: list[int]) -> dict[str, StoredReading]:
    return {
        key: StoredReading(question_id, raw[key])
        for key, question_id in zip(raw, question_ids, strict=True)
    }
