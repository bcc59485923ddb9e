"""The body of `POST /v1/feedback`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marshmallow import Schema, ValidationError, post_load

from svc.jsontext import finite
from svc.questions import TYPES, Anything, NumberField, OneOfField, TextField, WordsField
from svc.schemas.references import ReviewerField
from svc.shapes import Named
from svc.terms import Sampling

# A rarer draw would make one label weigh as much as all others.
LEAST_CHANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Feedback:
    """A true answer to one question; the question itself checks whether it allows the label.

    `sampled` and `chance` say how the decision came to be labelled, and `reviewer` who labelled it.
    """

    decision_id: str
    question: str
    label: Any
    sampled: Sampling | None = None
    chance: float | None = None
    reviewer: str | None = None


def any_label() -> Named:
    """The JSON schema of a true answer to a question of any type."""
    return Named("Label", {"anyOf": [schema.label for schema in TYPES.values()]})


class LabelField(Anything):
    """A true answer to a question of whichever type."""

    form = {"$ref": any_label}  # noqa: RUF012


class ChanceField(NumberField):
    """A probability above 0."""

    def __init__(self, description: str) -> None:
        super().__init__(0.0, 1.0, description=description)
        self.form = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> float:
        chance = finite(value)
        if chance is None or not LEAST_CHANCE <= chance <= 1:
            raise ValidationError(f"must be a number from {LEAST_CHANCE:g} to 1")
        return chance


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

    sampled = OneOfField(
        Sampling,
        "How the decision came to be labelled: drawn at `random` among all, handed out by the "
        "review `queue`, or picked for any `other` reason. What labels of the last kind cannot "
        "promise, the calibration report says.",
    )
    chance = ChanceField(
        "The chance with which the decision was drawn for labelling; labels weigh one over it. Of "
        "a decision that `GET /v1/review` handed out the server knows it, whatever is given here."
    )
    reviewer = ReviewerField(
        "Who says so: a short name. What several reviewers say of a decision is kept, and the last "
        "label counts."
    )

    @post_load
    def _freeze(self, data: dict[str, Any], **_: Any) -> Feedback:
        return Feedback(**data)
