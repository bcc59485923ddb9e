"""The part for hooks sees what has not arrived, and what arrived otherwise than it should."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from svc.hooks import new_secret
from svc.hooks.signing import headers
from svc.store import Database, HookEvents, HookKind, Hooks, NewEvent, OpenedHook, Per
from tests.chaos import telling
from tests.chaos.callers import Caller
from tests.chaos.clock import Clock
from tests.chaos.journal import Journal
from tests.chaos.questions import TOLD
from tests.chaos.telling import Telling, changed, disordered, unsigned
from tests.hooks.receiver import Received, Receiver

SECRET = new_secret()
SIGNED_AT = 1_795_000_000


def arrived(event_id: str, kind: str = HookKind.BATCH_DONE, **data: Any) -> Received:
    body = json.dumps({"type": kind, "data": data})
    return Received(f"/{TOLD}", headers(SECRET, event_id, body, SIGNED_AT), body.encode())


def test_what_the_official_library_signs_otherwise_is_seen() -> None:
    one, secrets = arrived("evt_1"), {TOLD: SECRET}
    assert list(unsigned([one], secrets)) == []
    assert list(unsigned([one], {TOLD: new_secret()})) == ["the signature of evt_1 is wrong"]
    for other in (
        one._replace(body=b"{}"),
        one._replace(headers={**one.headers, "webhook-id": "x"}),
    ):
        assert len(list(unsigned([other], secrets))) == 1


def test_an_event_that_is_another_one_when_it_comes_again_is_seen() -> None:
    one = arrived("evt_1")
    assert list(changed([one, arrived("evt_2"), one])) == []
    assert len(list(changed([one, arrived("evt_1", n=2)]))) == 1
    assert len(list(changed([one, one._replace(path="/")]))) == 1


@pytest.mark.parametrize(
    ("order", "is_right"),
    [("abc", True), ("aabcc", True), ("acb", True), ("ba", False), ("abac", False), ("?ab", True)],
)
def test_an_event_after_a_later_one_on_its_subject_is_seen(order: str, is_right: bool) -> None:
    stored = {"a": (1, "budget", 5), "b": (1, "budget", 6), "c": (1, "review", 7)}
    found = list(disordered([arrived(event_id) for event_id in order], stored))
    assert (found == []) == is_right


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Path]:
    """A file with an event that waits for a hook."""
    path = tmp_path / "svc.db"
    with contextlib.closing(Database.open(path)) as database:
        opened = OpenedHook("https://example.com/", SECRET, False)
        Hooks(database, "master").add(TOLD, set(HookKind), "https://example.com", opened)
        HookEvents(database).add([NewEvent(1, "key", "job 1", "{}", 0)])
    return path


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path / "clock")


@pytest.fixture
def part(receiver: Receiver, clock: Clock) -> Telling:
    return Telling(receiver, Journal(), clock, no_caller)


def no_caller() -> Caller:
    raise AssertionError("nobody asks here")


def judged(path: Path, judge: Callable[[sqlite3.Connection], Iterator[str]]) -> str:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return "\n".join(judge(connection))


def test_an_event_that_waits_and_never_arrives_is_seen(
    db: Path, part: Telling, receiver: Receiver
) -> None:
    assert "1 events wait for a receiver" in "\n".join(part.missing(db))
    assert "was stored and has never arrived" in judged(db, part.judge)
    with contextlib.closing(Database.open(db)) as database:
        events = HookEvents(database)
        (due,) = events.due()
        events.delivered(due)
    assert "wait for a receiver" not in "\n".join(part.missing(db))
    assert "never arrived" in judged(db, part.judge)
    part.sign_for(TOLD, SECRET)
    receiver.journal.append(arrived(due.id, id="job_1"))
    assert "never arrived" not in judged(db, part.judge)


def test_what_nobody_was_told_of_is_seen(
    db: Path, part: Telling, receiver: Receiver, clock: Clock
) -> None:
    found = "\n".join(part.missing(db))
    assert "is exhausted" in found and "a review is due" in found and "make a promise" in found
    month = Per.MONTH.period(clock.now)
    receiver.journal += [
        arrived("evt_1", HookKind.BUDGET_WARNING, period=month, level="warning"),
        arrived("evt_2", HookKind.REVIEW_DUE),
    ]
    found = "\n".join(part.missing(db))
    assert "is exhausted" in found and "a review is due" not in found
    exhausted = arrived("evt_3", HookKind.BUDGET_WARNING, period=month, level="exhausted")
    receiver.journal.append(exhausted)
    assert "is exhausted" not in "\n".join(part.missing(db))
    clock.turn()
    assert "is exhausted" in "\n".join(part.missing(db))


def test_a_job_has_to_be_told_of_unless_the_clock_jumped(
    db: Path, part: Telling, receiver: Receiver, clock: Clock
) -> None:
    part.took("job_1")
    part.took("job_2")
    clock.turn()
    receiver.journal.append(arrived("evt_1", id="job_1"))
    found = "\n".join(part.missing(db))
    assert "told that job_2 ended" in found and "job_1" not in found
    clock.shift(3_600.0)
    assert "job_2" not in "\n".join(part.missing(db))


def test_a_kind_of_event_that_never_came_is_seen(
    db: Path, part: Telling, receiver: Receiver
) -> None:
    part.sign_for(TOLD, SECRET)
    kinds = sorted(telling.KINDS)
    receiver.journal += [arrived(f"evt_{kind}", kind) for kind in kinds[1:]]
    assert judged(db, part.judge) == f"nothing was told of {kinds[0]}"
    receiver.journal.append(arrived("evt_0", kinds[0]))
    assert judged(db, part.judge) == ""


def test_where_something_is_missing_the_log_may_say_why() -> None:
    lines = [f"ERROR hooks wait: {n}" for n in range(9)]
    said = telling.said_of_hooks("\n".join(["ERROR of something else", *lines]))
    assert said == [f"the log says: {line}" for line in lines[-telling.LINES :]]
