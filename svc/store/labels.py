"""True answers from the callers, and what was learned from them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from svc import limits
from svc.store import readings
from svc.store.database import Database
from svc.store.errors import UnknownDecision
from svc.store.label_adding import LEARNED, Encoded, Stored, add, encoded
from svc.store.label_records import (
    CalibrationState,
    ChallengerLabel,
    GivenLabel,
    NewerLabels,
    NewLabel,
    Place,
    RawReading,
    Stratum,
    TrainingData,
    WeighedLabel,
    Worth,
)

_FIND = f"SELECT digest, {LEARNED} FROM learned WHERE project = ? AND digest IN ({{}})"
# The chance that a decision was handed out grows as long as others are; what it is relative to the
# mean of all decisions is read when it is needed.
_RELATIVE = (
    "(SELECT relative FROM review_chances WHERE round = review_round AND level = doubt) AS relative"
)
_FIRST_AT = "coalesce(labels.first_at, labels.created_at, 0) AS first_at"
_RECENT = (
    f"SELECT p, truth, members, answered_by, sampled, chance, {_FIRST_AT}, {_RELATIVE}, "
    "decision_seq, decided_at FROM labels WHERE project = :project AND question_id = :question_id "
    # Where few of the labels are of decisions from then on, not all there are is looked through.
    "AND id > coalesce((SELECT id FROM labels WHERE project = :project AND "
    "question_id = :question_id ORDER BY id DESC LIMIT 1 OFFSET :depth), 0) "
    "AND decision_seq >= :first ORDER BY id DESC LIMIT :most"
)
# Of another wording the labels of this one teach nothing, and of the same model and mode nothing
# new.
_OF_CHALLENGERS = (
    "SELECT asked.p, asked.answer, label, asked.answered_by, sampled, chance, "
    f"{_FIRST_AT}, {_RELATIVE}, labels.decision_seq, labels.decided_at "
    "FROM (SELECT * FROM labels WHERE project = ? AND question_id = ? ORDER BY id DESC LIMIT ?) "
    "AS labels JOIN challenger_answers AS asked ON asked.decision_seq = labels.decision_seq "
    # By the challenger that answered, and not by all that the wording has in other projects.
    "CROSS JOIN challengers ON challengers.id = asked.challenger AND challengers.key = labels.key "
    "AND challengers.question_id = labels.question_id AND wording IS NULL "
    "WHERE asked.answered_by <> labels.answered_by"
)
# Without the long columns, which are read of few at a time, and of those alone whose worth is not
# stored, or depends on pools.
_NEWER = (
    "SELECT id, truth, answered_by, chance, review_round, doubt, p_true, confidence, correct, "
    "iif(p_true IS NULL OR members IS NOT NULL, length(p) + coalesce(length(members), 0), 0), "
    "decision_seq, "
    f"{_FIRST_AT}, decided_at FROM labels "
    "WHERE project = ? AND question_id = ? AND id > ? ORDER BY id DESC LIMIT ?"
)
_READINGS = "SELECT id, p, members FROM labels WHERE id IN (SELECT value FROM json_each(?))"
_OF_DECISIONS = (
    "SELECT decision_seq, key, label, created_at, sampled, chance FROM labels "
    "WHERE decision_seq IN (SELECT value FROM json_each(?)) ORDER BY decision_seq, key"
)
_RELATIVES = (
    "SELECT round, level, relative FROM json_each(?) AS drawn CROSS JOIN review_chances "
    "ON round = json_extract(drawn.value, '$[0]') AND level = json_extract(drawn.value, '$[1]')"
)
_IDS = "SELECT id FROM labels WHERE project = ? AND question_id = ? ORDER BY id DESC LIMIT ?"
_CLAIM = (
    "UPDATE learned SET fitted_at = :now WHERE project = :project AND digest = :digest "
    "AND tried < revision "
    "AND (fitted_at IS NULL OR fitted_at NOT BETWEEN :now - :interval + 1 AND :now)"
)
_KEEP = (
    "UPDATE learned SET tried = :revision, fitted_at = :now, "
    "calibrator = :calibrator, pools = :pools "
    # A question that was forgotten meanwhile begins again with fewer.
    "WHERE project = :project AND digest = :digest AND :revision BETWEEN tried AND revision"
)
# The first of each project, then the second of each. Chance decides among these, so that no project
# comes before others by its name.
_STALE = (
    "SELECT project, digest FROM (SELECT project, digest, "
    "row_number() OVER (PARTITION BY project) AS turn FROM learned WHERE tried < revision "
    "AND (calibrator IS NOT NULL OR pools IS NOT NULL OR "
    f"labels >= {limits.MIN_LABELS} AND (tried = 0 OR revision - tried >= {limits.TRY_EVERY}))) "
    "ORDER BY turn, random() LIMIT ?"
)


class Labels:
    """Stores labels and calibrators."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, label: NewLabel) -> CalibrationState:
        """Store `label` in place of an earlier one; what is known now.

        Returns once it is durable. Raises `StorageError`, and `UnknownDecision` where the decision
        was deleted since it was read.
        """
        with self._database.changing():
            state = self._database.write_grouped(_add_each, encoded(label))
        if state is None:
            raise UnknownDecision("the decision was deleted meanwhile")
        return state

    def add_all(
        self,
        labels: Sequence[NewLabel],
        at_once: int | None = None,
        chars: int = limits.BULK_STORED_CHARS,
    ) -> Stored:
        """Store all `labels`; what is known now, and by how many each revision grew.

        In one transaction, or in one for every `at_once` of them, or fewer of more than `chars`
        characters: then the first may be stored where an error is raised. Of several for the same
        question of a decision the last one counts, and what each reviewer said is kept. Those of
        decisions that were deleted since they were read are left out. Returns once the others are
        durable. Raises `StorageError`.
        """
        known: Stored = {}
        for some in [labels] if at_once is None else _parts(labels, at_once, chars):
            with self._database.changing():
                items = [encoded(label) for label in some]
                stored = self._database.write_long(partial(add, items=items), max(1, len(some)))
            for place, (state, grown) in stored.items():
                known[place] = (state, grown + known[place][1] if place in known else grown)
        return known

    def of_decisions(self, seqs: Sequence[int]) -> dict[int, list[GivenLabel]]:
        """The labels of the decisions in these rows, by row. Raises `StorageError`."""
        found: dict[int, list[GivenLabel]] = {}
        with self._database.read() as connection:
            rows = connection.execute(_OF_DECISIONS, (json.dumps(list(seqs)),)).fetchall()
        for seq, *label in rows:
            found.setdefault(seq, []).append(GivenLabel(*label))
        return found

    def states(self, project: str, digests: Iterable[bytes]) -> dict[bytes, CalibrationState]:
        """The state of each of these exact questions that has labels, by its digest.

        Raises `StorageError`.
        """
        wanted = list(digests)
        rows = self._database.remembered_rows(_find(wanted), project, *wanted)
        return {row[0]: CalibrationState(*row[1:]) for row in rows}

    def training_data(
        self, place: Place, most: int, first: int = 0, depth: int = limits.LABELS_LOOKED_AT
    ) -> TrainingData | None:
        """The `most` recent labels, None where there never was one.

        A label that took the place of an earlier one keeps its place in their order. Those that
        came together are in an order of their own, since files may be sorted.

        `first` is the row of the first decision whose label counts, which is looked for among the
        last `depth` labels. Raises `StorageError`.
        """
        with self._database.read() as connection:
            state = _state(connection, place)
            if state is None:
                return None
            values = {
                "project": place[0],
                "question_id": state.question_id,
                "first": first,
                "most": most,
                "depth": depth,
            }
            rows = connection.execute(_RECENT, values).fetchall()
        rows.sort(key=_came)
        p = [readings.unpacked(row["p"]) for row in rows]
        members = [readings.unpacked_members(row["members"]) for row in rows]
        columns = (
            *("answered_by", "sampled", "chance", "first_at", "relative"),
            *("decision_seq", "decided_at"),
        )
        further = [[row[name] for row in rows] for name in columns]
        return TrainingData(state, p, [row["truth"] for row in rows], members, *further)

    def of_challengers(self, project: str, question_id: int, most: int) -> list[ChallengerLabel]:
        """The `most` recent labels of a question as they count for its challengers, in any order.

        Raises `StorageError`.
        """
        with self._database.read() as connection:
            rows = connection.execute(_OF_CHALLENGERS, (project, question_id, most))
            return [ChallengerLabel(*row) for row in rows]

    def newer(
        self,
        place: Place,
        most: int,
        last_id: int = 0,
        seen: CalibrationState | None = None,
        strata: Iterable[Stratum] = (),
    ) -> NewerLabels | None:
        """The labels after `last_id`, at most the `most` recent, None without any label at all.

        `seen` is the state that was found with the labels before, and `strata` are those that these
        were drawn from. Raises `StorageError`.
        """
        with self._database.read() as connection:
            state = _state(connection, place)
            if state is None:
                return None
            question = (place[0], state.question_id)
            rows = connection.execute(_NEWER, (*question, last_id, most)).fetchall()
            left = None
            if seen is not None and _replaced(seen, state):
                left = [row["id"] for row in connection.execute(_IDS, (*question, most))]
            new = ((row["review_round"], row["doubt"]) for row in rows)
            relative = _relative(connection, {*strata, *(one for one in new if one[0] is not None)})
        rows.reverse()
        return NewerLabels(state, [_weighed(row) for row in rows], left, relative)

    def readings(self, ids: Sequence[int]) -> dict[int, RawReading]:
        """The raw readings of these labels by id, without those that are there no more.

        Raises `StorageError`.
        """
        with self._database.read() as connection:
            rows = connection.execute(_READINGS, (json.dumps(list(ids)),)).fetchall()
        return {
            label_id: RawReading(readings.unpacked(p), readings.unpacked_members(members))
            for label_id, p, members in rows
        }

    def claim(self, place: Place, now_ms: int, interval_ms: int) -> bool:
        """Whether a fit is due: there are new labels, and no process fitted in the interval.

        Of several callers only one gets True. Raises `StorageError`.
        """
        values = {**_named(place), "now": now_ms, "interval": interval_ms}
        with self._database.changing():
            return self._database.write(partial(_update, _CLAIM, values))

    def keep(
        self,
        place: Place,
        revision: int,
        now_ms: int,
        calibrator: str | None,
        pools: str | None = None,
    ) -> bool:
        """Note that a fit has seen `revision`, and what it found; None where it found nothing.

        Returns whether this was the newest fit; an older one changes nothing.
        Raises `StorageError`.
        """
        fitted = {"calibrator": calibrator, "pools": pools}
        values = {**_named(place), "revision": revision, "now": now_ms, **fitted}
        with self._database.changing():
            return self._database.write(partial(_update, _KEEP, values))

    def stale(self, most: int) -> list[Place]:
        """Places with labels that no fit has seen, where one is due, so many at most.

        Projects take turns, in an order that is left to chance. Raises `StorageError`.
        """
        with self._database.read() as connection:
            return [(row[0], row[1]) for row in connection.execute(_STALE, (most,))]


