"""The review queue: which decisions are to be labelled, in which order, and who has them now.

Decisions enter the queue in rounds, those of a round at the same time, each with a level of doubt
and a priority; the lowest priority of a question is handed out first, of whichever round. The
frontier of a question is the lowest priority that waits, and a round has reached the highest
frontier since it began: a decision of it was handed out with the chance min(1, reached x size).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from svc import limits
from svc.jsontext import JsonObject
from svc.store import ids
from svc.store.audit_pages import ASKS, READINGS
from svc.store.database import Database
from svc.store.rows import execute, listed

# A project and the row of an exact question.
Wording = tuple[str, int]

# What became of an item: it waits, it was handed out, it was labelled after that, or before its
# turn came.
WAITING, HANDED, LABELLED, OTHERWISE = range(4)

# How many decisions enter the queue in one transaction.
_TOGETHER = 1_000

# The frontier when nothing waits: every chance is 1.
_BEYOND = 1e9

# A time that lies further ahead was noted while the machine's clock was ahead. That of a lease lies
# ahead by the time of one, and processes that look at the clock one after the other write in
# another order.
MOST_AHEAD_MS = int(2 * limits.REVIEW_LEASE_S * 1000)

# Whether a decision that was handed out is in the hands of a reviewer, and the ways in which it is
# not: it was given back, it was not labelled in time, or the clock was ahead.
_LENT = f"leased_until BETWEEN :now + 1 AND :now + {MOST_AHEAD_MS}"
_NOT_LENT = (
    "leased_until IS NULL",
    "leased_until <= :now",
    f"leased_until > :now + {MOST_AHEAD_MS}",
)


def returned(question_id: str) -> str:
    """The query for what was handed out of a question, and is in nobody's hands unlabelled.

    `question_id` is an expression; the parameters are `project` and `now`. Each way to come back is
    a range of the index, as what is in the hands of reviewers would else be read each time.
    """
    items = (
        "SELECT decision_seq, key FROM review_items INDEXED BY review_items_by_lease "
        f"WHERE project = :project AND question_id = {question_id} AND state = 1 AND "
    )
    return " UNION ALL ".join(items + way for way in _NOT_LENT)


_FRAME = "SELECT seen, looked_at FROM review_frames WHERE project = ? AND question_id = ?"
_DEEPEST = "SELECT seq FROM decisions WHERE project = ? ORDER BY seq DESC LIMIT 1 OFFSET ?"
_NEWEST = "SELECT seq FROM decisions WHERE project = ? ORDER BY seq DESC LIMIT 1"
_NEW = (
    f"SELECT seq, model, mode, privacy, {READINGS}, question_ids FROM decisions "
    "WHERE project = ? AND seq > ? AND seq <= ? "
    f"AND {ASKS} ORDER BY seq DESC LIMIT ?"
)
# Of those that are not labelled, and of the most recent labels: what was ever labelled may be
# millions.
_CONFIDENCES = (
    "SELECT confidence FROM review_items "
    "WHERE project = :project AND question_id = :question_id AND state IN (0, 1) "
    "UNION ALL SELECT item.confidence FROM (SELECT decision_seq, key FROM labels "
    "WHERE project = :project AND question_id = :question_id ORDER BY id DESC LIMIT :most) "
    "AS recent CROSS JOIN review_items AS item USING (decision_seq, key) WHERE state IN (2, 3)"
)
_LOOKED = (
    "INSERT INTO review_frames (project, question_id, seen, looked_at) VALUES (?, ?, ?, ?) "
    "ON CONFLICT DO UPDATE SET seen = excluded.seen, looked_at = excluded.looked_at"
)
_BEGIN_ROUND = "INSERT INTO review_rounds (project, question_id) VALUES (?, ?) RETURNING id"
_ENTER = (
    "WITH given (seq, key, project, question_id, round, level, confidence, priority) "
    "AS (VALUES {}) INSERT OR IGNORE INTO review_items (decision_seq, key, project, question_id, "
    "round, level, confidence, priority, state) SELECT given.*, 0 FROM given "
    # It may have been deleted since it was read.
    "WHERE EXISTS (SELECT 1 FROM decisions WHERE decisions.seq = given.seq)"
)
_LABELLED_BEFORE = (
    "UPDATE review_items SET state = 3 WHERE project = ? AND question_id = ? AND state = 0 "
    "AND round = ? AND EXISTS (SELECT 1 FROM labels "
    "WHERE labels.decision_seq = review_items.decision_seq AND labels.key = review_items.key)"
)
_COUNT_LEVEL = (
    "INSERT INTO review_levels (project, question_id, level, size, decisions) "
    "VALUES {} ON CONFLICT DO UPDATE SET decisions = decisions + excluded.decisions"
)
# JSON arrays: the writer would wait for the interpreter after each row.
_WAITING_BY_ROUND = (
    "SELECT json_group_array(json_array(round, waiting)) FROM "
    "(SELECT round, count(*) AS waiting FROM review_items "
    "WHERE project = ? AND question_id = ? AND state = 0 GROUP BY round)"
)
# Of all rounds few are open, which SQLite does not know: it would read all, as these are in order.
_OPEN = (
    "SELECT json_group_array(id) FROM (SELECT id FROM review_rounds INDEXED BY review_rounds_open "
    "WHERE project = ? AND question_id = ? AND open ORDER BY id DESC)"
)
_CLOSE = "UPDATE review_rounds SET open = 0 WHERE id = ?"
_FORGET = (
    "DELETE FROM review_items "
    "WHERE project = ? AND question_id = ? AND state IN (0, 3) AND round = ?"
)
_SHOWN = (
    "SELECT item.decision_seq, item.key, id, created_at, state_hash, ref, tags, leased_until "
    "FROM review_items AS item JOIN decisions ON seq = decision_seq "
    "WHERE item.project = :project AND question_id = :question_id "
)
_MINE = _SHOWN + (
    f"AND state = 1 AND reviewer = :reviewer AND {_LENT} "
    "ORDER BY decision_seq, item.key LIMIT :limit"
)
_SKIPPED = (
    "EXISTS (SELECT 1 FROM judgements WHERE judgements.decision_seq = item.decision_seq "
    "AND judgements.key = item.key AND judgements.reviewer = :reviewer AND label IS NULL)"
)
# Those that another did not label in time come before any further ones, so that who was drawn first
# is labelled first. Which of them is left to chance: their order says nothing of their doubt.
_AGAIN = (
    f"SELECT decision_seq, key FROM ({returned(':question_id')}) AS item "
    f"WHERE NOT {_SKIPPED} ORDER BY random() LIMIT :limit"
)
_NEXT = (
    "SELECT decision_seq, key FROM review_items WHERE project = :project "
    "AND question_id = :question_id AND state = 0 ORDER BY priority LIMIT :limit"
)
_PLACES = "SELECT json_group_array(json_array(decision_seq, key)) FROM ({})"
_LEASE = (
    "WITH given (seq, key, reviewer, until) AS (VALUES {}) UPDATE review_items "
    "SET state = 1, reviewer = given.reviewer, leased_until = until "
    "FROM given WHERE decision_seq = seq AND review_items.key = given.key"
)
_FRONTIER = (
    "SELECT min(priority) FROM review_items "
    "WHERE project = :project AND question_id = :question_id AND state = 0"
)
_BEHIND = (
    "SELECT id FROM review_rounds "
    "WHERE project = :project AND question_id = :question_id AND open AND reached < :frontier"
)
_MEAN_CHANCE = (
    "SELECT sum(decisions * min(1.0, :frontier * size)) / sum(decisions) FROM review_levels "
    "WHERE project = :project AND question_id = :question_id"
)
_REACH = f"UPDATE review_rounds SET reached = :frontier WHERE id IN ({_BEHIND})"
_CHANCES = (
    "REPLACE INTO review_chances (round, level, chance, relative) "
    "SELECT id, level, min(1.0, :frontier * size), min(1.0, :frontier * size) / :mean "
    f"FROM ({_BEHIND}) CROSS JOIN review_levels "
    "WHERE project = :project AND question_id = :question_id"
)
_GIVE_BACK = (
    "UPDATE review_items SET leased_until = NULL "
    "WHERE decision_seq = ? AND key = ? AND reviewer = ? AND state = 1 "
    "AND leased_until IS NOT NULL"
)
_COUNT = (
    "SELECT count(*) FROM (SELECT 1 FROM review_items "
    f"WHERE project = ? AND question_id = ? AND state = ? LIMIT {limits.REVIEW_COUNTED})"
)
_LEASED = (
    "SELECT count(*) FROM review_items "
    f"WHERE project = :project AND question_id = :question_id AND state = 1 AND {_LENT}"
)
_LEVELS = "SELECT level, decisions FROM review_levels WHERE project = ? AND question_id = ?"
_DRAWN = (
    "SELECT doubt, correct, review_chances.chance FROM labels INDEXED BY labels_from_review "
    "JOIN review_chances ON round = review_round AND level = doubt "
    "WHERE project = ? AND question_id = ? AND review_round IS NOT NULL ORDER BY id DESC LIMIT ?"
)
# However old they are: what they took out of the queue does not come back.
_ELSEWHERE = (
    "SELECT count(*) FROM (SELECT 1 FROM labels WHERE project = ? AND question_id = ? "
    f"AND review_round IS NULL LIMIT {limits.REVIEW_COUNTED})"
)


@dataclass(frozen=True, slots=True)
class NewDecision:
    """A decision that the queue has not seen; `p` are raw probabilities.

    `answered_by` names the answering models and the mode.
    """

    seq: int
    key: str
    p: list[float]
    answered_by: str
    strict: bool


@dataclass(frozen=True, slots=True)
class Look:
    """What a look for new decisions found: those in rows after `seen`, up to `last`.

    They stand in the order of rows. `confidences` are those of the decisions that are in the queue
    already.
    """

    seen: int
    last: int
    decisions: list[NewDecision]
    confidences: list[float]


@dataclass(frozen=True, slots=True)
class Entry:
    """A decision as it enters the queue: its level of doubt, and its turn."""

    seq: int
    key: str
    level: int
    confidence: float
    priority: float


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A decision in the hands of a reviewer until `leased_until`; times in unix milliseconds.

    `tags` is a JSON object.
    """

    id: str
    key: str
    created_at: int
    state_hash: str
    ref: str | None
    tags: str
    leased_until: int


