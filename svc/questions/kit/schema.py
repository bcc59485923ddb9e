"""The schema that every question has, and the fields that several types share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields as fields_of
from dataclasses import replace
from typing import Any, ClassVar

from marshmallow import Schema, ValidationError, post_load, validates_schema
from marshmallow.fields import Field

from svc import jsontext, limits
from svc.questions.kit.base import Example, Question
from svc.questions.kit.conditions import Rules, When
from svc.questions.kit.fields import (
    Anything,
    Described,
    FlagField,
    NumberField,
    OneOfField,
    WordsField,
    amount,
)
from svc.shapes import TEXT, Json, Named, array, record
from svc.terms import CoveragePer


class Type(Anything):
    """The name of the question's type, which has chosen the schema."""

    def json_schema(self) -> Json:
        model = self.parent.model
        others = model.other_names
        names = {"enum": [model.type, *others]} if others else {"const": model.type}
        return {**TEXT, **names, **super().json_schema()}


class QuestionKeysField(Described[tuple[str, ...]]):
    """A list of keys of other questions."""

    form = array(TEXT)

    def _deserialize(
        self, value: Any, attr: str | None, data: Any, **kwargs: Any
    ) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(key, str) for key in value):
            raise ValidationError("must be a list of question keys")
        return tuple(dict.fromkeys(value))


class Examples(Described[tuple[Example, ...]]):
    """A list of `{state, label}`."""

    def __init__(self, **kwargs: Any) -> None:
        about = f"Up to {limits.EXAMPLES} states with their true answers, shown to the model."
        super().__init__(about, **kwargs)

    def json_schema(self) -> Json:
        example = {"state": {}, "label": self.parent.label}
        examples = array(record(example, additionalProperties=False), 0, limits.EXAMPLES)
        return {**examples, **super().json_schema()}

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

    type = Type("The type of the question.", required=True)
    instructions = WordsField("The question in plain words.", required=True)
    think = FlagField("Let the model reason about this question in a verbal call of its own.")
    when = When(
        "Ask only when every field named here has this value, or one of these values; otherwise "
        'the answer is `{"skipped": true}`. A field is a top-level field of an object state, or '
        "`@key`, the answer to question `key`, which has to be answered first then."
    )
    rules = Rules(
        f"Up to {limits.RULES} rules: the first whose conditions all hold gives the answer, with "
        "no model call. Fields are named as in `when`."
    )
    depends_on = QuestionKeysField(
        "Keys of questions that are answered first and whose answers this one sees; at most "
        f"{limits.STAGES} stages in all."
    )

    @property
    def component(self) -> str:
        """Its name in the OpenAPI document, such as `ChoiceQuestion`."""
        return component(self.model.type, "Question")

    @property
    def label(self) -> Named:
        """The JSON schema of a true answer, such as `ChoiceLabel`."""
        return Named(component(self.model.type, "Label"), self.model.label_schema)

    def json_schemas(self) -> Json:
        """The JSON schemas of its fields, by name."""
        fields = self.fields.values()
        return {one.name: one.json_schema() for one in fields if isinstance(one, Described)}

    def on_bind_field(self, field_name: str, field_obj: Field[Any]) -> None:
        """A field that is missing counts as what the question itself has by default."""
        defaults = {one.name: one.default for one in fields_of(self.model)}
        default = defaults.get(field_name)
        if isinstance(field_obj, Described) and isinstance(default, (bool, int, float, str)):
            field_obj.default = default

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


def _checked(question: Question, label: Any, field: str, name: str) -> Any:
    try:
        return question.check_label(label)
    except ValueError as error:
        raise ValidationError(f"{name} {error}", field) from None


_COVERAGE = (
    "The probability with which `set` is to hold the true answer; it takes "
    f"{limits.MIN_LABELS} labels for this exact question."
)


def coverage_field(about: str = _COVERAGE) -> NumberField:
    """The probability with which a conformal set is to hold the true answer."""
    return NumberField(0, 1, exclusive=True, description=about)


class SetsSchema(QuestionSchema):
    """The fields of a question whose answers have prediction sets."""

    coverage = coverage_field()
    coverage_per = OneOfField(
        CoveragePer,
        "Whether `set` is to hold the true answer so often among all answers together (`answer`), "
        "or among the answers of each true `option` by itself, which takes labels of each: 9 for "
        "a coverage of 0.9, 19 for 0.95. It needs `coverage`.",
    )

    @validates_schema
    def _needs_coverage(self, data: Mapping[str, Any], **_: Any) -> None:
        # Generated clients send every default.
        if data.get("coverage_per") is CoveragePer.OPTION and "coverage" not in data:
            raise ValidationError("needs coverage", "coverage_per")


def component(kind: str, part: str) -> str:
    """The name that a part of a type has in the OpenAPI document, such as `ChoiceAnswer`."""
    return kind.capitalize() + part


def min_confidence_field() -> NumberField:
    """The threshold under which an answer abstains."""
    about = "The answer has `abstain: true` when its confidence is below this."
    return NumberField(0, 1, description=about)
