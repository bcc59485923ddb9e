"""How labels are stored: many of them with few statements, in a transaction of the writer."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from svc import jsontext
from svc.store import judgements, project_sums, readings
from svc.store.label_records import CalibrationState, NewLabel, Place
from svc.store.numbers import Numbered, last_number
from svc.store.review import LABELLED
from svc.store.rows import execute, find
from svc.terms import Sampling

# Of how many questions at a time it is read what is known, as calibrators may be long.
KNOWN_TOGETHER = 32

# What is known of each place that got labels, and by how many its revision grew.
Stored = dict[Place, tuple[CalibrationState, int]]

# A reading, and what the members of a council said, as they are stored.
_Packed = tuple[bytes, bytes | None]

# A label with those of its fields that are long, encoded.
Encoded = tuple[NewLabel, _Packed]

# The columns of what is known of a question.
LEARNED = "labels, revision, tried, fitted_at, calibrator, question_id, pools"

# What there is at the place of a new label. Its decision may have been deleted since it was read.
_THERE = (
    "WITH given (number, seq, key) AS (VALUES {}) SELECT json_group_array(json_array(number, "
    "decisions.created_at, labels.id, coalesce(first_at, labels.created_at), state, round, level)) "
    "FROM given CROSS JOIN decisions USING (seq) "
    "LEFT JOIN labels ON labels.decision_seq = seq AND labels.key = given.key "
    "LEFT JOIN review_items ON review_items.decision_seq = seq AND review_items.key = given.key"
)
_DROP = "WITH given (id) AS (VALUES {}) DELETE FROM labels WHERE id IN given"
# A decision that the review queue handed out was drawn with the chance of its level.
_ADD = (
    "WITH given (id, decision_seq, key, project, question_id, label, truth, answered_by, sampled, "
    "chance, created_at, round, level, p_true, confidence, correct, p, members, first_at, "
    "decided_at) AS (VALUES {}) INSERT INTO labels (id, decision_seq, key, project, question_id, "
    "label, truth, answered_by, sampled, chance, created_at, review_round, doubt, p_true, "
    "confidence, correct, p, members, first_at, decided_at) "
    "SELECT id, decision_seq, key, project, question_id, label, truth, answered_by, sampled, "
    "iif(given.round IS NULL, given.chance, review_chances.chance), created_at, given.round, "
    "given.level, p_true, confidence, correct, p, members, first_at, decided_at "
    "FROM given LEFT JOIN review_chances USING (round, level)"
)
# Whether the review queue had handed the decision out, and a reviewer labels it now. Else it is
# labelled before its turn came, or by somebody who had a reason of their own.
_REVIEWED = (
    "WITH given (seq, key, by_reviewer) AS (VALUES {}) "
    "UPDATE review_items SET leased_until = NULL, "
    "state = CASE state WHEN 0 THEN 3 WHEN 1 THEN iif(by_reviewer, 2, 3) ELSE state END "
    "FROM given WHERE decision_seq = seq AND review_items.key = given.key"
)
_COUNT = (
    "INSERT INTO learned (project, digest, question_id, labels, revision) VALUES {} "
    "ON CONFLICT DO UPDATE SET labels = labels + excluded.labels, "
    "revision = revision + excluded.revision"
)
_KNOWN = (
    "WITH given (number, project, digest) AS (VALUES {}) "
    f"SELECT json_group_array(json_array(number, {LEARNED})) "
    "FROM given CROSS JOIN learned USING (project, digest)"
)


class _There(NamedTuple):
    """What there is where a label is to be stored; `state` and what follows are of the queue."""

    decided_at: int
    label_id: int | None
    first_at: int | None
    state: int | None
    round: int | None
    level: int | None


def add(connection: sqlite3.Connection, items: Sequence[Encoded]) -> Stored:
    """Store labels, the last one for each question of a decision that is there.

    What is known now of each exact question, and by how many its revision grew.
    """
    last = {(label.decision_seq, label.key): (label, packed) for label, packed in items}
    labels = [label for label, _ in last.values()]
    reviewed = [(*place, label.reviewer is not None) for place, (label, _) in last.items()]
    execute(connection, _REVIEWED, reviewed)
    there = {number: _There(*found) for number, *found in find(connection, _THERE, [*last])}
    # Before any is deleted, as no id is given twice.
    first_id = last_number(connection, Numbered.LABELS) + 1
    execute(connection, _DROP, [(one.label_id,) for one in there.values() if one.label_id])
    rows = [
        (first_id + number, *_row(label, packed, there[number]))
        for number, (label, packed) in enumerate(last.values())
        if number in there
    ]
    execute(connection, _ADD, rows)
    judgements.add(connection, [_said(label) for label, _ in items if label.reviewer is not None])
    return _counted(connection, [(labels[number], one.label_id) for number, one in there.items()])


def _counted(
    connection: sqlite3.Connection, labels: Sequence[tuple[NewLabel, int | None]]
) -> Stored:
    """Count labels, each with the id of the one whose place it took."""
    grown, more = Counter[Place](), Counter[Place]()
    questions = {}
    for label, replaced in labels:
        place = (label.project, label.digest)
        questions[place] = label.question_id
        grown[place] += 1
        more[place] += replaced is None
    counts = [(*place, row, more[place], grown[place]) for place, row in questions.items()]
    execute(connection, _COUNT, counts)
    projects = Counter[str]()
    for (project, _), count in more.items():
        projects[project] += count
    project_sums.add_labels(connection, projects)
    places = list(questions)
    known = find(connection, _KNOWN, places, KNOWN_TOGETHER)
    return {
        places[number]: (CalibrationState(*state), grown[places[number]])
        for number, *state in known
    }


def _row(label: NewLabel, packed: _Packed, there: _There) -> tuple[Any, ...]:
    """The columns of a label but for its id."""
    place = (label.decision_seq, label.key, label.project, label.question_id)
    is_drawn = there.state == LABELLED
    sampled = Sampling.QUEUE.value if is_drawn else label.sampled
    drawn = (there.round, there.level) if is_drawn else (None, None)
    origin = (label.answered_by, sampled, label.chance, label.created_at, *drawn)
    worth = label.worth or (None, None, None)
    since = (there.first_at, there.decided_at)
    return (*place, jsontext.dumps(label.label), label.truth, *origin, *worth, *packed, *since)


def _said(label: NewLabel) -> tuple[Any, ...]:
    """The columns of a judgement."""
    place = (label.decision_seq, label.key, label.project, label.question_id)
    return (*place, label.reviewer, jsontext.dumps(label.label), label.created_at)


def encoded(label: NewLabel) -> Encoded:
    """The label on its way to the writer, whose thread all share."""
    members = None if label.members is None else readings.packed_members(label.members)
    return label, (readings.packed(label.p), members)
