"""The body of `POST /v1/batch`: questions once, and many rows to ask them about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from marshmallow import ValidationError, post_load

from svc import jsontext, limits
from svc.jsontext import JsonObject
from svc.phrases import quoted
from svc.questions import Described, NumberField, Question, WholeField
from svc.schemas.decision import (
    DecisionRequest,
    DecisionRequestSchema,
    OneOf,
    State,
    load_decision,
    with_state,
)
from svc.schemas.job_rows import CheckedRows, JobRowSchema, checked
from svc.shapes import array
from svc.terms import Privacy

# The field that has rows answered in batches, and its only value.
BATCH = "batch"
PROVIDER = "provider"

# A state that every question can be asked about, in place of those of the rows.
_ANY_STATE = State("{}", {})

# What belongs to a row or to the job, and not to what all rows share.
_OF_THE_JOB = ("rows", "expires_after_hours", "budget_usd", BATCH)
_REFERENCES = ("ref", "tags")


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A checked job: what all rows share, as it was sent and as it was read, and the rows' JSON.

    It is `batched` where its rows are to be answered in batches of the models' providers.
    """

    shared: JsonObject
    template: DecisionRequest
    rows: Sequence[str]
    expires_after_hours: int
    budget_usd: float | None = None
    batched: bool = False


class RowsField(Described[CheckedRows]):
    """Rows, as JSON values or as lines of JSON."""

    form = array(JobRowSchema, 1, limits.JOB_ROWS)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> CheckedRows:
        if not isinstance(value, list) or not 1 <= len(value) <= limits.JOB_ROWS:
            raise ValidationError(f"must be a list of 1 to {limits.JOB_ROWS:,} objects")
        return checked(value)


class JobRequestSchema(DecisionRequestSchema):
    """Typed questions about the states of many rows, answered one after the other."""

    class Meta:
        exclude = ("state", "images", "explain", "ref", "tags")

    rows = RowsField(
        f"1 to {limits.JOB_ROWS:,} rows; as JSON lines each is a line after the first.",
        required=True,
    )
    expires_after_hours = WholeField(
        *limits.JOB_HOURS,
        description="After so many hours no further row is asked.",
        default=limits.JOB_HOURS_DEFAULT,
    )
    budget_usd = NumberField(
        *limits.BUDGET_USD,
        description="What the job may cost, in dollars; where that is spent, it fails.",
    )

    batch = OneOf(
        (PROVIDER,),
        description="With `provider`, rows are answered in batches of the models' providers: at "
        "the price of batches, mostly half, and within a day for each round of calls.",
    )

    def _conditions_have_an_object(self, data: Mapping[str, Any], **_: Any) -> None:
        """The rows have the states, see `_freeze`."""

    @post_load(pass_original=True)
    def _freeze(self, data: JsonObject, original: JsonObject, **_: Any) -> JobRequest:
        rows = data.pop("rows")
        hours = data.pop("expires_after_hours", limits.JOB_HOURS_DEFAULT)
        batched = data.pop(BATCH, None) is not None
        budget_usd = data.pop("budget_usd", None)
        template = super()._freeze({**data, "state": _ANY_STATE})
        _check_states(rows, template.questions)
        if template.privacy is Privacy.STRICT and _extracting(template.questions):
            raise ValidationError(
                "strict cannot be used with questions whose value is read from the input: a job "
                "keeps its answers until they are fetched",
                "privacy",
            )
        if template.privacy is Privacy.STRICT and batched:
            raise ValidationError(
                "strict cannot be used with a batch: what is asked lies at the provider as a file "
                "until its batch has ended",
                "privacy",
            )
        if budget_usd is not None and batched:
            raise ValidationError(
                "cannot be used with a batch, whose calls no budget counts", "budget_usd"
            )
        shared = {name: given for name, given in original.items() if name not in _OF_THE_JOB}
        return JobRequest(shared, template, rows.texts, hours, budget_usd, batched)


def load_template(shared: JsonObject) -> DecisionRequest:
    """What all rows of a job share, about a state that stands for none of them.

    Raises `InvalidJson` or `InvalidRequest`.
    """
    of_decision = {name: given for name, given in shared.items() if name != BATCH}
    return load_decision({**of_decision, "state": {}})


def is_batched(shared: JsonObject) -> bool:
    """Whether the rows of a job are answered in batches of the models' providers."""
    return BATCH in shared


def parsed_shared(text: str) -> JsonObject:
    """What all rows of a job share from its JSON. Raises `InvalidJson`."""
    shared: JsonObject = jsontext.loads(text.encode())
    return shared


def parsed_row(text: str) -> JsonObject:
    """A row from its JSON, as it was checked before."""
    row: JsonObject = jsontext.loads(text.encode(), "the row")
    return row


def with_row(template: DecisionRequest, row: JsonObject) -> DecisionRequest:
    """The request of one row. Raises `InvalidRequest`."""
    references = {name: row[name] for name in _REFERENCES if name in row}
    return replace(with_state(template, row["state"]), **references)


def _check_states(rows: CheckedRows, questions: Mapping[str, Question]) -> None:
    """Raise `ValidationError` where conditions look at a state without fields."""
    needing = next((key for key, one in questions.items() if one.needs_object), None)
    if needing is not None and rows.first_without_fields is not None:
        words = f"must be an object: when or rules of question {quoted(needing)} look at its fields"
        raise ValidationError({"rows": {str(rows.first_without_fields): {"state": [words]}}})


def _extracting(questions: Mapping[str, Question]) -> bool:
    return any(question.extracts for question in questions.values())
