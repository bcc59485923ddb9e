"""Budgets in dollars as callers meet them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from svc.store import NANO, ApiKeys, Budget, Budgets, Per, Scope
from tests.scripted import Behaviour, Json, Reply, Reset, ScriptedProvider, error
from tests.web.conftest import Start
from tests.web.models import ANIMAL, PREFERS_CATS, decision, reply_to
from tests.web.shape import assert_error

COST = 0.01
# By this price a call may cost 0.0098 to 0.011 dollars.
PRICE = {"SVC_PROVIDER_OPENROUTER_PRICE": "0.01,1280"}
MODEL = "vendor/m"

Serve = Callable[..., Flask]


class Aggregator:
    """Says what each call cost, and counts the calls."""

    def __init__(
        self,
        cost: float | None = COST,
        fails: bool = False,
        breaks: bool = False,
        withholds: bool = False,
    ) -> None:
        """`breaks` has each connection break within the reply, `withholds` keeps answers back."""
        self.cost, self.fails, self.breaks, self.calls = cost, fails, breaks, 0
        self.withholds = withholds

    def __call__(self, body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        self.calls += 1
        if self.fails:
            return Reply(error("it broke"), 400)
        whole = reply_to(PREFERS_CATS, body)
        if self.cost is not None:
            whole["usage"]["cost"] = self.cost
        if self.withholds:
            whole["choices"][0]["finish_reason"] = "content_filter"
        return Reset(Reply(whole), 200) if self.breaks else Reply(whole)


@pytest.fixture
def serve(start: Start) -> Iterator[Serve]:
    with ExitStack() as stack:

        def serve(handler: Aggregator, **environ: str) -> Flask:
            provider = stack.enter_context(ScriptedProvider(handler))
            fixed = {"SVC_MASTER_KEY": "m", "OPENROUTER_API_KEY": "k"}
            return start(SVC_PROVIDER_URL=provider.url, **fixed, **environ)

        yield serve


def put(app: Flask, dollars: float, subject: str = "shop", **given: Any) -> None:
    """Set a budget a day before the first request; a later one would count a second late."""
    scope = Scope.KEY if subject.startswith("key_") else Scope.PROJECT
    fields = {"per": Per.DAY, **given}
    Budgets(app.extensions["svc"].database).set(
        Budget(scope, subject, limit=round(dollars * NANO), **fields)
    )


def ask(app: Flask, state: str, key: str | None = None, **fields: Any) -> TestResponse:
    body = decision(state, **{"debias": False, "project": "shop", "model": MODEL, **fields})
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return app.test_client().post("/v1/decide", json=body, headers=headers)


def shown(app: Flask, key: str | None = None) -> list[Json]:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    found: list[Json] = app.test_client().get("/v1/budgets", headers=headers).get_json()["budgets"]
    return found


def test_calls_within_the_budget_are_made_and_the_next_one_is_refused(serve: Serve) -> None:
    handler = Aggregator()
    app = serve(handler, **PRICE)
    put(app, 0.05)
    statuses = [ask(app, f"cat {number}").status_code for number in range(7)]
    assert statuses == [200] * 4 + [429] * 3
    assert handler.calls == 4


def test_the_refusal_says_which_budget_and_when_it_renews(serve: Serve) -> None:
    app = serve(Aggregator(), **PRICE)
    put(app, 0.001)
    refused = ask(app, "cat")
    tomorrow = datetime.now(UTC).replace(hour=0, minute=0, second=0) + timedelta(days=1)
    assert_error(refused, 429, "rate_limited")
    assert refused.get_json()["error"]["message"] == (
        f'the budget of project "shop", $0.001 a day, is spent; it renews at '
        f"{tomorrow:%Y-%m-%d}T00:00:00Z"
    )
    left_s = (tomorrow - datetime.now(UTC)).total_seconds()
    assert int(refused.headers["Retry-After"]) == pytest.approx(left_s, abs=5)


def test_each_dialect_has_the_refusal_in_its_shape(serve: Serve) -> None:
    app = serve(Aggregator(), **PRICE)
    put(app, 0.001)
    client = app.test_client()
    question = {"type": "predicate", "instructions": "Is it about a cat?"}
    body = {"input": "The cat sat.", "questions": [question], "project": "shop", "model": MODEL}
    openai = client.post("/v1/decisions", json=body)
    assert (openai.status_code, openai.get_json()["error"]["code"]) == (429, "rate_limited")
    assert openai.headers["x-should-retry"] == "false"
    criteria = {"type": "noul", "instructions": "Is it about a cat?"}
    body = {"state": "The cat.", "questions": {"q": criteria}, "project": "shop", "model": MODEL}
    other = client.post("/v1/systemone", json=body)
    assert (other.status_code, other.get_json()["detail"]["error_type"]) == (429, "rate_limited")
    assert int(openai.headers["Retry-After"]) > 1 and int(other.headers["Retry-After"]) > 1


def test_what_costs_nothing_goes_on_at_the_limit(serve: Serve) -> None:
    app = serve(Aggregator(), **PRICE)
    put(app, 0.015)
    assert ask(app, "cat").status_code == 200
    assert ask(app, "dog").status_code == 429
    cached = ask(app, "cat")
    assert (cached.status_code, cached.get_json()["cached"]) == (200, True)
    ruled = {**ANIMAL, "rules": [{"if": {"from": "zoo"}, "answer": "dog"}]}
    fields = {"project": "shop", "model": MODEL, "questions": {"animal": ruled}}
    by_rule = app.test_client().post("/v1/decide", json={"state": {"from": "zoo"}, **fields})
    assert by_rule.status_code == 200
    assert ask(app, "dog", model="@scripted/m").status_code == 200
    assert ask(app, "bird", model=[MODEL, "@scripted/m"]).get_json()["model"] == "@scripted/m"


def test_a_hard_budget_refuses_a_model_of_unknown_price(serve: Serve) -> None:
    handler = Aggregator()
    app = serve(handler)
    put(app, 5)
    refused = ask(app, "cat")
    assert_error(refused, 422, "invalid_request")
    assert "SVC_PROVIDER_OPENROUTER_PRICE" in refused.get_json()["error"]["message"]
    job = {
        "questions": {"animal": ANIMAL},
        "rows": [{"id": "a", "state": "cat"}],
        "project": "shop",
    }
    handed = app.test_client().post("/v1/batch", json={**job, "model": MODEL})
    assert_error(handed, 422, "invalid_request")
    assert "SVC_PROVIDER_OPENROUTER_PRICE" in handed.get_json()["error"]["message"]
    assert handler.calls == 0
    assert ask(app, "cat", project="other").status_code == 200


def test_a_budget_that_only_warns_refuses_nothing_and_counts(serve: Serve) -> None:
    app = serve(Aggregator())
    put(app, 0.015, hard=False)
    assert [ask(app, f"cat {n}").status_code for n in range(3)] == [200] * 3
    app.extensions["svc"].slices.close()
    (budget,) = shown(app)
    assert (budget["spent_usd"], budget["left_usd"], budget["warns"]) == (3 * COST, 0, True)


def test_both_option_orders_are_paid(serve: Serve) -> None:
    handler = Aggregator()
    app = serve(handler, **PRICE)
    put(app, 0.025)
    assert ask(app, "cat", debias=True).status_code == 200
    assert handler.calls == 2
    assert ask(app, "dog", debias=True).status_code == 429
    assert handler.calls == 2


def test_a_key_has_a_budget_of_its_own_beside_that_of_the_project(serve: Serve) -> None:
    app = serve(Aggregator(), **PRICE)
    keys = ApiKeys(app.extensions["svc"].database)
    first, second = keys.create("first", 600), keys.create("second", 600)
    assert first is not None and second is not None
    put(app, 0.012, first.id)
    put(app, 0.025, per=Per.MONTH)
    assert ask(app, "a", first.text).status_code == 200
    refused = ask(app, "b", first.text)
    assert "the budget of this API key" in refused.get_json()["error"]["message"]
    assert ask(app, "b", second.text).status_code == 200
    refused = ask(app, "c", second.text)
    assert "a month" in refused.get_json()["error"]["message"]
    assert ask(app, "c", second.text, project="other").status_code == 200


def test_calls_that_the_provider_refused_cost_nothing(serve: Serve) -> None:
    app = serve(Aggregator(fails=True), **PRICE)
    put(app, 2)
    assert [ask(app, f"cat {n}").status_code for n in range(3)] == [502] * 3
    app.extensions["svc"].slices.close()
    assert (shown(app)[0]["spent_usd"], shown(app)[0]["reserved_usd"]) == (0, 0)


def test_calls_that_gave_no_answer_and_state_their_cost_are_made_up_to_the_limit(
    serve: Serve,
) -> None:
    handler = Aggregator(cost=200 * COST, withholds=True)
    app = serve(handler, **PRICE)
    put(app, 5)
    assert [ask(app, f"cat {n}").status_code for n in range(5)] == [502] * 3 + [429] * 2
    assert handler.calls == 3
    app.extensions["svc"].slices.close()
    (budget,) = shown(app)
    assert (budget["spent_usd"], budget["reserved_usd"]) == (3 * 200 * COST, 0)


@pytest.mark.parametrize(("limit", "attempts"), [(0.015, 1), (0.025, 2), (1, 3)])
def test_a_call_whose_reply_broke_is_made_again_where_the_budget_has_room_for_it(
    serve: Serve, limit: float, attempts: int
) -> None:
    handler = Aggregator(breaks=True)
    app = serve(handler, **PRICE)
    put(app, limit)
    assert ask(app, "cat").status_code == 502
    assert handler.calls == attempts
    app.extensions["svc"].slices.close()
    (budget,) = shown(app)
    assert budget["spent_usd"] == pytest.approx(attempts * COST, rel=0.2)
    assert budget["spent_usd"] <= limit
    assert budget["reserved_usd"] == 0


def test_a_call_of_which_the_provider_does_not_say_the_cost_counts_with_its_estimate(
    serve: Serve,
) -> None:
    app = serve(Aggregator(cost=None), **PRICE)
    put(app, 1)
    assert ask(app, "cat").status_code == 200
    app.extensions["svc"].slices.close()
    assert shown(app)[0]["spent_usd"] == pytest.approx(COST, rel=0.2)


def test_callers_together_are_admitted_up_to_the_limit(serve: Serve) -> None:
    handler = Aggregator()
    app = serve(handler, **PRICE)
    put(app, 0.2)
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda n: ask(app, f"cat {n}"), range(50)))
    statuses = [answer.status_code for answer in answers]
    assert set(statuses) == {200, 429}
    assert statuses.count(200) == handler.calls <= 0.2 / COST
    app.extensions["svc"].slices.close()
    assert shown(app)[0]["spent_usd"] == pytest.approx(handler.calls * COST)


def test_a_budget_is_shown_with_what_is_spent_of_it(serve: Serve) -> None:
    app = serve(Aggregator(), **PRICE)
    put(app, 0.1)
    ask(app, "cat")
    app.extensions["svc"].slices.close()
    (budget,) = shown(app)
    tomorrow = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    assert budget == {
        "scope": "project",
        "subject": "shop",
        "per": "day",
        "limit_usd": 0.1,
        "spent_usd": COST,
        "reserved_usd": 0,
        "left_usd": 0.09,
        "hard": True,
        "warn_at": 0.8,
        "warns": False,
        "renews_at": int((tomorrow + timedelta(days=1)).timestamp() * 1000),
    }
    text = app.test_client().get("/metrics").text
    series = '{per="day",scope="project",subject="shop"}'
    assert f"svc_budget_limit_dollars{series} 0.1" in text
    assert f"svc_budget_spent_dollars{series} 0.01" in text


def test_a_key_of_one_project_sees_its_own_budgets_and_those_of_its_project(
    serve: Serve,
) -> None:
    app = serve(Aggregator())
    keys = ApiKeys(app.extensions["svc"].database)
    whole, shop = keys.create("whole", 600), keys.create("shop", 600, "shop")
    assert whole is not None and shop is not None
    for subject in ("shop", "bank", whole.id, shop.id):
        put(app, 1, subject)
    assert {one["subject"] for one in shown(app, shop.text)} == {"shop", shop.id}
    assert {one["subject"] for one in shown(app, whole.text)} == {
        *("shop", "bank"),
        *(whole.id, shop.id),
    }


def test_without_budgets_a_decision_reads_and_writes_no_more(serve: Serve) -> None:
    app = serve(Aggregator())
    assert ask(app, "cat").status_code == 200
    services = app.extensions["svc"]
    assert services.slices._looker is None
    assert "svc_budget" not in app.test_client().get("/metrics").text
