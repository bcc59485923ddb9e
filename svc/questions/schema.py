"""The schema that every question has, and the fields that several types share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from marshmallow import Schema, ValidationError, fields, post_load

from svc import jsontext, limits
from svc.questions.base import Example, Question
from svc.questions.conditions import Rules, When
from svc.questions.fields import Flag, Number, Words, amount


class Keys(fields.Field[tuple[str, ...]]):
    """A list of keys of other questions."""

    def _deserialize(
        self, value: Any, attr: str | None, data: Any, **kwargs: Any
    ) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(key, str) for key in value):
            raise ValidationError("must be a list of question keys")
        return tuple(dict.fromkeys(value))


class Examples(fields.Field[tuple[Example, ...]]):
    """A list of `{state, label}`."""

    def _deserialize(
        self, value: Any, attr: str | None, data: Any, **kwargs: Any
    ) -> tuple[Example, ...]:
        if not isinstance(value, list):
            raise ValidationError("must be a list of objects {state, label}")
        amount(len(value), (0, limits.EXAMPLES), "examples")
        return tuple(_example(index, example) for index, example in enumerate(value))


def _example(index: int, example: Any) -> Example:
    if not isinstance(example, Mapping) or example.keys() != {"state", "label"}:
        raise ValidationError(f"example {index} must be an object with state and label")
    try:
        return Example(jsontext.as_text(example["state"]), example["label"])
    except RecursionError:
        raise ValidationError(f"example {index}: state is nested too deeply") from None


class QuestionSchema(Schema):
    """The fields that every question has; a type's schema adds its own."""

    error_messages = {"unknown": "unknown field"}  # noqa: RUF012
    model: ClassVar[type[Question]]

    type = fields.String(required=True)
    instructions = Words(required=True)
    think = Flag()
    when = When()
    rules = Rules()
    depends_on = Keys()

    @post_load
    def _freeze(self, data: dict[str, Any], **_: Any) -> Question:
        """Build the question, then check the labels that only the whole question can."""
        data.pop("type")
        question = self.model(**data)
        if not question.rules and not question.examples:
            return question
        rules = tuple(
            replace(rule, answer=_checked(question, rule.answer, "rules", f"rule {i}: answer"))
            for i, rule in enumerate(question.rules)
        )
        examples = tuple(
            replace(one, label=_checked(question, one.label, "examples", f"example {i}: label"))
            for i, one in enumerate(question.examples)
        )
        return replace(question, rules=rules, examples=examples)


def _checked(question: Question, label: Any, field: str, place: str) -> Any:
    try:
        return question.check_label(label)
    except ValueError as error:
        raise ValidationError(f"{place} {error}", field) from None


def coverage_field() -> Number:
    """The probability with which a conformal set is to hold the true answer."""
    return Number(0, 1, exclusive=True)


def min_confidence_field() -> Number:
    """The threshold under which an answer abstains."""
    return Number(0, 1)
