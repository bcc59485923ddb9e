"""Whether a model gives probabilities that labels can be read from, found by asking it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from svc.engine import prompt, reply
from svc.engine.calls import Outcome
from svc.engine.prompt import Material
from svc.errors import ApiError
from svc.pins import Pin
from svc.providers import failures
from svc.providers.bodies import ChatCall
from svc.providers.replies import Completion
from svc.questions import Question, Reading, Unreadable
from svc.schemas import load_questions

STATES = (
    "I was charged twice this month. Please send the second payment back.",
    "Since this morning the app closes by itself whenever I open a report.",
    "How do I change the e-mail address that I sign in with?",
)
QUESTIONS = {
    "team": {
        "type": "choice",
        "instructions": "Which team should handle this message?",
        "options": {
            "billing": "Payments, invoices and refunds",
            "technical": "Errors, crashes and outages",
            "account": "Sign-in, password and profile",
        },
    },
    "refund": {"type": "noul", "instructions": "Does the customer ask for money back?"},
}
_WHY = {
    failures.Throttled: "the provider limits the rate of calls",
    failures.ServerTrouble: "the provider failed or could not be reached",
    failures.ParameterRefused: "the model refuses a parameter of every call",
    failures.NoLogprobs: "gives no log-probabilities that could be used",
    failures.Gone: "no such model, or it is not open to this account",
    failures.Refused: "the provider refuses the call: its key, credits or policy",
    failures.BadReply: "the reply is no completion",
    failures.CallTimedOut: "no answer in time",
    failures.Cancelled: "cut off",
}


class Verdict(Enum):
    """What a model is good for."""

    USABLE = "yes"
    VERBAL = "no, verbal only"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Probed:
    """What was found; latency and cost are those of one call, None without any reply."""

    verdict: Verdict
    why: str = ""
    mass: float | None = None  # least probability that fell on valid labels
    latency_ms: float | None = None
    cost_usd: float | None = None


@dataclass(slots=True)
class Prober:
    """Asks one model; `call` makes a call, `cost_usd` says what it took, `clock` is in seconds."""

    call: Callable[[ChatCall], Outcome]
    cost_usd: Callable[[Completion], float]
    top_logprobs: int  # alternatives that its provider is asked for
    pin: Pin
    clock: Callable[[], float] = time.perf_counter
    latencies: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)

    def probe(self) -> Probed:
        """Ask for label probabilities about every state; after a failure verbally, once."""
        masses = []
        for state in STATES:
            try:
                readings = self._ask(state, verbal=False)
            except _Failed as failed:
                return self._without(str(failed))
            masses += [reading.mass for reading in readings if reading.mass is not None]
        return self._found(Verdict.USABLE, mass=min(masses))

    def _without(self, why: str) -> Probed:
        self.latencies.clear()
        self.costs.clear()
        try:
            self._ask(STATES[0], verbal=True)
        except _Failed as failed:
            return Probed(Verdict.FAILED, str(failed))
        return self._found(Verdict.VERBAL, why)

    def _found(self, verdict: Verdict, why: str = "", mass: float | None = None) -> Probed:
        latency_ms = statistics.median(self.latencies) * 1_000
        return Probed(verdict, why, mass, latency_ms, statistics.fmean(self.costs))

    def _ask(self, state: str, *, verbal: bool) -> list[Reading]:
        questions = tuple(load_questions(QUESTIONS).values())
        started = self.clock()
        completion = self._complete(_chat(self.pin, questions, state, verbal))
        self.latencies.append(self.clock() - started)
        self.costs.append(self.cost_usd(completion))
        try:
            if verbal:
                return reply.read_json(completion.text, questions, backwards=False)
            tokens = completion.tokens or ()
            return reply.read_lines(tokens, questions, False, self.top_logprobs)
        except Unreadable as error:
            raise _Failed(str(error)) from None

    def _complete(self, chat: ChatCall) -> Completion:
        try:
            outcome = self.call(chat)
        except ApiError as error:
            raise _Failed(error.message) from None
        if isinstance(outcome, Completion):
            return outcome
        if isinstance(outcome, ApiError):
            raise _Failed(outcome.message)
        raise _Failed(_WHY[type(outcome)])


class _Failed(Exception):
    """A call without a usable answer; says why in this project's own words."""


def _chat(pin: Pin, questions: tuple[Question, ...], state: str, verbal: bool) -> ChatCall:
    words = prompt.build(Material(pin, questions, state), verbal=verbal, backwards=False)
    return ChatCall(words.messages, words.max_tokens, logprobs=not verbal, schema=words.schema)
