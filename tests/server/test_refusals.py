"""Refusals of who asks on and on are held."""

from __future__ import annotations

import contextlib

import pytest

from svc import limits, processors
from svc.ratelimit import Buckets
from svc.server.refusals import JUST_NOW_S, Refusals

AT_ONCE = int(limits.REFUSALS_AT_ONCE * limits.REFUSALS_BURST_S / 60)
BUSY = "429 TOO MANY REQUESTS"


@pytest.fixture
def now() -> list[float]:
    """The time, which a test moves."""
    return [1_000.0]


@pytest.fixture
def refusals(now: list[float]) -> Refusals:
    return Refusals(lambda: now[0])


@pytest.mark.parametrize("status", ["401 UNAUTHORIZED", "403 FORBIDDEN", BUSY])
def test_refusals_wait_once_there_were_many_and_no_longer_a_while_after(
    refusals: Refusals, now: list[float], status: str
) -> None:
    assert not any(refusals.waits(status, known=True) for _ in range(AT_ONCE))
    assert refusals.waits(status, known=True)
    now[0] += limits.REFUSALS_BURST_S
    assert not refusals.waits(status, known=True)


@pytest.mark.parametrize("status", ["200 OK", "404 NOT FOUND", "422 UNPROCESSABLE ENTITY"])
def test_other_responses_to_who_is_known_never_wait(refusals: Refusals, status: str) -> None:
    assert not any(refusals.waits(status, known=True) for _ in range(2 * AT_ONCE))
    assert not refusals.waits(BUSY)


@pytest.mark.parametrize("status", ["404 NOT FOUND", "405 METHOD NOT ALLOWED", "400"])
def test_what_goes_wrong_for_strangers_waits_as_refusals_do(
    refusals: Refusals, status: str
) -> None:
    assert not any(refusals.waits(status) for _ in range(AT_ONCE))
    assert refusals.waits(status)
    assert not refusals.waits("200 OK")


def test_who_looks_at_the_server_again_and_again_waits_and_no_monitor_beside(
    refusals: Refusals, now: list[float]
) -> None:
    just_now, before = 0.5 * JUST_NOW_S, 2 * JUST_NOW_S
    assert not any(refusals.look_waits(just_now) for _ in range(AT_ONCE))
    assert refusals.look_waits(just_now)
    assert not any(refusals.look_waits(before) for _ in range(2 * AT_ONCE))
    assert refusals.look_waits(before)
    now[0] += limits.REFUSALS_BURST_S
    assert not refusals.look_waits(before)


def test_ends_of_connections_without_a_request_wait_where_they_are_many(
    refusals: Refusals,
) -> None:
    assert not any(refusals.end_waits() for _ in range(AT_ONCE))
    assert refusals.end_waits()
    assert not refusals.waits("401")


def test_what_is_held_leaves_in_order_each_in_its_time(
    refusals: Refusals, now: list[float]
) -> None:
    assert refusals.due_in() == float("inf")
    refusals.hold("first")
    now[0] += limits.REFUSAL_HELD_S / 2
    refusals.hold("second")
    assert list(refusals.leaving()) == []
    assert refusals.due_in() == pytest.approx(limits.REFUSAL_HELD_S / 2)
    now[0] += limits.REFUSAL_HELD_S / 2
    assert list(refusals.leaving()) == ["first"]
    assert list(refusals.leaving(at_once=True)) == ["second"]


def test_all_workers_together_send_so_many_at_once_of_all_kinds_for_each_processor(
    now: list[float],
) -> None:
    """With eight workers on two processors a key over its rate slowed others ten times."""
    with contextlib.closing(Buckets(lambda: now[0])) as shared:
        workers = [Refusals(lambda: now[0]) for _ in range(2 * processors.usable())]
        for one in workers:
            one.shared = shared
        refused = sum(not one.waits(BUSY, known=True) for one in workers for _ in range(40))
        ended = sum(not one.end_waits() for one in workers for _ in range(AT_ONCE))
        # A monitor does not wait for those.
        looks = sum(not one.look_waits(2 * JUST_NOW_S) for one in workers for _ in range(AT_ONCE))
    together = int(processors.usable() * limits.HELD_A_PROCESSOR * limits.REFUSALS_BURST_S / 60)
    assert (refused + ended, looks) == (together, together)
