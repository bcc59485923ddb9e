"""`POST /v1/forecast`: what many rows take; no model is asked."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from svc import limits
from tests.scripted import Behaviour, Json
from tests.web.conftest import Start
from tests.web.models import ANIMAL
from tests.web.shape import assert_error

SETTINGS = {
    "SVC_MODEL": "@own/m",
    "SVC_PROVIDER_OWN_URL": "https://own.invalid",
    "SVC_PROVIDER_OWN_RPM": "600",
    "SVC_PROVIDER_OWN_PRICE": "1,2",
    "SVC_PROVIDER_OWN_BATCH": "1",
    "SVC_PROVIDER_OTHER_URL": "https://other.invalid",
    "SVC_PROVIDER_OTHER_RPM": "60",
}
RULED = {**ANIMAL, "rules": [{"if": {"kind": "cat"}, "answer": "cat"}]}


@pytest.fixture
def client(start: Start) -> FlaskClient:
    def never(body: Json, n: int, headers: object) -> Behaviour:
        raise AssertionError("a model was asked")

    return start(never, **SETTINGS).test_client()


def said(client: FlaskClient, sample: Any, question: Any = ANIMAL, **fields: Any) -> Any:
    body = {"questions": {"animal": question}, "sample": sample, **fields}
    return client.post("/v1/forecast", json=body)


def test_calls_minutes_and_dollars_are_those_of_all_rows(client: FlaskClient) -> None:
    forecast = said(client, ["The cat sat.", "A dog came by."], rows=3_000).get_json()
    assert (forecast["rows"], forecast["sampled"], forecast["asked"]) == (3_000, 2, 3_000)
    # Both orders of each row, at 600 a minute, of which a job takes half.
    assert (forecast["calls"], forecast["minutes"], forecast["job_minutes"]) == (6_000, 10, 20)
    assert forecast["state_chars"] == 13
    (model,) = forecast["models"]
    assert (model["model"], model["calls_a_minute"], model["price"]) == ("@own/m", 600, [1, 2])
    tokens = model["input_tokens"] + 2 * model["output_tokens"]
    assert forecast["cost_usd"] == model["cost_usd"] == pytest.approx(tokens / 1e6)


def test_longer_states_cost_as_many_tokens_more(client: FlaskClient) -> None:
    short, long = (
        said(client, ["x" * chars], rows=1_000).get_json()["models"][0] for chars in (100, 500)
    )
    assert long["input_tokens"] - short["input_tokens"] == 2 * 1_000 * 400 / 4
    assert long["output_tokens"] == short["output_tokens"]


def test_fields_of_the_request_count(client: FlaskClient) -> None:
    usual = said(client, ["a"]).get_json()
    assert said(client, ["a"], debias=False).get_json()["calls"] == usual["calls"] / 2
    verbal = said(client, ["a"], mode="verbal").get_json()
    assert verbal["models"][0]["output_tokens"] > 5 * usual["models"][0]["output_tokens"]
    thinking = said(client, ["a"], think=True).get_json()
    assert thinking["models"][0]["output_tokens"] > 5 * verbal["models"][0]["output_tokens"]


def test_rows_that_rules_answer_take_no_call(client: FlaskClient) -> None:
    sample = [{"kind": "cat"}, {"kind": "cat"}, {"kind": "dog"}, {}]
    assert said(client, sample, RULED, rows=400).get_json()["calls"] == 400
    skipping = {**ANIMAL, "when": {"kind": "dog"}}
    assert said(client, sample, skipping, rows=400).get_json()["calls"] == 200


def test_rows_that_cannot_be_asked_are_counted_and_cost_nothing(client: FlaskClient) -> None:
    sample = [{"kind": "dog"}, "a text has no fields", "x" * (limits.STATE_CHARS + 1)]
    forecast = said(client, sample, RULED, rows=300).get_json()
    assert (forecast["refused"], forecast["asked"], forecast["calls"]) == (2, 100, 200)
    assert "needs a state that is an object" in forecast["refused_because"]
    nothing = said(client, ["a"], RULED, rows=300).get_json()
    assert (nothing["asked"], nothing["calls"], nothing["cost_usd"]) == (0, 0, 0)


def test_a_price_that_is_not_known_is_said_and_not_guessed(client: FlaskClient) -> None:
    council = {"council": ["@own/m", "@other/m", "@own/n"]}
    forecast = said(client, ["a"], model=council, rows=60).get_json()
    assert (forecast["cost_usd"], forecast["without_price"]) == (None, ["other"])
    assert [one["cost_usd"] is None for one in forecast["models"]] == [False, True, False]
    # 120 calls at 60 a minute, beside 240 at 600.
    assert (forecast["calls"], forecast["minutes"]) == (360, 2)


def test_batches_of_a_provider_have_their_price_and_no_rate(client: FlaskClient) -> None:
    direct, batched = said(client, ["a"]).get_json(), said(client, ["a"], batch="provider")
    assert batched.get_json()["cost_usd"] == pytest.approx(direct["cost_usd"] / 2)
    assert (batched.get_json()["minutes"], batched.get_json()["calls"]) == (None, 2)
    refused = said(client, ["a"], batch="provider", model="@other/m")
    assert "SVC_PROVIDER_OTHER_BATCH=1" in assert_error(refused, 422, "invalid_request")


def test_without_a_sample_the_questions_alone_are_counted(client: FlaskClient) -> None:
    forecast = said(client, [], RULED, rows=10).get_json()
    assert (forecast["asked"], forecast["calls"], forecast["state_chars"]) == (10, 20, 0)
    assert said(client, []).get_json()["calls"] == 0


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"sample": ["a"] * 101}, "sample: must be a list of at most 100 states"),
        ({"sample": {}}, "sample: must be a list"),
        ({"rows": -1}, "rows: must be a whole number"),
        ({"batch": "mine"}, "batch: unknown batch"),
        ({"state": "a"}, "state: unknown field"),
        ({"model": "@nobody/m"}, "SVC_PROVIDER_NOBODY_URL"),
        ({"privacy": "strict"}, "strict is not possible"),
        ({"model": {"council": [f"@own/{n}" for n in range(5)]}, "think": 1}, "think"),
    ],
)
def test_what_could_not_be_asked_is_refused(
    client: FlaskClient, fields: dict[str, Any], words: str
) -> None:
    given = {"sample": ["a"], **fields}
    assert words in assert_error(said(client, **given), 422, "invalid_request")


def test_nothing_is_kept_and_no_master_key_is_needed(start: Start) -> None:
    app = start(**SETTINGS)
    client = app.test_client()
    said(client, ["The cat sat."], project="shop")
    assert client.get("/v1/projects").get_json()["projects"] == []


def test_of_a_sample_with_long_states_the_first_rows_are_looked_at(client: FlaskClient) -> None:
    long = "x" * (limits.SAMPLE_CHARS // 4)
    forecast = said(client, [long] * 100, rows=1_000).get_json()
    assert (forecast["sampled"], forecast["asked"]) == (4, 1_000)
    assert forecast["state_chars"] == len(long)


def test_of_a_sample_that_many_rules_look_into_the_first_rows_are_looked_at(
    client: FlaskClient,
) -> None:
    rules = [{"if": {"text": {"contains": f"{n}"}}, "answer": "cat"} for n in range(32)]
    questions = {f"q{n}": {**ANIMAL, "rules": rules} for n in range(50)}
    state = {"text": "x" * (limits.SAMPLE_SEARCHED_CHARS // (32 * 50) // 4)}
    forecast = said(client, [state] * 100, questions=questions, rows=1_000).get_json()
    assert (forecast["sampled"], forecast["asked"]) == (4, 1_000)


def test_of_a_sample_whose_questions_have_many_options_the_first_rows_are_looked_at(
    client: FlaskClient,
) -> None:
    """Where each row is asked other questions, prompts are written anew for each."""
    names = [f"{number:03}" for number in range(200)]
    questions = {
        f"q{number}": {**ANIMAL, "options": dict.fromkeys(names, ""), "when": {f"f{number}": 1}}
        for number in range(50)
    }
    fields = [f"f{number}" for number in range(50)]
    rows = [dict.fromkeys({*fields} - {left_out}, 1) for left_out in fields]
    forecast = said(client, rows, questions=questions, rows=1_000).get_json()
    assert (forecast["sampled"], forecast["asked"]) == (limits.SAMPLE_OPTIONS // 10_000, 1_000)
