"""The parts of the chaos run see what is wrong with what they switched on."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from svc.records import Challenger, ChallengerAnswer
from svc.store import NANO, Challengers, Per, QuestionVersions
from svc.store.database import Database
from svc.store.decisions import Decisions
from tests.chaos.aging import KEY, Aging
from tests.chaos.behaviours import TWISTS, Weather
from tests.chaos.callers import Caller, Said
from tests.chaos.clock import DAY_S, JUMPS_S, Clock, oldest_kept
from tests.chaos.gate import Gate
from tests.chaos.journal import BROKEN, Journal
from tests.chaos.ledger import COST, PAID, RIVAL, Ledger
from tests.chaos.questions import AGING, BOUNDED, SHARES, any_request
from tests.chaos.rival import CAP, UNDER_WAY, Rival
from tests.chaos.spending import Sums, chain, is_refusal
from tests.store.records import asked, record

SPENT = f'the budget of project "{BOUNDED}", $1.5 a month, is spent'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "svc.db"


@pytest.fixture
def decided(path: Path) -> str:
    """The id of a decision in the project whose decisions are deleted."""
    database = Database.open(path)
    decision_id = Decisions(database).add(record(asked("topic"), project=AGING))
    database.close()
    return decision_id


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path / "clock")


@pytest.fixture
def journal(decided: str) -> Journal:
    made = Journal()
    request = {"state": "s", "project": AGING, "questions": {"topic": {}}}
    made.decided(request, 200, {"id": decided, "answers": {}})
    return made


@pytest.fixture
def aging(journal: Journal, clock: Clock) -> Aging:
    return Aging(journal, clock, no_caller)


@pytest.fixture
def rival(path: Path, decided: str, clock: Clock) -> Rival:
    """A part whose challenger has answered about the decision."""
    database = Database.open(path)
    version = QuestionVersions(database).latest(AGING, "topic")
    assert version is not None
    stored = Challengers(database)
    new = Challenger(0, AGING, "topic", b"", "m", None, 1.0)
    row = stored.add(new, version.question_id, 7, (NANO, Per.MONTH))
    stored.answered(ChallengerAnswer(row, decided, (0.5, 0.5), {}, 0.01, 1.0))
    database.close()
    return Rival(Weather(ledger := Ledger()), ledger, clock, no_caller)


def no_caller() -> Caller:
    raise AssertionError("nobody asks here")


def change(path: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def judged(path: Path, judge: Callable[[sqlite3.Connection], Iterator[str]]) -> str:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return "\n".join(judge(connection))


GOOD = Sums(decided=0.1, spent=0.2, reserved=0.05)


@pytest.mark.parametrize(
    ("sums", "before", "after", "seen"),
    [
        (GOOD, 0.12, 0.12, ""),
        (GOOD, 0.25, 0.3, ""),
        (GOOD._replace(reserved=0.8), 0.12, 0.12, ""),
        (GOOD, 0.09, 0.09, "stored decisions cost $0.1000, and $0.0900 were charged"),
        (GOOD, 0.26, 0.26, "$0.2600 were charged, and the budget counts $0.2500"),
        (GOOD._replace(reserved=0.81), 0.12, 0.12, "$1.0100 are taken of a budget of $1.0000"),
    ],
)
def test_money_that_does_not_add_up_is_seen(
    sums: Sums, before: float, after: float, seen: str
) -> None:
    assert "\n".join(chain(sums, before, after, limit=1.0)) == seen


@pytest.mark.parametrize(
    ("status", "message", "is_one"),
    [
        (429, SPENT, True),
        (429, "the model's provider limits the rate of calls", False),
        (429, SPENT.replace(BOUNDED, "other"), False),
        (200, SPENT, False),
        (BROKEN, "", False),
    ],
)
def test_a_refusal_names_its_budget(status: int, message: str, is_one: bool) -> None:
    assert is_refusal(Said(status, {"error": {"message": message}})) == is_one


def test_what_is_old_and_still_there_is_seen(path: Path, aging: Aging, clock: Clock) -> None:
    assert judged(path, aging.judge) == ""
    clock.turn()
    assert "1 decisions are older than a day and still there" in judged(path, aging.judge)
    change(path, "DELETE FROM decisions")
    assert judged(path, aging.judge) == ""


def test_sums_that_go_with_their_decisions_are_seen(path: Path, aging: Aging, clock: Clock) -> None:
    clock.turn()
    change(path, "DELETE FROM decisions", "UPDATE weeks SET decisions = 0")
    assert "0 readings in the weekly sums of 1 to 1" in judged(path, aging.judge)


def test_what_nobody_was_told_of_may_be_in_the_sums(
    path: Path, aging: Aging, journal: Journal
) -> None:
    change(path, "UPDATE weeks SET decisions = 2")
    assert "2 readings in the weekly sums of 1 to 1" in judged(path, aging.judge)
    request = {"state": "t", "project": AGING, "questions": {"topic": {}}}
    journal.decided(request, BROKEN, None)
    assert judged(path, aging.judge) == ""


@pytest.mark.parametrize(
    ("then", "seen"),
    [
        ("UPDATE learned SET labels = 0", False),
        ("UPDATE learned SET calibrator = NULL", True),
        ("UPDATE learned SET calibrator = '{}'", True),
        ("DELETE FROM learned", True),
    ],
)
def test_a_calibrator_that_does_not_stay_is_seen(
    path: Path, aging: Aging, then: str, seen: bool
) -> None:
    change(
        path,
        f"UPDATE asked SET key = '{KEY}'",
        "INSERT INTO learned (project, digest, question_id, labels, revision, calibrator) "
        f"SELECT '{AGING}', digest, id, 9, 9, '{{\"t\": 2}}' FROM questions",
    )
    with contextlib.closing(sqlite3.connect(path)) as connection:
        aging.remember(connection)
    assert judged(path, aging.judge) == ""
    change(path, then)
    assert ("what labels taught" in judged(path, aging.judge)) == seen


def test_answers_of_a_challenger_to_stored_decisions_are_right(path: Path, rival: Rival) -> None:
    assert judged(path, rival.judge) == ""
    assert "up to 1 answers" in rival.line()


@pytest.mark.parametrize(
    "change_to",
    [
        "DELETE FROM decisions",
        "UPDATE decisions SET project = 'other'",
        "UPDATE decisions SET question_ids = '[99]'",
    ],
)
def test_answers_that_go_astray_are_seen(path: Path, rival: Rival, change_to: str) -> None:
    change(path, change_to)
    assert "1 answers of the challenger are to no stored" in judged(path, rival.judge)


def test_a_challenger_beyond_its_cap_is_seen(path: Path, rival: Rival) -> None:
    row = "'challenger', subject, 'month', '2026-11', 900000000, {}, 0"
    add = f"INSERT INTO budget_spending SELECT {row} FROM budgets"
    change(path, add.format(100_000_000))
    assert judged(path, rival.judge) == ""
    change(path, "UPDATE budget_spending SET reserved = reserved + 1")
    assert "$1.0000 are taken of a challenger's cap of $1.0000" in judged(path, rival.judge)


def test_a_challenger_that_never_answers_is_seen(path: Path, rival: Rival) -> None:
    change(path, "DELETE FROM challenger_answers")
    assert judged(path, rival.judge) == "the challenger never answered"


def test_a_challenger_that_is_charged_beyond_its_cap_is_seen(
    path: Path, rival: Rival, clock: Clock
) -> None:
    ledger = Ledger()
    part = Rival(Weather(ledger), ledger, clock, no_caller)
    assert list(part.look(path)) == []
    for _ in range(round((CAP + UNDER_WAY) / COST)):
        ledger.charge(RIVAL)
    assert list(part.look(path)) == []
    ledger.charge(RIVAL)
    (problem,) = part.look(path)
    assert "was charged $0.75 in a month" in problem
    # Another month.
    clock.turn()
    assert list(part.look(path)) == []


def test_what_was_made_before_a_turn_is_old_after_it_whatever_jumps_there_were(
    clock: Clock,
) -> None:
    latest = clock.now + max(JUMPS_S)
    assert latest > clock.now + DAY_S
    clock.turn()
    made_before, made_after = oldest_kept(latest + DAY_S), oldest_kept(clock.now + DAY_S)
    assert made_before < oldest_kept(clock.latest) < made_after


def test_a_gate_that_is_shut_waits_for_what_is_under_way_and_lets_nothing_through() -> None:
    gate, steps, shut = Gate(), [], threading.Event()

    def shutting() -> None:
        with gate.shut():
            steps.append("shut")
            with gate.passing() as may:
                steps.append(may)
        shut.set()

    with gate.passing() as may:
        assert may
        thread = threading.Thread(target=shutting)
        thread.start()
        assert not shut.wait(0.05)
        steps.append("passed")
    thread.join()
    assert steps == ["passed", "shut", False]
    with gate.passing() as may:
        assert may


BODY = {"model": f"{PAID}/good", "messages": [{"role": "user", "content": "A. yes"}]}
FREE = {
    *("error-in-200", "no-logprobs", "no-parameter", "gone", "forbidden", "broke", "busy"),
    *("busy-until", "busy-reset", "broken", "unavailable", "redirect", "redirect-away"),
    # Of these the client sees no head of a reply.
    *("garbage", "nothing", "half-closed", "reset", "silent"),
}


@pytest.mark.parametrize("name", sorted(TWISTS))
def test_the_provider_charges_for_each_good_head_of_a_reply(name: str) -> None:
    ledger = Ledger()
    Weather(ledger)({**BODY, "model": f"{PAID}/{name}"}, 0, {})
    assert ledger.usd(PAID) == (0.0 if name in FREE else COST)
    Weather(ledger)({**BODY, "model": name}, 0, {})
    assert ledger.usd(RIVAL) == 0


def test_requests_are_of_every_project_and_paid_models_of_one_alone() -> None:
    requests = [any_request() for _ in range(300)]
    assert {one["project"] for one in requests} == set(SHARES)
    assert {one["project"] for one in requests if PAID in str(one["model"])} == {BOUNDED}
