"""`number` and `integer`: an amount that stands in the input."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from marshmallow import ValidationError, validates_schema

from svc.jsontext import finite
from svc.questions.extraction import Extraction, ExtractionSchema, answered, labelled
from svc.questions.kit import Described
from svc.shapes import NUMBER

# The relative difference within which two numbers are the same.
TOLERANCE = 1e-6
# The largest number that a double still holds.
LARGEST = 1.7e308
_LOWEST = "The lowest value allowed."
_HIGHEST = "The highest value allowed; not below `min`."


@dataclass(frozen=True, kw_only=True)
class Number(Extraction):
    """A number within `min` and `max`, both included."""

    type = "number"
    json_type = "number"
    guidance = "Give the number that stands in the input, without its unit."
    label_schema = labelled(NUMBER)
    answer_schema = answered(NUMBER)
    noun: ClassVar[str] = "a number"

    min: float | None = None
    max: float | None = None

    def valid(self, value: Any) -> float:
        number = finite(value)
        low = -LARGEST if self.min is None else self.min
        high = LARGEST if self.max is None else self.max
        if number is None or not low <= number <= high or not self.fits(number):
            raise ValueError(f"must be {self.allowed}")
        return number

    def fits(self, number: float) -> bool:
        """Whether a number within the bounds is one of this type."""
        return True

    def same(self, value: float, other: float) -> bool:
        """Within a relative 1e-6."""
        return math.isclose(value, other, rel_tol=TOLERANCE)

    @property
    def allowed(self) -> str:
        low = "" if self.min is None else f" from {self.min}"
        high = "" if self.max is None else f" up to {self.max}"
        return f"{self.noun}{low}{high}"

    def definition(self) -> Mapping[str, Any]:
        bounds = {"min": self.min, "max": self.max}
        set_bounds = {name: bound for name, bound in bounds.items() if bound is not None}
        return {"nullable": self.nullable, **set_bounds}


@dataclass(frozen=True, kw_only=True)
class Integer(Number):
    """A whole number within `min` and `max`, both included."""

    type = "integer"
    json_type = "integer"
    guidance = "Give the whole number that stands in the input, without its unit."
    label_schema = labelled({"type": "integer"})
    answer_schema = answered({"type": "integer"})
    noun = "a whole number"

    def valid(self, value: Any) -> int:
        return int(super().valid(value))

    def fits(self, number: float) -> bool:
        return number == int(number)


class Bound(Described[float]):
    """An inclusive bound: a finite number that a double holds, whole where `whole`."""

    def __init__(self, whole: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.whole = whole
        self.form = {"type": "integer" if whole else "number"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> float:
        number = finite(value)
        if number is None or abs(number) > LARGEST or (self.whole and number != int(number)):
            raise ValidationError(f"must be a {'whole ' if self.whole else ''}number")
        # A bound of 1.0 is the bound 1.
        return int(number) if number == int(number) else number


class NumberSchema(ExtractionSchema):
    model = Number
    min = Bound(whole=False, description=_LOWEST)
    max = Bound(whole=False, description=_HIGHEST)

    @validates_schema
    def _bounds_are_ordered(self, data: Mapping[str, Any], **_: Any) -> None:
        if "min" in data and "max" in data and data["min"] > data["max"]:
            raise ValidationError("must not be above max", "min")


class IntegerSchema(NumberSchema):
    model = Integer
    min = Bound(whole=True, description=_LOWEST)
    max = Bound(whole=True, description=_HIGHEST)
