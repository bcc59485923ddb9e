"""Asks one model the questions of one call, in its mode and in one or both option orders."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from svc import limits
from svc.costly import CostlyWork
from svc.deadline import Deadline
from svc.engine import ladder, prompt
from svc.engine.attempt import Attempt, CallTarget, Runner, calls_needed
from svc.engine.cache import DecisionCache, cache_key
from svc.engine.calls import Call, Calls, Outcome
from svc.engine.debias import AUTO, DebiasMemory, ModelInProject
from svc.engine.ladder import Climb, moves_on
from svc.engine.payment import paid
from svc.engine.plans import ModelResult
from svc.engine.prompt import PromptInput
from svc.errors import ApiError, OutOfCalls, WrongWay
from svc.providers import (
    CHAT,
    JSON_WAYS,
    TAKE_TOO_LONG,
    Cancelled,
    Completion,
    Provider,
    ProviderError,
    Reason,
    TokenUsage,
    TraitMemory,
    Traits,
    Unread,
    Way,
    api_error_of,
    asked_by,
)
from svc.questions import Question
from svc.records import Model
from svc.schemas import DEFAULT_PROJECT, DecisionRequest
from svc.spending import Purse
from svc.terms import Mode
from svc.usage import NO_DETAILS, NO_USAGE, Counts, TokenDetails, Usage

# Characters of replies that are read in less time than anybody notices, and the seconds that longer
# ones may take of a processor before their caller's next one has to wait.
SMALL_CHARS, UNNOTICED_S = 16_384, 0.02


class Ledger:
    """How many calls one request has left, and what its calls cost, also those that failed.

    Retries of the same call are free. `purse` is what bounds their cost, if anything does, and
    `caller` who takes turns with others at a provider's rate.
    """

    def __init__(
        self,
        calls: int,
        models: int = 1,
        purse: Purse | None = None,
        caller: str | None = None,
    ) -> None:
        """`models` share the calls; none may take more than its share for a call a label."""
        self.purse, self.caller = purse, caller
        self.left = calls
        self.share = calls // max(1, models)
        # How many calls have ended, but for those that were cut off.
        self.ended = 0
        self.cost_usd = 0.0
        self.input_tokens = self.output_tokens = 0
        self.details = TokenDetails()
        # A request's flows spend calls at the same time.
        self._lock = threading.Lock()

    def spend(self, calls: int) -> None:
        """Raise `OutOfCalls` when fewer than `calls` are left."""
        with self._lock:
            if calls > self.left:
                raise OutOfCalls("the request ran out of its model calls")
            self.left -= calls

    def count(self, calls: int) -> None:
        """Note that so many calls have ended."""
        with self._lock:
            self.ended += calls

    def book(self, cost_usd: float, used: TokenUsage, details: TokenDetails) -> None:
        """Add what one call used."""
        with self._lock:
            self.cost_usd += cost_usd
            self.input_tokens += used.input_tokens
            self.output_tokens += used.output_tokens
            self.details = self.details.plus(details)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Questions for one model in one call, or in one call for each option order."""

    model: Model
    prompt_input: PromptInput
    mode: Mode
    debias: bool | str
    project: str
    strict: bool
    project_key: str | None = field(default=None, repr=False)
    caller: str | None = None

    def asked(self, way: Way) -> ModelInProject:
        """Whose answers teach `debias: "auto"`: a model may prefer positions in one mode alone."""
        mode = Mode.VERBAL if way in JSON_WAYS else Mode.LOGPROBS
        kind = "thinking" if self.prompt_input.think else mode.value
        return ModelInProject(self.project, f"{kind} {self.model.id}", self.caller)

    @property
    def asked_as(self) -> str:
        """Whose answers teach in which ways the model can be asked."""
        return asked_by(self.project, self.model.id)

    def reversible(self, decides: bool) -> bool:
        """Whether there is an option order to reverse; `decides` means for a decision server."""
        questions = self.prompt_input.questions
        if decides:
            return any(question.plain(False) != question.plain(True) for question in questions)
        return any(question.reversible for question in questions)


