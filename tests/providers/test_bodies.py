import pytest

from svc.providers.bodies import ChatCall, build_body
from svc.providers.catalog import build_catalog
from svc.settings import load

MESSAGES = ({"role": "user", "content": "hello"},)
SCHEMA = {"type": "object", "properties": {}}
KEYS = ("OPENROUTER", "OPENAI", "DEEPSEEK", "FIREWORKS", "XAI", "GROQ")
CATALOG = build_catalog(load({f"{name}_API_KEY": "k" for name in KEYS}))


def body(provider, refused=(), **call):
    call = ChatCall(MESSAGES, **{"max_tokens": 50, **call})
    return build_body(CATALOG[provider], "vendor/m", call, frozenset(refused))


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


def test_a_model_without_logprobs_can_still_be_asked_for_them():
    assert body("openai", refused=["no_logprobs"], logprobs=True)["logprobs"] is True


def test_no_endpoint_is_asked_for_fewer_tokens_than_it_allows():
    assert body("openai", max_tokens=3)["max_completion_tokens"] == 16
