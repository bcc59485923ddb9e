"""Ask one model the questions of one call: its mode, both option orders, and what came of them."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from svc.deadline import Deadline
from svc.engine import ladder, prompt
from svc.engine.attempt import Attempt, CallTarget, Runner, calls_needed
from svc.engine.cache import DecisionCache, cache_key
from svc.engine.calls import CallPool, Outcome
from svc.engine.debias import AUTO, DebiasMemory
from svc.engine.ladder import Climb, moves_on
from svc.engine.plans import ModelResult
from svc.engine.prompt import PromptInput
from svc.errors import ApiError, ModelError, OutOfCalls
from svc.providers import (
    CHAT,
    JSON_WAYS,
    Completion,
    Provider,
    ProviderError,
    Reason,
    TraitMemory,
    Traits,
    Way,
    api_error_of,
)
from svc.records import Model
from svc.terms import Mode
from svc.usage import Counts, Usage


class Ledger:
    """What one request may still call, and what its calls came to, also those that failed.

    Retries of the same call are free.
    """

    def __init__(self, calls: int, models: int = 1) -> None:
        """`models` share the calls; none may take more than its share for a call a label."""
        self.left = calls
        self.share = calls // max(1, models)
        self.cost_usd = 0.0
        self.input_tokens = 0
        self._lock = threading.Lock()  # a request's flows spend at the same time

    def spend(self, calls: int) -> None:
        """Raise `OutOfCalls` when fewer than `calls` are left."""
        with self._lock:
            if calls > self.left:
                raise OutOfCalls("the request ran out of its model calls")
            self.left -= calls

    def book(self, cost_usd: float, input_tokens: int) -> None:
        """Add what one completion used."""
        with self._lock:
            self.cost_usd += cost_usd
            self.input_tokens += input_tokens


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Questions for one model in one call, or in one call for each option order."""

    model: Model
    material: PromptInput
    mode: Mode
    debias: bool | str
    project: str
    strict: bool
    project_key: str | None = field(default=None, repr=False)

    def reversible(self, decides: bool) -> bool:
        """Whether there is any option order to reverse; `decides`: for a decision server."""
        questions = self.material.questions
        if decides:
            return any(question.plain(False) != question.plain(True) for question in questions)
        return any(question.reversible for question in questions)


class ModelFacts(Protocol):
    """What is known about models: the client, in all but tests."""

    @property
    def traits(self) -> TraitMemory: ...
    def provider(self, model: Model) -> Provider: ...
    def cost_usd(self, model: Model, completion: Completion) -> float: ...


