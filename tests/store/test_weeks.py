from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import numpy as np
import pytest

from svc.records import AskedQuestion
from svc.stats import drift
from svc.store import weeks
from svc.store.database import Database
from svc.store.decisions import Decisions
from svc.store.kept_names import KEPT_NAMES, NAME_CHARS, OTHERS, UNCOUNTED
from svc.store.question_versions import QuestionVersions
from svc.store.weeks import Weeks
from tests.store.records import asked, record


def milliseconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


class Clock:
    def __init__(self) -> None:
        self.now_ms = milliseconds("2026-01-01T00:00")

    def __call__(self) -> float:
        return self.now_ms / 1000


def answered(top: str, confidence: float, key: str = "topic") -> AskedQuestion:
    return replace(asked(key), top=top, confidence=confidence)


@pytest.mark.parametrize(
    ("moment", "name"),
    [
        ("2026-01-01T00:00", "2026-W01"),
        ("2026-01-04T23:59:59.999", "2026-W01"),
        ("2026-01-05T00:00", "2026-W02"),
        ("2027-01-01T12:00", "2026-W53"),
        ("1970-01-01T00:00", "1970-W01"),
    ],
)
def test_weeks_are_iso_weeks_in_utc(moment: str, name: str) -> None:
    assert weeks.Week(weeks.number(milliseconds(moment)), {}, 0.0).name == name


def test_every_decision_is_counted_in_its_week_by_its_top_answer(database: Database) -> None:
    clock = Clock()
    decisions = Decisions(database, clock)
    for top, confidence in [("a", 0.5), ("a", 0.75), ("b", 1.0)]:
        decisions.add(record(answered(top, confidence)))
    clock.now_ms += 7 * weeks.DAY_MS
    decisions.add(record(answered("b", 0.25)))
    decisions.add(record(replace(asked("topic"), reading=None)))  # skipped: it does not count
    decisions.add(record(answered("b", 0.25), project="other"))
    wording = QuestionVersions(database).latest("default", "topic")
    assert wording is not None
    found = Weeks(database).read("default", wording.question_id, 8, clock.now_ms)
    assert [(week.name, week.counts, week.confidence) for week in found] == [
        ("2026-W01", {"a": 2, "b": 1}, 2.25),
        ("2026-W02", {"b": 1}, 0.25),
    ]
    (last,) = Weeks(database).read("default", wording.question_id, 1, clock.now_ms)
    assert last.name == "2026-W02"


def test_of_a_million_sets_of_options_a_week_counts_some_by_themselves(
    database: Database,
) -> None:
    clock = Clock()
    decisions = Decisions(database, clock)
    for number in [*range(KEPT_NAMES + 5), 0]:
        decisions.add(record(answered(f'["{number}"]', 0.5)))
    for number in range(3):
        decisions.add(record(answered(f"[{number}", 0.5)))
    # Another process knows the names from the file.
    Decisions(database, clock).add(record(answered('["0"]', 0.5)))
    wording = QuestionVersions(database).latest("default", "topic")
    assert wording is not None
    (week,) = Weeks(database).read("default", wording.question_id, 1, clock.now_ms)
    assert len(week.counts) == KEPT_NAMES + 1
    assert week.counts['["0"]'] == 3
    assert week.counts[OTHERS] == 5 + 3
    assert sum(week.grouped.values()) == KEPT_NAMES + 10


def test_sets_of_options_without_a_name_are_no_difference_between_weeks(
    database: Database,
) -> None:
    """Of one mix, weeks of different size name different sets, and different shares of all."""
    Decisions(database).add(record(asked("topic")))
    wording = QuestionVersions(database).latest("default", "topic")
    assert wording is not None
    random, this_week = np.random.default_rng(1), weeks.number(Clock().now_ms)
    names = weeks.tops()
    for number, size in enumerate((4_000, 4_000, 400)):
        chosen = (np.flatnonzero(row).tolist() for row in random.random((size, 16)) < 0.3)
        sets = [json.dumps([f"o{option}" for option in one]) for one in chosen]
        answers = [("default", wording.question_id, one, 0.8) for one in sets]
        add = partial(weeks.add, week=this_week - 2 + number, names=names)
        for begin in range(0, size, 50):
            database.write(partial(add, answers=answers[begin : begin + 50]))
    found = Weeks(database).read("default", wording.question_id, 3, Clock().now_ms)
    assert [OTHERS in week.counts for week in found] == [True, True, False]
    year = [
        drift.WeekTally(week.name, week.counts, week.confidence, week.squares, week.grouped)
        for week in found
    ]
    test = drift.latest_significance(year, mixed=True, finished=False)
    assert test["mix"]["p"] > 0.1
    by_name = [replace(week, grouped=None) for week in year]
    assert drift.latest_significance(by_name, mixed=True, finished=False)["alarm"]