@dataclass(frozen=True, slots=True)
class Drawn:
    """The labels of drawn decisions: level of doubt, whether the answer was right, and the chance.

    `decisions` has how many the queue has seen, by level, and `elsewhere` is how many labels there
    are of decisions that were not handed out.
    """

    level: list[int]
    correct: list[int]
    chance: list[float]
    decisions: dict[int, int]
    elsewhere: int


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """Decisions that wait, that reviewers have now, that came back unlabelled, or labelled."""

    waiting: int
    leased: int
    returned: int
    labelled: int


class ReviewQueue:
    """Hands out decisions of a question to reviewers, each to one at a time."""

    def __init__(
        self,
        database: Database,
        most: int = limits.REVIEW_DECISIONS,
        depth: int = limits.REVIEW_DEPTH,
        chars: int = limits.READINGS_CHARS,
        handed: int = limits.REVIEW_HANDED,
    ) -> None:
        """A look finds at most `most` decisions, out of the last `depth` of their project.

        One that has the question under several keys counts as often. It reads no more than `chars`
        characters of readings, but at least one decision. Of a question at most `handed` decisions
        are handed out and not labelled: no further ones are then.
        """
        self._database, self._handed = database, handed
        self._most, self._depth, self._chars = most, depth, chars

    def look(self, wording: Wording, before_ms: int, now_ms: int) -> Look | None:
        """The decisions that are new to the queue, None where it looked from `before_ms` to now.

        A look of later was made while the clock was ahead, and does not count. Raises
        `StorageError`.
        """
        project, question_id = wording
        with self._database.read() as connection:
            frame = connection.execute(_FRAME, wording).fetchone()
            if frame is not None and before_ms <= frame["looked_at"] <= now_ms:
                return None
            seen = 0 if frame is None else frame["seen"]
            newest = connection.execute(_NEWEST, (project,)).fetchone()
            last = seen if newest is None else newest[0]
            deepest = connection.execute(_DEEPEST, (project, self._depth)).fetchone()
            first = max(seen, 0 if deepest is None else deepest[0])
            rows = connection.execute(_NEW, (project, first, last, question_id, self._most))
            decisions = _newest(rows, question_id, self._most, self._chars)
            values = {**_named(wording), "most": self._most}
            known = connection.execute(_CONFIDENCES, values) if decisions else []
            confidences = [row[0] for row in known]
        return Look(seen, last, decisions, confidences)

    def enter(
        self,
        wording: Wording,
        look: Look,
        entries: Sequence[Entry],
        sizes: Sequence[float],
        now_ms: int,
    ) -> None:
        """Put what `look` found into the queue, in the order of rows; `sizes` are of the levels.

        Where another caller was first, nothing changes. Raises `StorageError`.
        """
        seen = look.seen
        for part, last in _parts(entries, look.last):
            step = partial(_enter, wording, (seen, last), part, sizes, now_ms)
            if not self._database.write(step):
                return
            seen = last
        self._database.write(partial(_close_oldest, wording, self._most))

    def hand_out(
        self, wording: Wording, reviewer: str, limit: int, now_ms: int, until_ms: int
    ) -> list[ReviewItem]:
        """At most `limit` decisions, in nobody else's hands until `until_ms`.

        Those that the reviewer has already come first. Raises `StorageError`.
        """
        values = {"reviewer": reviewer, "limit": limit, "now": now_ms}
        return self._database.write(partial(_hand_out, wording, values, until_ms, self._handed))

    def counts(self, wording: Wording, now_ms: int) -> QueueCounts:
        """How far the queue is. Raises `StorageError`."""
        with self._database.read() as connection:
            waiting, handed, labelled = (
                connection.execute(_COUNT, (*wording, state)).fetchone()[0]
                for state in (WAITING, HANDED, LABELLED)
            )
            values = {**_named(wording), "now": now_ms}
            (leased,) = connection.execute(_LEASED, values).fetchone()
        return QueueCounts(waiting, leased, handed - leased, labelled)

    def drawn(self, wording: Wording, most: int) -> Drawn:
        """The `most` recent labels of decisions that were handed out. Raises `StorageError`."""
        with self._database.read() as connection:
            decisions = dict(connection.execute(_LEVELS, wording).fetchall())
            rows = connection.execute(_DRAWN, (*wording, most)).fetchall()
            (elsewhere,) = connection.execute(_ELSEWHERE, wording).fetchone()
        level, correct, chance = ([row[place] for row in rows] for place in range(3))
        return Drawn(level, correct, chance, decisions, elsewhere)


