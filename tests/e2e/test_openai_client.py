"""The official client of OpenAI decides on a really started server, by address and key alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI
from openai.types import Decision

from tests.e2e.serving import Server
from tests.e2e.test_access import make_key
from tests.scripted import Behaviour, Reply, ScriptedProvider, error
from tests.web.models import PREFERS_CATS, reply_to

CALLS = json.loads(Path(__file__).with_name("openai_calls.json").read_text("utf-8"))
PREDICATE = {"type": "predicate", "instructions": "Is it about a cat?"}
PAIR = [{"value": "cat"}, {"value": "dog"}]
CHOICE = {"type": "choice", "instructions": "Which animal is it about?", "choices": PAIR}


def connected(server: Server, key: str = "any") -> OpenAI:
    return OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAI]:
    with Server(tmp_path_factory.mktemp("openai") / "svc.db", "--demo") as server:
        yield connected(server)


def test_the_list_of_calls_is_long() -> None:
    assert len(CALLS) >= 60


@pytest.mark.parametrize("call", CALLS, ids=[one["name"] for one in CALLS])
def test_a_call_with_every_documented_field_is_answered_in_order(
    client: OpenAI, call: dict[str, Any]
) -> None:
    raw = client.decisions.with_raw_response.create(**call["call"])
    # Its own parser is lenient; this one takes nothing but the declared types.
    decision = Decision.model_validate_json(raw.text, strict=True)
    asked = call["call"]["questions"]
    assert len(decision.answers) == len(asked)
    for question, answer in zip(asked, decision.answers, strict=True):
        if answer.type == "refusal":
            assert "when" in question
            continue
        assert (answer.type, answer.name) == (question["type"], question.get("name"))
        if answer.type == "choice":
            values = [(type(one["value"]), one["value"]) for one in question["choices"]]
            found = [(type(one.value), one.value) for one in answer.probabilities]
            assert found[: len(values)] == values
            assert sum(one.probability for one in answer.probabilities) == pytest.approx(1)
        elif answer.type == "score":
            assert [one.label for one in answer.probabilities] == [
                one["label"] for one in question["levels"]
            ]
    assert decision.usage.total_tokens == decision.usage.input_tokens + decision.usage.output_tokens


def test_our_own_fields_ride_along_and_feedback_knows_the_decision(client: OpenAI) -> None:
    decision = client.decisions.create(
        model="gpt-6-luna",
        input="The invoice is wrong, I want my money back",
        questions=[{**CHOICE, "name": "animal"}, PREDICATE],  # type: ignore[list-item]
        extra_body={"project": "zoo", "coverage": 0.9, "min_confidence": 1, "ref": "t-7"},
    )
    own = decision.model_extra or {}
    assert (own["project"], own["ref"], decision._request_id is None) == ("zoo", "t-7", False)
    first, second = (answer.model_extra or {} for answer in decision.answers)
    assert (first["question"], first["calibrated"], first["abstain"]) == ("animal", False, True)
    assert second["question"] == "questions[1]"
    for question, label in (("animal", "cat"), (second["question"], True)):
        body = {"decision_id": own["id"], "question": question, "label": label}
        taken: Any = client.post("/feedback", cast_to=object, body=body)
        assert taken["labels"] == 1


def test_the_models_that_can_be_asked_are_listed(client: OpenAI) -> None:
    names = [model.id for model in client.models.list()]
    assert names[:2] == ["@demo/lexical", "svc-latest"]


# --- errors ---


def unruly(body: dict[str, Any], n: int, headers: Any) -> Behaviour:
    """Models that do as their names say."""
    if body["model"] == "gone":
        return Reply(error("no such model", code="model_not_found"), status=404)
    if body["model"] == "broken":
        return Reply(error("no"), status=400)
    return Reply(reply_to(PREFERS_CATS, body), delay=3.0 if body["model"] == "slow" else 0.0)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, dict[str, str]]]:
    """A server with keys, and these by their names."""
    db = tmp_path_factory.mktemp("guarded") / "svc.db"
    options = {"all": (), "shop": ("--project", "shop"), "rare": ("--rpm", "1")}
    with ScriptedProvider(unruly) as provider:
        keys = {name: make_key(db, name, *more)[1] for name, more in options.items()}
        variables = {"SVC_PROVIDER_SCRIPTED_URL": provider.url, "SVC_MODEL": "@scripted/m"}
        with Server(db, "--max-body-mb", "1", **variables) as server:
            yield server, keys


def call(**fields: Any) -> dict[str, Any]:
    return {"model": "any", "input": "The cat sat.", "questions": [PREDICATE], **fields}


BAD_PART = [{"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "poem"}]}]
ERRORS: list[tuple[str, dict[str, Any], type[openai.APIStatusError], str | None, str, str]] = [
    # (key, call, class, param, code, x-should-retry)
    (
        "all",
        call(input=BAD_PART),
        openai.BadRequestError,
        "input[0].content[1].type",
        "invalid_request",
        "false",
    ),
    (
        "all",
        call(questions=[PREDICATE, {**CHOICE, "choices": PAIR * 2}]),
        openai.BadRequestError,
        "questions[1].choices[2].value",
        "invalid_request",
        "false",
    ),
    (
        "all",
        call(questions=[]),
        openai.BadRequestError,
        "questions",
        "invalid_request",
        "false",
    ),
    (
        "all",
        call(extra_body={"min_confidance": 1}),
        openai.BadRequestError,
        "min_confidance",
        "invalid_request",
        "false",
    ),
    (
        "all",
        call(model="@nobody/m"),
        openai.BadRequestError,
        None,
        "invalid_request",
        "false",
    ),
    ("wrong", call(), openai.AuthenticationError, None, "unauthorized", "false"),
    (
        "shop",
        call(extra_body={"project": "bank"}),
        openai.PermissionDeniedError,
        None,
        "forbidden",
        "false",
    ),
    ("all", call(input="x" * 1_100_000), openai.APIStatusError, None, "too_large", "false"),
    (
        "all",
        call(model="@scripted/gone"),
        openai.InternalServerError,
        None,
        "model_unavailable",
        "false",
    ),
    (
        "all",
        call(model="@scripted/broken"),
        openai.InternalServerError,
        None,
        "model_error",
        "true",
    ),
    ("rare", call(), openai.RateLimitError, None, "rate_limited", "true"),
]


@pytest.mark.parametrize("row", ERRORS, ids=[f"{row[4]} {row[3]}" for row in ERRORS])
def test_an_error_is_of_the_right_class_and_says_where_it_is(
    guarded: tuple[Server, dict[str, str]], row: Any
) -> None:
    who, sent, kind, param, code, again = row
    server, keys = guarded
    client = connected(server, keys.get(who, "svc_wrong"))
    with pytest.raises(kind) as raised:
        for _ in range(2 if who == "rare" else 1):
            client.decisions.create(**sent)
    assert (raised.value.param, raised.value.code) == (param, code)
    assert raised.value.response.headers["x-should-retry"] == again
    if again == "true" and code == "rate_limited":
        assert int(raised.value.response.headers["Retry-After"]) > 0


def test_a_call_that_takes_too_long_is_a_timeout(guarded: tuple[Server, dict[str, str]]) -> None:
    server, keys = guarded
    client = connected(server, keys["all"])
    with pytest.raises(openai.APITimeoutError):
        client.decisions.create(**call(model="@scripted/slow"), timeout=0.5)