def test_an_option_that_is_called_like_the_others_is_a_set_of_its_own(database: Database) -> None:
    clock = Clock()
    decisions = Decisions(database, clock)
    sets = [json.dumps([OTHERS, *more]) for more in ([], ["a"], ["b"])]
    for one in sets:
        decisions.add(record(answered(one, 0.5)))
    wording = QuestionVersions(database).latest("default", "topic")
    assert wording is not None
    (week,) = Weeks(database).read("default", wording.question_id, 1, clock.now_ms)
    assert week.counts == dict.fromkeys(sets, 1) and not week.unnamed


def test_long_sets_of_options_are_counted_in_groups(database: Database) -> None:
    """A report reads a year of them."""
    clock, long = Clock(), "o" * NAME_CHARS
    decisions = Decisions(database, clock)
    for number in (1, 2, 2):
        decisions.add(record(answered(json.dumps([f"{long}{number}"]), 0.5)))
    decisions.add(record(answered('["short"]', 0.5)))
    wording = QuestionVersions(database).latest("default", "topic")
    assert wording is not None
    (week,) = Weeks(database).read("default", wording.question_id, 1, clock.now_ms)
    assert week.counts == {OTHERS: 3, '["short"]': 1}
    assert week.unnamed and sorted(week.grouped.values()) == [1, 1, 2]
    assert all(len(top) <= NAME_CHARS for top in week.tops)


def test_an_option_with_a_long_name_is_counted_by_what_stands_for_it(database: Database) -> None:
    """Each week would have the name anew, beside what the size of a project counts."""
    clock, long = Clock(), "\U0001f600" * 45_000
    decisions = Decisions(database, clock)
    definition = json.dumps({"type": "choice", "options": {long: "", "short": ""}})
    question = replace(asked("topic"), definition=definition)
    for top in (long, "short", long):
        decisions.add(record(replace(question, top=top, confidence=0.5)))
    wording = QuestionVersions(database).latest("default", "topic")
    assert wording is not None
    # An earlier version counted it under its name.
    earlier = ("default", wording.question_id, weeks.number(clock.now_ms), long, 1, 0.5, 0.25)
    columns = "project, question_id, week, top, decisions, confidence, squares"
    add = f"INSERT INTO weeks ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)"
    with database.read() as connection:
        stored = [top for (top,) in connection.execute("SELECT top FROM weeks")]
    assert len(stored) == 2 and max(map(len, stored)) < 50
    database.write(lambda connection: connection.execute(add, earlier).rowcount)
    (week,) = Weeks(database).read("default", wording.question_id, 1, clock.now_ms)
    assert week.counts == week.grouped == {long: 3, "short": 1} and week.confidence == 2.0


def test_a_week_is_not_counted_anew_for_each_set_of_options(database: Database) -> None:
    """It would take milliseconds each where sets are long, in which nothing else is written."""
    Decisions(database).add(record(asked("topic")))
    wording = QuestionVersions(database).latest("default", "topic")
    assert wording is not None
    names, counted = weeks.tops(), 0

    def add(connection: sqlite3.Connection, first: int) -> None:
        nonlocal counted
        sets = [json.dumps([str(first + more)]) for more in range(100)]
        answers = [("default", wording.question_id, one, 0.8) for one in sets]
        ran: list[str] = []
        connection.set_trace_callback(ran.append)
        weeks.add(connection, 2_900, names, answers)
        connection.set_trace_callback(None)
        counted += sum("count(*)" in statement for statement in ran)

    for number in range(3 * KEPT_NAMES // 100):
        database.write(partial(lambda first, connection: add(connection, first), 100 * number))
    assert counted <= 2 * KEPT_NAMES // UNCOUNTED


def test_two_keys_of_one_wording_are_counted_together(database: Database) -> None:
    clock = Clock()
    Decisions(database, clock).add(record(answered("a", 0.5), answered("a", 0.5, key="twin")))
    wording = QuestionVersions(database).latest("default", "twin")
    assert wording is not None
    (week,) = Weeks(database).read("default", wording.question_id, 1, clock.now_ms)
    assert week.counts == {"a": 2}


def test_the_first_row_of_a_week_is_that_of_the_first_decision_since_it_began(
    database: Database,
) -> None:
    clock = Clock()
    decisions, rows = Decisions(database, clock), []
    for _ in range(3):
        for _ in range(2):
            stored = decisions.get(decisions.add(record(answered("a", 0.5))))
            assert stored is not None
            rows.append(stored.seq)
        clock.now_ms += 14 * weeks.DAY_MS
    first = weeks.number(milliseconds("2026-01-01T00:00"))
    found = Weeks(database).first_rows([first, first + 1, first + 2, first + 4])
    assert found == [rows[0], rows[2], rows[2], rows[4]]
    assert Weeks(database).first_rows([first + 9])[0] > rows[-1]
