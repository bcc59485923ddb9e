"""Marshmallow fields of which the dialects' requests are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from marshmallow import Schema, ValidationError, missing

from svc import limits
from svc.questions import Anything, Described, TextField, amount
from svc.schemas import refuse_many_unknown
from svc.shapes import TEXT, Json, array

# How many wrong elements of a list are reported.
WRONG_ELEMENTS = 5


def type_of(value: Mapping[str, Any]) -> tuple[str, Any]:
    """The field that tells objects apart, and what it says."""
    return "type", value.get("type")


class Told(Described[Any]):
    """An object of one of several schemas, told apart by a word in it."""

    def __init__(
        self,
        schemas: Mapping[str, type[Schema]],
        tell: Callable[[Mapping[str, Any]], tuple[str, Any]] = type_of,
        **kwargs: Any,
    ) -> None:
        """`schemas` by that word; `tell` gives the field that has it, and the word."""
        super().__init__(**kwargs)
        self.tell = tell
        self.schemas = {word: schema() for word, schema in schemas.items()}
        self.form = {"oneOf": list(dict.fromkeys(schemas.values()))}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ValidationError("must be an object")
        field, word = self.tell(value)
        if not isinstance(word, str) or word not in self.schemas:
            raise ValidationError({field: [f"must be one of {', '.join(self.schemas)}"]})
        refuse_many_unknown(self.schemas[word], value)
        return self.schemas[word].load(value)


class Whole(Described[Any]):
    """An object of one schema, which has no hooks: its fields are all that is checked."""

    def __init__(self, schema: type[Schema], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.schema = schema()
        self.form = {"$ref": schema}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ValidationError("must be an object")
        # A request may have 20,000 of these, and a schema takes five times as long.
        with suppress(ValidationError):
            return self._loaded(value)
        refuse_many_unknown(self.schema, value)
        return self.schema.load(value)

    def _loaded(self, value: Mapping[str, Any]) -> Json:
        """What the schema loads from a sound object. Raises `ValidationError` without its words."""
        fields = self.schema.fields
        if not value.keys() <= fields.keys():
            raise ValidationError("unknown fields")
        loaded = {name: one.deserialize(value.get(name, missing)) for name, one in fields.items()}
        return {name: found for name, found in loaded.items() if found is not missing}


class Passed(Anything):
    """A field that is checked elsewhere, as `form` describes it."""

    def __init__(self, form: Json) -> None:
        super().__init__(allow_none=True)
        self.form = form


class SafetyIdentifier(TextField):
    """A caller's name for a user, which has no effect here."""

    form = {**TEXT, "maxLength": limits.SAFETY_IDENTIFIER_CHARS}  # noqa: RUF012

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if len(text) > limits.SAFETY_IDENTIFIER_CHARS:
            most = limits.SAFETY_IDENTIFIER_CHARS
            raise ValidationError(f"must have at most {most} characters")
        return text


class Many(Described[list[Any]]):
    """A list whose elements are all of one field, `low` to `high` of them."""

    def __init__(self, one: Described[Any], what: str, low: int, high: int, **kwargs: Any) -> None:
        """`what` names the elements in messages."""
        super().__init__(**kwargs)
        self.one, self.what, self.bounds = one, what, (low, high)
        self.form: Json = array(one.form, low, high)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        if not isinstance(value, list):
            raise ValidationError(f"must be a list of {self.what}")
        amount(len(value), self.bounds, self.what)
        return each(self.one.deserialize, value)


def each(load: Callable[[Any], Any], values: Sequence[Any], names: Sequence[str] = ()) -> list[Any]:
    """What `load` makes of each value.

    Raises `ValidationError` with the `names` of wrong ones, or with their numbers.
    """
    loaded, errors = [], {}
    for name, value in zip(names or range(len(values)), values, strict=True):
        try:
            loaded.append(load(value))
        except ValidationError as error:
            errors[name] = error.messages
            if len(errors) == WRONG_ELEMENTS:
                break
    if errors:
        raise ValidationError(errors)
    return loaded
