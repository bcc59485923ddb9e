from __future__ import annotations

import hashlib
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from svc.store.activity import NAME_CHARS
from svc.store.database import Database
from svc.store.decisions import Decisions
from svc.store.erasing import erase
from svc.store.errors import StorageError, UnknownDecision
from svc.store.label_records import NewLabel
from svc.store.labels import Labels
from svc.store.question_versions import LabelledQuestion, QuestionVersions
from tests.store.records import asked, record
from tests.store.statements import traced

PROJECT = "default"


@pytest.fixture
def labels(database: Database) -> Labels:
    return Labels(database)


class Book:
    """Decisions of one question, to be labelled."""

    def __init__(self, database: Database) -> None:
        self._decisions, self._wordings = Decisions(database), QuestionVersions(database)

    def label(
        self, truth: int = 0, project: str = PROJECT, key: str = "topic", **fields: Any
    ) -> NewLabel:
        """A label for a new decision."""
        found = self._decisions.get(self._decisions.add(record(asked(key), project=project)))
        assert found is not None
        wording = self._wordings.get(found.readings[key].question_id)
        assert wording is not None
        given: dict[str, Any] = {
            "decision_seq": found.seq,
            "key": key,
            "project": project,
            "digest": wording.digest,
            "question_id": wording.question_id,
            "label": "ab"[truth],
            "truth": truth,
            "p": [0.7, 0.3],
            "answered_by": "@p/m logprobs",
            "created_at": 1_000,
            **fields,
        }
        return NewLabel(**given)


@pytest.fixture
def book(database: Database) -> Book:
    return Book(database)


def test_labels_are_counted_for_each_exact_question_and_project(labels: Labels, book: Book) -> None:
    first = book.label()
    assert [labels.add(one).labels for one in (first, book.label())] == [1, 2]
    assert labels.add(book.label(project="other")).labels == 1
    known = labels.states(PROJECT, [first.digest, hashlib.sha256(b"?").digest()])
    assert {digest: one.labels for digest, one in known.items()} == {first.digest: 2}


def test_a_label_given_again_replaces_the_earlier_one(labels: Labels, book: Book) -> None:
    first, second = book.label(0), book.label(0)
    labels.add(first), labels.add(second)
    corrected = NewLabel(**{name: getattr(first, name) for name in first.__slots__} | {"truth": 1})
    state = labels.add(corrected)
    assert (state.labels, state.revision) == (2, 3)
    data = labels.training_data((PROJECT, first.digest), 10)
    assert data is not None
    assert dict(zip(data.decisions, data.truth, strict=True)) == {
        first.decision_seq: 1,
        second.decision_seq: 0,
    }


def test_training_data_is_the_most_recent_labels_oldest_first(labels: Labels, book: Book) -> None:
    given = [book.label(truth, p=[truth / 8, 1 - truth / 8]) for truth in range(2)]
    for one in given:
        labels.add(one)
    third = book.label(1, p=[0.5, 0.5])
    labels.add(third)
    data = labels.training_data((PROJECT, third.digest), 2)
    assert data is not None
    assert [list(p) for p in data.p] == [[0.125, 0.875], [0.5, 0.5]]
    assert data.truth == [1, 1]
    assert data.state.labels == 3
    assert labels.training_data(("nobody's", third.digest), 2) is None


def test_labels_of_new_decisions_are_looked_for_among_the_last_ones(
    labels: Labels, book: Book
) -> None:
    """Millions may be of older decisions."""
    new, *old = [book.label() for _ in range(4)][::-1]
    for label in (new, *old):
        labels.add(label)
    place, first = (PROJECT, new.digest), new.decision_seq

    def found(depth: int) -> list[int]:
        data = labels.training_data(place, 10, first, depth)
        assert data is not None
        return list(data.decisions)

    assert (found(3), found(4), found(5)) == ([], [first], [first])


def test_many_writers_at_once_lose_no_label(labels: Labels, book: Book) -> None:
    given = [book.label() for _ in range(64)]
    with ThreadPoolExecutor(16) as threads:
        counts = [state.labels for state in threads.map(labels.add, given)]
    assert sorted(counts) == list(range(1, 65))


def test_a_fit_is_claimed_once_for_new_labels_and_an_interval(labels: Labels, book: Book) -> None:
    label = book.label()
    labels.add(label)
    place = (PROJECT, label.digest)
    labels.keep(place, 1, 1_000, '{"kind":"temperature","t":2}')
    assert not labels.claim(place, 99_000, 5_000)  # it has seen every label
    labels.add(book.label())
    assert not labels.claim(place, 5_999, 5_000)
    assert labels.claim(place, 6_000, 5_000)
    assert not labels.claim(place, 6_001, 5_000)
    assert labels.claim(place, 5_000, 5_000)  # a clock that was set back does not stop it


