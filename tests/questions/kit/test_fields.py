from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

import pytest
from marshmallow import ValidationError

from svc.jsontext import Literal
from svc.questions.kit.fields import (
    Anything,
    FlagField,
    NumberField,
    OneOfField,
    WholeField,
    WordsField,
    amount,
)


@pytest.mark.parametrize("value", [1, 0, "true", None, "yes", []])
def test_a_flag_is_true_or_false_and_nothing_like_it(value: Any) -> None:
    with pytest.raises(ValidationError):
        FlagField().deserialize(value)
    assert FlagField().deserialize(True) is True


@pytest.mark.parametrize("value", [0, 1, 0.5, Literal("0.69999999999999996")])
def test_a_number_within_its_bounds_passes(value: Any) -> None:
    assert 0 <= NumberField(0, 1).deserialize(value) <= 1


@pytest.mark.parametrize("value", [-1e-9, 1.0000001, True, "0.5", math.nan, math.inf, 10**400])
def test_a_number_out_of_its_bounds_is_refused_with_them(value: Any) -> None:
    with pytest.raises(ValidationError, match="must be a number from 0 to 1"):
        NumberField(0, 1).deserialize(value)


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, Literal("1.00000000000000000001")])
def test_exclusive_bounds_do_not_pass_themselves(value: Any) -> None:
    with pytest.raises(ValidationError, match="strictly between 0 and 1"):
        NumberField(0, 1, exclusive=True).deserialize(value)
    assert NumberField(0, 1, exclusive=True).deserialize(0.5) == 0.5


@pytest.mark.parametrize("value", [0, 6, 2.5, "3", True, math.inf, 10**400])
def test_a_whole_number_has_no_fraction_and_keeps_its_bounds(value: Any) -> None:
    with pytest.raises(ValidationError, match="whole number from 1 to 5"):
        WholeField(1, 5).deserialize(value)
    assert [WholeField(1, 5).deserialize(v) for v in (1, 5, 3.0)] == [1, 5, 3]


@pytest.mark.parametrize("value", ["", " \t\n", 5, ["a"]])
def test_words_are_text_that_is_not_blank(value: Any) -> None:
    with pytest.raises(ValidationError, match="must"):
        WordsField().deserialize(value)
    assert WordsField().deserialize(" as it is ") == " as it is "


def test_amounts_are_inclusive() -> None:
    amount(2, (2, 3), "things")
    amount(3, (2, 3), "things")
    for count in (1, 4):
        with pytest.raises(ValidationError, match=f"needs 2 to 3 things, has {count}"):
            amount(count, (2, 3), "things")


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


def test_a_field_that_may_be_null_describes_itself_so() -> None:
    size = OneOfField(Size, "How large.", allow_none=True).json_schema()
    assert size["type"] == ["string", "null"] and size["enum"] == ["small", "large", None]
    assert WholeField(1, 5).json_schema()["type"] == "integer"
    assert Anything(allow_none=True).json_schema() == {}
