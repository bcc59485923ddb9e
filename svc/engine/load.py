"""What a row takes of each model that is asked about it, before any is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from svc.deadline import Deadline
from svc.engine import stages
from svc.engine.bodies import orders_of, prompts_of
from svc.engine.plans import Group, grouped
from svc.pins import Pin
from svc.providers import Way
from svc.schemas import DecisionRequest
from svc.terms import Mode

# The usual output of a question in tokens: of a label, of its part in JSON, and of thought.
_LABEL_TOKENS, _JSON_TOKENS, _THOUGHT_TOKENS = 2, 24, 300


@dataclass(frozen=True, slots=True)
class Load:
    """Calls, the characters of their prompts, and the tokens of the replies."""

    calls: float = 0
    chars: float = 0
    output_tokens: float = 0

    def __add__(self, other: Load) -> Load:
        return Load(
            self.calls + other.calls,
            self.chars + other.chars,
            self.output_tokens + other.output_tokens,
        )

    def times(self, factor: float) -> Load:
        return Load(self.calls * factor, self.chars * factor, self.output_tokens * factor)


def of_row(request: DecisionRequest, pin: Pin, orders: int, deadline: Deadline) -> Load:
    """What the request takes of which `orders` option orders are asked.

    Questions of the first stage that need no model are left out. Raises `Timeout`.
    """
    first = stages.open_stage(request, 0, stages.Answered(), deadline).groups
    return _of_groups(request, pin, orders, [*first, *_stages(request, 1)])


def at_most(request: DecisionRequest, pin: Pin, orders: int) -> Load:
    """The same where no question is skipped or answered by a rule."""
    return _of_groups(request, pin, orders, _stages(request, 0))


def _stages(request: DecisionRequest, first: int) -> Iterator[Group]:
    for keys in request.stages[first:]:
        yield from grouped({key: request.questions[key] for key in keys})


def _of_groups(request: DecisionRequest, pin: Pin, orders: int, groups: Iterable[Group]) -> Load:
    load = Load()
    for group in groups:
        load += _of_group(request, pin, group).times(orders_of(group, orders))
    return load


def _of_group(request: DecisionRequest, pin: Pin, group: Group) -> Load:
    """What one order takes."""
    think = group.think or request.think
    reasons = any(question.verbal_reason for question in group.questions.values())
    verbal = think or request.mode is Mode.VERBAL or reasons
    (prompt,) = prompts_of(pin, group, think, Way.SCHEMA if verbal else Way.LINES)
    chars = sum(len(message["content"]) for message in prompt.messages)
    tokens = _JSON_TOKENS if verbal else _LABEL_TOKENS
    output = len(group.questions) * (_THOUGHT_TOKENS if think else tokens)
    return Load(1, len(request.state.text) + chars, output)
