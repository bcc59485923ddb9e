"""What it will take to ask models, before any is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from svc.engine.plans import Group, grouped
from svc.engine.prompt import PromptInput, build
from svc.pins import Pin
from svc.providers import Provider, Way, price_of
from svc.records import Model
from svc.schemas import DecisionRequest
from svc.terms import Mode

# About so many characters of a Latin script are a token
# (https://help.openai.com/en/articles/4936856-what-are-tokens-and-how-to-count-them).
TOKEN_CHARS = 4
# The usual output of a question in tokens: of a label, of its part in JSON, and of thought.
_LABEL_TOKENS, _JSON_TOKENS, _THOUGHT_TOKENS = 2, 24, 300


@dataclass(frozen=True, slots=True)
class ModelForecast:
    """What a decision takes of one model that is asked all its questions, each in one attempt.

    `prompt_chars` are those of all its calls without the state, `rpm` is in calls a minute, None
    without a limit, and `price` in dollars per million tokens of input and output, None where it is
    not known.
    """

    model: str
    provider: str
    calls: int
    prompt_chars: int
    output_tokens: int
    rpm: int | None
    price: tuple[float, float] | None

    def dollars(self, decisions: int, state_chars: int) -> float | None:
        """Dollars for so many decisions about states of so many characters together."""
        if self.price is None:
            return None
        chars = decisions * self.prompt_chars + self.calls * state_chars
        tokens = (chars / TOKEN_CHARS, decisions * self.output_tokens)
        return sum(count * price for count, price in zip(tokens, self.price, strict=True)) / 1e6


def of_model(request: DecisionRequest, pin: Pin, model: Model, provider: Provider) -> ModelForecast:
    """What a decision on the request takes of one of its models."""
    calls = prompt_chars = output_tokens = 0
    for group in _groups(request):
        questions = tuple(group.questions.values())
        both = request.debias is not False and any(one.reversible for one in questions)
        orders = 2 if both else 1
        calls += orders
        prompt_chars += orders * _prompt_chars(request, pin, group)
        output_tokens += orders * len(questions) * _output_tokens(request, group)
    price = price_of(provider, model.name)
    return ModelForecast(
        model.id, provider.name, calls, prompt_chars, output_tokens, provider.rpm, price
    )


def _groups(request: DecisionRequest) -> Iterator[Group]:
    for keys in request.stages:
        yield from grouped({key: request.questions[key] for key in keys})


def _is_verbal(request: DecisionRequest, group: Group) -> bool:
    reasons = (one.verbal_reason for one in group.questions.values())
    return group.think or request.mode is Mode.VERBAL or any(reasons)


def _prompt_chars(request: DecisionRequest, pin: Pin, group: Group) -> int:
    way = Way.SCHEMA if _is_verbal(request, group) else Way.LINES
    material = PromptInput(pin, tuple(group.questions.values()), "", think=group.think)
    prompt = build(material, way, backwards=False)
    return sum(len(message["content"]) for message in prompt.messages)


def _output_tokens(request: DecisionRequest, group: Group) -> int:
    if group.think:
        return _THOUGHT_TOKENS
    return _JSON_TOKENS if _is_verbal(request, group) else _LABEL_TOKENS
