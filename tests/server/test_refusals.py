"""Refusals of who asks on and on are held."""

from __future__ import annotations

import contextlib
import math

import pytest

from svc import limits, processors
from svc.ratelimit import Buckets
from svc.server.refusals import CALM_S, JUST_NOW_S, Refusals, origin

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
    assert not any(refusals.look_waits(JUST_NOW_S / 2) for _ in range(AT_ONCE))
    assert refusals.look_waits(JUST_NOW_S / 2)
    # Those who ask a little less often have others of their kind wait alone.
    kinds = {
        **dict.fromkeys((0.15, 0.3, 0.6), limits.QUICK_LOOKS_AT_ONCE),
        CALM_S: limits.LOOKS_AT_ONCE,
        math.inf: limits.FIRST_LOOKS_AT_ONCE,
    }
    for after_s, per_minute in kinds.items():
        at_once = int(per_minute * limits.REFUSALS_BURST_S / 60)
        assert not any(refusals.look_waits(after_s) for _ in range(at_once))
        assert refusals.look_waits(after_s)
    now[0] += limits.REFUSALS_BURST_S
    assert not any(map(refusals.look_waits, kinds))


def test_a_monitor_that_opens_a_connection_for_each_look_does_not_wait_for_other_addresses(
    refusals: Refusals,
) -> None:
    looks = (refusals.look_waits(math.inf, "203.0.113.7") for _ in range(1_000))
    assert any(looks)
    assert not refusals.look_waits(math.inf, "203.0.113.8")
    addresses = (f"198.51.100.{number % 256}-{number}" for number in range(1_000))
    looks = (refusals.look_waits(math.inf, address) for address in addresses)
    assert sum(not waits for waits in looks) <= limits.LOOKS_AT_ONCE * limits.REFUSALS_BURST_S / 60


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("203.0.113.7", 1), ("203.0.113.7", 2), True),
        (("203.0.113.7", 1), ("203.0.113.8", 1), False),
        (("2001:db8::1", 1, 0, 0), ("2001:db8::ffff:2", 1, 0, 0), True),
        (("2001:db8::1", 1, 0, 0), ("2001:db8:0:1::1", 1, 0, 0), False),
        (("fe80::1%eth0", 1, 0, 2), ("fe80::1%eth1", 1, 0, 3), True),
        # What a socket for both families has of callers of IPv4.
        (("::ffff:203.0.113.7", 1, 0, 0), ("::ffff:203.0.113.8", 1, 0, 0), False),
        (("::ffff:203.0.113.7", 1, 0, 0), ("203.0.113.7", 1), True),
        ("", "", True),
    ],
)
def test_a_network_of_ipv6_is_one_origin_and_so_is_an_address_of_ipv4(
    one: object, other: object, same: bool
) -> None:
    assert (origin(one) == origin(other)) == same


def test_a_monitor_that_is_held_does_not_queue_behind_strangers(
    refusals: Refusals, now: list[float]
) -> None:
    for _ in range(100):
        refusals.hold("stranger", refusals.held_s())
    refusals.hold("monitor", refusals.held_s(is_calm=True))
    now[0] += limits.REFUSAL_HELD_S
    assert "monitor" in refusals.leaving()


def test_ends_of_connections_without_a_request_wait_as_refusals_do(refusals: Refusals) -> None:
    assert not any(refusals.end_waits() for _ in range(AT_ONCE))
    assert refusals.end_waits() and refusals.waits("401")


@pytest.mark.parametrize("connections", [5, 40])
def test_however_many_connections_wait_few_answers_leave(
    refusals: Refusals, now: list[float], connections: int
) -> None:
    """Each is asked on again at once, and costs as much as one that did not wait."""
    for _ in range(connections):
        refusals.hold("connection", refusals.held_s())
    began, left = now[0], 0
    while now[0] < began + 10.0:
        now[0] += 0.01
        for held in list(refusals.leaving()):
            left += 1
            refusals.hold(held, refusals.held_s())
    most = 10.0 * limits.HELD_A_PROCESSOR * processors.usable() / 60
    assert left <= min(most, 10.0 * connections / limits.REFUSAL_HELD_S) + 1


def test_nothing_is_held_for_long_once_hundreds_have_waited(
    refusals: Refusals, now: list[float]
) -> None:
    for _ in range(5_000):
        refusals.hold("stranger", refusals.held_s())
    assert len(list(refusals.leaving())) == 0
    now[0] += limits.MOST_HELD_S
    assert len(list(refusals.leaving())) == 5_000
    refusals.hold("another", refusals.held_s())
    assert refusals.due_in() == limits.REFUSAL_HELD_S


def test_what_is_held_leaves_in_order_each_in_its_time(
    refusals: Refusals, now: list[float]
) -> None:
    assert refusals.due_in() == float("inf")
    refusals.hold("first", refusals.held_s())
    now[0] += limits.REFUSAL_HELD_S / 2
    refusals.hold("second", refusals.held_s())
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
        refused = sum(not one.waits(BUSY, known=True) for one in workers for _ in range(20))
        ended = sum(not one.end_waits() for one in workers for _ in range(AT_ONCE))
        # A monitor does not wait for those.
        looks = sum(not one.look_waits(CALM_S) for one in workers for _ in range(100))
        for one in workers:
            one.hold("connection", one.held_s())
    half = processors.usable() * limits.REFUSALS_BURST_S / 60 / 2
    assert refused + ended == int(half * limits.REFUSALS_AT_ONCE)
    assert looks == int(half * limits.LOOKS_AT_ONCE)
    last_s = (len(workers) - 1) * 60 / (limits.HELD_A_PROCESSOR * processors.usable())
    assert workers[-1].due_in() == pytest.approx(max(limits.REFUSAL_HELD_S, last_s))
