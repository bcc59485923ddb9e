from dataclasses import replace
from typing import Any

import pytest

from svc.providers import (
    BadReply,
    BrokenReply,
    CallTimedOut,
    ChatCall,
    Completion,
    DecisionCall,
    Provider,
    ProviderError,
    ServerTrouble,
    Throttled,
    charged_usd,
    most_usd,
    price_variable,
)
from svc.providers.bodies import build_body
from svc.providers.failures import Cancelled, NoLogprobs, UnusableLogprobs, Withheld
from svc.providers.traits import Traits
from svc.questions import PlainQuestion
from svc.usage import StatedUsage

PAID = Provider("acme", "https://acme.example/v1", price=(3.0, 10.0))
AGGREGATOR = Provider("openrouter", "https://or.example/v1", aggregator=True)


def stating(error: ProviderError, *used: Any) -> ProviderError:
    error.usage = StatedUsage(*used)
    return error


def call(content: Any = "x" * 3_000, **fields: Any) -> ChatCall:
    return ChatCall(({"role": "user", "content": content},), max_tokens=100, **fields)


def test_a_call_may_cost_its_bytes_and_its_whole_output_limit() -> None:
    assert most_usd(PAID, "m", call()) == pytest.approx((1_000 * 3 + 100 * 10) / 1e6)


@pytest.mark.parametrize(
    ("traits", "tokens"),
    [
        (Traits(least_tokens=4_096), 4_096),
        (Traits(most_tokens=20), 20),
        (Traits(refused=frozenset({"max_tokens"})), 100),
        (Traits(refused=frozenset({"max_tokens", "max_completion_tokens"})), 16_384),
    ],
)
def test_the_output_limit_is_the_one_that_is_sent(traits: Traits, tokens: int) -> None:
    assert most_usd(PAID, "m", call(), traits) == pytest.approx((1_000 * 3 + tokens * 10) / 1e6)
    body = build_body(PAID, "m", call(), traits)
    assert body.get("max_tokens", body.get("max_completion_tokens", 16_384)) == tokens


def test_letters_of_other_scripts_count_as_the_bytes_that_they_are() -> None:
    latin, japanese = (most_usd(PAID, "m", call(one * 1_000)) for one in ("a", "猫"))
    assert latin is not None and japanese is not None and japanese > 1.5 * latin


def test_pictures_and_schemas_count() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://a.example/1.png"}}
    plain = most_usd(PAID, "m", call([{"type": "text", "text": "x"}]))
    seen = most_usd(PAID, "m", call([{"type": "text", "text": "x"}, picture]))
    bound = most_usd(PAID, "m", call("x", schema={"type": "object"}))
    assert plain is not None and seen is not None and bound is not None
    assert seen == pytest.approx(plain + 2_000 * 3 / 1e6) and bound > plain


def test_a_decision_server_is_paid_for_its_questions_and_the_state() -> None:
    question = PlainQuestion("choice", "Which?", (("a", "x" * 300),), (0,))
    least, most = (most_usd(PAID, "m", DecisionCall((question,), one)) for one in ("", "s" * 3_000))
    assert least is not None and most == pytest.approx(least + 1_000 * 3 / 1e6)


@pytest.mark.parametrize(
    ("provider", "name", "known"),
    [
        (PAID, "m", True),
        (replace(PAID, price=None), "m", False),
        (replace(PAID, price=None, local=True), "m", True),
        (Provider("openai", "https://api.openai.com/v1"), "gpt-4.1-mini", True),
        (Provider("openai", "https://api.openai.com/v1"), "gpt-99", False),
        (AGGREGATOR, "openai/gpt-4.1-mini", False),
        (replace(AGGREGATOR, local=True), "openai/gpt-4.1-mini", False),
        (replace(AGGREGATOR, price=(1.0, 1.0)), "openai/gpt-4.1-mini", True),
    ],
)
def test_a_price_is_known_before_a_call_or_it_is_not(
    provider: Provider, name: str, known: bool
) -> None:
    assert (most_usd(provider, name, call()) is not None) is known


def test_the_variable_that_sets_a_price_has_the_providers_name() -> None:
    assert price_variable(AGGREGATOR) == "SVC_PROVIDER_OPENROUTER_PRICE"


@pytest.mark.parametrize(
    ("provider", "outcome", "charged"),
    [
        (PAID, Completion("a", input_tokens=100, output_tokens=10), 0.0004),
        (PAID, Completion("a"), 1.0),
        (PAID, Completion("a", input_tokens=100), 1.0),
        (PAID, Completion("a", output_tokens=10), 1.0),
        (PAID, Completion("a", output_tokens=150_000), 1.5),
        (PAID, Completion("", input_tokens=100, decided=({0: 1.0},)), 0.0003),
        (AGGREGATOR, Completion("a", input_tokens=5, reported_cost=0.3), 0.3),
        (AGGREGATOR, Completion("a", input_tokens=5), 1.0),
        (PAID, CallTimedOut(), 1.0),
        (PAID, Cancelled(), 1.0),
        (PAID, BadReply(), 1.0),
        (PAID, UnusableLogprobs(), 1.0),
        (PAID, Withheld(), 1.0),
        (PAID, NoLogprobs(), 0.0),
        (PAID, Throttled(), 0.0),
        (PAID, ServerTrouble(), 0.0),
        (PAID, BrokenReply(), 1.0),
        (PAID, stating(Withheld(), 100_000, 150_000), 1.8),
        (PAID, stating(UnusableLogprobs(), 100_000, 150_000), 1.8),
        (PAID, stating(UnusableLogprobs(), 100, 10), 1.0),
        (PAID, stating(NoLogprobs(), 0, 0), 0.0),
        (PAID, stating(BadReply(), 0, 0, 9.0), 1.0),
        (AGGREGATOR, stating(BadReply(), 100, 10, 2.5), 2.5),
        (AGGREGATOR, stating(BadReply(), 100, 10, 0.3), 1.0),
        (AGGREGATOR, stating(BadReply(), 900_000, 900_000), 1.0),
    ],
)
def test_what_a_call_is_charged_is_its_cost_or_the_most_that_it_may_be(
    provider: Provider, outcome: Any, charged: float
) -> None:
    assert charged_usd(provider, "m", outcome, 1.0) == pytest.approx(charged)
