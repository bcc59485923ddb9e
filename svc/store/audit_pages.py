"""Stored decisions as the audit log shows them: one, or a page of those that are wanted."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from svc import limits
from svc.records import FACTS, DecisionFacts
from svc.store import ids
from svc.store.database import Database
from svc.store.errors import UnknownDecision
from svc.store.wanted import ANY, Wanted


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A decision as the audit log shows it, with its answers, tags and images as JSON.

    `question_ids` is a JSON array of the rows of its exact questions, in the order of the answers.

    `seq` is its row, and `created_at` in unix milliseconds.
    """

    seq: int
    id: str
    created_at: int
    facts: DecisionFacts
    answers: str
    question_ids: str
    tags: str
    images: str | None


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Decisions, newest first, and the id of the decision after which there may be older ones."""

    entries: list[AuditEntry]
    next_before: str | None


class Match(NamedTuple):
    """Whether a decision is wanted, and how many bytes were read besides it to tell."""

    wanted: bool
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many decisions a page with filters looks at, and bytes of those that do not match.

    With the bytes of what was read besides decisions to tell.
    """

    decisions: int = limits.AUDIT_LOOKED_AT
    bytes: int = limits.AUDIT_LOOKED_AT_BYTES


BOUNDS = Bounds()
_ANY = Match(wanted=True)

_WHOLE = (
    "CASE WHEN same_as IS NULL THEN {0} ELSE "
    "(SELECT whole.{0} FROM decisions AS whole WHERE whole.seq = decisions.same_as) END AS {0}"
)
ANSWERS, READINGS = _WHOLE.format("answers"), _WHOLE.format("readings")
# The condition that a decision asks a question. A list of rows such as [3,14] is searched as ,3,14,
# so that 1 is not found in 14.
ASKS = "instr(',' || trim(question_ids, '[]') || ',', ',' || ? || ',')"
_ENTRY = (
    f"SELECT seq, id, created_at, {ANSWERS}, question_ids, coalesce(tags, '{{}}'), images, "
    f"{', '.join(FACTS)} FROM decisions WHERE "
)
_TAIL = "AND seq < ? AND seq >= ? ORDER BY seq DESC"
_DEEPEST = f"SELECT seq, id FROM decisions WHERE {{}} {_TAIL} LIMIT 1 OFFSET ?"
_SINCE = "SELECT seq FROM decisions WHERE id >= ? ORDER BY id LIMIT 1"
_ENTRY_BY_ID = f"{_ENTRY} id = ?"
_DAYS = "SELECT days FROM retention WHERE project = ?"
_SEQ = "SELECT seq FROM decisions WHERE id = ? AND project = ?"
# About the bytes of an entry's JSON without its texts.
_HEAD_BYTES = 400
# A seq after every other.
_END = 2**63 - 1


class AuditPages:
    """Reads stored decisions as the audit log shows them."""

    def __init__(self, database: Database, bounds: Bounds = BOUNDS) -> None:
        self._database = database
        self._bounds = bounds

    def entry(self, decision_id: str) -> AuditEntry | None:
        """The decision with this id. Raises `StorageError`."""
        rows = self._database.rows(_ENTRY_BY_ID, ids.parse(decision_id))
        return _entry(*rows[0]) if rows else None

    def page(
        self,
        project: str,
        limit: int,
        before: str | None = None,
        most_bytes: float = math.inf,
        wanted: Wanted = ANY,
        matches: Callable[[AuditEntry], Match] | None = None,
    ) -> AuditPage:
        """At most `limit` decisions of `project`, newest first, older than the one named `before`.

        They end where their texts have more than `most_bytes` together, but not before the first.
        Only those that are `wanted` and that `matches` takes are there; then the page also ends
        once so many were looked at as a request may, with few or no entries.
        Raises `UnknownDecision` where the project has no decision `before`, and `StorageError`.
        """
        entries: list[AuditEntry] = []
        left = self._bounds.bytes
        with self._database.read() as connection:
            start = _END if before is None else _seq(connection, project, before)
            window = _window(connection, wanted, start)
            deepest = None
            if wanted != ANY or matches is not None:
                deepest = _deepest(connection, project, wanted, window, self._bounds.decisions)
            last = (window[0], window[1] if deepest is None else deepest[0])
            for row in connection.execute(*_query(project, wanted, last)):
                entry = _entry(*row)
                match = _ANY if matches is None else matches(entry)
                left -= match.bytes
                if not match.wanted:
                    left -= _size(row)
                    if left < 0:
                        return AuditPage(entries, entry.id)
                    continue
                most_bytes -= _size(row)
                if len(entries) == limit or (entries and most_bytes < 0):
                    return AuditPage(entries, entries[-1].id)
                entries.append(entry)
                if left < 0:
                    return AuditPage(entries, entry.id)
        return AuditPage(entries, None if deepest is None else ids.text(deepest[1]))


