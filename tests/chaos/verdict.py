"""Whether everything that was answered is there, and nothing was said that may not be said."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from svc.store import ids
from tests.chaos.clock import Clock
from tests.chaos.journal import BROKEN, STORAGE, Asked, Journal, Outcome, Window
from tests.chaos.parts import Part
from tests.chaos.questions import AGING, BOUNDED
from tests.chaos.target import Footing

RECOVERY_S = 2.0  # seconds after a fault's end in which the server has to answer again
SHOWN = 20  # problems of one kind that are told
MODEL_TROUBLE = {(429, "rate_limited"), (502, "model_error"), (502, "model_unavailable")}
# What may be said to each kind of request when nothing is wrong with the server.
ALLOWED: Mapping[str, set[tuple[int, str]]] = {
    "decide": {(200, ""), *MODEL_TROUBLE},
    "feedback": {(200, "")},
    "old feedback": {(200, ""), (404, "not_found")},  # its decision may be deleted
    "audit": {(200, "")},
    "batch": {(202, "")},
    "read": {(200, ""), (404, "not_found")},  # a question that nobody asked so far
    "nonsense": {(400, "invalid_json"), (422, "invalid_request")},
}

# A decision may refer to another one for its answers and readings.
_WHOLE = "FROM decisions AS d LEFT JOIN decisions AS whole ON whole.seq = d.same_as"
_WEEKS = "SELECT project, sum(decisions) FROM weeks GROUP BY project"
_READINGS = f"SELECT d.project, coalesce(whole.readings, d.readings) {_WHOLE}"


def judge(journal: Journal, db: Path, parts: Sequence[Part], clock: Clock) -> Iterator[str]:
    """Every problem, in words."""
    yield from journal.problems
    yield from _refused(journal.refused)
    yield from _shortened(_said(journal.outcomes, journal.windows))
    yield from (_late(window) for window in journal.windows if window.recovery_s > RECOVERY_S)
    with contextlib.closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as connection:
        yield from _unsound(connection)
        yield from _shortened(_decisions(connection, journal.asked, clock))
        yield from _shortened(_labels(connection, journal))
        for part in parts:
            yield from _shortened(part.judge(connection))


def leaks(before: Footing, after: Footing, most: Footing) -> Iterator[str]:
    """What the server holds at rest beyond `most`, and what it held `before`."""
    if after.threads > most.threads:
        yield f"threads leaked: {before.threads}, then {after.threads}"
    if after.files > most.files:
        yield f"descriptors leaked: {before.files}, then {after.files}"
    if after.memory_mb > most.memory_mb:
        yield f"memory grew: {before.memory_mb:.0f} MB, then {after.memory_mb:.0f} MB"


def _said(outcomes: Iterable[Outcome], windows: Sequence[Window]) -> Iterator[str]:
    """Responses that nothing excuses."""
    for outcome in outcomes:
        if (outcome.status, outcome.type) in ALLOWED[outcome.what]:
            continue
        known = outcome.status == BROKEN or (outcome.status, outcome.type) == (
            STORAGE,
            "internal_error",
        )
        if not known or not any(_excused(outcome, window) for window in windows):
            near = [
                w.name for w in windows if w.began < outcome.ended and outcome.began < w.ended + 5
            ]
            yield (
                f"{outcome.what} got {outcome.status} {outcome.type} "
                f"after {outcome.ended - outcome.began:.2f} s, near {near or 'no fault'}"
            )


def _excused(outcome: Outcome, window: Window) -> bool:
    return (
        outcome.status in window.excuses
        and outcome.began <= window.ended + RECOVERY_S
        and outcome.ended >= window.began
    )


def _refused(refused: Mapping[str, int]) -> Iterator[str]:
    """Refusals by a budget of what no budget pays."""
    for project, times in refused.items():
        if project != BOUNDED:
            yield f"a budget refused {times} requests of project {project}, which has none"


def _late(window: Window) -> str:
    return f"after {window.name!r} it took {window.recovery_s:.2f} s to answer again"


def _unsound(connection: sqlite3.Connection) -> Iterator[str]:
    """What SQLite, and our own sums, say of the file."""
    if (found := connection.execute("PRAGMA integrity_check").fetchall()) != [("ok",)]:
        yield f"integrity_check: {found[:SHOWN]}"
    if found := connection.execute("PRAGMA foreign_key_check").fetchall():
        yield f"foreign_key_check: {found[:SHOWN]}"
    counted = "SELECT (SELECT sum(labels) FROM learned), (SELECT count(*) FROM labels)"
    learned, labels = connection.execute(counted).fetchone()
    if (learned or 0) != labels:
        yield f"{labels} labels, but {learned} are counted"
    weeks = dict(connection.execute(_WEEKS))
    read = Counter(dict.fromkeys(weeks, 0))
    for project, readings in connection.execute(_READINGS):
        read[project] += sum(reading is not None for reading in json.loads(readings).values())
    for project in read.keys() - {AGING}:
        if weeks.get(project, 0) != read[project]:
            counted = weeks.get(project, 0)
            yield f"{read[project]} readings of {project}, but {counted} in the weekly sums"


def _decisions(
    connection: sqlite3.Connection, asked: Mapping[str, Asked], clock: Clock
) -> Iterator[str]:
    """Whether each answered decision lies there once and as it was returned, unless it is old."""
    (salt,) = connection.execute("SELECT value FROM meta WHERE name = 'salt'").fetchone()
    answers = "coalesce(whole.answers, d.answers)"
    query = f"SELECT d.id, d.state_hash, {answers} {_WHOLE} ORDER BY d.seq"
    rows = connection.execute(query).fetchall()
    stored = {ids.text(ulid): json.loads(answers) for ulid, _, answers in rows}
    if len(stored) != len(rows) or [row[0] for row in rows] != sorted(row[0] for row in rows):
        yield "the ids of the decisions do not grow"
    times = Counter(state_hash for _, state_hash, _ in rows)
    for state, one in asked.items():
        kept = {key: text for key, text in one.answers.items() if not _is_old(one, key, clock)}
        for decision_id in one.answers.keys() - kept.keys():
            if decision_id in stored:
                yield f"{decision_id} is older than a day and still there"
        for decision_id, answers in kept.items():
            if decision_id not in stored:
                yield f"{decision_id} was answered and is not there"
            elif stored[decision_id] != answers:
                yield f"{decision_id} is there, but not as it was answered"
        count = times.pop(hashlib.sha256(salt + state.encode()).digest(), 0)
        if not len(kept) <= count <= len(kept) + one.unknown:
            yield f"a state has {count} decisions, {len(kept)} of them were answered"
    if times:
        yield f"{times.total()} decisions are about no state that was asked about"


def _is_old(asked: Asked, decision_id: str, clock: Clock) -> bool:
    """Whether a decision has to be deleted by now."""
    return asked.project == AGING and clock.is_old(decision_id)


def _labels(connection: sqlite3.Connection, journal: Journal) -> Iterator[str]:
    """Whether each label lies there once, the last that was given, where its decision does."""
    query = "SELECT decisions.id, key, label FROM labels JOIN decisions ON seq = decision_seq"
    rows = connection.execute(query).fetchall()
    stored: dict[tuple[str, str], Any] = {
        (ids.text(ulid), key): json.loads(label) for ulid, key, label in rows
    }
    if len(stored) != len(rows):
        yield "a question of a decision has several labels"
    here = {ids.text(ulid) for (ulid,) in connection.execute("SELECT id FROM decisions")}
    for place, one in journal.labelled.items():
        label = stored.pop(place, None)
        if place[0] in here and label not in one.possible:
            yield f"{place} has the label {label!r} instead of one of {one.possible}"
    if stored:
        yield f"{len(stored)} labels were never given"


def _shortened(problems: Iterable[str]) -> Iterator[str]:
    """The first problems, and how many more there are."""
    found = list(problems)
    yield from found[:SHOWN]
    if len(found) > SHOWN:
        yield f"... and {len(found) - SHOWN} more of this kind"
