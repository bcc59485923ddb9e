"""True answers from the callers, and what was learned from them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from svc.store.database import Database

# A project, and the digest of an exact question.
Place = tuple[str, bytes]

_LEARNED = "labels, revision, tried, fitted_at, calibrator, question_id"
_FIND = f"SELECT digest, {_LEARNED} FROM learned WHERE project = ? AND digest IN ({{}})"
_DROP = "DELETE FROM labels WHERE decision_seq = ? AND key = ?"
_ADD = (
    "INSERT INTO labels (decision_seq, key, project, question_id, label, truth, p) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_COUNT = (
    "INSERT INTO learned (project, digest, question_id, labels, revision) VALUES (?, ?, ?, 1, 1) "
    "ON CONFLICT DO UPDATE SET labels = labels + ?, revision = revision + 1 "
    f"RETURNING {_LEARNED}"
)
_RECENT = (
    "SELECT p, truth FROM labels WHERE project = ? AND question_id = ? ORDER BY id DESC LIMIT ?"
)
_CLAIM = (
    "UPDATE learned SET fitted_at = :now WHERE project = :project AND digest = :digest "
    "AND tried < revision AND fitted_at NOT BETWEEN :now - :interval + 1 AND :now"
)
_KEEP = (
    "UPDATE learned SET tried = :revision, fitted_at = :now, "
    "calibrator = coalesce(:calibrator, calibrator) "
    "WHERE project = :project AND digest = :digest AND tried <= :revision"
)
_STALE = "SELECT project, digest FROM learned WHERE calibrator IS NOT NULL AND tried < revision"


@dataclass(frozen=True, slots=True)
class NewLabel:
    """A true answer for one question of a decision.

    `truth` is the label as the question's task has it, `p` the raw reading in definition order.
    """

    decision_seq: int
    key: str
    project: str
    digest: bytes
    question_id: int
    label: Any
    truth: int
    p: Sequence[float]


@dataclass(frozen=True, slots=True)
class CalibrationState:
    """What a project's labels taught about one exact question.

    `labels` counts the labels there are, and `revision` all that were ever given, with those that
    replaced another. `tried` is the revision that the last fit used, and `fitted_at` its time in
    unix milliseconds. `calibrator` is the JSON of the one in effect.
    """

    labels: int
    revision: int
    tried: int
    fitted_at: int | None
    calibrator: str | None
    question_id: int


@dataclass(frozen=True, slots=True)
class TrainingData:
    """The most recent labels of one exact question, oldest first; `p` are raw readings."""

    state: CalibrationState
    p: list[list[float]]
    truth: list[int]


class Labels:
    """Stores labels and calibrators."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, label: NewLabel) -> tuple[CalibrationState, bool]:
        """Store `label` in place of an earlier one; what is known now, and whether it is new.

        Returns once it is durable. Raises `StorageError`.
        """
        return self._database.write_grouped(_add_all, (label, json.dumps(list(label.p))))

    def states(self, project: str, digests: Iterable[bytes]) -> dict[bytes, CalibrationState]:
        """The state of each of these exact questions that has labels, by its digest.

        Raises `StorageError`.
        """
        wanted = list(digests)
        rows = self._database.rows(_find(wanted), project, *wanted)
        return {row[0]: CalibrationState(*row[1:]) for row in rows}

    def training_data(self, place: Place, most: int) -> TrainingData | None:
        """The `most` recent labels, None without any. Raises `StorageError`."""
        project, digest = place
        with self._database.read() as connection:
            found = connection.execute(_find([digest]), (project, digest)).fetchone()
            if found is None:
                return None
            state = CalibrationState(*found[1:])
            rows = connection.execute(_RECENT, (project, state.question_id, most)).fetchall()
        rows.reverse()
        p: list[list[float]] = json.loads("[" + ",".join(row["p"] for row in rows) + "]")
        return TrainingData(state, p, [row["truth"] for row in rows])

    def claim(self, place: Place, now_ms: int, interval_ms: int) -> bool:
        """Whether a fit is due: there are new labels, and no process fitted in the interval.

        Of several callers only one gets True. Raises `StorageError`.
        """
        values = {**_named(place), "now": now_ms, "interval": interval_ms}
        return self._database.write(partial(_update, _CLAIM, values))

    def keep(self, place: Place, revision: int, now_ms: int, calibrator: str | None) -> bool:
        """Store that a fit used `revision`, and its calibrator; None leaves the one in effect.

        Returns whether this was the newest fit; an older one changes nothing.
        Raises `StorageError`.
        """
        values = {**_named(place), "revision": revision, "now": now_ms, "calibrator": calibrator}
        return self._database.write(partial(_update, _KEEP, values))

    def stale(self) -> list[Place]:
        """The places with labels newer than the last fit of a calibrator. Raises `StorageError`."""
        with self._database.read() as connection:
            return [(row["project"], row["digest"]) for row in connection.execute(_STALE)]


def _add_all(
    connection: sqlite3.Connection, items: Sequence[tuple[NewLabel, str]]
) -> list[tuple[CalibrationState, bool]]:
    return [_add(connection, label, p) for label, p in items]


def _add(connection: sqlite3.Connection, label: NewLabel, p: str) -> tuple[CalibrationState, bool]:
    new = not connection.execute(_DROP, (label.decision_seq, label.key)).rowcount
    place = (label.decision_seq, label.key, label.project, label.question_id)
    connection.execute(_ADD, (*place, json.dumps(label.label), label.truth, p))
    count = (label.project, label.digest, label.question_id, int(new))
    return CalibrationState(*connection.execute(_COUNT, count).fetchone()), new


def _find(digests: list[bytes]) -> str:
    return _FIND.format(",".join("?" * len(digests)))


def _named(place: Place) -> dict[str, Any]:
    return {"project": place[0], "digest": place[1]}


def _update(query: str, values: dict[str, Any], connection: sqlite3.Connection) -> bool:
    return connection.execute(query, values).rowcount == 1
