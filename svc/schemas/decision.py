"""The body of `POST /v1/decide`, checked into a frozen `DecisionRequest`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from marshmallow import Schema, ValidationError, fields, post_load, validates_schema

from svc import jsontext, limits
from svc.engine.plans import Plan
from svc.errors import InvalidJson, InvalidRequest
from svc.phrases import quoted
from svc.pins import LATEST, PINS
from svc.questions import TYPES, Question
from svc.questions.dependencies import UnsoundDependency, stages
from svc.questions.fields import Flag, Words, amount
from svc.schemas.images import Images
from svc.schemas.messages import describe
from svc.schemas.plan import PlanField

MODES = ("auto", "logprobs", "verbal")
STANDARD, STRICT = "standard", "strict"
DEFAULT_PROJECT = "default"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class State:
    """The input: `text` as a model is shown it, `fields` of an object state, else None."""

    text: str
    fields: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRequest:
    """A checked request; None stands for what the config or the server decides."""

    state: State
    questions: Mapping[str, Question]
    stages: tuple[tuple[str, ...], ...]  # question keys, by what they wait for
    plan: Plan | None = None
    mode: str | None = None
    debias: bool | str | None = None  # True, False or "auto"
    think: bool = False
    project: str | None = None
    config: str | None = None
    privacy: str = STANDARD
    explain: bool = False
    images: tuple[str, ...] = ()


class ModeField(fields.Field[str]):
    """`auto`, `logprobs` or `verbal`."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if value not in MODES:
            given = f"unknown mode {quoted(value)}" if isinstance(value, str) else "mode is no text"
            raise InvalidJson(f"{given}; allowed: {', '.join(MODES)}")
        return str(value)


