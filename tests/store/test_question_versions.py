from __future__ import annotations

from svc.store.activity import NAME_CHARS
from svc.store.database import Database
from svc.store.decisions import Decisions
from svc.store.question_versions import QuestionVersions
from tests.store.records import asked, record


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