def test_a_fit_that_found_nothing_ends_what_was_in_effect(labels: Labels, book: Book) -> None:
    label = book.label()
    labels.add(label)
    place = (PROJECT, label.digest)
    assert labels.keep(place, 1, 1_000, "{}")
    labels.add(book.label())
    assert labels.keep(place, 2, 2_000, None)
    state = labels.states(PROJECT, [label.digest])[label.digest]
    assert (state.calibrator, state.tried, state.fitted_at) == (None, 2, 2_000)
    assert not labels.keep(place, 1, 3_000, "late")
    # Nor of more labels than there were since all of them were forgotten.
    assert not labels.keep(place, 3, 3_000, "of others")


def test_labels_and_fits_alike_change_what_is_told_of_a_labelled_question(
    database: Database, labels: Labels, book: Book
) -> None:
    versions, label = QuestionVersions(database), book.label()
    assert versions.labelled(PROJECT, 1, 9) == {}
    labels.add(label)
    labelled = versions.labelled(PROJECT, 1, 9)
    assert labelled == {"topic": LabelledQuestion(label.question_id, 1, 0, None)}
    labels.keep((PROJECT, label.digest), 1, 1_000, "{}")
    labels.keep((PROJECT, label.digest), 1, 2_000, "{}")
    assert versions.labelled(PROJECT, 1, 9)["topic"][1:] == (1, 1, 2_000)
    assert versions.labelled(PROJECT, 2, 9) == {}


def test_questions_with_very_long_keys_are_not_among_those_with_the_most_labels(
    database: Database, labels: Labels, book: Book
) -> None:
    long, longest = NAME_CHARS * "a", (NAME_CHARS + 1) * "b"
    labels.add_all([book.label(key=key) for key in (long, longest)])
    assert set(QuestionVersions(database).labelled(PROJECT, 1, 10)) == {long}


# How many stale calibrators a project has.
PLACES = {"large": 50, "small": 1, "tiny": 1}


def test_calibrators_that_have_not_seen_every_label_are_stale(labels: Labels, book: Book) -> None:
    label = book.label()
    labels.add(label)
    place = (PROJECT, label.digest)
    assert labels.stale(10) == []  # nothing was fitted yet
    labels.keep(place, 1, 1_000, "{}")
    assert labels.stale(10) == []
    labels.add(book.label())
    assert labels.stale(10) == [place]


def test_questions_whose_first_fit_or_a_further_try_is_due_are_stale_too(
    labels: Labels, book: Book
) -> None:
    given = [book.label() for _ in range(40)]
    place = (PROJECT, given[0].digest)
    labels.add_all(given[:29])
    assert labels.stale(10) == []
    labels.add(given[29])
    assert labels.stale(10) == [place]
    labels.keep(place, 30, 1_000, None)
    labels.add_all(given[30:39])
    assert labels.stale(10) == []
    labels.add(given[39])
    assert labels.stale(10) == [place]


