import heapq
from collections import Counter
from datetime import UTC, datetime

import pytest

from svc.errors import NoSlotInTime, RateLimited
from svc.providers.admission import Admission
from svc.providers.catalog import Provider
from svc.ratelimit import Buckets, InTurn
from tests.clock import Clock

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC).timestamp()
CATALOG = {
    "openrouter": Provider("openrouter", "https://o", rpm=60, aggregator=True),
    "slow": Provider("slow", "https://s", rpm=1),
    "local": Provider("local", "http://localhost", rpm=None, local=True),
}


class Budget:
    """A daily budget in memory."""

    def __init__(self):
        self.taken = {}

    def take(self, day, limit):
        if self.taken.get(day, 0) >= limit:
            return False
        self.taken[day] = self.taken.get(day, 0) + 1
        return True


def admission(budget, limit=None, now=NOON):
    return Admission(CATALOG, limit, budget.take, Buckets(lambda: 50.0), now=lambda: now)


def test_a_provider_without_a_limit_is_never_waited_for():
    gate = admission(Budget(), limit=1)
    assert [gate.delay("local", 0.0) for _ in range(1_000)] == [0.0] * 1_000


def test_each_provider_has_a_limiter_of_its_own():
    gate = admission(Budget())
    assert gate.delay("slow", 0.0) == 0.0
    assert gate.delay("openrouter", 0.0) == 0.0
    with pytest.raises(NoSlotInTime) as error:
        gate.delay("slow", 59.0)
    assert error.value.retry_after == 60
    assert gate.delay("slow", 61.0) == pytest.approx(60.0)


def test_only_the_aggregators_calls_are_counted():
    budget = Budget()
    gate = admission(budget, limit=10)
    for name in ("local", "slow", "openrouter", "openrouter"):
        gate.delay(name, 0.0)
    assert budget.taken == {"2026-03-01": 2}


def test_without_a_daily_limit_nothing_is_counted():
    budget = Budget()
    admission(budget).delay("openrouter", 0.0)
    assert budget.taken == {}


def test_a_spent_budget_comes_back_at_midnight_utc():
    gate = admission(Budget(), limit=2)
    gate.delay("openrouter", 0.0)
    gate.delay("openrouter", 0.0)
    with pytest.raises(RateLimited) as error:
        gate.delay("openrouter", 100.0)
    assert error.value.retry_after == 12 * 3600


def test_a_call_that_the_rate_limit_stops_is_not_counted():
    budget = Budget()
    gate = admission(budget, limit=1_000)
    for _ in range(10):
        gate.delay("openrouter", 0.0)
    with pytest.raises(RateLimited):
        gate.delay("openrouter", 0.0)
    assert budget.taken == {"2026-03-01": 10}


def test_a_call_that_waits_past_midnight_counts_on_the_day_it_is_made():
    budget = Budget()
    gate = admission(budget, limit=1_000, now=NOON + 12 * 3600 - 0.5)
    for _ in range(10):
        gate.delay("openrouter", 0.0)
    gate.delay("openrouter", 5.0)
    assert budget.taken == {"2026-03-01": 10, "2026-03-02": 1}


def waits(backlog, seconds, rpm=60):
    """The waits of calls of `b`, one after the other, beside a backlog of calls of `a`; how many
    calls both made, and how often the gate was asked."""
    clock, catalog = Clock(), {"p": Provider("p", "https://p", rpm=rpm)}
    buckets = Buckets(clock)
    gate = Admission(catalog, None, Budget().take, buckets, turns=InTurn(buckets))
    # When a call goes on, whose it is, when it came, whether it stands in line and has its slot.
    events = [(clock.now, n, "a", clock.now, False, False) for n in range(backlog)]
    events.append((clock.now + 20, backlog, "b", clock.now + 20, False, False))
    heapq.heapify(events)
    made, waited, end, asked = Counter(), [], clock.now + seconds, 0
    while events and events[0][0] < end:
        clock.now, n, caller, came, joined, admitted = heapq.heappop(events)
        if not admitted:
            asked += 1
            wait = gate.line("p", caller, 1e9, joined)
            if not wait:
                wait, admitted = gate.delay("p", 1e9, caller), True
            heapq.heappush(events, (clock.now + wait, n, caller, came, True, admitted))
            continue
        made[caller] += 1
        if caller == "b":
            waited.append(clock.now - came)
            heapq.heappush(events, (clock.now, n, "b", clock.now, False, False))
    return waited, made, asked


def test_a_caller_waits_for_a_slot_of_each_other_and_not_for_all_their_calls():
    waited, made, _ = waits(backlog=400, seconds=200)
    assert len(waited) > 60 and max(waited) <= 3
    # What one does not use, the other does.
    assert 190 <= sum(made.values()) <= 215


def test_a_caller_alone_has_the_whole_rate():
    waited, made, _ = waits(backlog=400, seconds=19)
    assert not waited and 19 <= made["a"] <= 30


def test_the_calls_of_a_caller_do_not_all_ask_for_each_slot():
    """With 3,700 calls at a rate of 100 a second one key asked 180,000 times a second."""
    waited, made, asked = waits(backlog=1_000, seconds=60, rpm=600)
    assert max(waited) <= 0.3 and made["a"] > 450 and made["b"] > 190
    assert asked < 5 * sum(made.values())