def _seq(connection: sqlite3.Connection, project: str, decision_id: str) -> int:
    ulid = ids.parse(decision_id)
    row = connection.execute(_SEQ, (ulid, project)).fetchone()
    if row is not None:
        return int(row[0])
    days = connection.execute(_DAYS, (project,)).fetchone()
    if ulid is None or days is None or ulid >= ids.earliest(_days_ago(days[0])):
        raise UnknownDecision("the project has no such decision")
    # It was deleted for its age, perhaps between two pages, and so are all before it.
    return 0


def _days_ago(days: int) -> int:
    """In unix milliseconds."""
    return int((time.time() - days * 86_400) * 1000)


def _window(connection: sqlite3.Connection, wanted: Wanted, start: int) -> tuple[int, int]:
    """The rows to look at: before the first number, and from the second one on."""
    first, end = 0, start
    if wanted.since is not None:
        first = _first_since(connection, wanted.since)
    if wanted.until is not None:
        end = min(end, _first_since(connection, wanted.until))
    return end, first


def _first_since(connection: sqlite3.Connection, milliseconds: int) -> int:
    """The first row of a moment, found by its id as these grow with the rows."""
    row = connection.execute(_SINCE, (ids.earliest(milliseconds),)).fetchone()
    return _END if row is None else int(row[0])


def _deepest(
    connection: sqlite3.Connection,
    project: str,
    wanted: Wanted,
    window: tuple[int, int],
    looked_at: int,
) -> tuple[int, bytes] | None:
    """The row and the id of the last decision that may be looked at; None where all may."""
    place, values = wanted.of(project)
    skipped = (*values, *window, looked_at - 1)
    found = connection.execute(_DEEPEST.format(place), skipped).fetchone()
    return None if found is None else (found["seq"], found["id"])


def _query(project: str, wanted: Wanted, window: tuple[int, int]) -> tuple[str, tuple[Any, ...]]:
    place, values = wanted.of(project)
    further = list(wanted.conditions())
    conditions = " AND ".join([*(condition for condition, _ in further), place])
    query = f"{_ENTRY} {conditions} {_TAIL}"
    return query, (*(value for _, some in further for value in some), *values, *window)


def facts(row: Sequence[Any]) -> DecisionFacts:
    """The facts of a row that has their columns alone."""
    values = dict(zip(FACTS, row, strict=True))
    return DecisionFacts(**{**values, "cached": bool(values["cached"])})


def _entry(
    seq: int,
    ulid: bytes,
    created_at: int,
    answers: str,
    question_ids: str,
    tags: str,
    images: str | None,
    *row: Any,
) -> AuditEntry:
    shown = (facts(row), answers, question_ids, tags, images)
    return AuditEntry(seq, ids.text(ulid), created_at, *shown)


def _size(row: sqlite3.Row) -> int:
    """The bytes of all texts of a row, and about those of everything else in its JSON."""
    return _HEAD_BYTES + sum(len(text.encode()) for text in row if isinstance(text, str))
