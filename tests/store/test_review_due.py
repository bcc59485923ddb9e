"""A question is due while decisions wait for reviewers."""

from __future__ import annotations

import pytest

from svc.store.activity import NAME_CHARS
from svc.store.database import Database
from svc.store.question_versions import QuestionVersions
from svc.store.review_due import KEYS, ReviewDue
from tests.store.lending import steps
from tests.store.records import asked, record
from tests.store.test_review import HOUR, LEASE, TOPIC, Office

MANY_KEYS = (
    "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 50000) "
    "INSERT INTO asked (project, key, question_id, last_at) "
    "SELECT project, key || n, question_id, last_at FROM asked, numbers WHERE key = 'key00'"
)


class Due(Office):
    """An office whose queue is looked at from outside."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._due = ReviewDue(database, lambda: self.now / 1000)

    @property
    def questions(self) -> list[str]:
        return self.first_questions(20)

    def first_questions(self, most: int) -> list[str]:
        return self._due.questions("default", most)


@pytest.fixture
def office(database: Database) -> Due:
    return Due(database)


def test_a_question_that_nobody_has_reviewed_is_not_due(office: Due) -> None:
    office.decisions.add(record(TOPIC))
    assert office.questions == []


def test_it_is_due_while_decisions_wait_and_not_in_the_hands_of_a_reviewer(office: Due) -> None:
    decided = office.decide(0.1, 0.2)
    office.looks()
    assert office.questions == ["topic"]
    assert sorted(office.take("ann", 2)) == sorted(decided)
    assert office.questions == []
    for one in decided:
        office.label(one)
    assert office.questions == []


def test_what_was_not_labelled_in_time_is_due_again(office: Due) -> None:
    office.decide(0.1)
    office.looks()
    office.take("ann")
    office.now += LEASE
    assert office.questions == ["topic"]


def test_what_somebody_gave_back_is_not_due(office: Due) -> None:
    (one,) = office.decide(0.1)
    office.looks()
    office.take("ann")
    office.skip(one, "ann")
    assert office.questions == []


def test_decisions_that_came_after_the_last_look_are_due(office: Due) -> None:
    office.decide(0.1)
    office.take("ann")
    assert office.questions == ["topic"]
    office.looks()
    assert office.questions == []


def test_decisions_that_came_after_a_clock_was_set_right_are_due(office: Due) -> None:
    (one,) = office.decide(0.1)
    office.now += 3 * HOUR
    office.looks()
    office.take("ann")
    office.label(one)
    assert office.questions == []
    office.now -= 3 * HOUR
    office.decisions.add(record(TOPIC))
    assert office.questions == ["topic"]
    office.looks()
    assert office.questions == []


def test_so_many_questions_are_found_and_none_with_a_very_long_key(office: Due) -> None:
    office.decide(0.1)
    office.looks()
    for key in ("b", "c", (NAME_CHARS + 1) * "a", NAME_CHARS * "d"):
        office.decisions.add(record(asked(key)))
    assert office.questions == ["b", "c", NAME_CHARS * "d", "topic"]
    assert office.first_questions(2) == ["b", "c"]


def test_of_one_wording_with_many_keys_few_are_looked_at(office: Due, database: Database) -> None:
    """One key of a caller made millions, which were read before events of other projects."""
    office.decide(0.1)
    office.looks()
    for number in range(30):
        office.decisions.add(record(asked(f"key{number:02}")))
    assert office.first_questions(100) == [f"key{number:02}" for number in range(KEYS)]
    database.write(lambda connection: connection.execute(MANY_KEYS).rowcount)
    due = steps(database, lambda held: ReviewDue(held).questions("default", 20))
    labelled = steps(database, lambda held: QuestionVersions(held).labelled("default", 0, 20))
    assert max(due, labelled) < 10