class ModelFacts(Protocol):
    """What is known about models: the client, in all but tests."""

    @property
    def traits(self) -> TraitMemory: ...
    def provider(self, model: Model) -> Provider: ...
    def cost_usd(self, model: Model, usage: TokenUsage) -> float: ...
    def tell(self, line: str, *parts: object) -> None: ...


class Asker:
    """Asks models through a pool of calls; remembers answers and what models can do."""

    def __init__(
        self,
        facts: ModelFacts,
        calls: Calls,
        cache: DecisionCache[ModelResult],
        memory: DebiasMemory,
        usage: Usage | None = None,
        era: Callable[[str], str] = lambda _project: "",
    ) -> None:
        """`usage` counts the calls and tokens of each model; without it nobody reads the counts.

        Answers are remembered as long as the `era` of their project lasts.
        """
        self._era = era
        self._facts, self._calls, self._cache, self._memory = facts, calls, cache, memory
        self._usage = usage or Usage()
        self._reading = CostlyWork(SMALL_CHARS, unnoticed_s=UNNOTICED_S)

    def ask(self, request: ModelRequest, ledger: Ledger, deadline: Deadline) -> ModelResult:
        """The remembered result, or a new one from the first way of asking that succeeds.

        Raises `ModelError`, `ModelUnavailable` or `RateLimited` when no way in any order gave an
        answer, and `Timeout` when the deadline passed.
        """

        def ask_now() -> ModelResult:
            return self._ask_now(request, ledger, deadline)

        key = self._key(request)
        if key is None:
            return ask_now()
        owner, caller = request.project, ledger.caller
        result, cached = self._cache.fetch(request.mode, key, deadline, ask_now, owner, caller)
        return replace(result, cached=True) if cached else result

    def calls_of(self, model: Model, request: DecisionRequest, mode: Mode) -> int:
        """How many calls it takes to ask a model once, as far as it is known.

        They are as many as there are labels where it has to be asked for each by itself.
        """
        asked = [question for question in request.questions.values() if not question.think]
        way = self.first_way(model, request.project, mode, limits.MODEL_CALLS, asked, False)
        return _labels(asked) if way is Way.SINGLE else 1

    def first_way(
        self,
        model: Model,
        project: str | None,
        mode: Mode,
        calls: int,
        questions: Sequence[Question],
        think: bool,
    ) -> Way:
        """In which way a model is asked questions first, as far as it is known.

        It is asked for each label by itself where that takes no more than so many `calls`.
        """
        if self._decides(model):
            return Way.DECISION
        labels = _labels(questions)
        ways = ladder.ways(
            self._facts.traits.of(asked_by(project or DEFAULT_PROJECT, model.id)),
            Mode.VERBAL if think else mode,
            labels=labels,
            verbal_only=any(question.verbal_reason for question in questions),
        )
        return next((way for way in ways if way is not Way.SINGLE or labels <= calls), Way.LINES)

    def kept(self, request: ModelRequest) -> ModelResult | None:
        """The remembered result, None where there is none."""
        key = self._key(request)
        found = None if key is None else self._cache.kept(request.mode, key, request.project)
        return None if found is None else replace(found, cached=True)

    def _key(self, request: ModelRequest) -> bytes | None:
        """Under which the result is remembered, None where that may not be."""
        extracts = any(not question.reversible for question in request.prompt_input.questions)
        if request.strict and extracts:
            return None
        return cache_key(
            request.project,
            self._era(request.project),
            request.model.id,
            str(request.debias),
            str(request.strict),
            str(request.prompt_input.think),
            *(image.digest.hex() for image in request.prompt_input.images),
            *prompt.key_parts(request.prompt_input),
        )

    def _ask_now(self, request: ModelRequest, ledger: Ledger, deadline: Deadline) -> ModelResult:
        runner = self._runner(request, ledger, deadline)
        traits = self._facts.traits.of(request.asked_as)
        climb = Climb(traits)
        failures: list[ProviderError | ApiError] = []
        for way in self._ways(request, traits):
            if way is Way.SINGLE and climb.reason is Reason.NO_PROBABILITIES:
                # Probabilities that one call does not give are not given by many calls either.
                climb.failed.append(way)
                continue
            orders = self._orders(request, way)
            if self._too_many(way, request, orders, ledger):
                failures.append(OutOfCalls(_one_label_a_call(way, request, orders, ledger)))
                continue
            attempt = self._attempt(way, orders, request, runner, traits.thinks)
            if attempt.readings:
                climb.settle(self._facts.traits, request.asked_as, way)
                return self._merged(request, way, attempt, alone=len(orders) == 1)
            failures = attempt.failures
            if not any(map(moves_on, failures)):
                # Another way of asking would fail for the same reason.
                break
            climb.note_failure(way, failures)
        raise api_error_of(failures).about(_named(request.model))

    def _runner(self, request: ModelRequest, ledger: Ledger, deadline: Deadline) -> Runner:
        """What makes the calls of a request to its model, and reads the replies."""
        model, effort = request.model.id, deadline.effort

        def carry_out(calls: Sequence[Call]) -> Sequence[Outcome]:
            return self._carry_out(request.model, calls, ledger, deadline)

        @contextlib.contextmanager
        def turn(chars: int) -> Iterator[bool]:
            with self._reading.turn(ledger.caller, chars, deadline), effort.reading(model):
                has_time = effort.replies_s.has_left(model)
                if chars > SMALL_CHARS and not has_time:
                    raise Unread(TAKE_TOO_LONG)
                yield has_time

        def look(entries: int) -> None:
            few = entries <= limits.REPLY_NAMED_ALWAYS_READ
            if not few and not effort.named.take(model, entries):
                raise Unread("the replies to this request name more than is read of them")

        return Runner(carry_out, turn, look, self._facts.tell)

    def _carry_out(
        self, model: Model, calls: Sequence[Call], ledger: Ledger, deadline: Deadline
    ) -> Sequence[Outcome]:
        """Make calls that the request has left, and pay and count them."""
        ledger.spend(len(calls))
        run = partial(self._calls.run, calls, deadline, ledger.caller)
        outcomes: Sequence[Outcome]
        if ledger.purse is None:
            outcomes = run()
        else:
            traits, provider = self._facts.traits.of, self._facts.provider(model)
            outcomes = paid(run, calls, ledger.purse, provider, traits)
        self._book(model, outcomes, ledger)
        return outcomes

    def _book(self, model: Model, outcomes: Sequence[Outcome], ledger: Ledger) -> None:
        """Count calls with what they took, for the request and for the model."""
        ledger.count(sum(not isinstance(outcome, Cancelled) for outcome in outcomes))
        counts = Counts(calls=len(outcomes), failures=len(outcomes))
        for outcome in outcomes:
            used: TokenUsage
            if isinstance(outcome, Completion):
                used, details, succeeded = outcome, outcome.details, 1
            elif isinstance(outcome, ProviderError) and outcome.usage != NO_USAGE:
                # Such as a call whose model used up the output limit with thought.
                used, details, succeeded = outcome.usage, NO_DETAILS, 0
            else:
                continue
            cost_usd = self._facts.cost_usd(model, used)
            ledger.book(cost_usd, used, details)
            tokens = (used.input_tokens, used.output_tokens)
            counts = counts.plus(Counts(0, -succeeded, *tokens, cost_usd))
        self._usage.add(model.id, counts)

    def _ways(self, request: ModelRequest, traits: Traits) -> Sequence[Way]:
        """The ways to try, best first."""
        if self._decides(request.model):
            if request.mode is Mode.VERBAL:
                message = "a decision server writes no text, so it cannot be asked in mode verbal"
                raise WrongWay(message).about(_named(request.model))
            return (Way.DECISION,)
        verbal_only = any(question.verbal_reason for question in request.prompt_input.questions)
        return ladder.ways(
            traits,
            Mode.VERBAL if request.prompt_input.think else request.mode,
            labels=calls_needed(Way.SINGLE, request.prompt_input, 1),
            verbal_only=verbal_only,
        )

    def _too_many(
        self, way: Way, request: ModelRequest, orders: Sequence[bool], ledger: Ledger
    ) -> bool:
        """Whether a way that takes a call for each label takes more than the request has left."""
        if way is not Way.SINGLE:
            return False
        return calls_needed(way, request.prompt_input, len(orders)) > min(ledger.left, ledger.share)

    def _orders(self, request: ModelRequest, way: Way) -> tuple[bool, ...]:
        """The option orders to ask in: original, and reversed where that is wanted."""
        pair = request.debias
        if request.debias == AUTO:
            pair = self._memory.wants_pair(request.asked(way), request.prompt_input.questions)
        return (
            (False, True) if pair and request.reversible(self._decides(request.model)) else (False,)
        )

    def _decides(self, model: Model) -> bool:
        """Whether the model's provider is a decision server."""
        return self._facts.provider(model).kind != CHAT

    def _attempt(
        self,
        way: Way,
        orders: Sequence[bool],
        request: ModelRequest,
        runner: Runner,
        thinking_room: bool,
    ) -> Attempt:
        """Ask in one way, and once more with a higher limit where thinking used up the output.

        `thinking_room` says that the model is known to need the higher limit.
        """
        target = CallTarget(request.model, request.strict, request.project_key)
        attempt = runner.attempt(way, orders, target, request.prompt_input, thinking_room)
        if attempt.readings or thinking_room or not attempt.cut:
            return attempt
        again = runner.attempt(way, attempt.cut, target, request.prompt_input, thinking_room=True)
        if again.readings and (attempt.thought or again.thought):
            self._facts.traits.needs_room(request.asked_as)
        return again

    def _merged(
        self, request: ModelRequest, way: Way, attempt: Attempt, alone: bool
    ) -> ModelResult:
        """What the orders say together; `alone` says that the original one was asked alone."""
        questions, orders = request.prompt_input.questions, attempt.readings
        if request.debias == AUTO and len(orders) > 1:
            self._memory.learn(request.asked(way), questions, orders)
        merged = [
            question.merge(readings) for question, *readings in zip(questions, *orders, strict=True)
        ]
        if request.debias == AUTO and alone:
            merged = [
                self._memory.corrected(request.asked(way), question, reading)
                for question, reading in zip(questions, merged, strict=True)
            ]
        masses = [
            reading.mass for readings in orders for reading in readings if reading.mass is not None
        ]
        reversible = request.reversible(way is Way.DECISION)
        if masses:
            self._usage.add(request.model.id, Counts(mass=math.fsum(masses), readings=len(masses)))
        return ModelResult(
            readings=tuple(merged),
            original=tuple(orders[0]),
            mode=Mode.VERBAL if way in JSON_WAYS else Mode.LOGPROBS,
            debiased=len(orders) > 1 if reversible else None,
            lopsided=reversible and len(orders) == 1 and not alone,
            served_by=tuple(dict.fromkeys(attempt.served_by))[: limits.PROVIDER_NAMES],
        )


def _named(model: Model) -> str:
    """How a message names a model and its provider."""
    if model.id.startswith("@"):
        return f"model {model.id!r}"
    return f"model {model.id!r} of provider {model.provider!r}"


def _one_label_a_call(
    way: Way, request: ModelRequest, orders: Sequence[bool], ledger: Ledger
) -> str:
    needed = calls_needed(way, request.prompt_input, len(orders))
    return (
        f"it has to be asked for one label a call, which takes {needed} calls here where "
        f"{min(ledger.left, ledger.share)} are left to it (ask fewer questions at once, or leave "
        "out debias)"
    )


def _labels(questions: Sequence[Question]) -> int:
    """How many lines a reply with the labels of all questions has."""
    return sum(len(question.reply_lines(False)) for question in questions)
