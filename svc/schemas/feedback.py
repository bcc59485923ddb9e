"""The body of `POST /v1/feedback`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marshmallow import Schema, post_load

from svc.questions import TYPES, Anything, TextField, WordsField
from svc.shapes import Named


@dataclass(frozen=True, slots=True)
class Feedback:
    """A true answer to one question; the question itself checks whether it allows the label."""

    decision_id: str
    question: str
    label: Any


def any_label() -> Named:
    """The JSON schema of a true answer to a question of any type."""
    return Named("Label", {"anyOf": [schema.label for schema in TYPES.values()]})


class LabelField(Anything):
    """A true answer to a question of whichever type."""

    form = {"$ref": any_label}  # noqa: RUF012


class FeedbackRequestSchema(Schema):
    """The true answer to one question of a decision."""

    error_messages = {"unknown": "unknown field"}  # noqa: RUF012

    decision_id = WordsField("The `id` of the decision.", required=True)
    question = TextField("The key of the question in that decision.", required=True)
    label = LabelField(
        "The true answer, in the form that the question's type has; null only where the question "
        "is `nullable`.",
        required=True,
        allow_none=True,
    )

    @post_load
    def _freeze(self, data: dict[str, Any], **_: Any) -> Feedback:
        return Feedback(**data)
