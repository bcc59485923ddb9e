"""Checks a parsed body, or the values of a query, with a schema."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError

from svc.errors import InvalidJson, InvalidRequest
from svc.schemas.messages import describe


def load(schema: Schema, value: Any) -> Any:
    """What `schema` loads from a JSON object. Raises `InvalidJson` or `InvalidRequest`."""
    if not isinstance(value, dict):
        raise InvalidJson("the body must be a JSON object")
    try:
        return schema.load(value)
    except ValidationError as error:
        raise InvalidRequest(describe(error.messages)) from None