def give_back(connection: sqlite3.Connection, seq: int, key: str, reviewer: str) -> bool:
    """End the lease of a reviewer who does not want to label a decision; whether there was one."""
    return connection.execute(_GIVE_BACK, (seq, key, reviewer)).rowcount == 1


def _newest(rows: Iterable[sqlite3.Row], wanted: int, most: int, chars: int) -> list[NewDecision]:
    """The wanted readings of the first rows, as many as are allowed, in the order of row numbers.

    A row can be long without filling much of the disk, as it may refer to another for its readings.
    """
    found: list[list[NewDecision]] = []
    for row in rows:
        new = _new(row, wanted)
        chars -= len(row["readings"])
        most -= len(new)
        if found and (chars < 0 or most < 0):
            break
        found.append(new)
    return [one for new in reversed(found) for one in new]


def _new(row: sqlite3.Row, wanted: int) -> list[NewDecision]:
    """The readings of the wanted question, which may stand there under several keys."""
    readings = json.loads(row["readings"]).items()
    by = f"{row['model']} {row['mode']}"
    strict = row["privacy"] == "strict"
    return [
        NewDecision(row["seq"], key, reading["p"], reading.get("by", by), strict)
        for question_id, (key, reading) in zip(
            json.loads(row["question_ids"]), readings, strict=True
        )
        if question_id == wanted and reading is not None
    ]


