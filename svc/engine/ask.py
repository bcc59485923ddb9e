"""Ask one model the questions of one call: its mode, both option orders, and what came of them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from svc.deadline import Deadline
from svc.engine import prompt, reply
from svc.engine.cache import DecisionCache, cache_key
from svc.engine.calls import Call, CallPool, Outcome, together
from svc.engine.debias import AUTO, DebiasMemory
from svc.engine.prompt import Material
from svc.errors import ApiError, OutOfCalls
from svc.providers.bodies import ChatCall
from svc.providers.catalog import Provider
from svc.providers.failures import BadReply, CallError, NoLogprobs
from svc.providers.quirks import NO_LOGPROBS, Quirks
from svc.providers.replies import Completion
from svc.providers.routing import Model
from svc.questions import Reading, Unreadable

log = logging.getLogger(__name__)


class Ledger:
    """What one request may still call, and what its calls came to, also those that failed.

    Retries of the same call are free.
    """

    def __init__(self, calls: int) -> None:
        self.left = calls
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
class Ask:
    """Questions for one model in one call, or in one call for each option order."""

    model: Model
    material: Material
    mode: str
    debias: bool | str
    project: str
    strict: bool
    project_key: str | None = field(default=None, repr=False)

    @property
    def reversible(self) -> bool:
        """Whether there is any option order to reverse."""
        return any(question.reversible for question in self.material.questions)


@dataclass(frozen=True, slots=True)
class Asked:
    """What one model said: a reading for each question, and what it took."""

    readings: tuple[Reading, ...]
    original: tuple[Reading, ...]  # of the first order that answered, before merging
    mode: str  # "logprobs" or "verbal"
    debiased: bool | None  # None when there was no order to reverse
    cached: bool = False


class ModelFacts(Protocol):
    """What is known about models: the client, in all but tests."""

    @property
    def quirks(self) -> Quirks: ...
    def provider(self, model: Model) -> Provider: ...
    def cost_usd(self, model: Model, completion: Completion) -> float: ...


class Asker:
    """Asks models through a pool of calls; remembers answers and what models can do."""

    def __init__(
        self, facts: ModelFacts, calls: CallPool, cache: DecisionCache[Asked], memory: DebiasMemory
    ) -> None:
        self._facts, self._calls, self._cache, self._memory = facts, calls, cache, memory

    def ask(self, ask: Ask, ledger: Ledger, deadline: Deadline) -> Asked:
        """The remembered answer, or one asked for now in the first mode that gives any.

        Raises `ModelError`, `ModelUnavailable` or `RateLimited` when no order of any mode gave
        one, `Timeout` when the deadline passed.
        """

        def now() -> Asked:
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
            prompt.render(ask.material, verbal=True, backwards=False),
        )
        asked, hit = self._cache.fetch(ask.mode, key, deadline, now)
        return replace(asked, cached=True) if hit else asked

    def _ask_now(self, ask: Ask, ledger: Ledger, deadline: Deadline) -> Asked:
        failures: list[CallError | ApiError] = []
        orders = self._orders(ask)
        for mode in self._modes(ask):
            attempt = self._attempt(mode, orders, ask, ledger, deadline)
            if attempt.readings:
                return self._merged(ask, mode, attempt)
            failures = attempt.failures
            if not any(isinstance(failure, (NoLogprobs, BadReply)) for failure in failures):
                break  # another mode would meet the same trouble
        raise together(failures)

    def _modes(self, ask: Ask) -> Sequence[str]:
        if ask.material.think:
            return ("verbal",)
        if ask.mode != "auto":
            return (ask.mode,)
        verbal = any(question.verbal_reason for question in ask.material.questions)
        if verbal or NO_LOGPROBS in self._facts.quirks.of(ask.model.id):
            return ("verbal",)
        return ("logprobs", "verbal")

    def _orders(self, ask: Ask) -> tuple[bool, ...]:
        """The option orders to ask in: original, and reversed where that is wanted."""
        pair = ask.debias
        if ask.debias == AUTO:
            pair = self._memory.wants_pair(ask.model.id, ask.material.questions)
        return (False, True) if pair and ask.reversible else (False,)

    def _attempt(
        self,
        mode: str,
        orders: Sequence[bool],
        ask: Ask,
        ledger: Ledger,
        deadline: Deadline,
    ) -> _Attempt:
        ledger.spend(len(orders))
        calls = [
            Call(ask.model, _chat(ask, mode, backwards), ask.project_key) for backwards in orders
        ]
        attempt = _Attempt()
        outcomes = self._calls.run(calls, deadline)
        for backwards, outcome in zip(orders, outcomes, strict=True):
            if isinstance(outcome, Completion):
                ledger.book(self._facts.cost_usd(ask.model, outcome), outcome.input_tokens)
            self._read(attempt, outcome, mode, ask, backwards)
        return attempt

    def _read(
        self, attempt: _Attempt, outcome: Outcome, mode: str, ask: Ask, backwards: bool
    ) -> None:
        if not isinstance(outcome, Completion):
            attempt.failures.append(outcome)
            return
        try:
            attempt.readings.append(self._readings(outcome, mode, ask, backwards))
        except Unreadable as error:
            log.warning("%s: a %s reply was not readable: %s", ask.model.id, mode, error)
            attempt.failures.append(BadReply(str(error)))

    def _readings(
        self, completion: Completion, mode: str, ask: Ask, backwards: bool
    ) -> list[Reading]:
        questions = ask.material.questions
        if mode == "verbal":
            return reply.read_json(completion.text, questions, backwards)
        asked = self._facts.provider(ask.model).top_logprobs
        try:
            return reply.read_lines(completion.tokens or (), questions, backwards, asked)
        except reply.NoLabelProbabilities:
            self._facts.quirks.refuse(ask.model.id, NO_LOGPROBS)
            raise

    def _merged(self, ask: Ask, mode: str, attempt: _Attempt) -> Asked:
        questions, orders = ask.material.questions, attempt.readings
        if ask.debias == AUTO and len(orders) > 1:
            self._memory.learn(ask.model.id, questions, orders)
        return Asked(
            readings=tuple(q.merge(column) for q, *column in zip(questions, *orders, strict=True)),
            original=tuple(orders[0]),
            mode=mode,
            debiased=len(orders) > 1 if ask.reversible else None,
        )


@dataclass(slots=True)
class _Attempt:
    """The outcomes of all orders in one mode."""

    readings: list[list[Reading]] = field(default_factory=list)
    failures: list[CallError | ApiError] = field(default_factory=list)


def _chat(ask: Ask, mode: str, backwards: bool) -> ChatCall:
    words = prompt.build(ask.material, verbal=mode == "verbal", backwards=backwards)
    return ChatCall(
        messages=words.messages,
        max_tokens=words.max_tokens,
        logprobs=mode == "logprobs",
        schema=words.schema,
        think=ask.material.think,
        deny_data_collection=ask.strict,
    )
