"""Challengers, what they answered beside the decisions, and which of them were promoted.

Which challengers are in force is read with every decision, so that servers remember it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from svc import jsontext
from svc.records import Challenger, ChallengerAnswer
from svc.store import budgets, ids, readings
from svc.store.budgets import Budget, Per, Scope
from svc.store.database import Database
from svc.store.errors import ChallengerThere
from svc.store.project_sizes import CHALLENGER_ROW_BYTES, CHALLENGER_SIZE, Room, free

# The answers that are deleted in one transaction, for which others wait.
DELETED_AT_ONCE = 2_000


class ChallengerState(StrEnum):
    """What becomes of a challenger.

    One that is promoted was, in the comparison, `running` before; once another one takes its place
    it is `retired`.
    """

    RUNNING = "running"
    PROMOTED = "promoted"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class ChallengerRecord:
    """A challenger with its history; times are in unix milliseconds.

    `dropped` decisions found no room in the queue. `refused` ones could not be given to it, because
    its budget did not pay them, or its provider may not see them under `privacy: strict`; or its
    answer did not fit into what the project may fill.
    """

    challenger: Challenger
    state: ChallengerState
    created_at: int
    promoted_at: int | None
    dropped: int
    refused: int


@dataclass(frozen=True, slots=True)
class AskedPair:
    """A decision that a challenger was asked about; costs are in dollars, times in milliseconds.

    The labelled ones have a `label`, as JSON, with the `truth` and the raw reading `p` of the
    decision's own answer as they were learned from. `relative` is the chance to be handed out by
    the review queue, relative to the mean of all decisions, None where it was not handed out.
    """

    p: str | None
    answer: str | None
    error: str | None
    cost_usd: float
    latency_ms: float
    own_cost_usd: float
    own_latency_ms: float
    label: str | None
    truth: int | None
    own_p: Sequence[float] | None
    relative: float | None = None


_COLUMNS = "challengers.id, project, key, digest, model, wording, share"
_FROM = "FROM challengers JOIN questions ON questions.id = question_id"
_IN_FORCE = f"SELECT {_COLUMNS} {_FROM} WHERE project = ? AND state = ?"
_ALL = (
    f"SELECT {_COLUMNS}, state, created_at, promoted_at, dropped, refused {_FROM} "
    "ORDER BY project, key, challengers.id"
)
_ADD = (
    "INSERT INTO challengers (project, key, question_id, model, wording, share, state, created_at) "
    "VALUES (?, ?, ?, ?, ?, ?, 'running', ?)"
)
_RETIRE = (
    "UPDATE challengers SET state = 'retired' WHERE project = ? AND key = ? AND state = 'promoted'"
)
_PROMOTE = "UPDATE challengers SET state = 'promoted', promoted_at = ? WHERE id = ?"
_ANSWER = (
    "INSERT INTO challenger_answers "
    "(challenger, decision_seq, p, answer, error, cost_usd, latency_ms, answered_by) "
    "SELECT challengers.id, seq, ?, ?, ?, ?, ?, ? FROM challengers JOIN decisions "
    "WHERE challengers.id = ? AND decisions.id = ? ON CONFLICT DO NOTHING "
    "RETURNING (SELECT project FROM challengers WHERE id = challenger), decision_seq"
)
_TAKE_BACK = "DELETE FROM challenger_answers WHERE challenger = ? AND decision_seq = ?"
_COUNT = "UPDATE challengers SET dropped = dropped + ?, refused = refused + ? WHERE id = ?"
_FORGET_ANSWERS = (
    "DELETE FROM challenger_answers WHERE challenger = ?1 AND decision_seq IN ("
    "SELECT decision_seq FROM challenger_answers WHERE challenger = ?1 LIMIT ?2) "
    f"RETURNING {CHALLENGER_SIZE}"
)
_FORGET_BUDGET = "DELETE FROM {} WHERE scope = 'challenger' AND subject = ?"
_FORGET = "DELETE FROM challengers WHERE id = ?"
_STOP = "UPDATE challengers SET state = 'retired' WHERE id = ?"
# The newest first.
_PAIRS = (
    "SELECT asked.p, asked.answer, asked.error, asked.cost_usd, asked.latency_ms, "
    "decisions.cost_usd, decisions.latency_ms, label, truth, labels.p AS own_p, "
    "(SELECT relative FROM review_chances WHERE round = review_round AND level = doubt) "
    "FROM challenger_answers AS asked JOIN challengers ON challengers.id = challenger "
    "JOIN decisions ON seq = asked.decision_seq "
    "LEFT JOIN labels ON labels.decision_seq = seq AND labels.key = challengers.key "
    "WHERE challenger = ? ORDER BY asked.decision_seq DESC LIMIT ?"
)


class Challengers:
    """Keeps them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def running(self, project: str) -> list[Challenger]:
        """The project's challengers that are being asked. Raises `StorageError`."""
        return self._in_force(project, ChallengerState.RUNNING)

    def promoted(self, project: str) -> list[Challenger]:
        """Those that answer requests which name no model. Raises `StorageError`."""
        return self._in_force(project, ChallengerState.PROMOTED)

    def _in_force(self, project: str, state: ChallengerState) -> list[Challenger]:
        rows = self._database.remembered_rows(_IN_FORCE, project, state.value)
        return [Challenger(*row) for row in rows]

    def all(self) -> list[ChallengerRecord]:
        """All that there are, by project and question. Raises `StorageError`."""
        with self._database.read() as connection:
            return [_record(row) for row in connection.execute(_ALL)]

    def add(
        self,
        new: Challenger,
        question_id: int,
        now_ms: int,
        cap: tuple[int, Per] | None = None,
    ) -> int:
        """Begin to ask a challenger; its row. `id` and `digest` of `new` do not count.

        `cap` is what it may cost, in nanodollars, and in which time: it is never asked without.
        Raises `ChallengerThere` where the question has one, `TooManyBudgets` and `StorageError`.
        """
        place = (new.project, new.key)
        values = (*place, question_id, new.model, new.wording, new.share, now_ms)

        def write(connection: sqlite3.Connection) -> int:
            try:
                row = int(connection.execute(_ADD, values).lastrowid or 0)
            except sqlite3.IntegrityError:
                raise ChallengerThere("the question has a challenger already") from None
            if cap is not None:
                nanodollars, per = cap
                budgets.put(Budget(Scope.CHALLENGER, str(row), per, nanodollars), connection)
            return row

        with self._database.changing():
            return self._database.write(write)

    def promote(self, challenger: Challenger, now_ms: int) -> None:
        """Have requests that name no model asked of its model. Raises `StorageError`."""

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(_RETIRE, (challenger.project, challenger.key))
            connection.execute(_PROMOTE, (now_ms, challenger.id))

        with self._database.changing():
            self._database.write(write)

    def remove(self, challenger: Challenger) -> None:
        """Ask it no more, and delete all that it answered. Raises `StorageError`."""
        row = (challenger.id,)
        with self._database.changing():
            self._database.write(lambda connection: connection.execute(_STOP, row).rowcount)
        while self._database.write(partial(_forget_some, challenger)):
            pass
        self._database.write(partial(_forget, challenger))

    def answered(self, answer: ChallengerAnswer) -> None:
        """Keep what one answered; nobody waits for it."""
        self._database.note(_answer_each, answer)

    def count(self, challenger: int, dropped: int = 0, refused: int = 0) -> None:
        """Count decisions that it was not asked about; nobody waits for it."""
        self._database.note(_count_each, (dropped, refused, challenger))

    def pairs(self, challenger: int, most: int) -> list[AskedPair]:
        """The last decisions that it was asked about, the newest first. Raises `StorageError`."""
        with self._database.read() as connection:
            return [_pair(row) for row in connection.execute(_PAIRS, (challenger, most))]


