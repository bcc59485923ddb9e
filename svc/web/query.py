"""Fields of a query string, where every value is text and may come several times."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError, missing

from svc import limits
from svc.questions import Anything, Described, FlagField, TextField, WholeField
from svc.shapes import TEXT, Json, array, one_of

_FLAGS = {"true": True, "false": False}
_DIGITS = re.compile(r"[0-9]{1,9}")


class QueryText(TextField):
    """Text; an empty one counts as not given."""

    def deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        first = value if value is missing else value[0] or missing
        return super().deserialize(first, *args, **kwargs)


def project_field() -> QueryText:
    """The name of a project."""
    return QueryText(
        "The project; without it `default`, or the project of a key that is for one alone."
    )


class QueryKey(QueryText):
    """A name that must be given."""

    default_error_messages = {  # noqa: RUF012
        "required": "is required in the query, such as ?question=..."
    }
    form = {**TEXT, "minLength": 1}  # noqa: RUF012


class PathPart(Anything):
    """A part of the path, which is always there."""

    def __init__(self, form: Json, description: str) -> None:
        super().__init__(description, required=True)
        self.form = form


class QueryTexts(Anything):
    """All texts given under one name."""

    form = array(TEXT)


class QueryWord(Described[StrEnum]):
    """One of the words of `words`."""

    def __init__(self, words: type[StrEnum], description: str, **kwargs: Any) -> None:
        self.form = one_of(words)
        self._words = words
        super().__init__(description, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> StrEnum:
        try:
            return self._words(value[0])
        except ValueError:
            raise ValidationError(f"must be one of {', '.join(self._words)}") from None


class QueryWhole(WholeField):
    """A whole number."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        number = int(value[0]) if _DIGITS.fullmatch(value[0]) else self.low - 1
        if not self.low <= number <= self.high:
            raise ValidationError(f"must be a whole number from {self.low} to {self.high:,}")
        return number


class QueryFlag(FlagField):
    """`true` or `false`."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bool:
        return super()._deserialize(_FLAGS.get(value[0]), attr, data, **kwargs)


class QuerySchema(Schema):
    """The values of a query that a view knows; others are ignored."""

    class Meta:
        unknown = EXCLUDE


class StrictQuerySchema(Schema):
    """The values of a query that a view knows; any other is refused."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        allowed = ", ".join(field.data_key or name for name, field in self.fields.items())
        self.error_messages["unknown"] = f"unknown parameter; allowed: {allowed}"


class ProjectQuerySchema(QuerySchema):
    project = project_field()


class QuestionQuerySchema(ProjectQuerySchema):
    question = QueryKey("A question's key.", required=True)


class WeeksQuerySchema(QuestionQuerySchema):
    weeks = QueryWhole(
        *limits.DRIFT_WEEKS,
        description="How many weeks, the current one included.",
        load_default=limits.DRIFT_WEEKS_DEFAULT,
    )


def can_refuse(schema: Schema) -> bool:
    """Whether a query can be one that `schema` refuses."""
    refusing = (QueryFlag, QueryWhole, QueryWord)
    strict = isinstance(schema, StrictQuerySchema)
    fields = schema.fields.values()
    return strict or any(field.required or isinstance(field, refusing) for field in fields)
