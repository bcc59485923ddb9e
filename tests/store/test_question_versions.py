from __future__ import annotations

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


def test_what_was_never_asked_has_no_wording(database: Database) -> None:
    assert QuestionVersions(database).latest("default", "topic") is None
    assert QuestionVersions(database).get(7) is None
