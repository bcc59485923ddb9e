"""Marshmallow fields that take JSON as it is: no `"0.5"` for a number, no `1` for `true`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, fields

from svc.jsontext import finite
from svc.phrases import quoted

# The name under which rooms above this one still take it from here.


def amount(count: int, bounds: tuple[int, int], what: str) -> None:
    """Raise `ValidationError` unless `count` things lie within `bounds`, both ends included."""
    low, high = bounds
    if not low <= count <= high:
        raise ValidationError(f"needs {low} to {high} {what}, has {count}")


class Flag(fields.Field[bool]):
    """`true` or `false`."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bool:
        if not isinstance(value, bool):
            raise ValidationError("must be true or false")
        return value


class Number(fields.Field[float]):
    """A finite number within `low` and `high`, both included unless `exclusive`."""

    def __init__(self, low: float, high: float, exclusive: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.low, self.high, self.exclusive = low, high, exclusive

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> float:
        number = finite(value)
        inside = number is not None and self.low <= number <= self.high
        if number is None or not inside or (self.exclusive and number in (self.low, self.high)):
            kind = "strictly between" if self.exclusive else "a number from"
            word = "and" if self.exclusive else "to"
            raise ValidationError(f"must be {kind} {self.low:g} {word} {self.high:g}")
        return number


class Whole(fields.Field[int]):
    """A whole number within `low` and `high`, both included."""

    def __init__(self, low: int, high: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.low, self.high = low, high

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        number = finite(value)
        if number is None or number != int(number) or not self.low <= number <= self.high:
            raise ValidationError(f"must be a whole number from {self.low} to {self.high}")
        return int(number)


class Words(fields.Field[str]):
    """Text that is not blank."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if not isinstance(value, str):
            raise ValidationError("must be text")
        if not value.strip():
            raise ValidationError("must not be blank")
        return value


class Descriptions(fields.Field[tuple[tuple[str, str], ...]]):
    """A map of key to description, as pairs in the order given; descriptions may be empty."""

    def __init__(self, bounds: tuple[int, int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.bounds = bounds

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


class Levels(fields.Field[tuple[str, ...]]):
    """A list of level descriptions, lowest first."""

    def __init__(self, bounds: tuple[int, int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.bounds = bounds

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
