"""Google's dialect: an `input`, and a map of questions with criteria."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from marshmallow import INCLUDE, Schema, ValidationError, post_load

from svc import limits
from svc.jsontext import JsonObject
from svc.questions import Anything
from svc.schemas import QuestionsField
from svc.web.dialects.google_answers import MappedRequest
from svc.web.dialects.google_parts import ANY_PART, PartsField, text_and_images
from svc.web.dialects.google_questions import MapField
from svc.web.systemone import Criteria, CriteriaRequestSchema, any_question

_MODELS = "models/"
# The fields of a criteria request that the input is put into.
_OF_INPUT = {"state": "input", "images": "input"}


class _CriteriaSchema(CriteriaRequestSchema):
    questions = QuestionsField(any_question, limits.MAPPED_QUESTIONS)


_CRITERIA = _CriteriaSchema()


class MappedRequestSchema(Schema):
    """Questions as Google's clients ask them; further fields are those of the criteria route."""

    class Meta:
        unknown = INCLUDE

    input = PartsField(
        ANY_PART,
        "A text, or parts: texts and images. At most "
        f"{limits.STATE_CHARS:,} characters in all, and {limits.IMAGES} images.",
        required=True,
    )
    questions = MapField(
        f"Asked with up to {limits.QUESTIONS} in a call. All texts of the questions together: at "
        f"most {limits.QUESTION_TEXT_CHARS:,} characters.",
        required=True,
    )
    model = Anything(
        "As on the criteria route; `models/` before a name is left out.", allow_none=True
    )

    @post_load
    def _translate(self, data: JsonObject, **_: Any) -> MappedRequest:
        try:
            state, images = text_and_images(data.pop("input"))
        except ValidationError as error:
            raise ValidationError({"input": error.messages}) from None
        model = data.get("model")
        if isinstance(model, str):
            data["model"] = model.removeprefix(_MODELS)
        body = {**data, "state": state, "images": images}
        try:
            criteria: Criteria = _CRITERIA.load(body)
        except ValidationError as error:
            messages = error.messages if isinstance(error.messages, dict) else {"": error.messages}
            named = {_OF_INPUT.get(name, name): words for name, words in messages.items()}
            raise ValidationError(named) from None
        return MappedRequest(replace(criteria, request=replace(criteria.request, partly=True)))
