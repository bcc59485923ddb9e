"""Checks a parsed body, or the values of a query, with a schema."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from marshmallow import RAISE, Schema, ValidationError

from svc import limits
from svc.errors import InvalidJson, InvalidRequest
from svc.schemas.messages import ERRORS_SHOWN, describe, walk


def refuse_many_unknown(schema: Schema, value: Mapping[str, Any]) -> None:
    """Refuse an object with many unknown fields as a whole: to report each of them takes seconds.

    Raises `ValidationError`.
    """
    unknown = len(value.keys() - schema.fields.keys())
    if schema.unknown == RAISE and unknown > limits.UNKNOWN_FIELDS:
        allowed = ", ".join(schema.fields)
        raise ValidationError([f"{unknown:,} unknown fields; allowed: {allowed}"])


def load(schema: Schema, value: Any) -> Any:
    """What `schema` loads from a JSON object. Raises `InvalidJson` or `InvalidRequest`."""
    if not isinstance(value, dict):
        raise InvalidJson("the body must be a JSON object")
    try:
        refuse_many_unknown(schema, value)
        return schema.load(value)
    except ValidationError as error:
        refused = InvalidRequest(describe(error.messages))
        refused.places = list(islice(walk(error.messages), ERRORS_SHOWN))
        raise refused from None
