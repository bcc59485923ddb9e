"""Schemas of what the server answers.

They describe responses, in the OpenAPI document and to tools; a response is not made by them. A
schema stands beside the view that answers with it, and those of a decision stand here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from marshmallow import EXCLUDE, Schema

from svc.questions import TYPES, Anything, component
from svc.records import FACTS, REDACTED
from svc.shapes import (
    COUNT,
    FLAG,
    NUMBER,
    PROBABILITY,
    TEXT,
    Json,
    Named,
    described,
    mapping,
    one_of,
    record,
)

DECISION_ID: Json = {"type": "string", "pattern": "^dec_[0-9A-HJKMNP-TV-Z]{26}$"}
# Fields that any answer may have, whatever its type.
_ADDED = {
    "agreement": described(PROBABILITY, "The share of a council that had this answer."),
    "answered_by": described(TEXT, "The model of a cascade that answered."),
    "explain": described(mapping(NUMBER), "By how much the probability drops without each field."),
    "stage": described(COUNT, "Which stage the question was in, where there are several."),
    "rule": described(COUNT, "The index of the rule that answered, without a model."),
}
_CALIBRATED = described(
    FLAG, "Whether the project's feedback has fitted a calibrator for this exact question."
)


# Always true, but generators of clients write broken code for an optional constant.
REFUSED = described(FLAG, "Asked, but no model gave a valid answer (`POST /v1/decisions` alone).")


class ResponseSchema(Schema):
    """A response, or an object in one; or, with `one_of`, any one of these schemas."""

    class Meta:
        # Later versions may add fields to a response.
        unknown = EXCLUDE

    one_of: ClassVar[tuple[type[Schema], ...]] = ()


class Shown(Anything):
    """A field of a response; without `optional` it is always there."""

    def __init__(
        self, form: Any, description: str = "", optional: bool = False, **kwargs: Any
    ) -> None:
        """`form` is a JSON schema, or something that `$ref` in a JSON schema may refer to."""
        super().__init__(description, required=not optional, **kwargs)
        self.form = form if isinstance(form, dict) else {"$ref": form}


def any_answer() -> Named:
    """The JSON schema of an answer to a question of any type."""
    of_types = [Named(component(kind, "Answer"), answer(kind)) for kind in TYPES]
    skipped = record(
        {"skipped": {"const": True}},
        {"stage": _ADDED["stage"], "refused": REFUSED},
        description="Not asked: `when` did not match, or an answer that it needs was skipped.",
    )
    return Named(
        "Answer",
        {
            "anyOf": [*of_types, Named("SkippedAnswer", skipped)],
            "description": "The answer to a question, by the question's type.",
        },
    )


def answer(kind: str) -> Json:
    """The JSON schema of an answer to a question of this type, with all that may be added."""
    own = TYPES[kind].model.answer_schema
    return {
        **own,
        "properties": {
            "type": {"const": kind},
            **own["properties"],
            "calibrated": _CALIBRATED,
            **_ADDED,
        },
        "required": ["type", *own["required"], "calibrated"],
    }


def redacted_answer(aliases: Iterable[str]) -> Named:
    """The JSON schema of what the audit log has for an extracted value under `privacy: strict`.

    `aliases` are further names of their types.
    """
    extracting = [kind for kind, schema in TYPES.items() if schema.model.extracts]
    whole = answer(extracting[0])
    own = {"type": one_of([*extracting, *aliases]), "value": {"const": REDACTED}}
    return Named("RedactedAnswer", {**whole, "properties": {**whole["properties"], **own}})


def columns(*names: str) -> dict[str, Shown]:
    """How these columns of a decision are shown."""
    return {name: Shown(**FACTS[name].metadata) for name in names}


class DecidedSchema(ResponseSchema):
    """What is shown of a decision wherever one is."""

    class Meta(ResponseSchema.Meta):
        include = columns("model", "mode", "latency_ms", "cost_usd", "cached", "project", "config")

    id = Shown(DECISION_ID, "Unique, and sortable by time.")


class DecisionResponseSchema(DecidedSchema):
    """The answers of a decision, and how they were found."""

    debiased = Shown(FLAG, "Whether options were asked in both orders and averaged.")
    answers = Shown(mapping(any_answer), "By question key, in the order of the request.")
    ref = Shown(TEXT, "As it was given.", optional=True)
    tags = Shown(mapping(TEXT), "As they were given.", optional=True)
