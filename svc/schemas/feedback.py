"""The body of `POST /v1/feedback`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marshmallow import Schema, ValidationError, fields

from svc.errors import InvalidJson, InvalidRequest
from svc.questions.fields import Words
from svc.schemas.messages import describe


@dataclass(frozen=True, slots=True)
class Feedback:
    """A true answer; whether it can be one is for the question to say."""

    decision_id: str
    question: str
    label: Any


class FeedbackSchema(Schema):
    """The body of `POST /v1/feedback`."""

    error_messages = {"unknown": "unknown field"}  # noqa: RUF012

    decision_id = Words(required=True)
    question = fields.String(required=True, error_messages={"invalid": "must be text"})
    label = fields.Raw(required=True, allow_none=True)


_SCHEMA = FeedbackSchema()


def load_feedback(body: Any) -> Feedback:
    """Raises `InvalidJson` for what is no object, and `InvalidRequest`."""
    if not isinstance(body, dict):
        raise InvalidJson("the body must be a JSON object")
    try:
        return Feedback(**_SCHEMA.load(body))
    except ValidationError as error:
        raise InvalidRequest(describe(error.messages)) from None
