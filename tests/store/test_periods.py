from __future__ import annotations

import pytest

from svc.records import AskedQuestion
from svc.store.database import Database
from svc.store.decisions import Decisions
from svc.store.periods import Period, Periods
from svc.store.question_versions import QuestionVersions
from svc.store.weeks import DAY_MS, begins_at, number
from tests.store.records import asked, record

PROJECT = "default"
MONDAY_S = 1_794_787_200
WEEK_S = 7 * DAY_MS // 1000


class Book:
    """Decisions of the question `topic` at times that the test sets."""

    def __init__(self, database: Database) -> None:
        self.now = float(MONDAY_S)
        self._database = database
        self._decisions = Decisions(database, lambda: self.now)

    def add(self, *p: float, key: str = "topic", project: str = PROJECT) -> None:
        self.ask(asked(key, reading={"p": list(p)}), project=project)

    def ask(self, *questions: AskedQuestion, project: str = PROJECT) -> None:
        self._decisions.add(record(*questions, project=project))

    def read(
        self, weeks: int = 1, most: int = 100, depth: int = 100, chars: int = 10_000
    ) -> Period:
        version = QuestionVersions(self._database).latest(PROJECT, "topic")
        assert version is not None
        now_ms = int(self.now * 1000)
        periods = Periods(self._database, most, depth, chars)
        return periods.read(PROJECT, version.question_id, weeks, now_ms)


@pytest.fixture
def book(database: Database) -> Book:
    return Book(database)


def said(period: Period) -> list[list[float]]:
    return [list(p) for p in period.p]


def test_the_decisions_of_the_last_weeks_are_read_newest_first(book: Book) -> None:
    book.now = MONDAY_S - 1
    book.add(0.1, 0.9)
    book.now = MONDAY_S
    book.add(0.2, 0.8)
    book.add(0.3, 0.7)
    assert said(book.read()) == [[0.3, 0.7], [0.2, 0.8]]
    assert said(book.read(weeks=2)) == [[0.3, 0.7], [0.2, 0.8], [0.1, 0.9]]
    assert (book.read().since, book.read(weeks=2).since) == (
        MONDAY_S * 1000,
        (MONDAY_S - WEEK_S) * 1000,
    )
    assert not book.read().cut


def test_other_questions_wordings_and_projects_are_left_out(book: Book) -> None:
    book.add(0.5, 0.5, project="other")
    for row in range(12):
        book.ask(asked(f"other{row}", f"Which {row}?", {"p": [1.0, 0.0]}))
    book.ask(asked("topic", "Worded otherwise?", {"p": [1.0, 0.0]}))
    book.add(0.7, 0.3)
    assert said(book.read()) == [[0.7, 0.3]]


def test_the_exact_question_counts_under_any_key(book: Book) -> None:
    book.ask(asked("x", "Other?", {"p": [1.0]}), asked("subject", reading={"p": [0.6, 0.4]}))
    book.add(0.7, 0.3)
    assert said(book.read()) == [[0.7, 0.3], [0.6, 0.4]]


def test_what_no_model_answered_is_left_out(book: Book) -> None:
    book.ask(asked("topic", reading=None))
    book.add(0.7, 0.3)
    assert said(book.read()) == [[0.7, 0.3]]


def test_with_too_many_decisions_the_period_begins_with_the_oldest_that_was_read(
    book: Book,
) -> None:
    for step in range(4):
        book.now = MONDAY_S + step
        book.add(step / 10, 1 - step / 10)
    period = book.read(most=2)
    assert [p[0] for p in period.p] == [0.3, 0.2]
    assert (period.cut, period.since) == (True, (MONDAY_S + 2) * 1000)
    assert period.first == book.read().first + 2


def test_decisions_that_hold_the_question_many_times_count_as_often(book: Book) -> None:
    for _ in range(4):
        book.ask(asked("topic", reading={"p": [0.6, 0.4]}), asked("b", reading={"p": [0.6, 0.4]}))
    period = book.read(most=4)
    assert (len(period.p), period.cut) == (4, True)


def test_only_so_many_characters_of_readings_are_read(book: Book) -> None:
    for _ in range(4):
        book.add(0.6, 0.4)
    length = len('{"topic":{"p":[0.6,0.4]}}')
    period = book.read(chars=2 * length - 1)
    assert (len(period.p), period.cut) == (2, True)
    assert len(book.read(chars=4 * length).p) == 4


def test_only_so_many_decisions_of_the_project_are_looked_through(book: Book) -> None:
    book.add(0.1, 0.9)
    book.now += 1
    for _ in range(3):
        book.ask(asked("other", "Other?", {"p": [1.0, 0.0]}))
    period = book.read(depth=3)
    assert (said(period), period.cut, period.since) == ([], True, (MONDAY_S + 1) * 1000)
    assert not book.read(depth=4).cut


def test_a_period_without_decisions_is_empty(book: Book) -> None:
    book.add(0.7, 0.3)
    book.now += 2 * WEEK_S
    period = book.read()
    assert (period.p, period.cut, period.since) == ([], False, int(book.now) * 1000)


def test_weeks_begin_on_mondays() -> None:
    week = number(MONDAY_S * 1000)
    assert begins_at(week) == MONDAY_S * 1000
    assert number(MONDAY_S * 1000 - 1) == week - 1
