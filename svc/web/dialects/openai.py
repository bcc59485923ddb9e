"""OpenAI's dialect: an `input`, a list of questions, and answers in their order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields, post_load, pre_load, validates_schema

from svc.jsontext import JsonObject
from svc.questions import TYPES, NumberField, TextField
from svc.schemas import DecisionRequestSchema, OneOf, StateField, check_conditions
from svc.web.dialects.fields import SafetyIdentifier
from svc.web.dialects.openai_answers import ListedRequest
from svc.web.dialects.openai_input import Input, InputField
from svc.web.dialects.openai_questions import Listed, ListedField, Pick, Predicate, Rating
from svc.web.systemone import CriteriaModel, config_and_model

# Fields of the whole request that stand for the same field of each question whose type has it.
_SPREAD = ("coverage", "min_confidence")
_KINDS = {one.kind: one.type for one in (Predicate, Pick, Rating)}
_STATE = StateField()


class CacheOptionsSchema(Schema):
    """How a provider's prompt cache is used; it is checked and has no effect here."""

    mode = OneOf(("implicit", "explicit"), allow_none=True)
    ttl = OneOf(("30m",))


class ListedRequestSchema(DecisionRequestSchema):
    """Questions as OpenAI's clients ask them, and the fields of `/v1/decide` that go with them."""

    class Meta:
        exclude = ("state", "images", "explain")

    input = InputField(required=True)
    questions = ListedField(required=True)  # type: ignore[assignment]
    model = CriteriaModel(
        "`svc-x.y.z` or `svc-latest` selects that config; a name without a provider stands for the "
        "server's default model; anything else is as in `/v1/decide`.",
        attribute="plan",
    )
    prompt_cache_key = TextField("Not used.", allow_none=True)
    prompt_cache_options = fields.Nested(CacheOptionsSchema, allow_none=True)
    safety_identifier = SafetyIdentifier("Not used.", allow_none=True)
    coverage = NumberField(
        0, 1, exclusive=True, description="That of every question which does not say its own."
    )
    min_confidence = NumberField(
        0, 1, description="That of every question which does not say its own."
    )

    @pre_load
    def _translate(self, given: Mapping[str, Any], **_: Any) -> JsonObject:
        rest = {name: value for name, value in given.items() if name != "model"}
        common = {name: given[name] for name in _SPREAD if name in given}
        if common and isinstance(given.get("questions"), list):
            rest["questions"] = [_with(common, one) for one in given["questions"]]
        return {**config_and_model(given.get("model")), **rest}

    @validates_schema(skip_on_field_errors=True)
    def _logprobs_can_answer(self, data: Mapping[str, Any], **_: Any) -> None:
        listed: Listed = data["questions"]
        try:
            super()._logprobs_can_answer({**data, "questions": listed.asked})
        except ValidationError as error:
            raise _numbered(listed, error) from None

    def _conditions_have_an_object(self, data: Mapping[str, Any], **_: Any) -> None:
        """Checked below, when the state was put together."""

    @post_load
    def _freeze(self, data: JsonObject, **_: Any) -> Any:
        given: Input = data.pop("input")
        listed: Listed = data.pop("questions")
        own = {name: value for name, value in data.items() if name not in _NOT_OURS}
        try:
            value, images = given.state(listed.images)
            state = _STATE.deserialize(value)
        except ValidationError as error:
            raise ValidationError({"input": error.messages}) from None
        own |= {"state": state, "images": images, "partly": True}
        try:
            check_conditions(state, listed.asked)
            request = super()._freeze({**own, "questions": listed.asked})
        except ValidationError as error:
            raise _numbered(listed, error) from None
        return ListedRequest(request, listed)


_NOT_OURS = (*_SPREAD, "prompt_cache_key", "prompt_cache_options", "safety_identifier")


def _with(common: Mapping[str, Any], question: Any) -> Any:
    """A question with the common fields that its type has."""
    kind = question.get("type") if isinstance(question, Mapping) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        return question
    known = TYPES[_KINDS[kind]].fields
    return {**{name: value for name, value in common.items() if name in known}, **question}


def _numbered(listed: Listed, error: ValidationError) -> ValidationError:
    """The same error with the numbers of questions in place of their keys."""
    messages = error.messages
    if isinstance(messages, dict) and isinstance(messages.get("questions"), dict):
        return ValidationError(listed.numbered(messages["questions"]))
    return error
