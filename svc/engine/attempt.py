"""One way of asking a model, in every option order: its calls, and the readings they gave."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from svc.deadline import Deadline
from svc.engine import prompt, reply
from svc.engine.calls import Call, CallPool, Outcome
from svc.engine.label_reading import (
    answer_tokens,
    read_lines,
    read_single,
    shows_thought,
    without_thought,
)
from svc.engine.prompt import PromptInput, ReplyLine
from svc.errors import ApiError
from svc.providers import (
    JSON_OBJECT,
    JSON_SCHEMA,
    JSON_WAYS,
    LABEL_WAYS,
    BadReply,
    ChatCall,
    Completion,
    Cut,
    DecisionCall,
    ProviderError,
    Unanswerable,
    Way,
)
from svc.questions import LabelLine, LabelQuestion, Reading, Unreadable
from svc.records import Model

LABEL_ROOM = 2_048  # output tokens of a label reply where the model thinks first
JSON_ROOM = 8_192  # output tokens of a JSON reply where the model thinks first
HIDDEN_TOKENS = 32  # output tokens beyond a text's length that nothing but thought explains
_FORMATS = {Way.SCHEMA: JSON_SCHEMA, Way.OBJECT: JSON_OBJECT}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CallTarget:
    """The model that is asked, and what every call to it needs."""

    model: Model
    strict: bool
    project_key: str | None = field(default=None, repr=False)


@dataclass(slots=True)
class Attempt:
    """The outcomes of all orders in one way: readings where it worked, else failures."""

    readings: list[list[Reading]] = field(default_factory=list)
    failures: list[ProviderError | ApiError] = field(default_factory=list)
    cut: list[bool] = field(default_factory=list)  # orders whose output limit was used up
    thought: bool = False  # whether any reply shows that the model thinks before it answers


@dataclass(frozen=True, slots=True)
class Runner:
    """Carries out attempts; `spend` takes calls from the request's, `book` notes their outcomes."""

    calls: CallPool
    spend: Callable[[int], None]
    book: Callable[[Sequence[Outcome]], None]
    deadline: Deadline

    def attempt(
        self,
        way: Way,
        orders: Sequence[bool],
        target: CallTarget,
        material: PromptInput,
        room: bool,
    ) -> Attempt:
        """Ask in every order at the same time; `room` leaves output tokens for thought."""
        attempt = Attempt()
        try:
            asked = [_calls(way, target, material, order, room) for order in orders]
        except Unanswerable as error:
            attempt.failures.append(error)
            return attempt
        self.spend(sum(map(len, asked)))
        found = self.calls.run([call for calls in asked for call in calls], self.deadline)
        self.book(found)
        outcomes = iter(found)
        for order, calls in zip(orders, asked, strict=True):
            self._take(attempt, way, [next(outcomes) for _ in calls], target, material, order)
        return attempt

    def _take(
        self,
        attempt: Attempt,
        way: Way,
        outcomes: Sequence[Outcome],
        target: CallTarget,
        material: PromptInput,
        order: bool,
    ) -> None:
        """Take in what came of one order."""
        completions = [one for one in outcomes if isinstance(one, Completion)]
        attempt.thought |= any(map(_thought, outcomes))
        failures = [one for one in outcomes if not isinstance(one, Completion)]
        if not failures:
            try:
                attempt.readings.append(_readings(way, completions, material, order))
                return
            except Unreadable as error:
                name = "JSON" if way not in LABEL_WAYS else "label"
                log.warning("%s: a %s reply was not readable: %s", target.model.id, name, error)
                cut = any(_cut(way, completion) for completion in completions)
                failures = [Cut(str(error)) if cut else BadReply(str(error))]
        attempt.failures += failures
        if any(isinstance(failure, Cut) for failure in failures):
            attempt.cut.append(order)


def calls_needed(way: Way, material: PromptInput, orders: int) -> int:
    """How many calls a way takes."""
    if way is not Way.SINGLE:
        return orders
    return orders * sum(len(question.reply_lines(False)) for question in material.questions)


def _calls(
    way: Way, target: CallTarget, material: PromptInput, backwards: bool, room: bool
) -> list[Call]:
    """The calls of one order: one, or one for each label."""
    if way is Way.DECISION:
        return [_call(target, _decision(material, target.strict, backwards))]
    lines: list[ReplyLine | None] = [None]
    if way is Way.SINGLE:
        lines = list(prompt.labels_of(material, backwards))
    return [_call(target, _chat(way, target, material, backwards, room, line)) for line in lines]


def _call(target: CallTarget, content: ChatCall | DecisionCall) -> Call:
    return Call(target.model, content, target.project_key)


def _chat(
    way: Way,
    target: CallTarget,
    material: PromptInput,
    backwards: bool,
    room: bool,
    line: ReplyLine | None,
) -> ChatCall:
    words = prompt.build(material, way, backwards=backwards, only=line)
    labels = way in LABEL_WAYS
    least = (LABEL_ROOM if labels else JSON_ROOM) if room else 0
    return ChatCall(
        messages=words.messages,
        max_tokens=max(least, words.max_tokens),
        logprobs=labels,
        schema=words.schema,
        reply_format=_FORMATS.get(way, ""),
        think=material.think,
        deny_data_collection=target.strict,
    )


def _decision(material: PromptInput, strict: bool, backwards: bool) -> DecisionCall:
    if material.think:
        raise Unanswerable("a decision server does not reason in words")
    plain = []
    for question in material.questions:
        found = question.plain(backwards)
        if not found:
            raise Unanswerable(f"a decision server has no {question.type} questions")
        shown = prompt.examples_text(question)
        plain += [replace(one, instructions=one.instructions + shown) for one in found]
    state = "\n\n".join([*prompt.earlier_block(material), material.state_text])
    return DecisionCall(tuple(plain), state, material.images, strict)


def _readings(
    way: Way, completions: Sequence[Completion], material: PromptInput, backwards: bool
) -> list[Reading]:
    """The readings of one order. Raises `Unreadable`."""
    first = completions[0]
    if way in JSON_WAYS:
        return reply.read_json(first.text, material.questions, backwards)
    # Only such questions are asked in a label way, or of a decision server.
    questions = [one for one in material.questions if isinstance(one, LabelQuestion)]
    if way is Way.DECISION:
        return reply.decided([LabelLine(seen) for seen in first.decided], questions)
    wanted = reply.wanted_labels(questions, backwards)
    if way is Way.LINES:
        lines = read_lines(answer_tokens(first), wanted)
    else:
        rows = zip(completions, wanted, strict=True)
        lines = [read_single(answer_tokens(completion), labels) for completion, labels in rows]
    return reply.assembled(lines, questions, backwards)


def _thought(outcome: Outcome) -> bool:
    """Whether an outcome shows thought: in its text, or in output that is not in its text."""
    if not isinstance(outcome, Completion):
        return isinstance(outcome, Cut)
    hidden = outcome.output_tokens - len(outcome.text)  # a token is a character at least
    return hidden > HIDDEN_TOKENS or shows_thought(outcome.text)


def _cut(way: Way, completion: Completion) -> bool:
    """Whether the output limit was used up before the answer.

    A label reply that is cut in prose would go on with prose; only thought ends in an answer.
    """
    if not completion.cut:
        return False
    return way not in LABEL_WAYS or not without_thought(completion.text).strip()
