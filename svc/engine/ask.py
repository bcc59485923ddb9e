"""Ask one model all questions of one stage: its mode, both option orders, and what came of them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from svc.deadline import Deadline
from svc.engine import prompt, reply
from svc.engine.calls import Call, CallPool, Outcome, together
from svc.errors import ApiError, ModelError
from svc.pins import Pin
from svc.providers.bodies import ChatCall
from svc.providers.failures import BadReply, CallError, NoLogprobs
from svc.providers.quirks import Quirks
from svc.providers.replies import Completion
from svc.providers.routing import Model
from svc.questions import Question, Reading, Unreadable

log = logging.getLogger(__name__)


class CallAllowance:
    """The model calls that one request may still make; retries of the same call are free."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def spend(self, calls: int) -> None:
        """Raise `ModelError` when fewer than `calls` are left."""
        if calls > self.left:
            raise ModelError("the request ran out of its model calls")
        self.left -= calls


@dataclass(frozen=True, slots=True)
class Ask:
    """All questions of one stage, for one model."""

    model: Model
    questions: tuple[Question, ...]
    state_text: str
    pin: Pin
    mode: str
    debias: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """What one model said: a reading for each question, and what it took."""

    readings: tuple[Reading, ...]
    mode: str  # "logprobs" or "verbal"
    debiased: bool
    cost_usd: float


class Asker:
    """Asks models through a pool of calls and remembers which give label probabilities."""

    def __init__(self, calls: CallPool, quirks: Quirks) -> None:
        self._calls, self._quirks = calls, quirks

    def ask(self, ask: Ask, allowance: CallAllowance, deadline: Deadline) -> Asked:
        """Ask in the first mode that gives an answer.

        Raises `ModelError`, `ModelUnavailable` or `RateLimited` when no order of any mode gave one,
        `Timeout` when the deadline passed.
        """
        spent = 0.0
        failures: list[CallError | ApiError] = []
        for mode in self._modes(ask):
            attempt = self._ask_in(mode, ask, allowance, deadline)
            spent += attempt.cost_usd
            if attempt.readings:
                readings = tuple(
                    question.merge(orders)
                    for question, *orders in zip(ask.questions, *attempt.readings, strict=True)
                )
                return Asked(readings, mode, len(attempt.readings) > 1, spent)
            failures = attempt.failures
            if not any(isinstance(failure, (NoLogprobs, BadReply)) for failure in failures):
                break  # another mode would meet the same trouble
        raise together(failures)

    def _modes(self, ask: Ask) -> Sequence[str]:
        if ask.mode != "auto":
            return (ask.mode,)
        verbal = any(question.verbal_reason for question in ask.questions)
        if verbal or self._quirks.no_logprobs(ask.model.id):
            return ("verbal",)
        return ("logprobs", "verbal")

    def _ask_in(
        self, mode: str, ask: Ask, allowance: CallAllowance, deadline: Deadline
    ) -> _Attempt:
        orders = (False, True) if ask.debias else (False,)
        allowance.spend(len(orders))
        calls = [Call(ask.model, _chat(ask, mode, backwards)) for backwards in orders]
        outcomes = self._calls.run(calls, deadline)
        attempt = _Attempt([], [], 0.0)
        for backwards, outcome in zip(orders, outcomes, strict=True):
            self._read(attempt, outcome, mode, ask, backwards)
        return attempt

    def _read(
        self, attempt: _Attempt, outcome: Outcome, mode: str, ask: Ask, backwards: bool
    ) -> None:
        if not isinstance(outcome, Completion):
            attempt.failures.append(outcome)
            return
        attempt.cost_usd += ask.model.provider.cost(ask.model.name, outcome)
        try:
            attempt.readings.append(self._readings(outcome, mode, ask, backwards))
        except Unreadable as error:
            log.warning("%s: a %s reply was not readable: %s", ask.model.id, mode, error)
            attempt.failures.append(BadReply(str(error)))

    def _readings(
        self, completion: Completion, mode: str, ask: Ask, backwards: bool
    ) -> list[Reading]:
        if mode == "verbal":
            return reply.read_json(completion.text, ask.questions, backwards)
        asked = ask.model.provider.top_logprobs
        try:
            return reply.read_lines(completion.tokens or (), ask.questions, backwards, asked)
        except reply.NoLabelProbabilities:
            self._quirks.remember_no_logprobs(ask.model.id)
            raise


@dataclass(slots=True)
class _Attempt:
    """The outcomes of all orders in one mode."""

    readings: list[list[Reading]]
    failures: list[CallError | ApiError]
    cost_usd: float


def _chat(ask: Ask, mode: str, backwards: bool) -> ChatCall:
    words = prompt.build(
        ask.pin, ask.questions, ask.state_text, verbal=mode == "verbal", backwards=backwards
    )
    return ChatCall(
        messages=words.messages,
        max_tokens=words.max_tokens,
        logprobs=mode == "logprobs",
        schema=words.schema,
    )