class Asker:
    """Asks models through a pool of calls; remembers answers and what models can do."""

    def __init__(
        self,
        facts: ModelFacts,
        calls: CallPool,
        cache: DecisionCache[ModelResult],
        memory: DebiasMemory,
        usage: Usage | None = None,
    ) -> None:
        """`usage` counts what each model was asked; without it nobody reads the counts."""
        self._facts, self._calls, self._cache, self._memory = facts, calls, cache, memory
        self._usage = usage or Usage()

    def ask(self, ask: ModelRequest, ledger: Ledger, deadline: Deadline) -> ModelResult:
        """The remembered answer, or one asked for now in the first way that gives any.

        Raises `ModelError`, `ModelUnavailable` or `RateLimited` when no order in any way gave
        one, `Timeout` when the deadline passed.
        """

        def now() -> ModelResult:
            return self._ask_now(ask, ledger, deadline)

        extracts = any(not question.reversible for question in ask.material.questions)
        if ask.strict and extracts:
            return now()
        key = cache_key(
            ask.project,
            ask.model.id,
            str(ask.debias),
            str(ask.strict),
            str(ask.material.think),
            *ask.material.images,
            *prompt.key_parts(ask.material),
        )
        asked, hit = self._cache.fetch(ask.mode, key, deadline, now)
        return replace(asked, cached=True) if hit else asked

    def _ask_now(self, ask: ModelRequest, ledger: Ledger, deadline: Deadline) -> ModelResult:
        def book(outcomes: Sequence[Outcome]) -> None:
            self._book(ask.model, outcomes, ledger)

        runner = Runner(self._calls, ledger.spend, book, deadline)
        traits = self._facts.traits.of(ask.model.id)
        orders, climb = self._orders(ask), Climb(traits)
        failures: list[ProviderError | ApiError] = []
        for way in self._ways(ask, traits):
            if way is Way.SINGLE and climb.reason is Reason.NO_PROBABILITIES:
                climb.failed.append(way)  # what one call does not give, many do not either
                continue
            if self._too_many(way, ask, orders, ledger):
                failures.append(OutOfCalls(_one_label_a_call(way, ask, orders, ledger)))
                continue
            attempt = self._attempt(way, orders, ask, runner, traits.thinks)
            if attempt.readings:
                climb.settle(self._facts.traits, ask.model.id, way)
                return self._merged(ask, way, attempt)
            failures = attempt.failures
            if not any(map(moves_on, failures)):
                break  # another way would meet the same trouble
            climb.fell(way, failures)
        raise api_error_of(failures).about(_named(ask.model))

    def _book(self, model: Model, outcomes: Sequence[Outcome], ledger: Ledger) -> None:
        """Count calls with what they took, for the request and for the model."""
        counts = Counts(calls=len(outcomes), failures=len(outcomes))
        for outcome in outcomes:
            if isinstance(outcome, Completion):
                cost_usd = self._facts.cost_usd(model, outcome)
                ledger.book(cost_usd, outcome.input_tokens)
                tokens = (outcome.input_tokens, outcome.output_tokens)
                counts = counts.plus(Counts(0, -1, *tokens, cost_usd))
        self._usage.add(model.id, counts)

    def _ways(self, ask: ModelRequest, traits: Traits) -> Sequence[Way]:
        """The ways to try, best first."""
        if self._decides(ask.model):
            if ask.mode is Mode.VERBAL:
                told = "a decision server writes no text, so it cannot be asked in mode verbal"
                raise ModelError(told).about(_named(ask.model))
            return (Way.DECISION,)
        verbal = any(question.verbal_reason for question in ask.material.questions)
        return ladder.ways(
            traits,
            Mode.VERBAL if ask.material.think else ask.mode,
            labels=calls_needed(Way.SINGLE, ask.material, 1),
            verbal_only=verbal,
        )

    def _too_many(
        self, way: Way, ask: ModelRequest, orders: Sequence[bool], ledger: Ledger
    ) -> bool:
        """Whether a way that takes a call for each label takes more than the request has left."""
        if way is not Way.SINGLE:
            return False
        return calls_needed(way, ask.material, len(orders)) > min(ledger.left, ledger.share)

    def _orders(self, ask: ModelRequest) -> tuple[bool, ...]:
        """The option orders to ask in: original, and reversed where that is wanted."""
        pair = ask.debias
        if ask.debias == AUTO:
            pair = self._memory.wants_pair(ask.model.id, ask.material.questions)
        return (False, True) if pair and ask.reversible(self._decides(ask.model)) else (False,)

    def _decides(self, model: Model) -> bool:
        """Whether the model's provider is a decision server."""
        return self._facts.provider(model).kind != CHAT

    def _attempt(
        self, way: Way, orders: Sequence[bool], ask: ModelRequest, runner: Runner, room: bool
    ) -> Attempt:
        """Ask in one way, and once more with room where thought used up the output limit.

        `room` says that the model is known to need it.
        """
        target = CallTarget(ask.model, ask.strict, ask.project_key)
        attempt = runner.attempt(way, orders, target, ask.material, room)
        if attempt.readings or room or not attempt.cut:
            return attempt
        again = runner.attempt(way, attempt.cut, target, ask.material, room=True)
        if again.readings and (attempt.thought or again.thought):
            self._facts.traits.needs_room(ask.model.id)
        return again

    def _merged(self, ask: ModelRequest, way: Way, attempt: Attempt) -> ModelResult:
        questions, orders = ask.material.questions, attempt.readings
        if ask.debias == AUTO and len(orders) > 1:
            self._memory.learn(ask.model.id, questions, orders)
        masses = [r.mass for readings in orders for r in readings if r.mass is not None]
        if masses:
            self._usage.add(ask.model.id, Counts(mass=math.fsum(masses), readings=len(masses)))
        return ModelResult(
            readings=tuple(q.merge(column) for q, *column in zip(questions, *orders, strict=True)),
            original=tuple(orders[0]),
            mode=Mode.VERBAL if way in JSON_WAYS else Mode.LOGPROBS,
            debiased=len(orders) > 1 if ask.reversible(way is Way.DECISION) else None,
        )


def _named(model: Model) -> str:
    """How a message names a model and its provider."""
    if model.id.startswith("@"):
        return f"model {model.id!r}"
    return f"model {model.id!r} of provider {model.provider!r}"


def _one_label_a_call(way: Way, ask: ModelRequest, orders: Sequence[bool], ledger: Ledger) -> str:
    needed = calls_needed(way, ask.material, len(orders))
    return (
        f"it has to be asked for one label a call, which takes {needed} calls here where "
        f"{min(ledger.left, ledger.share)} are left to it (ask fewer questions at once, or leave "
        "out debias)"
    )
