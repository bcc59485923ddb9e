"""Decisions in one thread: everything that is needed at the same time is asked before they end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from svc.deadline import Deadline
from svc.engine.calls import PARAMETER_RETRIES, Call
from svc.engine.replay import ReplayedCalls
from svc.errors import InternalError, ModelError, Pending, Timeout
from svc.flows import FlowsInTurn
from svc.providers import NO_CORRECTIONS, ChatCall, Completion, ParameterRefused, Throttled
from svc.records import Model

CALL = Call(Model("@own/m", "own", "m"), ChatCall(messages=(), max_tokens=1))


class Client:
    """Gives outcomes one after the other, and keeps the corrections that it was asked with."""

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes, self.corrections = list(outcomes), list[Any]()

    def call(
        self,
        model: Any,
        call: Any,
        timeout_s: float,
        key: Any = None,
        deadline: Any = None,
        corrections: Any = NO_CORRECTIONS,
    ) -> Completion:
        self.corrections.append(corrections)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        assert isinstance(outcome, Completion)
        return outcome


def test_every_call_is_made_before_the_decision_ends() -> None:
    client = Client(Pending("a"), Completion("A"), Pending("b"))
    with pytest.raises(Pending, match="b"):
        ReplayedCalls(client).run([CALL] * 3, Deadline(9))
    assert client.outcomes == []


def test_failures_are_outcomes_and_are_not_waited_for() -> None:
    outcomes = ReplayedCalls(Client(Throttled("429"), Completion("A"))).run([CALL] * 2, Deadline(9))
    assert isinstance(outcomes[0], Throttled) and outcomes[1] == Completion("A")


def test_a_call_is_made_again_without_what_was_refused() -> None:
    refusals = [ParameterRefused("temperature"), ParameterRefused("reasoning")]
    client = Client(*refusals, Completion("A"))
    assert ReplayedCalls(client).run([CALL], Deadline(9)) == [Completion("A")]
    assert [sorted(one.all.refused) for one in client.corrections] == [
        [],
        ["temperature"],
        ["reasoning", "temperature"],
    ]


def test_a_call_that_is_refused_for_the_same_again_has_failed() -> None:
    client = Client(*[ParameterRefused("temperature")] * (PARAMETER_RETRIES + 1))
    (outcome,) = ReplayedCalls(client).run([CALL], Deadline(9))
    assert isinstance(outcome, ParameterRefused) and len(client.corrections) == 2


def job(outcome: Any, ran: list[Any]) -> Callable[[Deadline], Any]:
    def run(outcome: Any, _deadline: Deadline) -> Any:
        ran.append(outcome)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return partial(run, outcome)


def test_every_job_is_run_before_a_flow_is_pending() -> None:
    ran: list[Any] = []
    with pytest.raises(Pending):
        FlowsInTurn().run(
            [job(one, ran) for one in (Pending("a"), ModelError("b"), 3)], Deadline(9)
        )
    assert len(ran) == 3


def test_a_failure_of_one_job_is_its_outcome_and_an_ending_error_ends_them_all() -> None:
    failure, ran = ModelError("no"), list[Any]()
    flows = FlowsInTurn()
    assert flows.run([job(failure, ran), job(2, ran)], Deadline(9)) == [failure, 2]
    for ending in (Timeout("late"), InternalError("broken")):
        with pytest.raises(type(ending)):
            flows.run([job(ending, ran), job(2, ran)], Deadline(9))


@pytest.mark.parametrize(
    ("outcomes", "winner", "ran"),
    [
        ([4, 6, 8], (0, 4), 1),
        ([3, ModelError("no"), 8], (2, 8), 3),
        ([3, 5], (0, 3), 2),
        ([ModelError("no")], None, 1),
    ],
    ids=["the first", "the first valid", "none valid", "none"],
)
def test_a_race_goes_on_until_an_outcome_is_valid(
    outcomes: list[Any], winner: Any, ran: int
) -> None:
    seen: list[Any] = []
    jobs = [job(one, seen) for one in outcomes]
    (race,) = FlowsInTurn().race([jobs], lambda one: one % 2 == 0, Deadline(9))
    assert (race.winner, len(seen)) == (winner, ran)


def test_all_races_are_run_before_one_is_pending() -> None:
    seen: list[Any] = []
    races = [[job(Pending("a"), seen), job(2, seen)], [job(Pending("b"), seen)]]
    with pytest.raises(Pending):
        FlowsInTurn().race(races, bool, Deadline(9))
    assert len(seen) == 2