def _parts(entries: Sequence[Entry], last: int) -> Iterator[tuple[Sequence[Entry], int]]:
    """Parts that each take the writer's thread a few hundredths of a second, and their last row."""
    begin = 0
    for place in range(1, len(entries)):
        if place - begin >= _TOGETHER and entries[place].seq != entries[place - 1].seq:
            yield entries[begin:place], entries[place - 1].seq
            begin = place
    yield entries[begin:], last


def _enter(
    wording: Wording,
    rows: tuple[int, int],
    entries: Sequence[Entry],
    sizes: Sequence[float],
    now_ms: int,
    connection: sqlite3.Connection,
) -> bool:
    """Let in the decisions between two rows; False where somebody else did."""
    frame = connection.execute(_FRAME, wording).fetchone()
    seen, last = rows
    if (0 if frame is None else frame[0]) != seen:
        return False
    connection.execute(_LOOKED, (*wording, last, now_ms))
    if not entries:
        return True
    (number,) = connection.execute(_BEGIN_ROUND, wording).fetchone()
    items = [
        (one.seq, one.key, *wording, number, one.level, one.confidence, one.priority)
        for one in entries
    ]
    execute(connection, _ENTER, items)
    connection.execute(_LABELLED_BEFORE, (*wording, number))
    levels = [one.level for one in entries]
    counts = [(*wording, level, size, levels.count(level)) for level, size in enumerate(sizes)]
    execute(connection, _COUNT_LEVEL, counts)
    return True


