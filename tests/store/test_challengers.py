"""Challengers and what they answered."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from svc.records import Challenger, ChallengerAnswer
from svc.store import NANO, Budgets, Challengers, ChallengerThere, Per, QuestionVersions
from svc.store.challengers import DELETED_AT_ONCE, ChallengerState
from svc.store.database import Database
from svc.store.decisions import Decisions
from svc.store.erasing import erase
from svc.store.project_sizes import CHALLENGER_ROW_BYTES, ProjectSizes
from tests.store.records import asked, record

# Of an answer as `answer` makes it.
ANSWER_BYTES = len("[0.25,0.75]" + '{"choice":"b"}') + CHALLENGER_ROW_BYTES
NEW = Challenger(0, "default", "topic", b"", "@demo/rival", None, 0.1)


@pytest.fixture
def decisions(database: Database) -> list[str]:
    """The ids of three decisions."""
    journal = Decisions(database)
    return [journal.add(record(asked("topic"))) for _ in range(3)]


@pytest.fixture
def challengers(database: Database, decisions: list[str]) -> Challengers:
    return Challengers(database)


def add(database: Database, new: Challenger = NEW, cap: tuple[int, Per] | None = None) -> int:
    version = QuestionVersions(database).latest("default", "topic")
    assert version is not None
    return Challengers(database).add(new, version.question_id, 7, cap)


def answer(row: int, decision_id: str, **fields: object) -> ChallengerAnswer:
    made = ChallengerAnswer(row, decision_id, (0.25, 0.75), {"choice": "b"}, 0.001, 20.0)
    return replace(made, **fields)  # type: ignore[arg-type]


def test_one_is_found_with_the_exact_question(database: Database, challengers: Challengers) -> None:
    row = add(database)
    (found,) = challengers.running("default")
    assert found == replace(NEW, id=row, digest=asked("topic").digest)
    assert challengers.running("shop") == challengers.promoted("default") == []


def test_a_question_has_one_that_runs_and_one_that_is_promoted(
    database: Database, challengers: Challengers
) -> None:
    first = add(database)
    with pytest.raises(ChallengerThere):
        add(database)
    challengers.promote(challengers.running("default")[0], 9)
    second = add(database)
    challengers.promote(challengers.running("default")[0], 10)
    states = {one.challenger.id: (one.state, one.promoted_at) for one in challengers.all()}
    assert states == {
        first: (ChallengerState.RETIRED, 9),
        second: (ChallengerState.PROMOTED, 10),
    }


def test_an_answer_stands_beside_its_decision(
    database: Database, challengers: Challengers, decisions: list[str]
) -> None:
    row = add(database)
    challengers.answered(answer(row, decisions[0]))
    challengers.answered(answer(row, decisions[1], p=None, fields=None, error="timeout"))
    # One that is not there any more, and one that was answered already.
    challengers.answered(answer(row, "dec_" + "0" * 26))
    challengers.answered(answer(row, decisions[0], p=(1.0, 0.0)))
    challengers.count(row, dropped=2)
    challengers.count(row, refused=1)
    # Nobody waits for these, but what is written later comes after them.
    database.check_writable(5.0)
    second, first = challengers.pairs(row, 9)
    assert (first.p, first.answer, first.own_latency_ms) == ("[0.25,0.75]", '{"choice":"b"}', 12.5)
    assert (second.p, second.error, second.label) == (None, "timeout", None)
    assert len(challengers.pairs(row, 1)) == 1
    (found,) = challengers.all()
    assert (found.dropped, found.refused) == (2, 1)


def test_removed_it_leaves_nothing_and_its_row_is_not_used_again(
    database: Database, challengers: Challengers, decisions: list[str], path: Path
) -> None:
    row = add(database, cap=(NANO, Per.DAY))
    (state,) = Budgets(database).of_challengers()
    assert (state.budget.subject, state.budget.limit) == (str(row), NANO)
    challengers.answered(answer(row, decisions[0]))
    challengers.remove(challengers.running("default")[0])
    # What comes late is left out.
    challengers.answered(answer(row, decisions[1]))
    assert challengers.all() == challengers.pairs(row, 9) == []
    assert Budgets(database).of_challengers() == []
    assert add(database) > row


def test_many_answers_are_removed_in_steps(
    database: Database, challengers: Challengers, path: Path
) -> None:
    row = add(database)
    with sqlite3.connect(path) as connection:
        connection.executemany(
            "INSERT INTO challenger_answers (decision_seq, challenger, cost_usd, latency_ms) "
            "VALUES (?, ?, 0, 0)",
            [(seq, row) for seq in range(1, DELETED_AT_ONCE + 10)],
        )
    connection.close()
    challengers.remove(challengers.running("default")[0])
    assert challengers.pairs(row, DELETED_AT_ONCE) == challengers.all() == []


def test_answers_count_in_what_their_project_fills(
    database: Database, challengers: Challengers, decisions: list[str]
) -> None:
    sizes, row = ProjectSizes(database), add(database)
    sizes.set("default", 100_000)
    before = used(sizes)
    for number, decision_id in enumerate(decisions):
        challengers.answered(answer(row, decision_id))
        # One that is there already counts once.
        challengers.answered(answer(row, decision_id))
        database.check_writable(5.0)
        assert used(sizes) == before + (number + 1) * ANSWER_BYTES
    # Counted anew it is the same.
    sizes.set("default", 100_001)
    assert used(sizes) == before + 3 * ANSWER_BYTES
    database.write(lambda connection: erase(connection, [1]))
    left = used(sizes)
    sizes.set("default", 100_002)
    assert used(sizes) == left
    challengers.remove(challengers.running("default")[0])
    assert used(sizes) == left - 2 * ANSWER_BYTES


def test_an_answer_that_does_not_fit_is_not_kept(
    database: Database, challengers: Challengers, decisions: list[str]
) -> None:
    sizes, row = ProjectSizes(database), add(database)
    sizes.set("default", 100_000)
    sizes.set("default", used(sizes) + ANSWER_BYTES)
    challengers.answered(answer(row, decisions[0]))
    challengers.answered(answer(row, decisions[1]))
    database.check_writable(5.0)
    assert len(challengers.pairs(row, 9)) == 1
    (found,) = challengers.all()
    assert (found.dropped, found.refused) == (0, 1)


def used(sizes: ProjectSizes) -> int:
    (one,) = sizes.all()
    return one.bytes


def test_an_answer_goes_with_its_decision(
    database: Database, challengers: Challengers, decisions: list[str]
) -> None:
    row = add(database)
    challengers.answered(answer(row, decisions[0]))
    database.write(lambda connection: connection.execute("DELETE FROM decisions WHERE seq = 1"))
    assert challengers.pairs(row, 9) == []
