"""Jobs and budgets in dollars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

import pytest

from svc.store import NANO, Budget, Budgets, Per, Scope
from tests.bulk.conftest import World, until
from tests.scripted import Behaviour, Json, Reply, ScriptedProvider
from tests.web.models import PREFERS_CATS, reply_to

Make = Callable[..., World]

COST = 0.01
MODEL = "vendor/m"


class Aggregator:
    """Says what each call cost, and counts the calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        self.calls += 1
        whole = reply_to(PREFERS_CATS, body)
        whole["usage"]["cost"] = COST
        return Reply(whole)


@pytest.fixture
def made(world: Make) -> Iterator[tuple[World, Aggregator]]:
    handler = Aggregator()
    with ExitStack() as stack:
        provider = stack.enter_context(ScriptedProvider(handler))
        one = world(
            SVC_PROVIDER_URL=provider.url,
            OPENROUTER_API_KEY="k",
            SVC_RPM="100000",
            # By this price a call may cost 0.0098 to 0.011 dollars.
            SVC_PROVIDER_OPENROUTER_PRICE="0.01,1280",
        )
        yield one, handler


def bound(one: World, dollars: float) -> None:
    limit = round(dollars * NANO)
    Budgets(one.services.database).set(Budget(Scope.PROJECT, "shop", Per.DAY, limit))


def test_a_job_ends_where_its_budget_is_spent(made: tuple[World, Aggregator]) -> None:
    one, handler = made
    job_id = one.submit(50, model=MODEL, budget_usd=0.125)
    with one.running():
        job = one.ended(job_id, "failed")
    assert job["reason"] == "the budget of the job, $0.125, is spent"
    assert job["budget_usd"] == 0.125
    # What the last call may have cost at most did not fit any more.
    assert 11 <= job["answered"] == handler.calls <= 12
    assert job["cost_usd"] == pytest.approx(handler.calls * COST)


def test_a_job_within_its_budget_is_answered(made: tuple[World, Aggregator]) -> None:
    one, _ = made
    job_id = one.submit(10, model=MODEL, budget_usd=1)
    with one.running():
        assert one.ended(job_id)["answered"] == 10


def test_a_job_waits_for_the_budget_of_its_project(made: tuple[World, Aggregator]) -> None:
    one, handler = made
    bound(one, 0.055)
    job_id, free = one.submit(8, model=MODEL, project="shop"), one.submit(2, about="Dog")
    with one.running():
        until(lambda: one.job(job_id)["waiting_for"] is not None)
        assert one.job(job_id)["waiting_for"] == 'the budget of project "shop"'
        assert one.ended(free)["answered"] == 2
    assert one.job(job_id)["answered"] == handler.calls <= 5
    bound(one, 1)
    with one.running():
        assert one.ended(job_id)["answered"] == 8


@pytest.mark.parametrize("amount", [0, -1, "1", None, 2e9])
def test_a_budget_out_of_range_is_refused(made: tuple[World, Aggregator], amount: object) -> None:
    body = {"questions": {"q": {"type": "noul", "instructions": "Late?"}}, "budget_usd": amount}
    one, _ = made
    refused = one.client.post("/v1/batch", json={**body, "rows": [{"id": "a", "state": "x"}]})
    assert (refused.status_code, "budget_usd" in refused.text) == (422, True)
