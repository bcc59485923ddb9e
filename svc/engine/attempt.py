"""One way of asking a model, in every option order: its calls, and the readings they gave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from svc.engine import prompt, reply
from svc.engine.calls import Call, Outcome
from svc.engine.label_reading import (
    answer_tokens,
    read_lines,
    read_single,
)
from svc.errors import ApiError
from svc.phrases import visible
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
    Unread,
    Way,
    shows_thought,
    without_thought,
)
from svc.questions import LabelLine, LabelQuestion, Reading, Unreadable
from svc.records import Model

# The output tokens that a model gets which thinks first, for a label reply and for a JSON reply.
LABEL_ROOM = 2_048
JSON_ROOM = 8_192

# How many more output tokens than characters a reply may have before it must have been thought.
HIDDEN_TOKENS = 32

# A token has up to twenty alternatives, which have about four characters each.
_CHARS_A_TOKEN = 80

_FORMATS = {Way.SCHEMA: JSON_SCHEMA, Way.OBJECT: JSON_OBJECT}


@dataclass(frozen=True, slots=True)
class CallTarget:
    """The model that is asked, and what every call to it needs."""

    model: Model
    strict: bool
    project_key: str | None = field(default=None, repr=False)


@dataclass(slots=True)
class Attempt:
    """The outcomes of all option orders in one way: readings where it worked, else failures.

    `cut` are the orders whose output limit was used up. `thought` says that some reply shows that
    the model thinks before it answers. `served_by` has what the provider calls its model, of each
    reply that was read and says it.
    """

    readings: list[list[Reading]] = field(default_factory=list)
    failures: list[ProviderError | ApiError] = field(default_factory=list)
    cut: list[bool] = field(default_factory=list)
    thought: bool = False
    served_by: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Runner:
    """Makes attempts; `carry_out` makes calls at the same time, and gives the outcome of each.

    Inside `turn` replies are read of so many characters; it gives whether their model has time
    left, see `Effort.replies_s`. `look` is told how many entries of a JSON reply are about to be
    looked at. Both may raise `Unread`. `tell` logs what was wrong with a reply.
    """

    carry_out: Callable[[Sequence[Call]], Sequence[Outcome]]
    turn: Callable[[int], AbstractContextManager[bool]]
    look: reply.Look
    tell: Callable[..., None]

    def attempt(
        self,
        way: Way,
        orders: Sequence[bool],
        target: CallTarget,
        prompt_input: prompt.PromptInput,
        thinking_room: bool,
    ) -> Attempt:
        """Ask in every order at the same time; `thinking_room` leaves output tokens for thought."""
        attempt = Attempt()
        try:
            calls_by_order = [
                _calls(way, target, prompt_input, order, thinking_room) for order in orders
            ]
        except Unanswerable as error:
            attempt.failures.append(error)
            return attempt
        outcomes = self.carry_out([call for order_calls in calls_by_order for call in order_calls])
        remaining = iter(outcomes)
        for order, order_calls in zip(orders, calls_by_order, strict=True):
            order_outcomes = [next(remaining) for _ in order_calls]
            self._take(attempt, way, order_outcomes, target, prompt_input, order)
        return attempt

    def _take(
        self,
        attempt: Attempt,
        way: Way,
        outcomes: Sequence[Outcome],
        target: CallTarget,
        prompt_input: prompt.PromptInput,
        order: bool,
    ) -> None:
        """Take in what came of one order."""
        completions = [one for one in outcomes if isinstance(one, Completion)]
        attempt.thought |= any(map(_thought, outcomes))
        failures = [one for one in outcomes if not isinstance(one, Completion)]
        if not failures:
            try:
                readings = self._readings(way, completions, prompt_input, order)
                attempt.readings.append(readings)
                attempt.served_by += [one.served_by for one in completions if one.served_by]
                return
            except (Unreadable, Unread) as error:
                name = "JSON" if way not in LABEL_WAYS else "label"
                asked = visible(target.model.id)
                self.tell("%s: a %s reply was not readable: %s", asked, name, error)
                failures = [_failure(error, any(_cut(way, one) for one in completions))]
        attempt.failures += failures
        if any(isinstance(failure, Cut) for failure in failures):
            attempt.cut.append(order)

    def _readings(
        self,
        way: Way,
        completions: Sequence[Completion],
        prompt_input: prompt.PromptInput,
        backwards: bool,
    ) -> list[Reading]:
        """The readings of one order. Raises `Unreadable` and `Unread`."""
        if way is Way.SINGLE:
            questions = _label_questions(prompt_input)
            rows = zip(completions, reply.wanted_labels(questions, backwards), strict=True)
            lines = [self._single(completion, labels) for completion, labels in rows]
            return reply.assembled(lines, questions, backwards)
        first = completions[0]
        with self.turn(_chars(first)) as has_time:
            return _readings(way, first, prompt_input, backwards, self.look, has_time)

    def _single(self, completion: Completion, labels: Sequence[str]) -> LabelLine:
        with self.turn(_chars(completion)):
            return read_single(answer_tokens(completion), labels)


def _failure(error: Unreadable | Unread, cut: bool) -> ProviderError:
    """The failure of a call whose reply could not be read, or was not."""
    if isinstance(error, Unread):
        return error
    return Cut(str(error)) if cut else BadReply(str(error))


def _chars(completion: Completion) -> int:
    """The characters of a reply, as its alternatives take as long to read as so many.

    Of one with tokens a block of thought is left out, which takes little beside being parsed. Each
    token that is left has a character at least.
    """
    if completion.tokens is None:
        return len(completion.text)
    answer = without_thought(completion.text)
    tokens = completion.tokens[-len(answer) :] if answer else ()
    return len(answer) + sum(_CHARS_A_TOKEN + len(token.text) for token in tokens)


def calls_needed(way: Way, prompt_input: prompt.PromptInput, orders: int) -> int:
    """How many calls a way takes."""
    if way is not Way.SINGLE:
        return orders
    return orders * sum(len(question.reply_lines(False)) for question in prompt_input.questions)


def _calls(
    way: Way,
    target: CallTarget,
    prompt_input: prompt.PromptInput,
    backwards: bool,
    thinking_room: bool,
) -> list[Call]:
    """The calls of one order: one, or one for each label."""
    if way is Way.DECISION:
        return [_call(target, _decision(prompt_input, target.strict, backwards))]
    lines: list[prompt.ReplyLine | None] = [None]
    if way is Way.SINGLE:
        lines = list(prompt.labels_of(prompt_input, backwards))
    return [
        _call(target, _chat(way, target, prompt_input, backwards, thinking_room, line))
        for line in lines
    ]


def _call(target: CallTarget, content: ChatCall | DecisionCall) -> Call:
    return Call(target.model, content, target.project_key)


def _chat(
    way: Way,
    target: CallTarget,
    prompt_input: prompt.PromptInput,
    backwards: bool,
    thinking_room: bool,
    line: prompt.ReplyLine | None,
) -> ChatCall:
    text = prompt.build(prompt_input, way, backwards=backwards, only=line)
    labels = way in LABEL_WAYS
    least_tokens = (LABEL_ROOM if labels else JSON_ROOM) if thinking_room else 0
    return ChatCall(
        messages=text.messages,
        max_tokens=max(least_tokens, text.max_tokens),
        logprobs=labels,
        schema=text.schema,
        reply_format=_FORMATS.get(way, ""),
        think=prompt_input.think,
        deny_data_collection=target.strict,
    )


def _decision(prompt_input: prompt.PromptInput, strict: bool, backwards: bool) -> DecisionCall:
    if prompt_input.think:
        raise Unanswerable("a decision server does not reason in words")
    all_plain = []
    for question in prompt_input.questions:
        plain_questions = question.plain(backwards)
        if not plain_questions:
            raise Unanswerable(f"a decision server has no {question.type} questions")
        examples = prompt.examples_text(question)
        all_plain += [
            replace(plain, instructions=plain.instructions + examples) for plain in plain_questions
        ]
    state = "\n\n".join([*prompt.earlier_block(prompt_input), prompt_input.state_text])
    images = tuple(image.url for image in prompt_input.images)
    return DecisionCall(tuple(all_plain), state, images, strict)


def _readings(
    way: Way,
    completion: Completion,
    prompt_input: prompt.PromptInput,
    backwards: bool,
    look: reply.Look,
    has_time: bool,
) -> list[Reading]:
    """The readings of an order that took one call. Raises `Unreadable`, and what `look` raises."""
    if way in JSON_WAYS:
        return reply.read_json(completion.text, prompt_input.questions, backwards, look, has_time)
    questions = _label_questions(prompt_input)
    if way is Way.DECISION:
        decided = [LabelLine(probabilities) for probabilities in completion.decided]
        return reply.decided(decided, questions)
    lines = read_lines(answer_tokens(completion), reply.wanted_labels(questions, backwards))
    return reply.assembled(lines, questions, backwards)


def _label_questions(prompt_input: prompt.PromptInput) -> list[LabelQuestion]:
    """All questions of what is asked for labels, or sent to a decision server."""
    return [one for one in prompt_input.questions if isinstance(one, LabelQuestion)]


def _thought(outcome: Outcome) -> bool:
    """Whether the model thought, by the text of an outcome or by output that is not in the text."""
    if not isinstance(outcome, Completion):
        return isinstance(outcome, Cut)
    # A token of the text is at least one character, so any further tokens are not in the text.
    hidden_tokens = outcome.output_tokens - len(outcome.text)
    return hidden_tokens > HIDDEN_TOKENS or shows_thought(outcome.text)


def _cut(way: Way, completion: Completion) -> bool:
    """Whether the output limit was used up before the answer.

    A label reply that is cut in prose would go on with prose; only thought ends in an answer.
    """
    if not completion.cut:
        return False
    return way not in LABEL_WAYS or not without_thought(completion.text).strip()