class OneOf(fields.Field[str]):
    """One of a few names."""

    def __init__(self, names: tuple[str, ...], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.names = names

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if not isinstance(value, str) or value not in self.names:
            given = f" {quoted(value)}" if isinstance(value, str) else ""
            raise ValidationError(f"unknown {self.name}{given}; allowed: {', '.join(self.names)}")
        return value


class DebiasField(fields.Field[bool | str]):
    """`true`, `false` or `"auto"`."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bool | str:
        if isinstance(value, bool) or value == "auto":
            return value  # type: ignore[no-any-return]
        raise ValidationError('must be true, false or "auto"')


class StateField(fields.Field[State]):
    """Any JSON value, null included."""

    def deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        return State("null") if value is None else super().deserialize(value, *args, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> State:
        try:
            text = jsontext.as_text(value)
        except RecursionError:
            raise ValidationError("is nested too deeply") from None
        if len(text) > limits.STATE_CHARS:
            raise ValidationError(
                f"has {len(text):,} characters, at most {limits.STATE_CHARS:,} are allowed"
            )
        return State(text, value if isinstance(value, dict) else None)


class ProjectField(Words):
    """The name of a calibration namespace."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        name = super()._deserialize(value, attr, data, **kwargs)
        if len(name) > limits.PROJECT_CHARS or _CONTROL.search(name):
            raise ValidationError(
                f"must have at most {limits.PROJECT_CHARS} characters and no control characters"
            )
        return name


class QuestionsField(fields.Field[Mapping[str, Question]]):
    """The questions, by the caller's keys, in the caller's order."""

    def _deserialize(
        self, value: Any, attr: str | None, data: Any, **kwargs: Any
    ) -> Mapping[str, Question]:
        if not isinstance(value, Mapping):
            raise ValidationError("must be an object of question key to question")
        amount(len(value), (1, limits.QUESTIONS), "questions")
        # Callers ask the same questions about one state after the other.
        try:
            text = jsontext.dumps(value)
        except RecursionError:
            raise ValidationError("are nested too deeply") from None
        return _remembered(text) if len(text) <= limits.QUESTIONS_KEPT_CHARS else _load_each(value)


@lru_cache(maxsize=limits.QUESTIONS_KEPT)
def _remembered(text: str) -> Mapping[str, Question]:
    return MappingProxyType(_load_each(jsontext.loads(text.encode())))


def _load_each(bodies: Mapping[str, Any]) -> dict[str, Question]:
    questions, errors = {}, {}
    for key, body in bodies.items():
        try:
            questions[key] = _load_question(key, body)
        except ValidationError as error:
            errors[key] = error.messages
    if errors:
        raise ValidationError(errors)
    _check_text(questions)
    return questions


def _load_question(key: str, body: Any) -> Question:
    if not key or _CONTROL.search(key):
        raise ValidationError("a question key must not be empty or hold control characters")
    if not isinstance(body, Mapping):
        raise ValidationError("must be an object")
    kind = body.get("type")
    if kind is None:
        raise ValidationError({"type": [f"is missing; allowed: {', '.join(TYPES)}"]})
    if not isinstance(kind, str) or kind not in TYPES:
        name = f" {quoted(kind)}" if isinstance(kind, str) else ""
        raise InvalidJson(
            f"question {quoted(key)}: unknown type{name}; allowed: {', '.join(TYPES)}"
        )
    question: Question = TYPES[kind].load(body)
    return question


def _check_text(questions: Mapping[str, Question]) -> None:
    total = sum(len(key) + sum(map(len, question.texts)) for key, question in questions.items())
    if total > limits.QUESTION_TEXT_CHARS:
        raise ValidationError(
            f"hold {total:,} characters of text, at most {limits.QUESTION_TEXT_CHARS:,} are allowed"
        )


class DecisionSchema(Schema):
    """The body of `POST /v1/decide`."""

    error_messages = {"unknown": "unknown field"}  # noqa: RUF012

    state = StateField(required=True)
    questions = QuestionsField(required=True)
    model = PlanField(attribute="plan")
    mode = ModeField()
    debias = DebiasField()
    think = Flag()
    project = ProjectField()
    config = OneOf((*PINS, LATEST))
    privacy = OneOf((STANDARD, STRICT))
    explain = Flag()
    images = Images()

    @validates_schema(skip_on_field_errors=True)
    def _logprobs_can_answer(self, data: dict[str, Any], **_: Any) -> None:
        if data.get("mode") != "logprobs":
            return
        if data.get("think"):
            raise ValidationError("logprobs cannot be used with think", "mode")
        reasons = {
            key: "a question that thinks is asked verbally" if q.think else q.verbal_reason
            for key, q in data["questions"].items()
        }
        verbal = {key: reason for key, reason in reasons.items() if reason}
        _raise_for("mode", "logprobs cannot answer this: ", verbal)

    @validates_schema(skip_on_field_errors=True)
    def _conditions_have_an_object(self, data: dict[str, Any], **_: Any) -> None:
        _check_conditions(data["state"], data["questions"])

    @post_load
    def _freeze(self, data: dict[str, Any], **_: Any) -> DecisionRequest:
        try:
            data["stages"] = stages(data["questions"])
        except UnsoundDependency as error:
            raise ValidationError({"questions": {error.key: [error.reason]}}) from None
        if data.get("explain") and len(data["stages"]) > 1:
            raise ValidationError("cannot be used with depends_on", "explain")
        return DecisionRequest(**data)


def _check_conditions(state: State, questions: Mapping[str, Question]) -> None:
    if state.fields is None:
        needy = [key for key, question in questions.items() if question.needs_object]
        reason = "a state that is an object"
        _raise_for("when or rules", "needs ", dict.fromkeys(needy, reason))


def _raise_for(field: str, words: str, reasons: Mapping[str, str]) -> None:
    """Raise one error that says of each question what is wrong with its `field`."""
    if reasons:
        messages = {key: {field: [words + reason]} for key, reason in reasons.items()}
        raise ValidationError({"questions": messages})


_DECISION = DecisionSchema()
_STATE = StateField()


def load_decision(body: Any) -> DecisionRequest:
    """Check a parsed body of `POST /v1/decide`. Raises `InvalidJson` or `InvalidRequest`."""
    if not isinstance(body, dict):
        raise InvalidJson("the body must be a JSON object")
    try:
        request: DecisionRequest = _DECISION.load(body)
    except ValidationError as error:
        raise InvalidRequest(describe(error.messages)) from None
    return request


def with_state(request: DecisionRequest, value: Any) -> DecisionRequest:
    """The same request about another state. Raises `InvalidRequest`."""
    try:
        state = _STATE.deserialize(value)
        _check_conditions(state, request.questions)
    except ValidationError as error:
        messages = error.messages if isinstance(error.messages, dict) else {"state": error.messages}
        raise InvalidRequest(describe(messages)) from None
    return replace(request, state=state)


def load_questions(value: Any) -> dict[str, Question]:
    """Check a questions object alone. Raises `InvalidJson` or `InvalidRequest`."""
    return dict(load_decision({"state": {}, "questions": value}).questions)
