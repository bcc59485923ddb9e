"""JSON into the frozen request: what is checked before anything is asked.

A body that is no object, an unknown `mode` and an unknown question `type` are `InvalidJson` (400);
all else that is wrong is `InvalidRequest` (422), whose message names the question and the field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from marshmallow import Schema, ValidationError, fields, post_load, validates_schema

from svc import jsontext, limits
from svc.errors import InvalidJson, InvalidRequest
from svc.pins import LATEST, PINS
from svc.questions import TYPES, Question
from svc.questions.fields import Flag, Words, amount, shown

MODES = ("auto", "logprobs", "verbal")
DEFAULT_PROJECT = "default"
ERRORS_SHOWN = 5  # of a request with many mistakes
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Plan:
    """Which models answer, in the order given, and how they work together."""

    kind: str  # "chain"; a single model is a chain of one
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRequest:
    """A checked request; None stands for what the config or the server decides."""

    state_text: str  # the state as the model sees it: text, or compact JSON
    questions: Mapping[str, Question]
    plan: Plan | None = None
    mode: str | None = None
    debias: bool | None = None
    project: str | None = None
    config: str | None = None


class ModeField(fields.Field[str]):
    """`auto`, `logprobs` or `verbal`."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if value not in MODES:
            given = f"unknown mode {shown(value)}" if isinstance(value, str) else "mode is no text"
            raise InvalidJson(f"{given}; allowed: {', '.join(MODES)}")
        return str(value)


class ConfigField(fields.Field[str]):
    """The name of a pinned config."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if not isinstance(value, str) or value not in (*PINS, LATEST):
            raise ValidationError(f"unknown config; allowed: {', '.join((*PINS, LATEST))}")
        return value


class StateField(fields.Field[str]):
    """Any JSON value, null included, kept as the text that a model is shown."""

    def deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        return "null" if value is None else super().deserialize(value, *args, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        try:
            text = value if isinstance(value, str) else jsontext.dumps(value)
        except RecursionError:
            raise ValidationError("is nested too deeply") from None
        if len(text) > limits.STATE_CHARS:
            raise ValidationError(
                f"has {len(text):,} characters, at most {limits.STATE_CHARS:,} are allowed"
            )
        return text


class PlanField(fields.Field[Plan]):
    """A model id, or a list of them to try in order."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Plan:
        models = value if isinstance(value, list) else [value]
        amount(len(models), (1, limits.MODEL_CALLS), "models")
        if not all(isinstance(model, str) and model.strip() for model in models):
            raise ValidationError("must be a model id, or a list of model ids")
        return Plan("chain", tuple(models))


class ProjectField(Words):
    """The name of a calibration namespace."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        name = super()._deserialize(value, attr, data, **kwargs)
        if len(name) > limits.PROJECT_CHARS or _CONTROL.search(name):
            raise ValidationError(
                f"must have at most {limits.PROJECT_CHARS} characters and no control characters"
            )
        return name


class QuestionsField(fields.Field[dict[str, Question]]):
    """The questions, by the caller's keys, in the caller's order."""

    def _deserialize(
        self, value: Any, attr: str | None, data: Any, **kwargs: Any
    ) -> dict[str, Question]:
        if not isinstance(value, Mapping):
            raise ValidationError("must be an object of question key to question")
        amount(len(value), (1, limits.QUESTIONS), "questions")
        questions, errors = {}, {}
        for key, body in value.items():
            try:
                questions[key] = _load_question(key, body)
            except ValidationError as error:
                errors[key] = error.messages
        if errors:
            raise ValidationError(errors)
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
        name = f" {shown(kind)}" if isinstance(kind, str) else ""
        raise InvalidJson(
            f"question {shown(key)}: unknown type{name}; allowed: {', '.join(TYPES)}"
        )
    question: Question = TYPES[kind].load(body)
    return question


class DecisionSchema(Schema):
    """The body of `POST /v1/decide`."""

    error_messages: ClassVar[dict[str, str]] = {"unknown": "unknown field"}

    state = StateField(required=True, attribute="state_text")
    questions = QuestionsField(required=True)
    model = PlanField(attribute="plan")
    mode = ModeField()
    debias = Flag()
    project = ProjectField()
    config = ConfigField()

    @validates_schema
    def _text_is_bounded(self, data: dict[str, Any], **_: Any) -> None:
        questions: Mapping[str, Question] = data.get("questions", {})
        total = sum(
            len(key) + sum(map(len, question.texts)) for key, question in questions.items()
        )
        if total > limits.QUESTION_TEXT_CHARS:
            raise ValidationError(
                f"hold {total:,} characters of text, "
                f"at most {limits.QUESTION_TEXT_CHARS:,} are allowed",
                "questions",
            )

    @validates_schema
    def _logprobs_can_answer(self, data: dict[str, Any], **_: Any) -> None:
        if data.get("mode") != "logprobs":
            return
        errors = {
            key: {"mode": [f"logprobs cannot answer this question: {question.verbal_reason}"]}
            for key, question in data.get("questions", {}).items()
            if question.verbal_reason
        }
        if errors:
            raise ValidationError({"questions": errors})

    @post_load
    def _freeze(self, data: dict[str, Any], **_: Any) -> DecisionRequest:
        return DecisionRequest(**data)


_DECISION = DecisionSchema()


def load_decision(body: Any) -> DecisionRequest:
    """Check a parsed body of `POST /v1/decide`. Raises `InvalidJson` or `InvalidRequest`."""
    if not isinstance(body, dict):
        raise InvalidJson("the body must be a JSON object")
    try:
        request: DecisionRequest = _DECISION.load(body)
    except ValidationError as error:
        raise InvalidRequest(describe(error.messages)) from None
    return request


def describe(messages: Any) -> str:
    """Marshmallow's nested messages as one line that names questions and fields."""
    lines = [
        f"{_place(path)}: {message}" if path else message for path, message in _walk(messages, ())
    ]
    more = len(lines) - ERRORS_SHOWN
    return "; ".join(lines[:ERRORS_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _walk(messages: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(messages, Mapping):
        for key, inner in messages.items():
            yield from _walk(inner, path if key == "_schema" else (*path, str(key)))
    elif isinstance(messages, list):
        for inner in messages:
            yield from _walk(inner, path)
    else:
        yield path, _lowered(str(messages))


def _place(path: tuple[str, ...]) -> str:
    if path[0] != "questions" or len(path) == 1:
        return " ".join([path[0] if path[0].isidentifier() else shown(path[0]), *path[1:]])
    question, *rest = path[1:]
    return " ".join([f"question {shown(question)}", *(shown(part)[1:-1] for part in rest)])


def _lowered(message: str) -> str:
    """Marshmallow's own sentences in this project's form: no capital, no full stop."""
    return {"Missing data for required field.": "is required", "Field may not be null.": "must not be null"}.get(
        message, message
    )
