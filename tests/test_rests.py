"""Pauses of keys count in a worker and over all; what concerns processes forks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import pytest
from flask import Flask

from svc import processors
from svc.bootstrap import Services, Shared
from svc.deadline import Deadline
from svc.rests import Company, Rests, SharedRests, Work
from svc.store import ApiKeys
from svc.web import decorators
from tests.clock import Clock
from tests.test_sharing import run
from tests.web.conftest import Start, start
from tests.web.models import ANIMAL

__all__ = ["start"]  # the fixture


@pytest.fixture
def rests() -> Rests:
    return Rests()


def test_pauses_of_a_worker_follow_each_other(rests: Rests) -> None:
    rests.add("a", 10.0, 2.0)
    assert rests.until("a") == 12.0
    rests.add("a", 11.0, 1.0)
    assert rests.until("a") == 13.0
    rests.add("a", 20.0, 1.0)
    assert rests.until("a") == 21.0
    assert rests.until("b") == rests.until(None) == 0.0


def test_what_was_counted_too_much_is_taken_back_in_all_workers() -> None:
    one, other = Rests(), Rests()
    one.shared = other.shared = SharedRests(at_once=2)
    one.add("a", 10.0, 4.0)
    one.take_back("a", 1.0)
    assert (one.until("a"), other.until("a")) == (13.0, 11.5)


def test_a_pause_may_end_early() -> None:
    rests = Rests(lenience_s=0.5)
    rests.add("a", 10.0, 2.0)
    rests.add("a", 10.0, 1.0)
    rests.shared = SharedRests(at_once=1)
    assert (rests.until("a"), rests.until(None)) == (12.5, 0.0)
    rests.shared.add("a", 20.0, 1.0)
    assert rests.until("a") == 20.5


def test_workers_that_have_few_processors_pause_for_what_the_others_did() -> None:
    one, other = Rests(), Rests()
    one.shared = other.shared = SharedRests(at_once=2)
    one.add("a", 10.0, 3.0)
    assert (one.until("a"), other.until("a")) == (13.0, 11.5)
    # Of many workers each pauses as long as all together have to.
    for _ in range(7):
        other.add("a", 10.0, 3.0)
    assert one.until("a") == 22.0
    assert one.until("b") == other.until("b") == 0.0


def test_pauses_of_other_processes_count() -> None:
    script = """
from svc.rests import Rests, SharedRests
rests, shared = Rests(), SharedRests(at_once=4)
rests.shared = shared
child = forked(lambda: rests.add("a", 10.0, 2.0))
os.waitpid(child, 0)
print(rests.until("a"), rests.until("b"))
"""
    assert run(script).split() == ["10.5", "0.0"]


def test_what_is_stored_is_changed_by_one_process_at_a_time() -> None:
    assert Work.STORED.at_once == 1
    assert Work.BODIES.at_once == processors.usable()


@pytest.mark.parametrize(("usable", "at_once"), [(1, 1), (2, 1), (3, 1), (16, 8)])
def test_half_of_the_processors_answer_a_key(
    monkeypatch: pytest.MonkeyPatch, usable: int, at_once: int
) -> None:
    monkeypatch.setattr(processors, "usable", lambda: usable)
    assert Work.ANSWERS.at_once == at_once


@pytest.mark.parametrize("work", Work)
def test_an_application_pauses_with_all_workers_of_its_server(start: Start, work: Work) -> None:
    app: Flask = start()
    shared = app.extensions["svc"].shared.rests[work]
    shared.add("a key", 10.0, 1_000.0)
    early = decorators.LENIENCE_S if work is Work.ANSWERS else 0.0
    assert decorators.RESTS[work].until("a key") == shared.until("a key") - early > 10.0


def test_a_key_knows_for_how_long_others_are_away() -> None:
    clock = Clock(100.0)
    company = Company(clock)
    assert company.away_s("a") == math.inf
    company.came("a")
    clock.now += 5.0
    company.came("a")
    assert (company.away_s("a"), company.away_s("b")) == (math.inf, 0.0)
    company.came("b")
    clock.now += 2.0
    assert (company.away_s("a"), company.away_s("b"), company.away_s("c")) == (2.0, 2.0, 2.0)
    company.came("a")
    assert (company.away_s("a"), company.away_s("b")) == (2.0, 0.0)


def test_a_key_is_in_company_of_those_that_ask_other_workers() -> None:
    """With eight workers a key that kept its connection had decisions take 170 times as long."""
    script = """
from svc.rests import Company
company = Company()
company.came("a")
child = forked(lambda: company.came("b"))
os.waitpid(child, 0)
print(company.away_s("a") < 60)
"""
    assert run(script).split() == ["True"]


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("/v1/decisions/dec_0", True),
        ("/v1/activity?by=model", True),
        ("/v1/audit", True),
        ("/v1/metrics", False),
    ],
)
def test_who_reads_is_company_and_a_monitor_is_not(start: Start, path: str, counts: bool) -> None:
    _, shared = asks(start(), 600, [path])
    assert (shared.company.away_s("another") < math.inf) == counts


def asks(app: Flask, rpm: int, paths: Sequence[str]) -> tuple[str, Shared]:
    """The id of a new key that asks for these."""
    services: Services = app.extensions["svc"]
    made = ApiKeys(services.database).create("ada", rpm)
    assert made is not None
    services.shared.company.came("another")
    for path in paths:
        app.test_client().get(path, headers={"Authorization": f"Bearer {made.text}"})
    return made.id, services.shared


@pytest.mark.parametrize("path", ["/v1/decisions/dec_0", "/v1/activity?by=model", "/v1/audit"])
def test_what_a_key_reads_counts_in_its_share(
    start: Start, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Reports beside large decisions had taken three quarters of a worker."""
    monkeypatch.setattr(decorators._answering, "_unnoticed_s", 0.0)
    key_id, _ = asks(start(), 600, [path])
    assert decorators.RESTS[Work.ANSWERS].until(key_id) > 0.0


def test_a_request_whose_blocks_stand_in_each_other_counts_once(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[str] = []

    def counts(key_id: str, _: Deadline, size: int) -> AbstractContextManager[None]:
        counted.append(key_id)
        return nullcontext()

    monkeypatch.setattr(decorators._answering, "paced", counts)
    client = start().test_client()
    assert client.post("/v1/lint", json={"questions": {"q": ANIMAL}}).status_code == 200
    assert len(counted) == 1


def test_what_is_refused_counts_in_the_share_of_a_key(start: Start) -> None:
    key_id, _ = asks(start(), 1, ["/v1/audit"] * 50)
    assert decorators.RESTS[Work.ANSWERS].until(key_id) > 0.0


def test_many_refusals_do_not_shut_a_key_out(start: Start) -> None:
    key_id, _ = asks(start(), 600, [])
    for _ in range(100_000):
        decorators.count_refusal(key_id)
    assert 0.9 < decorators._answering.pause_s(key_id) < 1.1