def _named(wording: Wording) -> JsonObject:
    project, question_id = wording
    return {"project": project, "question_id": question_id}


def _close_oldest(wording: Wording, most: int, connection: sqlite3.Connection) -> None:
    """Leave out the oldest rounds, where more decisions wait than are looked through.

    Which rounds are left out depends on their age alone, so what was handed out of them keeps its
    chance.
    """
    waiting = 0
    by_round = dict(listed(connection, _WAITING_BY_ROUND, wording))
    for place, number in enumerate(listed(connection, _OPEN, wording)):
        waiting += by_round.get(number, 0)
        if place and (waiting > 2 * most or place >= limits.REVIEW_ROUNDS):
            connection.execute(_CLOSE, (number,))
            connection.execute(_FORGET, (*wording, number))


def _hand_out(
    wording: Wording, values: JsonObject, until_ms: int, most: int, connection: sqlite3.Connection
) -> list[ReviewItem]:
    values = {**values, **_named(wording)}
    limit, reviewer = values["limit"], values["reviewer"]
    taken = listed(connection, _PLACES.format(_MINE), values)
    (handed,) = connection.execute(_COUNT, (*wording, HANDED)).fetchone()
    for more, room in ((_AGAIN, limit), (_NEXT, max(0, most - handed))):
        left = {**values, "limit": min(room, limit - len(taken))}
        taken += listed(connection, _PLACES.format(more), left)
    execute(connection, _LEASE, [(*one, reviewer, until_ms) for one in taken])
    _move_frontier(connection, values)
    return [_item(row) for row in connection.execute(_MINE, values)]


def _move_frontier(connection: sqlite3.Connection, values: JsonObject) -> None:
    """Note how far the rounds have been handed out."""
    (lowest,) = connection.execute(_FRONTIER, values).fetchone()
    values = {**values, "frontier": _BEYOND if lowest is None else lowest}
    (mean,) = connection.execute(_MEAN_CHANCE, values).fetchone()
    connection.execute(_CHANCES, {**values, "mean": mean})
    connection.execute(_REACH, values)


def _item(row: sqlite3.Row) -> ReviewItem:
    _, key, ulid, created_at, state_hash, ref, tags, leased_until = row
    text = "{}" if tags is None else tags
    return ReviewItem(ids.text(ulid), key, created_at, state_hash.hex(), ref, text, leased_until)
