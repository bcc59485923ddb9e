"""The bodies of `POST /v1/feedback` and `POST /v1/feedback/bulk`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marshmallow import Schema, ValidationError, post_load

from svc import limits
from svc.jsontext import JsonObject, finite
from svc.phrases import quoted
from svc.questions import (
    TYPES,
    Anything,
    Described,
    FlagField,
    NumberField,
    OneOfField,
    TextField,
    WordsField,
)
from svc.schemas.messages import describe
from svc.schemas.references import RefField, ReviewerField
from svc.shapes import Named, array, mapping
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


@dataclass(frozen=True, slots=True)
class LabelledLine:
    """The true answers to questions of one decision, which its `id` or its caller's `ref` names.

    `number` is that of the line, from 1. The rest is as in `Feedback`.
    """

    labels: Mapping[str, Any]
    id: str | None = None
    ref: str | None = None
    sampled: Sampling | None = None
    chance: float | None = None
    reviewer: str | None = None
    number: int = 0


@dataclass(frozen=True, slots=True)
class LineError:
    """What is wrong with a line: its number, the field, empty where it is all of it, and words."""

    line: int
    field: str
    message: str


@dataclass(frozen=True, slots=True)
class BulkFeedback:
    """Many labels, of which with `atomic` either all are taken or none.

    `project` is the one that has the refs. `errors` are those of lines that cannot be read.
    """

    lines: Sequence[LabelledLine]
    errors: Sequence[LineError]
    count: int
    project: str | None = None
    atomic: bool = False


@dataclass(frozen=True, slots=True)
class NumberedLine:
    """A line of a body of lines, parsed, or what is wrong with it."""

    number: int
    value: Any = None
    error: str = ""


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
        self.form = {"type": "number", "minimum": LEAST_CHANCE, "maximum": 1}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> float:
        chance = finite(value)
        if chance is None or not LEAST_CHANCE <= chance <= 1:
            raise ValidationError(f"must be a number from {LEAST_CHANCE:g} to 1")
        return chance


class LabelsField(Described[Mapping[str, Any]]):
    """True answers by the keys of their questions."""

    form = {**mapping({"$ref": any_label}), "minProperties": 1}  # noqa: RUF012

    def _deserialize(
        self, value: Any, attr: str | None, data: Any, **kwargs: Any
    ) -> Mapping[str, Any]:
        if not isinstance(value, Mapping) or not value:
            raise ValidationError("must be an object of question key to true answer")
        return value


_SAMPLED = (
    "How the decision came to be labelled: drawn at `random` among all, handed out by the "
    "review `queue`, or picked for any `other` reason. What labels of the last kind cannot "
    "promise, the calibration report says."
)
_CHANCE = (
    "The chance with which the decision was drawn for labelling; labels weigh one over it. Of "
    "a decision that `GET /v1/review` handed out, and a `reviewer` labels, the server knows it, "
    "whatever is given here."
)
_REVIEWER = (
    "Who says so: a short name, without which a label is none of the review queue's. What several "
    "reviewers say of a decision is kept, and the last label counts."
)


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

    sampled = OneOfField(Sampling, _SAMPLED)
    chance = ChanceField(_CHANCE)
    reviewer = ReviewerField(_REVIEWER)

    @post_load
    def _freeze(self, data: JsonObject, **_: Any) -> Feedback:
        return Feedback(**data)


class LabelledLineSchema(Schema):
    """The true answers to questions of one decision, named by `id` or by `ref`."""

    error_messages = {"unknown": "unknown field"}  # noqa: RUF012

    id = WordsField("The `id` of the decision.")
    ref = RefField("The `ref` of the decision; the newest one, where several have it.")
    labels = LabelsField("The true answers by question key.", required=True)
    sampled = OneOfField(Sampling, _SAMPLED)
    chance = ChanceField(_CHANCE)
    reviewer = ReviewerField(_REVIEWER)


class LinesField(Described[list[NumberedLine]]):
    """Lines, each of which is checked alone."""

    form = array(LabelledLineSchema, 1, limits.BULK_LABELS)

    def _deserialize(
        self, value: Any, attr: str | None, data: Any, **kwargs: Any
    ) -> list[NumberedLine]:
        if not isinstance(value, list) or not 1 <= len(value) <= limits.BULK_LABELS:
            raise ValidationError(f"must be a list of 1 to {limits.BULK_LABELS:,} objects")
        return [
            one if isinstance(one, NumberedLine) else NumberedLine(number, one)
            for number, one in enumerate(value, 1)
        ]


class BulkFeedbackSchema(Schema):
    """The true answers to many decisions."""

    error_messages = {"unknown": "unknown field"}  # noqa: RUF012

    labels = LinesField(
        f"At most {limits.BULK_LABELS:,} lines, which have no more labels together.", required=True
    )
    project = TextField(
        "The project that the refs are of. Without it `default`, or the project of a key that is "
        "for one alone."
    )
    atomic = FlagField(
        f"Take all labels, of {limits.ATOMIC_CHARS:,} characters at most with the keys of their "
        "questions, or none where anything is wrong.",
        default=False,
    )

    @post_load
    def _freeze(self, data: JsonObject, **_: Any) -> BulkFeedback:
        numbered = data.pop("labels")
        lines, errors = _checked(numbered)
        labels = sum(len(line.labels) for line in lines)
        if labels > limits.BULK_LABELS:
            raise ValidationError(
                f"hold {labels:,} labels, at most {limits.BULK_LABELS:,} are allowed", "labels"
            )
        return BulkFeedback(lines, errors, len(numbered), **data)


# Each line is checked by these alone: a schema takes three times as long for thousands of them.
_FIELDS = LabelledLineSchema().fields


def _checked(numbered: Iterable[NumberedLine]) -> tuple[list[LabelledLine], list[LineError]]:
    lines, errors = [], []
    for one in numbered:
        try:
            lines.append(_line(one))
        except ValidationError as error:
            errors.append(LineError(one.number, str(error.field_name), describe(error.messages)))
    return lines, errors


def _line(one: NumberedLine) -> LabelledLine:
    if one.error:
        raise ValidationError(one.error, "")
    if not isinstance(one.value, dict):
        raise ValidationError("must be an object", "")
    values = {name: _value(name, given) for name, given in one.value.items()}
    if "labels" not in values:
        raise ValidationError("is required", "labels")
    if ("id" in values) == ("ref" in values):
        raise ValidationError("needs either an id or a ref", "")
    return LabelledLine(number=one.number, **values)


def _value(name: str, given: Any) -> Any:
    field = _FIELDS.get(name)
    if field is None:
        raise ValidationError(f"unknown field {quoted(name)}; allowed: {', '.join(_FIELDS)}", "")
    try:
        return field.deserialize(given)
    except ValidationError as error:
        raise ValidationError(error.messages, name) from None
