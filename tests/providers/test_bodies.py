from dataclasses import replace

import pytest

from svc.providers.bodies import JSON_OBJECT, JSON_SCHEMA, ChatCall, build_body
from svc.providers.catalog import build_catalog
from svc.providers.traits import OBJECT_SCHEMA, REASONING_OFF, Traits
from svc.settings import load

MESSAGES = ({"role": "user", "content": "hello"},)
SCHEMA = {"type": "object", "properties": {}}
KEYS = ("OPENROUTER", "OPENAI", "DEEPSEEK", "FIREWORKS", "XAI", "GROQ")
CATALOG = build_catalog(load({f"{name}_API_KEY": "k" for name in KEYS}))


def body(provider, refused=(), known=None, **call):
    """The body for a model that refuses some fields, and of which more may be `known`."""
    call = ChatCall(MESSAGES, **{"max_tokens": 50, **call})
    traits = replace(known or Traits(), refused=frozenset(refused))
    return build_body(CATALOG[provider], "vendor/m", call, traits)


def test_everybody_else_gets_a_plain_body():
    assert body("groq", think=True, deny_data_collection=True) == {
        "model": "vendor/m",
        "messages": list(MESSAGES),
        "temperature": 0,
        "max_tokens": 50,
    }


def test_the_aggregator_gets_its_routing_fields():
    assert body("openrouter") == {
        "model": "vendor/m",
        "messages": list(MESSAGES),
        "temperature": 0,
        "max_completion_tokens": 50,
        "provider": {"data_collection": "allow", "require_parameters": True},
        "reasoning": {"effort": "none"},
    }


def test_strict_privacy_and_thinking_show_in_the_routing_fields():
    routed = body("openrouter", think=True, deny_data_collection=True)
    assert routed["provider"]["data_collection"] == "deny"
    assert routed["reasoning"] == {"effort": "low"}


@pytest.mark.parametrize(("name", "asked"), [("openai", 20), ("fireworks", 5), ("xai", 8)])
def test_logprobs_are_asked_for_as_far_as_the_provider_gives_them(name, asked):
    sent = body(name, logprobs=True)
    assert (sent["logprobs"], sent["top_logprobs"]) == (True, asked)
    assert "logprobs" not in body(name)


@pytest.mark.parametrize(
    ("name", "known", "asked"), [("openai", 5, 5), ("openai", 1, 1), ("xai", 20, 8)]
)
def test_no_more_alternatives_are_asked_for_than_the_model_gives(name, known, asked):
    assert body(name, known=Traits(top_logprobs=known), logprobs=True)["top_logprobs"] == asked


def test_a_schema_is_sent_beside_a_json_object_until_it_is_refused_there():
    call = {"schema": SCHEMA, "reply_format": JSON_OBJECT}
    bound = {"type": "json_object", "schema": SCHEMA}
    assert body("groq", **call)["response_format"] == bound
    assert body("groq", refused=[OBJECT_SCHEMA], **call)["response_format"] == {
        "type": "json_object"
    }
    assert (
        body("groq", refused=[OBJECT_SCHEMA], schema=SCHEMA, reply_format=JSON_SCHEMA)[
            "response_format"
        ]["json_schema"]["schema"]
        == SCHEMA
    )


def test_a_reply_in_words_alone_is_not_bound():
    assert "response_format" not in body("groq", schema=SCHEMA, reply_format="")
    assert "response_format" not in body("groq", reply_format=JSON_SCHEMA)


def test_a_schema_is_sent_in_the_strict_form():
    assert body("openai", schema=SCHEMA)["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answers", "strict": True, "schema": SCHEMA},
    }


def test_deepseek_is_told_not_to_think():
    assert body("deepseek")["thinking"] == {"type": "disabled"}


@pytest.mark.parametrize(
    ("name", "usual", "other"),
    [
        ("openai", "max_completion_tokens", "max_tokens"),
        ("groq", "max_tokens", "max_completion_tokens"),
    ],
)
def test_a_refused_token_limit_is_sent_under_its_other_name_then_not_at_all(name, usual, other):
    assert body(name)[usual] == 50
    swapped = body(name, refused=[usual])
    assert usual not in swapped and swapped[other] == 50
    assert not {usual, other} & body(name, refused=[usual, other]).keys()


def test_refused_parameters_are_left_out():
    sent = body("openrouter", refused=["temperature", "reasoning", "require_parameters"])
    assert "temperature" not in sent and "reasoning" not in sent
    assert sent["provider"] == {"data_collection": "allow"}


def test_what_makes_the_request_is_never_left_out():
    sent = body("openrouter", refused=["model", "messages", "provider"], deny_data_collection=True)
    assert sent["model"] and sent["messages"]
    assert sent["provider"]["data_collection"] == "deny"


@pytest.mark.parametrize(
    ("known", "asked", "sent"),
    [
        (Traits(), 4_000, 4_000),
        (Traits(most_tokens=2_048), 4_000, 2_048),
        (Traits(most_tokens=2_048), 100, 100),
        (Traits(least_tokens=200), 100, 200),
        (Traits(least_tokens=200), 300, 300),
        (Traits(most_tokens=8), 100, 16),
    ],
)
def test_the_output_limit_stays_within_the_bounds_of_the_model(known, asked, sent):
    assert body("groq", known=known, max_tokens=asked)["max_tokens"] == sent


def test_a_model_that_must_reason_is_asked_to_reason_little():
    assert body("openrouter", refused=[REASONING_OFF])["reasoning"] == {"effort": "low"}
    assert "reasoning" not in body("openrouter", refused=[REASONING_OFF, "reasoning"])


def test_a_server_of_ones_own_may_be_asked_for_a_single_token():
    assert body("ollama", max_tokens=3)["max_tokens"] == 3


def test_no_endpoint_is_asked_for_fewer_tokens_than_it_allows():
    assert body("openai", max_tokens=3)["max_completion_tokens"] == 16
