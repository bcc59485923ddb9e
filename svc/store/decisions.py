"""The audit log: what was asked, read and answered, never the state itself."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from svc import jsontext
from svc.store import ids, weeks, wordings
from svc.store.database import Database
from svc.store.errors import UnknownDecision


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """One question of a decision: its exact wording and what the models said.

    `digest` is the SHA-256 of the exact question, `definition` its JSON. `reading` is a JSON
    value, None where no model was asked; `top` and `confidence` are its top answer and that one's
    probability, as drift counts them.
    """

    key: str
    digest: bytes
    definition: str
    reading: Any
    top: str = ""
    confidence: float = 0.0


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """A decision to be stored; `answers` are as they were returned, by question key.

    `api_key` is the key's id. Hashes are salted SHA-256.
    """

    project: str
    api_key: str | None
    state_hash: bytes
    model: str
    mode: str
    config: str
    privacy: str
    answers: dict[str, Any]
    questions: tuple[AskedQuestion, ...]
    latency_ms: float
    cost_usd: float
    cached: bool
    images: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class StoredReading:
    """The raw reading of one question, and the row of its exact wording."""

    question_id: int
    reading: Any


@dataclass(frozen=True, slots=True)
class StoredDecision:
    """A decision as it lies in the audit log, in the row `seq`.

    `created_at` is in unix milliseconds; answers and readings are by question key.
    """

    seq: int
    id: str
    created_at: int
    project: str
    api_key: str | None
    state_hash: bytes
    model: str
    mode: str
    config: str
    privacy: str
    latency_ms: float
    cost_usd: float
    cached: bool
    answers: dict[str, Any]
    readings: dict[str, StoredReading]
    images: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A decision as the audit log shows it; of its answers and images, the JSON.

    `created_at` is in unix milliseconds.
    """

    id: str
    created_at: int
    api_key: str | None
    state_hash: bytes
    model: str
    mode: str
    config: str
    privacy: str
    latency_ms: float
    cost_usd: float
    cached: bool
    answers: str
    images: str | None


# The columns of one row, from project to images.
_Columns = tuple[Any, ...]
# The digest and the row of the question that a project and a key meant last.
_Recent = dict[tuple[str, str], tuple[bytes, int]]

_COLUMNS = (
    "id, created_at, question_ids, project, api_key, state_hash, model, mode, config, privacy, "
    "latency_ms, cost_usd, cached, answers, readings, images"
)
_INSERT = f"INSERT INTO decisions ({_COLUMNS}) VALUES ({', '.join('?' * 16)})"
_BY_ID = f"SELECT seq, {_COLUMNS} FROM decisions WHERE id = ?"
_PAGE = (
    "SELECT id, created_at, api_key, state_hash, model, mode, config, privacy, latency_ms, "
    "cost_usd, cached, answers, images "
    "FROM decisions WHERE project = ? AND seq < ? ORDER BY seq DESC LIMIT ?"
)
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

    def add(self, record: DecisionRecord) -> str:
        """Store `record`; returns its new id, above every other in the file, once it is durable.

        Raises `StorageError`.
        """
        # Encoded here, not in the writer's thread, which all decisions share.
        ulid = self._database.write_grouped(self._insert, (record, _encode(record)))
        return ids.text(ulid)

    def get(self, decision_id: str) -> StoredDecision | None:
        """The decision with this id. Raises `StorageError`."""
        ulid = ids.parse(decision_id)
        if ulid is None:
            return None
        with self._database.read() as connection:
            row = connection.execute(_BY_ID, (ulid,)).fetchone()
        return None if row is None else _decode(row)

    def page(self, project: str, limit: int, before: str | None = None) -> list[AuditEntry]:
        """At most `limit` decisions of `project`, newest first, older than the one named `before`.

        Raises `UnknownDecision` where the project has no decision `before`, and `StorageError`.
        """
        with self._database.read() as connection:
            seq = _END if before is None else _seq(connection, project, before)
            rows = connection.execute(_PAGE, (project, seq, limit)).fetchall()
        return [AuditEntry(ids.text(ulid), *columns) for ulid, *columns in rows]

    def _insert(
        self,
        connection: sqlite3.Connection,
        items: Sequence[tuple[DecisionRecord, _Columns]],
    ) -> list[bytes]:
        """Give every record an id above the last one stored, and store them all."""
        created_at = int(self._clock() * 1000)
        last = connection.execute(_LAST_ID).fetchone()
        ulids = ids.following(last and last[0], created_at, len(items))
        recent: _Recent = {}
        rows, answered = [], []
        for ulid, (record, columns) in zip(ulids, items, strict=True):
            question_ids = _question_ids(connection, record, recent)
            rows.append((ulid, created_at, _json(question_ids), *columns))
            answered += [
                (record.project, row, asked.top, asked.confidence)
                for row, asked in zip(question_ids, record.questions, strict=True)
                if asked.reading is not None
            ]
        connection.executemany(_INSERT, rows)
        weeks.add(connection, weeks.number(created_at), answered)
        return ulids


def _question_ids(
    connection: sqlite3.Connection, record: DecisionRecord, recent: _Recent
) -> list[int]:
    """The rows of the record's exact questions; `recent` spares most of the look-ups."""
    rows = []
    for asked in record.questions:
        place = (record.project, asked.key)
        digest, row = recent.get(place, (None, 0))
        if digest != asked.digest:
            row = wordings.ask(
                connection, record.project, asked.key, asked.digest, asked.definition
            )
            recent[place] = (asked.digest, row)
        rows.append(row)
    return rows


def _seq(connection: sqlite3.Connection, project: str, decision_id: str) -> int:
    found = connection.execute(_SEQ, (ids.parse(decision_id), project)).fetchone()
    if found is None:
        raise UnknownDecision("the project has no such decision")
    return int(found[0])


def _encode(record: DecisionRecord) -> _Columns:
    readings = {asked.key: asked.reading for asked in record.questions}
    return (
        record.project,
        record.api_key,
        record.state_hash,
        record.model,
        record.mode,
        record.config,
        record.privacy,
        record.latency_ms,
        record.cost_usd,
        record.cached,
        _json(record.answers),
        _json(readings),
        _json([image.hex() for image in record.images]) if record.images else None,
    )


def _json(value: Any) -> str:
    """Compact JSON; half a surrogate pair, which a model may reply, stays as its escape."""
    return jsontext.dumps(value).encode("utf-8", "backslashreplace").decode()


def _decode(row: sqlite3.Row) -> StoredDecision:
    return StoredDecision(
        seq=row["seq"],
        id=ids.text(row["id"]),
        created_at=row["created_at"],
        project=row["project"],
        api_key=row["api_key"],
        state_hash=row["state_hash"],
        model=row["model"],
        mode=row["mode"],
        config=row["config"],
        privacy=row["privacy"],
        latency_ms=row["latency_ms"],
        cost_usd=row["cost_usd"],
        cached=bool(row["cached"]),
        answers=json.loads(row["answers"]),
        readings=_readings(json.loads(row["readings"]), json.loads(row["question_ids"])),
        images=tuple(bytes.fromhex(image) for image in json.loads(row["images"] or "[]")),
    )


def _readings(raw: dict[str, Any], question_ids: list[int]) -> dict[str, StoredReading]:
    return {
        key: StoredReading(question_id, raw[key])
        for key, question_id in zip(raw, question_ids, strict=True)
    }
