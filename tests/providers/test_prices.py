from dataclasses import replace
from datetime import date

import pytest

from svc.pins import PINS
from svc.providers.catalog import BatchTerms, Provider, build_catalog
from svc.providers.prices import LIST_PRICES, READ_ON, cost_usd, price_of
from svc.providers.replies import Completion
from svc.settings import Settings

MILLION = Completion("A", input_tokens=1_000_000, output_tokens=1_000_000)


def provider(name, **facts):
    return Provider(name, "https://x", **facts)


@pytest.mark.parametrize(
    ("name", "model", "dollars"),
    [
        ("openai", "gpt-4o", 12.5),
        ("openai", "gpt-4o-mini", 0.75),
        ("openai", "gpt-4o-mini-2024-07-18", 0.75),
        ("openai", "gpt-5", 11.25),
        ("openai", "gpt-5-mini", 2.25),
        ("openai", "gpt-5-mini-2025-08-07", 2.25),
        ("openai", "gpt-5.1", 11.25),
        ("openai", "gpt-5.4-nano", 1.45),
        ("openai", "o3-2025-04-16", 10.0),
        ("openai", "gpt-5-unheard-of", 0.0),
        ("openai", "gpt-4", 90.0),
        ("openai", "gpt-4.1-nano", 0.5),
        ("openai", "o1-2024-12-17", 75.0),
        ("openai", "o3-mini", 5.5),
        ("openai", "o4-mini", 5.5),
        ("openai", "gpt-4-turbo-2024-04-09", 40.0),
        ("openai", "o3-unheard-of", 0.0),
        ("anthropic", "claude-haiku-4-5-20251001", 6.0),
        ("anthropic", "claude-haiku-4.5", 6.0),
        ("anthropic", "claude-haiku-4-5-latest", 6.0),
        ("anthropic", "claude-opus-5", 30.0),
        ("anthropic", "claude-opus-5-5", 24.0),
        ("anthropic", "claude-opus-4-1-20250805", 90.0),
        ("anthropic", "claude-3-haiku-20240307", 1.5),
        ("anthropic", "claude-3-5-sonnet-latest", 18.0),
        ("anthropic", "claude-3-7-sonnet-20250219", 18.0),
        ("anthropic", "claude-2", 0.0),
        ("groq", "gpt-4o", 0.0),
        ("custom", "gpt-4o", 0.0),
    ],
)
def test_the_list_price_is_that_of_the_longest_known_id(name, model, dollars):
    assert cost_usd(provider(name), model, MILLION) == pytest.approx(dollars)


def test_the_operators_price_wins_over_the_list():
    assert cost_usd(provider("openai", price=(1.0, 2.0)), "gpt-4o", MILLION) == 3.0


def test_a_provider_on_this_machine_costs_nothing_also_with_a_price():
    assert cost_usd(provider("openai", price=(1.0, 2.0), local=True), "gpt-4o", MILLION) == 0.0


def test_the_aggregator_costs_what_it_reports_also_on_this_machine():
    aggregator = provider("openrouter", aggregator=True, local=True, price=(1.0, 2.0))
    assert cost_usd(aggregator, "openai/gpt-4o", replace(MILLION, reported_cost=0.5)) == 0.5
    assert cost_usd(aggregator, "openai/gpt-4o", MILLION) == 0.0


def test_another_provider_is_not_believed_about_its_cost():
    assert cost_usd(provider("custom"), "m", replace(MILLION, reported_cost=0.5)) == 0.0


# What each provider has sold under one name, in the order of its release: a list that begins or
# ends later than this one has lost a model that somebody still calls.
SOLD = {
    "openai": """gpt-4-turbo gpt-4o gpt-4o-mini o1 o3-mini gpt-4.1 gpt-4.1-mini gpt-4.1-nano o3
        o4-mini gpt-5 gpt-5-mini gpt-5-nano gpt-5.1 gpt-5.2 gpt-5.4 gpt-5.4-mini gpt-5.4-nano
        gpt-5.5 gpt-6-luna gpt-6-sol""",
    "anthropic": """claude-3-haiku claude-3-sonnet claude-3-opus claude-3-5-haiku
        claude-3-5-sonnet claude-3-7-sonnet claude-sonnet-4 claude-opus-4 claude-opus-4-1
        claude-sonnet-4-5 claude-haiku-4-5 claude-opus-4-5 claude-opus-4-6 claude-sonnet-4-6
        claude-opus-4-7 claude-opus-4-8 claude-opus-5 claude-sonnet-5 claude-haiku-5-5
        claude-sonnet-5-5 claude-opus-5-5""",
}


@pytest.mark.parametrize("name", SOLD)
def test_no_model_that_was_sold_is_missing_from_the_list(name):
    assert set(SOLD[name].split()) <= set(LIST_PRICES[name])


@pytest.mark.parametrize("name", SOLD)
def test_every_usual_model_and_every_pins_model_has_a_list_price(name):
    usual = build_catalog(Settings(api_keys={f"{name.upper()}_API_KEY": "k"}))[name].usual_models
    pinned = [pin.model.partition("/")[2] for pin in PINS.values() if pin.model.startswith(name)]
    assert all(cost_usd(provider(name), model, MILLION) > 0 for model in [*usual, *pinned])


def test_every_price_is_that_of_a_day_and_output_costs_more_than_input():
    assert date.today() >= READ_ON
    rows = [price for prices in LIST_PRICES.values() for price in prices.values()]
    assert all(0 < price[0] < price[1] for price in rows)


def test_a_call_in_a_batch_costs_what_the_provider_takes_for_batches():
    batched = provider("openai", batch=BatchTerms(), rpm=60).batched()
    assert cost_usd(batched, "gpt-4o", MILLION) == 6.25
    assert price_of(batched, "gpt-4o") == (1.25, 5.0) and batched.rpm is None
    own = provider("own", price=(2.0, 4.0), batch=BatchTerms(price=0.25)).batched()
    assert cost_usd(own, "m", MILLION) == 1.5
    assert price_of(provider("own", batch=BatchTerms()).batched(), "m") is None
