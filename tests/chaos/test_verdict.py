"""The judge of the chaos run sees what is wrong."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from svc.store.database import Database
from svc.store.decisions import Decisions
from tests.chaos.clock import Clock
from tests.chaos.journal import BROKEN, LIMITED, STORAGE, Journal, Outcome, Window
from tests.chaos.questions import AGING, BOUNDED, USUAL
from tests.chaos.target import Footing
from tests.chaos.verdict import judge, leaks
from tests.store.records import record

STATE = "a state"
EXCUSED = Window("a fault", 10.0, 11.0, 11.5, frozenset({BROKEN, STORAGE}))


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A file with one decision on `STATE`."""
    return stored(tmp_path / "svc.db", USUAL)


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path / "clock")


@pytest.fixture
def journal(db: Path) -> Journal:
    """A journal that knows of it."""
    return told(db, USUAL)


@pytest.fixture
def aging_db(tmp_path: Path) -> Path:
    """The same in the project whose decisions are deleted."""
    return stored(tmp_path / "aging.db", AGING)


def stored(path: Path, project: str) -> Path:
    database = Database.open(path)
    state_hash = hashlib.sha256(database.salt + STATE.encode()).digest()
    Decisions(database).add(record(state_hash=state_hash, project=project))
    database.close()
    return path


def told(db: Path, project: str) -> Journal:
    with sqlite3.connect(db) as connection:
        (answers,) = connection.execute("SELECT answers FROM decisions").fetchone()
    connection.close()
    journal = Journal()
    body = {"id": only_id(db, project), "answers": json.loads(answers)}
    journal.decided(request(STATE, project), 200, body)
    return journal


def request(state: str = STATE, project: str = USUAL) -> dict[str, Any]:
    return {"state": state, "project": project, "questions": {"topic": {}}}


def only_id(db: Path, project: str = USUAL) -> str:
    database = Database.open(db)
    (entry,) = Decisions(database).page(project, 10).entries
    database.close()
    return entry.id


def change(db: Path, statement: str) -> None:
    with sqlite3.connect(db) as connection:
        connection.execute(statement)
    connection.close()


def words(problems: Iterator[str]) -> str:
    return "\n".join(problems)


def test_nothing_is_wrong_with_a_decision_that_lies_there_once(
    db: Path, journal: Journal, clock: Clock
) -> None:
    assert words(judge(journal, db, (), clock)) == ""


def test_a_lost_decision_is_seen(db: Path, journal: Journal, clock: Clock) -> None:
    change(db, "DELETE FROM decisions")
    assert "was answered and is not there" in words(judge(journal, db, (), clock))


def test_a_decision_that_is_not_whole_is_seen(db: Path, journal: Journal, clock: Clock) -> None:
    change(db, "UPDATE decisions SET answers = '{}'")
    assert "not as it was answered" in words(judge(journal, db, (), clock))


def test_a_decision_that_lies_there_twice_is_seen(db: Path, journal: Journal, clock: Clock) -> None:
    columns = "created_at, project, state_hash, model, mode, config, privacy, latency_ms, cost_usd"
    rest = "cached, answers, readings, question_ids"
    change(
        db,
        f"INSERT INTO decisions (id, {columns}, {rest}) "
        f"SELECT randomblob(16), {columns}, {rest} FROM decisions",
    )
    assert "a state has 2 decisions, 1 of them were answered" in words(
        judge(journal, db, (), clock)
    )


def test_a_decision_that_nobody_was_told_of_may_be_there_or_not(db: Path, clock: Clock) -> None:
    journal = Journal()
    journal.decided(request(), BROKEN, None)
    journal.decided(request("another"), STORAGE, None)
    assert words(judge(journal, db, (), clock)) == ""


def test_a_refused_decision_may_not_be_there(db: Path, clock: Clock) -> None:
    journal = Journal()
    journal.decided(request(), 502, None)
    assert "a state has 1 decisions, 0 of them were answered" in words(
        judge(journal, db, (), clock)
    )


def test_a_decision_is_left_out_once_it_is_older_than_a_day(aging_db: Path, clock: Clock) -> None:
    journal = told(aging_db, AGING)
    assert words(judge(journal, aging_db, (), clock)) == ""
    clock.turn()
    assert "is older than a day and still there" in words(judge(journal, aging_db, (), clock))
    change(aging_db, "DELETE FROM decisions")
    assert words(judge(journal, aging_db, (), clock)) == ""