def _add_each(
    connection: sqlite3.Connection, items: Sequence[Encoded]
) -> list[CalibrationState | None]:
    # Each counts in the revision, also where another comes for the same question of a decision.
    known = (next(iter(add(connection, [item]).values()), None) for item in items)
    return [found and found[0] for found in known]


def _parts(labels: Iterable[NewLabel], most: int, chars: int) -> Iterator[list[NewLabel]]:
    """The labels in their order, at most so many together, and so many characters of them."""
    part: list[NewLabel] = []
    left = chars
    for label in labels:
        size = label.chars
        if part and (len(part) == most or size > left):
            yield part
            part, left = [], chars
        part.append(label)
        left -= size
    if part:
        yield part


def _replaced(before: CalibrationState, now: CalibrationState) -> bool:
    """Whether a label took another's place since."""
    return now.revision - before.revision != now.labels - before.labels


def _relative(connection: sqlite3.Connection, strata: Collection[Stratum]) -> dict[Stratum, float]:
    if not strata:
        return {}
    chances = connection.execute(_RELATIVES, (json.dumps([*strata]),))
    return {(number, level): chance for number, level, chance in chances}


def _weighed(row: sqlite3.Row) -> WeighedLabel:
    # By place and not by name: thousands of them are read at once.
    label_id, truth, answered_by, chance, review_round, doubt = row[:6]
    p_true, confidence, correct, open_bytes, decision, first_at, decided_at = row[6:]
    return WeighedLabel(
        label_id,
        truth,
        answered_by,
        chance,
        review_round,
        doubt,
        worth=None if p_true is None else Worth(p_true, confidence, correct),
        open_bytes=open_bytes,
        decision=decision,
        first_at=first_at,
        decided_at=decided_at,
    )


def _came(row: sqlite3.Row) -> tuple[int, int]:
    """When a label came; those that came at once are spread, whatever their file was sorted by.

    Rows times the golden ratio, without what overflows, are spread evenly (Knuth, The Art of
    Computer Programming 3, 6.4).
    """
    return row["first_at"], row["decision_seq"] * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF


def _state(connection: sqlite3.Connection, place: Place) -> CalibrationState | None:
    project, digest = place
    found = connection.execute(_find([digest]), (project, digest)).fetchone()
    return None if found is None else CalibrationState(*found[1:])


def _find(digests: list[bytes]) -> str:
    return _FIND.format(",".join("?" * len(digests)))


def _named(place: Place) -> dict[str, Any]:
    return {"project": place[0], "digest": place[1]}


def _update(query: str, values: dict[str, Any], connection: sqlite3.Connection) -> bool:
    return connection.execute(query, values).rowcount == 1
