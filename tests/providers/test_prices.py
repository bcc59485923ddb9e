from dataclasses import replace

import pytest

from svc.providers.catalog import Provider
from svc.providers.prices import cost_usd
from svc.providers.replies import Completion

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
        ("openai", "gpt-4", 0.0),
        ("openai", "o3-pro", 0.0),
        ("anthropic", "claude-haiku-4-5-20251001", 6.0),
        ("anthropic", "claude-haiku-4.5", 6.0),
        ("anthropic", "claude-haiku-4-5-latest", 6.0),
        ("anthropic", "claude-opus-5", 30.0),
        ("anthropic", "claude-opus-5-5", 24.0),
        ("anthropic", "claude-opus-4-1-20250805", 0.0),
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
