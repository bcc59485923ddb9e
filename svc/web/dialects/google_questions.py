"""The questions of Google's dialect, put into the criteria shape."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from marshmallow import INCLUDE, Schema, ValidationError, post_load

from svc import limits
from svc.jsontext import JsonObject
from svc.questions import Anything, Described, TextField, amount
from svc.schemas import OneOf, remembering
from svc.shapes import mapping
from svc.web.dialects.fields import Told, Whole, each
from svc.web.dialects.google_parts import TEXT_PART, PartsField, text_and_images


class SidesSchema(Schema):
    """What the two sides of a yes-no question mean."""

    true_description = TextField(allow_none=True)
    false_description = TextField(allow_none=True)


class _MappedQuestionSchema(Schema):
    """Further fields are those of a question on the criteria route."""

    class Meta:
        unknown = INCLUDE

    instructions = PartsField(TEXT_PART, "A text, or parts of text.", required=True)

    @post_load
    def _translate(self, data: JsonObject, **_: Any) -> JsonObject:
        return {**data, "instructions": text_and_images(data["instructions"])[0]}


class MappedNoulSchema(_MappedQuestionSchema):
    """Whether something holds."""

    type = OneOf(("noul",), required=True)
    criteria = Whole(SidesSchema, allow_none=True)

    @post_load
    def _sides(self, data: JsonObject, **_: Any) -> JsonObject:
        sides = data.get("criteria") or {}
        named = {name.removesuffix("_description"): about for name, about in sides.items()}
        return {**data, "criteria": named}


class MappedChoiceSchema(_MappedQuestionSchema):
    """One of several options."""

    type = OneOf(("choice",), required=True)
    criteria = Anything("Option key to description.", required=True)


class MappedScoreSchema(_MappedQuestionSchema):
    """One of several levels, lowest first."""

    type = OneOf(("score",), required=True)
    criteria = Anything("Descriptions of the levels, lowest first.", required=True)


# The schemas of questions, by their types.
QUESTIONS = {"choice": MappedChoiceSchema, "noul": MappedNoulSchema, "score": MappedScoreSchema}
_QUESTION = Told(QUESTIONS)


class MapField(Described[Mapping[str, JsonObject]]):
    """The questions by keys of the caller's."""

    form = {  # noqa: RUF012
        **mapping(_QUESTION.form),
        "minProperties": 1,
        "maxProperties": limits.MAPPED_QUESTIONS,
    }

    def _deserialize(
        self, value: Any, attr: str | None, data: Any, **kwargs: Any
    ) -> Mapping[str, JsonObject]:
        if not isinstance(value, Mapping):
            raise ValidationError("must be an object of question key to question")
        amount(len(value), (1, limits.MAPPED_QUESTIONS), "questions")
        return _mapped(value)


@remembering
def _mapped(questions: Mapping[str, Any]) -> Mapping[str, JsonObject]:
    loaded = each(_QUESTION.deserialize, list(questions.values()), list(questions))
    return MappingProxyType(dict(zip(questions, loaded, strict=True)))
