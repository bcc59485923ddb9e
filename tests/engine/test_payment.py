from __future__ import annotations

import contextlib
import threading
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pytest

from svc.deadline import Deadline
from svc.engine.calls import Call, CallPool, Gate
from svc.engine.payment import paid
from svc.errors import DollarsSpent, RateLimited, Timeout
from svc.providers.bodies import ChatCall
from svc.providers.failures import (
    BadReply,
    BrokenReply,
    ParameterBounded,
    ProviderError,
    ServerTrouble,
)
from svc.providers.replies import Completion
from svc.providers.traits import UNKNOWN, Traits
from svc.records import Model
from svc.spending import Purse, Settle
from svc.store import StorageError
from svc.usage import StatedUsage
from tests.engine.fakes import HOSTED
from tests.engine.test_calls import Held, Scripted, TurnstileGate, pool

# A call may cost a dollar at most, and what its reply says cost a hundredth of that.
PROVIDER = replace(HOSTED, price=(0.0, 10_000.0))
DONE = Completion("done", input_tokens=1, output_tokens=1)
COST = 0.01
# The model demands room for replies of four dollars.
DEMANDS = ParameterBounded("max_tokens", 400, upper=False)


def call(name: str = "m") -> Call:
    return Call(Model(f"@there/{name}", "there", name), ChatCall(messages=(), max_tokens=100))


class Dollars:
    """A purse of so many dollars, which keeps what was spent and what is reserved."""

    def __init__(self, limit: float = 100.0) -> None:
        self.limit, self.spent, self.reserved, self.most = limit, 0.0, 0.0, 0.0

    def reserve(self, dollars: float) -> Settle:
        if self.spent + self.reserved + dollars > self.limit:
            raise DollarsSpent("the budget is spent", 60, "the budget")
        self.reserved += dollars
        self.most = max(self.most, self.spent + self.reserved)
        return partial(self._settle, dollars)

    def _settle(self, dollars: float, spent: float) -> None:
        self.reserved -= dollars
        self.spent += spent


class Refusing(TurnstileGate):
    """Lets so many calls through; the next one finds that the database takes nothing."""

    def __init__(self, admitted: int) -> None:
        super().__init__(0.0)
        self.left = admitted

    def delay(self, provider: str, max_wait: float, caller: str | None = None) -> float:
        self.left -= 1
        if self.left < 0:
            raise StorageError("the disk is full")
        return 0.0


def pay(
    purse: Dollars,
    calls: CallPool,
    *asked: Call,
    deadline: Deadline | None = None,
    traits: Traits = UNKNOWN,
) -> Any:
    run = partial(calls.run, asked, deadline or Deadline(30), None)
    return paid(run, asked, cast(Purse, purse), PROVIDER, lambda _model: traits)


def charged(
    client: Any,
    *asked: Call,
    gate: Gate | None = None,
    limit: float = 100.0,
    traits: Traits = UNKNOWN,
) -> float:
    """What is charged for calls, however they end."""
    purse = Dollars(limit)
    with pool(client, gate) as calls:
        with contextlib.suppress(StorageError):
            pay(purse, calls, *asked, traits=traits)
    assert purse.reserved == pytest.approx(0)
    assert purse.most <= limit
    return round(purse.spent, 9)


def test_a_call_costs_what_its_reply_says() -> None:
    assert charged(Scripted(m=[DONE]), call(), call()) == 2 * COST


def test_a_call_whose_caller_leaves_before_it_is_made_costs_nothing() -> None:
    purse, deadline = Dollars(), Deadline(300)

    class Leaving(TurnstileGate):
        def delay(self, provider: str, max_wait: float, caller: str | None = None) -> float:
            deadline.cancel()
            return 60.0

    with pool(Scripted(m=[DONE]), Leaving()) as calls, pytest.raises(Timeout):
        pay(purse, calls, call(), call(), deadline=deadline)
    assert (purse.spent, purse.reserved) == (0, 0)


def test_a_call_that_is_cut_off_costs_the_most_that_it_may() -> None:
    client, purse, deadline = Held(), Dollars(), Deadline(300)
    leaving = threading.Thread(target=lambda: client.started.wait(30) and deadline.cancel())
    with pool(client) as calls:
        leaving.start()
        with pytest.raises(Timeout):
            pay(purse, calls, call(), deadline=deadline)
        client.let_go.set()
    leaving.join()
    assert (purse.spent, purse.reserved) == (1, 0)


