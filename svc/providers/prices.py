"""What a call cost, in dollars."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Protocol

from svc.providers.catalog import Provider
from svc.settings import provider_variable

# The day on which the list prices below were last compared with those of the providers.
READ_ON = date(2026, 11, 21)

# Dollars per million tokens (input, output) of every model of the two providers with list prices.
LIST_PRICES: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "openai": {
        "gpt-3.5-turbo": (0.5, 1.5),
        "gpt-4": (30.0, 60.0),
        "gpt-4-turbo": (10.0, 30.0),
        "gpt-4o": (2.5, 10.0),
        "gpt-4o-mini": (0.15, 0.6),
        "gpt-4.1": (2.0, 8.0),
        "gpt-4.1-mini": (0.4, 1.6),
        "gpt-4.1-nano": (0.1, 0.4),
        "gpt-5": (1.25, 10.0),
        "gpt-5.1": (1.25, 10.0),
        "gpt-5-mini": (0.25, 2.0),
        "gpt-5-nano": (0.05, 0.4),
        "gpt-5.2": (1.75, 14.0),
        "gpt-5.4": (2.5, 15.0),
        "gpt-5.4-mini": (0.75, 4.5),
        "gpt-5.4-nano": (0.2, 1.25),
        "gpt-5.5": (5.0, 30.0),
        "gpt-6-luna": (0.1, 0.5),
        "gpt-6-sol": (2.0, 10.0),
        "o1": (15.0, 60.0),
        "o1-mini": (1.1, 4.4),
        "o1-pro": (150.0, 600.0),
        "o3": (2.0, 8.0),
        "o3-mini": (1.1, 4.4),
        "o3-pro": (20.0, 80.0),
        "o4-mini": (1.1, 4.4),
    },
    "anthropic": {
        "claude-3-haiku": (0.25, 1.25),
        "claude-3-sonnet": (3.0, 15.0),
        "claude-3-opus": (15.0, 75.0),
        "claude-3-5-haiku": (0.8, 4.0),
        "claude-3-5-sonnet": (3.0, 15.0),
        "claude-3-7-sonnet": (3.0, 15.0),
        "claude-sonnet-4": (3.0, 15.0),
        "claude-opus-4": (15.0, 75.0),
        "claude-opus-4-1": (15.0, 75.0),
        "claude-haiku-4-5": (1.0, 5.0),
        "claude-haiku-5-5": (0.1, 0.5),
        "claude-sonnet-4-5": (3.0, 15.0),
        "claude-sonnet-4-6": (3.0, 15.0),
        "claude-sonnet-5": (2.0, 10.0),
        "claude-sonnet-5-5": (2.0, 10.0),
        "claude-opus-4-5": (5.0, 25.0),
        "claude-opus-4-6": (5.0, 25.0),
        "claude-opus-4-7": (5.0, 25.0),
        "claude-opus-4-8": (5.0, 25.0),
        "claude-opus-5": (5.0, 25.0),
        "claude-opus-5-5": (4.0, 20.0),
    },
}
_DATED = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|latest)$", re.ASCII)


class TokenUsage(Protocol):
    """The part of a completion that says what it used; counts are never negative."""

    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...
    @property
    def reported_cost(self) -> float | None: ...


def undated(model_name: str) -> str:
    """A model's id without the date of its release: gpt-4o-mini-2024-07-18 is gpt-4o-mini."""
    return _DATED.sub("", model_name)


def price_variable(provider: Provider) -> str:
    """The variable that says the price of a provider's models."""
    return provider_variable(provider.name, "PRICE")


def cost_usd(provider: Provider, model_name: str, usage: TokenUsage) -> float:
    """Dollars for one call: as the aggregator reports, else tokens times price, else 0."""
    if provider.aggregator:
        return usage.reported_cost or 0.0
    price = price_of(provider, model_name) or (0.0, 0.0)
    return (usage.input_tokens * price[0] + usage.output_tokens * price[1]) / 1e6


def price_of(provider: Provider, model_name: str) -> tuple[float, float] | None:
    """Dollars per million tokens of input and output, None where nobody knows them before."""
    if provider.local:
        return (0.0, 0.0)
    price = provider.price or _list_price(provider, model_name)
    if price is None or provider.price_share == 1:
        return price
    return price[0] * provider.price_share, price[1] * provider.price_share


def _list_price(provider: Provider, model_name: str) -> tuple[float, float] | None:
    name = undated(model_name).replace("_", "-")
    if provider.name == "anthropic":
        name = name.replace(".", "-")
    return LIST_PRICES.get(provider.name, {}).get(name)
