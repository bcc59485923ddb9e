"""The body of `POST /v1/forecast`: questions, how many rows there are, and some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marshmallow import ValidationError, post_load

from svc import limits
from svc.jsontext import JsonObject
from svc.questions import Described, WholeField
from svc.schemas.decision import DecisionRequest, DecisionRequestSchema, OneOf, State
from svc.shapes import array

# How rows may be sent besides in direct calls.
BATCHES = ("provider",)


@dataclass(frozen=True, slots=True)
class ForecastRequest:
    """A checked body: what all rows share, how many there are, and the states of a sample."""

    template: DecisionRequest
    rows: int
    sample: Sequence[Any]
    batched: bool


class SampleField(Described[list[Any]]):
    """States of some rows, which are looked at one by one."""

    form = array({}, 0, limits.FORECAST_SAMPLE)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        if not isinstance(value, list) or len(value) > limits.FORECAST_SAMPLE:
            raise ValidationError(f"must be a list of at most {limits.FORECAST_SAMPLE} states")
        return value


class ForecastRequestSchema(DecisionRequestSchema):
    """Typed questions that are to be asked about many rows."""

    class Meta:
        exclude = ("state", "images", "explain", "ref", "tags")

    sample = SampleField(
        f"The states of up to {limits.FORECAST_SAMPLE} rows, drawn by chance from all of them. "
        "Without any, prompts are counted without an input.",
        required=True,
    )
    rows = WholeField(
        *(0, limits.FORECAST_ROWS),
        description="How many rows there are. Without it: those of the sample alone.",
    )
    batch = OneOf(
        BATCHES, description="`provider`: in batches of the models' providers, at their price."
    )

    def _conditions_have_an_object(self, data: Mapping[str, Any], **_: Any) -> None:
        """The rows have the states."""

    @post_load
    def _freeze(self, data: JsonObject, **_: Any) -> ForecastRequest:
        sample = data.pop("sample")
        rows = data.pop("rows", len(sample))
        batched = data.pop("batch", None) is not None
        template = super()._freeze({**data, "state": State("")})
        return ForecastRequest(template, rows, sample, batched)
