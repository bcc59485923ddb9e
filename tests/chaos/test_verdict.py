"""The judge of the chaos run sees what is wrong."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc.store.database import Database
from svc.store.decisions import Decisions
from tests.chaos.journal import BROKEN, STORAGE, Journal, Outcome, Window
from tests.chaos.target import Footing
from tests.chaos.verdict import judge, leaks
from tests.store.records import record

STATE = "a state"
EXCUSED = Window("a fault", 10.0, 11.0, 11.5, frozenset({BROKEN, STORAGE}))


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A file with one decision on `STATE`."""
    path = tmp_path / "svc.db"
    database = Database.open(path)
    state_hash = hashlib.sha256(database.salt + STATE.encode()).digest()
    Decisions(database).add(record(state_hash=state_hash))
    database.close()
    return path


@pytest.fixture
def journal(db: Path) -> Journal:
    """A journal that knows of it."""
    with sqlite3.connect(db) as connection:
        (answers,) = connection.execute("SELECT answers FROM decisions").fetchone()
    connection.close()
    journal = Journal()
    journal.decided(STATE, 200, {"id": only_id(db), "answers": json.loads(answers)})
    return journal


def only_id(db: Path) -> str:
    database = Database.open(db)
    (entry,) = Decisions(database).page("default", 10).entries
    database.close()
    return entry.id


def change(db: Path, statement: str) -> None:
    with sqlite3.connect(db) as connection:
        connection.execute(statement)
    connection.close()


def words(problems: Iterator[str]) -> str:
    return "\n".join(problems)


def test_nothing_is_wrong_with_a_decision_that_lies_there_once(db: Path, journal: Journal) -> None:
    assert words(judge(journal, db)) == ""


def test_a_lost_decision_is_seen(db: Path, journal: Journal) -> None:
    change(db, "DELETE FROM decisions")
    assert "was answered and is not there" in words(judge(journal, db))


def test_a_decision_that_is_not_whole_is_seen(db: Path, journal: Journal) -> None:
    change(db, "UPDATE decisions SET answers = '{}'")
    assert "not as it was answered" in words(judge(journal, db))


def test_a_decision_that_lies_there_twice_is_seen(db: Path, journal: Journal) -> None:
    columns = "created_at, project, state_hash, model, mode, config, privacy, latency_ms, cost_usd"
    rest = "cached, answers, readings, question_ids"
    change(
        db,
        f"INSERT INTO decisions (id, {columns}, {rest}) "
        f"SELECT randomblob(16), {columns}, {rest} FROM decisions",
    )
    assert "a state has 2 decisions, 1 of them were answered" in words(judge(journal, db))


def test_a_decision_that_nobody_was_told_of_may_be_there_or_not(db: Path) -> None:
    journal = Journal()
    journal.decided(STATE, BROKEN, None)
    journal.decided("another", STORAGE, None)
    assert words(judge(journal, db)) == ""


def test_a_refused_decision_may_not_be_there(db: Path) -> None:
    journal = Journal()
    journal.decided(STATE, 502, None)
    assert "a state has 1 decisions, 0 of them were answered" in words(judge(journal, db))


def test_sums_that_are_off_are_seen(db: Path, journal: Journal) -> None:
    change(db, "UPDATE weeks SET decisions = decisions + 1")
    assert "in the weekly sums" in words(judge(journal, db))


def test_a_lost_label_is_seen(db: Path, journal: Journal) -> None:
    journal.labelled_as(only_id(db), "topic", "a", 200)
    assert "has the label None instead of one of ['a']" in words(judge(journal, db))


def test_a_label_that_nobody_was_told_of_may_be_there_or_not(db: Path, journal: Journal) -> None:
    journal.labelled_as(only_id(db), "topic", "a", STORAGE)
    assert words(judge(journal, db)) == ""


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
        (Outcome("nonsense", 1.0, 2.0, 200, ""), True),
    ],
)
def test_only_a_fault_excuses_what_the_contract_does_not_have(
    db: Path, journal: Journal, outcome: Outcome, seen: bool
) -> None:
    journal.windows.append(EXCUSED)
    journal.outcomes.append(outcome)
    assert (" got " in words(judge(journal, db))) == seen


def test_a_server_that_takes_too_long_to_answer_again_is_seen(db: Path, journal: Journal) -> None:
    journal.windows.append(Window("a fault", 1.0, 2.0, 4.5))
    assert "it took 2.50 s to answer again" in words(judge(journal, db))


def test_what_leaks_is_seen() -> None:
    rest, most = Footing(10, 20, 50.0), Footing(11, 21, 51.0)
    assert words(leaks(rest, most, most)) == ""
    assert "threads leaked: 10, then 12" in words(leaks(rest, Footing(12, 20, 50.0), most))
    assert "descriptors leaked: 20, then 22" in words(leaks(rest, Footing(10, 22, 50.0), most))
    assert "memory grew: 50 MB, then 52 MB" in words(leaks(rest, Footing(10, 20, 52.0), most))
