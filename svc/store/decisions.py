"""The audit log: what was asked, read and answered, never the state itself."""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from svc import jsontext
from svc.jsontext import JsonObject
from svc.records import FACTS, Answer, Decision, DecisionFacts
from svc.store import (
    activity,
    ids,
    jobs,
    kept_answers,
    places,
    project_sums,
    question_versions,
    shown,
    weeks,
)
from svc.store.audit_pages import (
    ANSWERS,
    BOUNDS,
    READINGS,
    AuditEntry,
    AuditPage,
    AuditPages,
    Bounds,
    Match,
    facts,
)
from svc.store.contents import Contents, digest_of
from svc.store.database import Database
from svc.store.project_sizes import (
    JOB_ROW_BYTES,
    QUESTION_BYTES,
    ROW_BYTES,
    WORDING_ROW_BYTES,
    Room,
    asked_bytes,
    full,
)
from svc.store.rows import execute

__all__ = ["AuditEntry", "AuditPage", "Decisions", "Match", "StoredDecision", "StoredReading"]


_ValueT = TypeVar("_ValueT")


@dataclass(frozen=True, slots=True)
class StoredReading:
    """The raw reading of one question, and the row of its exact wording."""

    question_id: int
    reading: Any


class _Made(Mapping[str, _ValueT]):
    """Values that are made when they are asked for: labels are about few of many questions."""

    def __init__(self, kept: Mapping[str, Any], make: Callable[[Any], _ValueT]) -> None:
        self._kept, self._make = kept, make

    def __getitem__(self, key: str) -> _ValueT:
        return self._make(self._kept[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


@dataclass(frozen=True, slots=True)
class StoredDecision:
    """A decision as feedback reads it, in the row `seq`; answers and readings by question key."""

    seq: int
    facts: DecisionFacts
    answers: Mapping[str, Answer]
    readings: Mapping[str, StoredReading]


# The facts of one row.
_Columns = tuple[Any, ...]

# The old sums that are deleted at most with each transaction of decisions.
SWEPT_SUMS = 2_000

# The answers and readings of a decision that refers to another for them.
_ELSEWHERE = ("", "")

_facts_of = attrgetter(*FACTS)
_COLUMNS = (
    *("seq", "id", "created_at", "question_ids", "same_as"),
    *(*FACTS, "answers", "readings", "images", "tags"),
)
_INSERT = f"INSERT INTO decisions ({', '.join(_COLUMNS)}) VALUES {{}}"
_BY_IDS = (
    f"SELECT seq, id, question_ids, {', '.join(FACTS)}, {ANSWERS}, {READINGS} FROM decisions "
    "WHERE id IN ({})"
)
# SQLite takes one answer out of many in a tenth of the time that it takes to make objects of all.
_ANSWER = (
    f"SELECT value FROM (SELECT {ANSWERS} FROM decisions WHERE id = ?), json_each(answers) "
    "WHERE key = ?"
)
_NEWEST = (
    "SELECT value AS ref, (SELECT id FROM decisions WHERE project = ?1 AND ref = value "
    "ORDER BY seq DESC LIMIT 1) AS id FROM json_each(?2)"
)
_SHOWN = f"SELECT {shown.SHOWN}, ? AS debiased FROM decisions WHERE id = ?"
_ROW = "SELECT seq, same_as FROM decisions WHERE id = ?"
_ANY = "SELECT 1 FROM decisions WHERE project = ? LIMIT 1"


class _Item(NamedTuple):
    """A decision on its way to the writer, encoded; `texts` are its answers and readings."""

    decision: Decision
    facts: _Columns
    texts: tuple[str, str]
    images: str | None
    tags: str | None
    digest: bytes | None
    row: jobs.JobRow | None
    kept: kept_answers.KeptAnswer | None


class _Stored(NamedTuple):
    """A decision that has its place in the log, and the rows of its exact questions."""

    ulid: bytes
    item: _Item
    question_ids: Sequence[int]

    @property
    def of_job(self) -> tuple[jobs.JobRow, bytes, Decision] | None:
        """The row of a job that it answers, as `jobs` takes it."""
        row = self.item.row
        return (row, self.ulid, self.item.decision) if row is not None else None

    @property
    def kept(self) -> kept_answers.KeptAnswer | None:
        """What is kept for repeats of the request, with the id that it has now."""
        kept = self.item.kept
        return replace(kept, decision_id=ids.text(self.ulid)) if kept is not None else None

    @property
    def answered(self) -> Iterator[tuple[str, int, str, float]]:
        """What the sums of the week take of each question that models answered."""
        decision = self.item.decision
        for row, question in zip(self.question_ids, decision.questions, strict=True):
            if question.reading is not None:
                yield decision.project, row, question.top, question.confidence


class Decisions(AuditPages):
    """Stores decisions and finds them again."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], float] = time.time,
        bounds: Bounds = BOUNDS,
    ) -> None:
        """`clock` gives seconds since the epoch."""
        super().__init__(database, bounds)
        self._clock = clock
        self._contents = Contents()
        self._names, self._tops = activity.names(), weeks.tops()
        self._asked = question_versions.AskedTimes()
        # The five minutes of the last decision of this process, and whether all sums that were old
        # then are deleted.
        self._span, self._swept = 0, False

    def add(
        self,
        decision: Decision,
        row: jobs.JobRow | None = None,
        kept: kept_answers.KeptAnswer | None = None,
    ) -> str:
        """Store `decision`; its new id, above every other in the file, once it is durable.

        With it is stored that it answers a job's `row`; one that is settled already is refused. And
        so is what is `kept` for repeats, with its id.
        Raises `ProjectFull` and `StorageError`.
        """
        # Encoded here, not in the writer's thread, which all decisions share.
        columns, answers, readings, images, tags = _encode(decision)
        digest = digest_of(decision, answers, readings)
        item = _Item(decision, columns, (answers, readings), images, tags, digest, row, kept)
        questions = max(1, len(decision.questions))
        ulid = self._database.write_grouped(self._insert, item, size=questions)
        if ulid is None:
            raise full(decision.project)
        return ids.text(ulid)

    def add_failure(self, project: str, model: str) -> None:
        """Count a decision of which the models, ids joined by commas, gave no answer."""
        self._database.note(self._insert_failures, activity.Failure(project, model))

    def get(self, decision_id: str) -> StoredDecision | None:
        """The decision with this id. Raises `StorageError`."""
        found, _ = self.several([decision_id])
        return found.get(decision_id)

    def answer(self, decision_id: str, key: str) -> JsonObject | None:
        """The fields of one answer of a decision, None for no such. Raises `StorageError`."""
        rows = self._database.rows(_ANSWER, ids.parse(decision_id), key)
        return json.loads(rows[0]["value"]) if rows else None

    def shown(self, decision_id: str, debiased: bool, shape: shown.Shape) -> str | None:
        """The JSON of the decision with this id, None for no such. Raises `StorageError`."""
        rows = self._database.rows(_SHOWN, debiased, ids.parse(decision_id))
        return shown.shown(rows[0], shape) if rows else None

    def several(
        self, decision_ids: Iterable[str], most_chars: float = math.inf
    ) -> tuple[dict[str, StoredDecision], float]:
        """The decisions with these ids, and how many of `most_chars` characters they leave.

        Where they have more, some are missing, and what is left is below 0. Raises `StorageError`.
        """
        named = {ids.parse(decision_id): decision_id for decision_id in decision_ids}
        named.pop(None, None)
        found: dict[str, StoredDecision] = {}
        with self._database.read() as connection:
            query = _BY_IDS.format(",".join("?" * len(named)))
            for row in connection.execute(query, tuple(named)):
                most_chars -= len(row["answers"]) + len(row["readings"])
                if most_chars < 0:
                    break
                found[named[row["id"]]] = _decode(row)
        return found, most_chars

    def newest(self, project: str, refs: Iterable[str]) -> dict[str, str]:
        """The ids of the project's newest decisions with these refs, by ref.

        Raises `StorageError`.
        """
        rows = self._database.rows(_NEWEST, project, _json(list(refs)))
        return {row["ref"]: ids.text(row["id"]) for row in rows if row["id"] is not None}

    def any_of(self, project: str) -> bool:
        """Whether there are decisions of a project. Raises `StorageError`."""
        return bool(self._database.rows(_ANY, project))

    def _insert(
        self,
        connection: sqlite3.Connection,
        items: Sequence[_Item],
    ) -> list[bytes | None]:
        """Give every decision an id above the last one stored, and store them all.

        None stands for one that does not fit into the room of its project.
        """
        created_at = int(self._clock() * 1000)
        last_seq, last_id = places.last_place(connection)
        following = ids.following(last_id, created_at, len(items))
        room = Room(connection)
        asked = question_versions.AskedQuestions(connection, (item.decision for item in items))
        ulids: list[bytes | None] = []
        rows: list[_Columns] = []
        stored: list[_Stored] = []
        for ulid, item in zip(following, items, strict=True):
            same_as = self._contents.find(connection, item.digest)
            texts = item.texts if same_as is None else _ELSEWHERE
            fits = _takes(asked, room, item, texts)
            ulids.append(ulid if fits else None)
            if fits:
                question_ids = asked.ask(item.decision)
                stored.append(_Stored(ulid, item, question_ids))
                seq = last_seq + len(stored)
                ours = (seq, ulid, created_at, _json(question_ids), same_as)
                rows.append((*ours, *item.facts, *texts, item.images, item.tags))
        execute(connection, _INSERT, rows)
        jobs.answered(connection, created_at, filter(None, (one.of_job for one in stored)))
        if kept := list(filter(None, (one.kept for one in stored))):
            kept_answers.keep(connection, kept, created_at)
        self._note(connection, stored)
        # After what may fail, such as a row that is settled: it remembers what it noted.
        asked.store(self._asked, created_at)
        answered = [answer for one in stored for answer in one.answered]
        weeks.add(connection, weeks.number(created_at), self._tops, answered)
        decisions = [one.item.decision for one in stored]
        activity.add(connection, created_at, self._names, decisions)
        project_sums.add_decisions(connection, created_at, decisions)
        self._sweep(connection, created_at)
        return ulids

    def _insert_failures(
        self, connection: sqlite3.Connection, failures: Sequence[activity.Failure]
    ) -> Sequence[None]:
        now_ms = int(self._clock() * 1000)
        activity.add_failures(connection, now_ms, self._names, failures)
        return [None] * len(failures)

    def _sweep(self, connection: sqlite3.Connection, now_ms: int) -> None:
        """Delete what is old, every five minutes until nothing is, and a part with each call.

        All at once they would keep those waiting who store decisions.
        """
        span = now_ms // 1_000 // activity.Spans.FIVE_MINUTES
        if span != self._span:
            self._span, self._swept = span, False
        if not self._swept:
            old = kept_answers.forget_old(connection, now_ms, kept_answers.SWEPT)
            all_answers = old < kept_answers.SWEPT
            all_sums = activity.forget_old(connection, now_ms, SWEPT_SUMS)
            self._swept = all_answers and all_sums

    def _note(self, connection: sqlite3.Connection, stored: Sequence[_Stored]) -> None:
        """Remember where long contents lie that were just stored whole."""
        for ulid, item, _ in stored:
            if item.digest is not None:
                seq, same_as = connection.execute(_ROW, (ulid,)).fetchone()
                if same_as is None:
                    self._contents.note(item.digest, seq, ulid)


def _takes(
    asked: question_versions.AskedQuestions, room: Room, item: _Item, texts: tuple[str, str]
) -> bool:
    """Whether the decision fits into the room of its project, which is then taken."""
    decision, row_id = item.decision, None
    row_bytes = ROW_BYTES + QUESTION_BYTES * len(decision.questions)
    if item.row is not None:
        row_id, row_bytes = item.row.id, row_bytes + JOB_ROW_BYTES
    if room.is_bounded(decision.project):
        row_bytes += _brought(asked, decision)
    models = (decision.model, decision.provider_models)
    others = (item.images, item.tags, decision.ref, row_id, *models)
    return room.takes(decision.project, *texts, *others, row_bytes=row_bytes)


def _brought(asked: question_versions.AskedQuestions, decision: Decision) -> int:
    """The bytes of those wordings and keys of the decision's questions that are not stored yet."""
    wordings, keys = asked.brought(decision)
    return sum(len(one.encode()) + WORDING_ROW_BYTES for one in wordings) + sum(
        asked_bytes(decision.project, key) for key in keys
    )


def _encode(decision: Decision) -> tuple[_Columns, str, str, str | None, str | None]:
    return (
        _facts_of(decision),
        _json({key: answer.fields for key, answer in decision.answers.items()}),
        _json({question.key: question.reading for question in decision.questions}),
        _json([image.hex() for image in decision.images]) if decision.images else None,
        _json(dict(decision.tags)) if decision.tags else None,
    )


def _json(value: Any) -> str:
    """Compact JSON; half a surrogate pair, which a model may reply, stays as its escape."""
    return jsontext.dumps(value).encode("utf-8", "backslashreplace").decode()


def _decode(row: sqlite3.Row) -> StoredDecision:
    texts = ",".join((row["answers"], row["readings"], row["question_ids"]))
    # One call for all three: the call itself costs as much as to parse a short text.
    answers, readings, question_ids = json.loads(f"[{texts}]")
    rows = dict(zip(readings, zip(question_ids, readings.values(), strict=True), strict=True))
    return StoredDecision(
        seq=row["seq"],
        facts=facts([row[name] for name in FACTS]),
        answers=_Made(answers, Answer.kept),
        readings=_Made(rows, _reading),
    )


def _reading(kept: tuple[int, Any]) -> StoredReading:
    return StoredReading(*kept)
