"""The dialects together: which of them a request is in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from marshmallow import EXCLUDE, Schema, ValidationError

from svc import limits
from svc.schemas import ResponseSchema, refuse_many_unknown
from svc.web.dialects.errors import BadParameter
from svc.web.dialects.google import MappedRequestSchema
from svc.web.dialects.google_answers import MappedResponseSchema
from svc.web.dialects.openai import ListedRequestSchema
from svc.web.dialects.openai_answers import ListedResponseSchema
from svc.web.systemone import CriteriaRequestSchema, CriteriaResponseSchema

# The members and elements of a body, which are looked at more closely than elsewhere.
MOST_PARTS = limits.DIALECT_PARTS


class AnyRequestSchema(Schema):
    """Questions in one of the dialects, which are told apart by their fields.

    Questions in a list are OpenAI's. With a map of questions, an `input` is Google's, and a
    `state` that of the criteria route.
    """

    class Meta:
        unknown = EXCLUDE

    one_of: ClassVar[tuple[type[Schema], ...]] = (
        ListedRequestSchema,
        MappedRequestSchema,
        CriteriaRequestSchema,
    )

    def load(self, data: Mapping[str, Any], **kwargs: Any) -> Any:  # type: ignore[override]
        """Load it with the schema of its dialect. Raises `BadParameter`."""
        schema = _schema(data)
        try:
            refuse_many_unknown(schema, data)
            return schema.load(data)
        except ValidationError as error:
            raise BadParameter.of(error.messages) from None


class AnyResponseSchema(ResponseSchema):
    """The answers, in the dialect of the request."""

    one_of = (ListedResponseSchema, MappedResponseSchema, CriteriaResponseSchema)


_LISTED, _MAPPED, _CRITERIA = (schema() for schema in AnyRequestSchema.one_of)


def _schema(data: Mapping[str, Any]) -> Schema:
    if "state" in data and "input" not in data:
        return _CRITERIA
    return _MAPPED if isinstance(data.get("questions"), Mapping) else _LISTED
