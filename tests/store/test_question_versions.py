from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from svc.store import Job, JobRow, Jobs, new_id
from svc.store.activity import NAME_CHARS
from svc.store.database import Database
from svc.store.decisions import Decisions
from svc.store.errors import RowSettled
from svc.store.question_versions import (
    NOTED_EVERY_MS,
    AskedQuestions,
    AskedTimes,
    QuestionVersions,
)
from tests.store.records import asked, record
from tests.store.statements import traced

NOW_MS = 1_795_000_000_000


def test_the_most_recent_wording_of_a_key_is_found(database: Database) -> None:
    decisions, wordings = Decisions(database), QuestionVersions(database)
    first, second = asked("topic", "Which?"), asked("topic", "Which one?")
    decisions.add(record(first))
    decisions.add(record(second))
    decisions.add(record(first, project="other"))
    latest = wordings.latest("default", "topic")
    assert latest is not None
    assert (latest.digest, latest.definition) == (second.digest, second.definition)
    other = wordings.latest("other", "topic")
    assert other is not None
    assert other.digest == first.digest
    assert wordings.get(other.question_id) == other
    both = {other.question_id: first.definition, latest.question_id: second.definition}
    assert wordings.definitions(f"[{other.question_id},{latest.question_id}]") == both


def test_what_was_never_asked_has_no_wording(database: Database) -> None:
    assert QuestionVersions(database).latest("default", "topic") is None
    assert QuestionVersions(database).get(7) is None


def test_questions_are_found_by_when_they_were_asked_last(database: Database) -> None:
    now = [1_000.0]
    decisions, wordings = Decisions(database, lambda: now[0]), QuestionVersions(database)
    decisions.add(record(asked("old", "Old?")))
    now[0] += 100
    decisions.add(record(asked("topic"), asked("team", "Who?")))
    decisions.add(record(asked("topic"), project="other"))
    found = wordings.recent("default", 1_050_000, 10)
    assert set(found) == {"topic", "team"}
    latest = wordings.latest("default", "topic")
    assert latest is not None and found["topic"] == latest.question_id
    assert len(wordings.recent("default", 0, 10)) == 3
    assert len(wordings.recent("default", 0, 2)) == 2


def test_questions_with_very_long_keys_are_not_among_those_asked_last(database: Database) -> None:
    long, longest = NAME_CHARS * "a", (NAME_CHARS + 1) * "b"
    Decisions(database).add(record(asked(long), asked(longest)))
    assert set(QuestionVersions(database).recent("default", 0, 10)) == {long}


def test_many_questions_are_stored_with_few_statements(database: Database) -> None:
    """The writer waits for the interpreter after each, while other threads compute."""
    decisions = Decisions(database)
    decisions.add(record())
    statements = traced(database)
    for turn in ("first", "second"):
        decisions.add(record(*[asked(f"q{number}", f"{turn} {number}") for number in range(650)]))
    assert 0 < len(statements) < 100


def test_new_sets_of_many_questions_are_counted_with_few_statements(database: Database) -> None:
    decisions = Decisions(database)
    decisions.add(record())
    statements = traced(database)
    several = [replace(asked(f"q{n}", f"{n}?"), top=f'["{n}"]') for n in range(650)]
    decisions.add(record(*several))
    assert 0 < len(statements) < 100
    tops = {row["top"] for row in database.rows("SELECT top FROM weeks")}
    assert tops >= {one.top for one in several}


def test_questions_of_decisions_that_are_stored_together_mean_what_came_last(
    database: Database,
) -> None:
    wordings = QuestionVersions(database)
    first, second, other = asked("topic", "1"), asked("topic", "2"), asked("other", "1")
    together = [record(first, other), record(second), record(first, project="shop")]

    def store(connection: sqlite3.Connection) -> list[list[int]]:
        questions = AskedQuestions(connection, together)
        rows = [questions.ask(decision) for decision in together]
        questions.store(AskedTimes(), NOW_MS)
        return rows

    one, two = database.write(store)[:2]
    assert database.write(store) == [one, two, one[:1]]
    assert one[0] == one[1] != two[0]
    found = wordings.latest("default", "topic")
    assert found is not None and found.digest == second.digest


def test_when_a_question_was_asked_is_written_once_a_minute(database: Database) -> None:
    times = AskedTimes()

    def ask(connection: sqlite3.Connection, now_ms: int, known: AskedTimes) -> int | None:
        questions = AskedQuestions(connection, [record()])
        questions.ask(record())
        questions.store(known, now_ms)
        rows = connection.execute("SELECT last_at FROM asked").fetchall()
        return rows[0][0] if rows else None

    late_ms, later_ms = NOW_MS + NOTED_EVERY_MS, NOW_MS + NOTED_EVERY_MS + 1
    for known in (times, AskedTimes()):
        assert database.write(lambda one, known=known: ask(one, NOW_MS, known)) == NOW_MS
        assert database.write(lambda one, known=known: ask(one, late_ms, known)) == NOW_MS
    assert database.write(lambda one: ask(one, later_ms, times)) == later_ms
    # Another process, whose clock is behind.
    assert database.write(lambda one: ask(one, NOW_MS, AskedTimes())) == NOW_MS


def test_what_a_failed_transaction_noted_is_noted_again(database: Database) -> None:
    """Else a key that was asked just now would be deleted as one that nobody asks any more."""
    now = [1_000.0]
    decisions, jobs = Decisions(database, lambda: now[0]), Jobs(database, lambda: now[0])
    decisions.add(record(asked("topic")))
    job = Job(id=new_id(), project="default", api_key=None, created_at=1, expires_at=2, rows=5)
    jobs.add(job)
    row = JobRow(jobs.get(job.id).seq, 1, "a")
    decisions.add(record(asked("other")), row)
    now[0] += 2 * NOTED_EVERY_MS / 1_000
    with pytest.raises(RowSettled):
        decisions.add(record(asked("topic")), row)
    decisions.add(record(asked("topic")))
    noted = database.rows("SELECT last_at FROM asked WHERE key = 'topic'")
    assert [found["last_at"] for found in noted] == [int(1_000 * now[0])]