def _pair(row: sqlite3.Row) -> AskedPair:
    pair = AskedPair(*row)
    return pair if pair.own_p is None else replace(pair, own_p=readings.unpacked(row["own_p"]))


def _record(row: sqlite3.Row) -> ChallengerRecord:
    *challenger, state, created_at, promoted_at, dropped, refused = row
    history = (created_at, promoted_at, dropped, refused)
    return ChallengerRecord(Challenger(*challenger), ChallengerState(state), *history)


def _forget_some(
    challenger: Challenger, connection: sqlite3.Connection, most: int = DELETED_AT_ONCE
) -> int:
    deleted = connection.execute(_FORGET_ANSWERS, (challenger.id, most)).fetchall()
    free(connection, challenger.project, sum(size for (size,) in deleted))
    return len(deleted)


def _forget(challenger: Challenger, connection: sqlite3.Connection) -> None:
    # One that came meanwhile.
    _forget_some(challenger, connection, most=-1)
    for table in ("budgets", "budget_spending"):
        connection.execute(_FORGET_BUDGET.format(table), (str(challenger.id),))
    connection.execute(_FORGET, (challenger.id,))


def _answer_each(
    connection: sqlite3.Connection, answers: Sequence[ChallengerAnswer]
) -> Sequence[None]:
    """Store them, but for those that do not fit into what their project may fill."""
    room = Room(connection)
    for one in answers:
        said = (_json(one.p), _json(one.fields), one.error)
        figures = (one.cost_usd, one.latency_ms, one.answered_by)
        place = (one.challenger, ids.parse(one.decision_id))
        stored = connection.execute(_ANSWER, (*said, *figures, *place)).fetchone()
        if stored is None:
            continue
        project, seq = stored
        if not room.takes(project, *said, row_bytes=CHALLENGER_ROW_BYTES):
            connection.execute(_TAKE_BACK, (one.challenger, seq))
            connection.execute(_COUNT, (0, 1, one.challenger))
    return [None] * len(answers)


def _json(value: object) -> str | None:
    """JSON; half a surrogate pair, which a model may reply, stays as its escape."""
    if value is None:
        return None
    return jsontext.dumps(value).encode("utf-8", "backslashreplace").decode()


def _count_each(
    connection: sqlite3.Connection, counts: Sequence[tuple[int, int, int]]
) -> Sequence[None]:
    connection.executemany(_COUNT, counts)
    return [None] * len(counts)