def test_calls_that_the_database_stops_cost_nothing_and_those_before_them_do() -> None:
    assert charged(Scripted(m=[DONE]), call(), call(), gate=Refusing(0)) == 0
    # The first of them was under way.
    assert charged(Scripted(m=[DONE]), call(), call(), gate=Refusing(1)) == 1


def test_a_call_whose_caller_leaves_before_it_is_made_again_costs_nothing() -> None:
    purse, deadline = Dollars(), Deadline(300)
    told: list[float] = []

    def leave(wait_s: float) -> None:
        told.append(wait_s)
        deadline.cancel()

    gate = TurnstileGate(0.0, 60.0)
    client = Scripted(m=[ServerTrouble(retry_after=0.0)])
    calls = CallPool(client, gate, 1, jitter=lambda: 0.0, paused=leave)
    try:
        with pytest.raises(Timeout):
            pay(purse, calls, call(), deadline=deadline)
    finally:
        calls.close()
    assert (told, client.attempts, purse.spent, purse.reserved) == ([60.0], ["m"], 0, 0)


def test_each_attempt_whose_reply_broke_costs_the_most_that_it_may() -> None:
    broke = BrokenReply(retry_after=0)
    assert charged(Scripted(m=[broke, ServerTrouble(retry_after=0), DONE]), call()) == 1 + COST
    assert charged(Scripted(m=[broke]), call()) == 3
    assert charged(Scripted(m=[BadReply()]), call()) == 1


def test_an_attempt_whose_reply_broke_costs_as_much_where_no_other_is_let_through() -> None:
    gate = TurnstileGate(0.0, RateLimited("the rate limit is reached", 60))
    assert charged(Scripted(m=[BrokenReply(retry_after=0), DONE]), call(), gate=gate) == 1


@pytest.mark.parametrize(("limit", "attempts"), [(1.5, 1), (2.5, 2), (3.5, 3)])
def test_a_call_is_made_again_after_a_broken_reply_where_there_is_room_for_it(
    limit: float, attempts: int
) -> None:
    client = Scripted(m=[BrokenReply(retry_after=0)])
    assert charged(client, call(), limit=limit) == attempts
    assert len(client.attempts) == attempts


def stating(error: ProviderError, dollars: int) -> ProviderError:
    """An error whose reply states what costs so much."""
    error.usage = StatedUsage(output_tokens=dollars * 100)
    return error


def test_a_failed_attempt_whose_reply_states_more_costs_as_much() -> None:
    assert charged(Scripted(m=[stating(BadReply(), 7)]), call(), call(), limit=2) == 14
    assert charged(Scripted(m=[stating(BadReply(), 0)]), call()) == 1


@pytest.mark.parametrize(("limit", "attempts", "dollars"), [(8, 2, 7 + COST), (7.9, 1, 7)])
def test_an_attempt_that_states_more_leaves_room_for_the_next_one_or_is_the_last(
    limit: float, attempts: int, dollars: float
) -> None:
    client = Scripted(m=[stating(BrokenReply(retry_after=0), 7), DONE])
    assert charged(client, call(), limit=limit) == dollars
    assert len(client.attempts) == attempts


def test_a_model_that_demands_more_room_may_cost_as_much() -> None:
    known = Traits(least_tokens=400)
    assert charged(Scripted(m=[BadReply()]), call(), call(), limit=8, traits=known) == 8
    with pytest.raises(DollarsSpent):
        charged(Scripted(m=[DONE]), call(), call(), limit=7.9, traits=known)


@pytest.mark.parametrize(("limit", "attempts", "dollars"), [(4, 2, 4), (3.9, 1, 0)])
def test_a_call_is_made_again_with_more_room_where_a_budget_has_it(
    limit: float, attempts: int, dollars: float
) -> None:
    client, purse = Scripted(m=[DEMANDS, BadReply()]), Dollars(limit)
    with pool(client) as calls:
        (outcome,) = pay(purse, calls, call())
    assert isinstance(outcome, BadReply if attempts == 2 else DollarsSpent)
    assert (len(client.attempts), purse.spent, purse.most) == (attempts, dollars, max(1, dollars))


def test_an_attempt_with_more_room_that_is_answered_costs_what_its_reply_says() -> None:
    assert charged(Scripted(m=[DEMANDS, DONE]), call(), limit=4) == COST
