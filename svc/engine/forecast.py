"""What it will take to ask models about many rows, told before any of them is asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from svc.deadline import Deadline
from svc.engine.load import Load, at_most, of_row
from svc.engine.sample import rows_of
from svc.engine.setup import Choice, Promoted, chosen, nobody_promoted
from svc.errors import InvalidRequest
from svc.providers import Provider, Router, price_of
from svc.records import Model
from svc.schemas import DecisionRequest

# About so many characters of a Latin script are a token
# (https://help.openai.com/en/articles/4936856-what-are-tokens-and-how-to-count-them).
TOKEN_CHARS = 4

# A job leaves half of a provider's rate to others, see `HalfOf`.
_OF_THE_RATE = 2


@dataclass(frozen=True, slots=True)
class ModelForecast:
    """What rows take of one model that is asked about each of them, every question in one attempt.

    `calls_a_minute` are those that its provider allows, None without a limit, and `minutes` how
    long the calls take at that rate. `price` is in dollars per million tokens of input and output.
    It and `cost_usd` are None where no price is known.
    """

    model: str
    provider: str
    calls: int
    calls_a_minute: int | None
    minutes: float | None
    input_tokens: int
    output_tokens: int
    price: tuple[float, float] | None
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run takes at most, and what this was computed from.

    Of its `rows`, `sampled` were looked at. `refused` of these cannot be asked, the first of them
    because of `refused_because`; `asked` is how many of all rows are left by that share. A sampled
    row has `state_chars` characters on average. `minutes` is None where no provider has a rate, and
    `job_minutes` is the same for a job, which takes half of it. `cost_usd` is None where a price
    is not known; `without_price` names the providers.
    """

    rows: int
    sampled: int
    refused: int
    refused_because: str | None
    asked: int
    state_chars: int
    calls: int
    minutes: float | None
    job_minutes: float | None
    cost_usd: float | None
    without_price: tuple[str, ...]
    models: tuple[ModelForecast, ...]


@dataclass(frozen=True, slots=True)
class Forecaster:
    """Says what rows take that are asked alike; `request` is about none of them."""

    request: DecisionRequest
    choice: Choice
    models: tuple[tuple[Model, Provider], ...]

    @property
    def calls(self) -> int:
        """The calls of a row of which nothing is skipped or answered by a rule."""
        return self.choice.calls

    @property
    def providers(self) -> tuple[Provider, ...]:
        """The provider of each model."""
        return tuple(provider for _, provider in self.models)

    def forecast(self, sample: Sequence[Any], rows: int, deadline: Deadline) -> Forecast:
        """What so many rows take, by a sample of their states; without one, by the questions alone.

        Of a sample with long states, the first ones are looked at. Raises `Timeout`.
        """
        sampled, reasons = rows_of(self.request, sample)
        looked_at = len(sampled) + len(reasons)
        asked = round(rows * len(sampled) / looked_at) if sample else rows
        pin, orders = self.choice.pin, self.choice.orders
        loads = [of_row(row, pin, orders, deadline) for row in sampled]
        if not sample:
            loads = [at_most(self.request, pin, orders)]
        total = sum(loads, Load()).times(asked / max(1, len(loads)))
        models = tuple(_of_model(total, *one) for one in self.models)
        minutes = _minutes(models)
        unknown = sorted({one.provider for one in models if one.price is None})
        return Forecast(
            rows=rows,
            sampled=looked_at,
            refused=len(reasons),
            refused_because=reasons[0] if reasons else None,
            asked=asked,
            state_chars=sum(len(one.state.text) for one in sampled) // max(1, len(sampled)),
            calls=sum(one.calls for one in models),
            minutes=minutes,
            job_minutes=None if minutes is None else _OF_THE_RATE * minutes,
            cost_usd=None if unknown else sum(one.cost_usd or 0.0 for one in models),
            without_price=tuple(unknown),
            models=models,
        )


def forecaster(
    router: Router,
    latest: str,
    request: DecisionRequest,
    batched: bool = False,
    promoted: Promoted = nobody_promoted,
) -> Forecaster:
    """Who says what rows take of the models of a request, in batches of the providers or not.

    `latest` is the config that `svc-latest` stands for. Raises `ApiError` for what could not be
    asked about any row.
    """
    choice = chosen(router, latest, request, promoted)
    providers = [router.provider(model) for model in choice.models]
    if batched:
        providers = [_batched(one) for one in providers]
    models = tuple(zip(choice.models, providers, strict=True))
    return Forecaster(request, choice, models)


def _batched(provider: Provider) -> Provider:
    if provider.no_batches:
        raise InvalidRequest(f"batch: {provider.no_batches}")
    return provider.batched()


def _of_model(total: Load, model: Model, provider: Provider) -> ModelForecast:
    calls, rpm = round(total.calls), provider.rpm
    tokens = round(total.chars / TOKEN_CHARS), round(total.output_tokens)
    price = price_of(provider, model.name)
    cost = None
    if price is not None:
        cost = sum(count * each for count, each in zip(tokens, price, strict=True)) / 1e6
    minutes = None if rpm is None else calls / rpm
    return ModelForecast(model.id, provider.name, calls, rpm, minutes, *tokens, price, cost)


def _minutes(models: Iterable[ModelForecast]) -> float | None:
    """How long all of them take side by side; those of a provider share its rate."""
    minutes: dict[str, float] = defaultdict(float)
    for one in models:
        if one.minutes is not None:
            minutes[one.provider] += one.minutes
    return max(minutes.values(), default=None)
