"""A parsed body, or the values of a query, through the schema that checks them."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError

from svc.errors import InvalidJson, InvalidRequest
from svc.schemas.messages import describe


def load(schema: Schema, given: Any) -> Any:
    """What `schema` makes of a JSON object. Raises `InvalidJson` or `InvalidRequest`."""
    if not isinstance(given, dict):
        raise InvalidJson("the body must be a JSON object")
    try:
        return schema.load(given)
    except ValidationError as error:
        raise InvalidRequest(describe(error.messages)) from None