def test_a_decision_that_is_deleted_before_it_is_old_is_seen(aging_db: Path, clock: Clock) -> None:
    journal = told(aging_db, AGING)
    change(aging_db, "DELETE FROM decisions")
    assert "was answered and is not there" in words(judge(journal, aging_db, (), clock))


def test_no_decision_of_another_project_grows_old(db: Path, journal: Journal, clock: Clock) -> None:
    clock.turn()
    assert words(judge(journal, db, (), clock)) == ""
    change(db, "DELETE FROM decisions")
    assert "was answered and is not there" in words(judge(journal, db, (), clock))


def test_a_label_of_what_was_deleted_is_not_missed(aging_db: Path, clock: Clock) -> None:
    journal = told(aging_db, AGING)
    journal.labelled_as(only_id(aging_db, AGING), "topic", "a", 200)
    assert "has the label None" in words(judge(journal, aging_db, (), clock))
    clock.turn()
    change(aging_db, "DELETE FROM decisions")
    assert words(judge(journal, aging_db, (), clock)) == ""


@pytest.mark.parametrize(("project", "seen"), [(BOUNDED, False), (USUAL, True), (AGING, True)])
def test_a_refusal_by_a_budget_is_for_what_it_pays_alone(
    db: Path, journal: Journal, clock: Clock, project: str, seen: bool
) -> None:
    error = {"message": f'the budget of project "{BOUNDED}", $1 a month, is spent'}
    journal.decided(request("refused", project), LIMITED, {"error": error})
    assert ("which has none" in words(judge(journal, db, (), clock))) == seen


def test_sums_that_are_off_are_seen(db: Path, journal: Journal, clock: Clock) -> None:
    change(db, "UPDATE weeks SET decisions = decisions + 1")
    assert "in the weekly sums" in words(judge(journal, db, (), clock))


def test_a_lost_label_is_seen(db: Path, journal: Journal, clock: Clock) -> None:
    journal.labelled_as(only_id(db), "topic", "a", 200)
    assert "has the label None instead of one of ['a']" in words(judge(journal, db, (), clock))


def test_a_label_that_nobody_was_told_of_may_be_there_or_not(
    db: Path, journal: Journal, clock: Clock
) -> None:
    journal.labelled_as(only_id(db), "topic", "a", STORAGE)
    assert words(judge(journal, db, (), clock)) == ""


@pytest.mark.parametrize(
    ("outcome", "seen"),
    [
        (Outcome("decide", 10.5, 10.9, BROKEN, "ConnectionResetError"), False),
        (Outcome("decide", 1.0, 10.1, STORAGE, "internal_error"), False),
        (Outcome("decide", 14.0, 14.1, STORAGE, "internal_error"), True),
        (Outcome("decide", 9.0, 9.5, BROKEN, "ConnectionResetError"), True),
        (Outcome("decide", 10.5, 10.9, 500, "something_else"), True),
        (Outcome("decide", 10.5, 10.9, 422, "invalid_request"), True),
        (Outcome("decide", 1.0, 2.0, 502, "model_error"), False),
        (Outcome("feedback", 1.0, 2.0, 404, "not_found"), True),
        (Outcome("old feedback", 1.0, 2.0, 404, "not_found"), False),
        (Outcome("nonsense", 1.0, 2.0, 200, ""), True),
    ],
)
def test_only_a_fault_excuses_what_the_contract_does_not_have(
    db: Path, journal: Journal, clock: Clock, outcome: Outcome, seen: bool
) -> None:
    journal.windows.append(EXCUSED)
    journal.outcomes.append(outcome)
    assert (" got " in words(judge(journal, db, (), clock))) == seen


def test_a_server_that_takes_too_long_to_answer_again_is_seen(
    db: Path, journal: Journal, clock: Clock
) -> None:
    journal.windows.append(Window("a fault", 1.0, 2.0, 4.5))
    assert "it took 2.50 s to answer again" in words(judge(journal, db, (), clock))


def test_what_leaks_is_seen() -> None:
    rest, most = Footing(10, 20, 50.0), Footing(11, 21, 51.0)
    assert words(leaks(rest, most, most)) == ""
    assert "threads leaked: 10, then 12" in words(leaks(rest, Footing(12, 20, 50.0), most))
    assert "descriptors leaked: 20, then 22" in words(leaks(rest, Footing(10, 22, 50.0), most))
    assert "memory grew: 50 MB, then 52 MB" in words(leaks(rest, Footing(10, 20, 52.0), most))
