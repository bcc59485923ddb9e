"""Marshmallow fields that take JSON as it is: no `"0.5"` for a number, no `1` for `true`.

Each says which JSON it takes, as a JSON schema; together with what it means to the caller, that
is its description in the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

from marshmallow import ValidationError, fields, missing

from svc.jsontext import finite
from svc.phrases import quoted
from svc.shapes import FLAG, NOT_BLANK, TEXT, WORDS, Json, array, mapping, nullable, one_of

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)


class Described(fields.Field[T]):
    """A field that describes itself.

    `form` is the JSON that it takes, as a JSON schema; `description` says what it means. `default`
    is only described: what a missing field counts as. `load_default` is filled in as well. `parent`
    is the schema that has the field.
    """

    name: str
    parent: Any
    form: Json = {}  # noqa: RUF012

    def __init__(self, description: str = "", default: Any = missing, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.description = description
        filled_in = kwargs.get("load_default")
        self.default = default if filled_in is None else filled_in

    def json_schema(self) -> Json:
        """What it takes, with its default and its description."""
        default = {} if self.default is missing else {"default": self.default}
        words = {"description": self.description} if self.description else {}
        return {**self.taken(), **default, **words}

    def taken(self) -> Json:
        """Its form, or null where that is allowed."""
        return nullable(self.form) if self.allow_none else self.form


def amount(count: int, bounds: tuple[int, int], what: str) -> None:
    """Raise `ValidationError` unless `count` things lie within `bounds`, both ends included."""
    low, high = bounds
    if not low <= count <= high:
        wanted = str(low) if low == high else f"{low} to {high}"
        raise ValidationError(f"needs {wanted} {what}, has {count}")


class Anything(Described[Any]):
    """Any JSON value, or what its form says; null too, where the form has it."""

    def taken(self) -> Json:
        return self.form

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        return value


class TextField(Described[str]):
    """Text, which may be empty."""

    form = TEXT

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if not isinstance(value, str):
            raise ValidationError("must be text")
        return value


class FlagField(Described[bool]):
    """`true` or `false`."""

    form = FLAG

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bool:
        if not isinstance(value, bool):
            raise ValidationError("must be true or false")
        return value


class NumberField(Described[float]):
    """A finite number within `low` and `high`, both included unless `exclusive`."""

    def __init__(self, low: float, high: float, exclusive: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.low, self.high, self.exclusive = low, high, exclusive
        names = ("exclusiveMinimum", "exclusiveMaximum") if exclusive else ("minimum", "maximum")
        self.form = {"type": "number", names[0]: low, names[1]: high}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> float:
        number = finite(value)
        inside = number is not None and self.low <= number <= self.high
        if number is None or not inside or (self.exclusive and number in (self.low, self.high)):
            kind = "strictly between" if self.exclusive else "a number from"
            word = "and" if self.exclusive else "to"
            raise ValidationError(f"must be {kind} {self.low:g} {word} {self.high:g}")
        return number


class WholeField(Described[int]):
    """A whole number within `low` and `high`, both included."""

    def __init__(self, low: int, high: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.low, self.high = low, high
        self.form = {"type": "integer", "minimum": low, "maximum": high}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        number = finite(value)
        if number is None or number != int(number) or not self.low <= number <= self.high:
            raise ValidationError(f"must be a whole number from {self.low} to {self.high}")
        return int(number)


class OneOfField(Described[E]):
    """One of the words of an enumeration."""

    def __init__(self, words: type[E], description: str, **kwargs: Any) -> None:
        super().__init__(description, **kwargs)
        self.words = words
        self.form = one_of(words)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> E:
        if value not in list(self.words):
            raise ValidationError(f"must be one of {', '.join(self.words)}")
        return self.words(value)


class WordsField(TextField):
    """Text that is not blank."""

    form = WORDS

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        words = super()._deserialize(value, attr, data, **kwargs)
        if not words.strip():
            raise ValidationError("must not be blank")
        return words


class Descriptions(Described[tuple[tuple[str, str], ...]]):
    """A map of key to description, as pairs in the order given; descriptions may be empty."""

    def __init__(self, bounds: tuple[int, int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.bounds = bounds
        self.form = {
            **mapping(TEXT),
            "propertyNames": {"pattern": NOT_BLANK},
            "minProperties": bounds[0],
            "maxProperties": bounds[1],
        }

    def _deserialize(
        self, value: Any, attr: str | None, data: Any, **kwargs: Any
    ) -> tuple[tuple[str, str], ...]:
        if not isinstance(value, Mapping):
            raise ValidationError("must be an object of option key to description")
        amount(len(value), self.bounds, "options")
        for key, description in value.items():
            if not key.strip():
                raise ValidationError("an option key must not be blank")
            if not isinstance(description, str):
                raise ValidationError(
                    f"the description of {quoted(key)} must be text, may be empty"
                )
        return tuple(value.items())


class Levels(Described[tuple[str, ...]]):
    """A list of level descriptions, lowest first."""

    def __init__(self, bounds: tuple[int, int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.bounds = bounds
        self.form = array(WORDS, *bounds)

    def _deserialize(
        self, value: Any, attr: str | None, data: Any, **kwargs: Any
    ) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise ValidationError("must be a list of descriptions, lowest level first")
        amount(len(value), self.bounds, "levels")
        for index, level in enumerate(value):
            if not isinstance(level, str) or not level.strip():
                raise ValidationError(f"level {index} must be text that is not blank")
        return tuple(value)