def test_projects_take_turns_where_many_calibrators_are_stale(database: Database) -> None:
    """One key makes more of them a second than are fitted."""

    def fill(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO questions (id, digest, definition) VALUES (1, x'', '{}')")
        rows = [(project, b"%d" % n) for project, count in PLACES.items() for n in range(count)]
        connection.executemany(
            "INSERT INTO learned (project, digest, question_id, labels, revision) "
            "VALUES (?, ?, 1, 30, 30)",
            rows,
        )

    database.write(fill)
    labels = Labels(database)
    begun_with = set()
    for _ in range(50):
        projects = [project for project, _ in labels.stale(5)]
        assert set(projects[:3]) == set(PLACES)
        assert projects[3:] == ["large", "large"]
        begun_with.add(projects[0])
    assert begun_with == set(PLACES)


def test_what_members_of_a_council_said_is_kept_with_a_label(labels: Labels, book: Book) -> None:
    members = {"@a/m": [0.9, 0.1], "@b/m": None}
    alone, council = book.label(), book.label(members=members)
    labels.add(alone), labels.add(council)
    data = labels.training_data((PROJECT, alone.digest), 10)
    assert data is not None
    by_decision = dict(zip(data.decisions, data.members, strict=True))
    assert by_decision[alone.decision_seq] is None
    said = by_decision[council.decision_seq] or {}
    assert {model: p and list(p) for model, p in said.items()} == members


def test_where_a_label_comes_from_is_kept_with_it(labels: Labels, book: Book) -> None:
    told = book.label(answered_by="@a/m verbal", sampled="queue", chance=0.25, created_at=2_000)
    labels.add(book.label()), labels.add(told)
    data = labels.training_data((PROJECT, told.digest), 10)
    assert data is not None
    assert data.answered_by == ["@p/m logprobs", "@a/m verbal"]
    assert (data.sampled, data.chance) == ([None, "queue"], [None, 0.25])
    assert data.first_at == [1_000, 2_000]


def test_a_label_that_is_given_again_keeps_its_place(labels: Labels, book: Book) -> None:
    given = [book.label(created_at=1_000 * number) for number in range(1, 6)]
    for label in given:
        labels.add(label)
    labels.add(replace(given[1], created_at=9_000, truth=1))
    labels.add(replace(given[1], created_at=10_000, truth=1))
    data = labels.training_data((PROJECT, given[0].digest), 10)
    assert data is not None
    assert data.decisions == [label.decision_seq for label in given]
    assert data.first_at == [1_000, 2_000, 3_000, 4_000, 5_000]


def test_labels_that_came_at_once_are_spread(labels: Labels, book: Book) -> None:
    given = [book.label() for _ in range(200)]
    labels.add_all(given)
    data = labels.training_data((PROJECT, given[0].digest), 200)
    assert data is not None
    first = {label.decision_seq for label in given[:100]}
    assert 20 <= sum(seq in first for seq in data.decisions[:50]) <= 30


def test_when_a_decision_was_made_is_kept_with_its_label(labels: Labels, book: Book) -> None:
    before, given = time.time() * 1000 - 1, book.label()
    labels.add(given)
    data, newer = (
        labels.training_data((PROJECT, given.digest), 1),
        labels.newer((PROJECT, given.digest), 1),
    )
    assert data is not None and newer is not None
    assert before <= data.decided_at[0] <= time.time() * 1000 + 1
    assert (newer.labels[0].decided_at, newer.labels[0].first_at) == (data.decided_at[0], 1_000)


def test_a_fit_keeps_all_that_it_found(labels: Labels, book: Book) -> None:
    label = book.label()
    labels.add(label)
    labels.keep((PROJECT, label.digest), 1, 1_000, "{}", "[1]")
    state = labels.states(PROJECT, [label.digest])[label.digest]
    assert (state.calibrator, state.pools) == ("{}", "[1]")
    assert state.teaches


def test_what_a_label_stores_of_its_reading_counts_beside_its_key(book: Book) -> None:
    short = replace(book.label(), key="k", label="a", p=[0.5, 0.5], answered_by="m verbal")
    assert short.chars == len("k") + len('"a"') + (2 * 8 + 8) // 16
    council = replace(short, members={"m" * 300: [0.1] * 255, "n": None}, answered_by="m" * 303)
    assert council.chars == 4 + ((2 + 255) * 8 + 303 + 301) // 16


@pytest.mark.parametrize(
    ("at_once", "room", "stored"), [(None, 0, 0), (2, 9, 4), (9, 2, 4), (9, 0, 5)]
)
def test_many_labels_are_stored_together_or_in_parts(
    labels: Labels, book: Book, at_once: int | None, room: int, stored: int
) -> None:
    """Each part has `room` for so many labels."""
    many = [book.label() for _ in range(5)]
    # There is no such question, so that the part with this one is refused.
    many.append(replace(many[0], question_id=999))
    with pytest.raises(StorageError):
        labels.add_all(many, at_once, room * many[0].chars)
    found = labels.of_decisions([label.decision_seq for label in many])
    assert len(found) == stored


def test_labels_that_are_stored_in_parts_are_counted_as_those_stored_together(
    labels: Labels, book: Book
) -> None:
    many = [book.label() for _ in range(5)]
    many += [replace(many[0], label="b", truth=1), book.label(project="other")]
    counted = labels.add_all(many, 2)
    assert sorted((state.labels, count) for state, count in counted.values()) == [(1, 1), (5, 6)]


@pytest.mark.parametrize("questions", [1, 200])
def test_many_labels_are_stored_with_few_statements(
    labels: Labels, database: Database, questions: int
) -> None:
    """Others waited 2.7 s for 500 of them, where a thread computed beside."""
    decisions = Decisions(database)
    asked_ones = [asked(f"q{number}", f"{number}?") for number in range(questions)]
    given = []
    for _ in range(200 // questions):
        found = decisions.get(decisions.add(record(*asked_ones)))
        assert found is not None
        given += [
            NewLabel(
                *(found.seq, one.key, PROJECT, one.digest, found.readings[one.key].question_id),
                *("a", 0, [0.7, 0.3], "@p/m logprobs", 1_000),
                reviewer=reviewer,
            )
            for one in asked_ones
            for reviewer in ("ada", "bob")
        ]
    for _ in range(2):
        statements = traced(database)
        known = labels.add_all(given)
        assert 0 < len(statements) < 60
        assert sum(state.labels for state, _ in known.values()) == 200
    assert {state.revision for state, _ in known.values()} == {2 * 200 // questions}


def test_a_label_of_a_decision_that_was_deleted_meanwhile_is_left_out(
    labels: Labels, book: Book, database: Database
) -> None:
    given = [book.label(key=key, reviewer="ada") for key in ("gone", "there")]
    database.write(lambda connection: erase(connection, [given[0].decision_seq]) or None)
    known = labels.add_all(given)
    assert [state.labels for state, _ in known.values()] == [1]
    assert [row["key"] for row in database.rows("SELECT key FROM judgements")] == ["there"]


def test_where_its_question_went_with_it_the_others_are_stored(
    labels: Labels, book: Book, database: Database
) -> None:
    gone, there = book.label(key="gone"), book.label(project="other", key="there")
    assert gone.digest == there.digest
    gone = replace(gone, digest=b"gone", question_id=1_000)
    database.write(lambda connection: erase(connection, [gone.decision_seq]) or None)
    assert [*labels.add_all([gone, there])] == [("other", there.digest)]
    with pytest.raises(UnknownDecision):
        labels.add(gone)
    state = labels.add(there)
    assert state is not None and (state.labels, state.revision) == (1, 2)
