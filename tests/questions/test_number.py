from __future__ import annotations

from typing import Any

import pytest
from marshmallow import ValidationError

from svc.jsontext import Literal
from svc.questions import Reading
from tests.questions.contract import ExtractionContract, load

NUMBER: dict[str, Any] = {"type": "number", "instructions": "What price?", "min": 0, "max": 99.5}
INTEGER: dict[str, Any] = {"type": "integer", "instructions": "How many?", "min": 1, "max": 9}
BOTH_TYPES = pytest.mark.parametrize("body", [NUMBER, INTEGER], ids=["number", "integer"])


class TestNumber(ExtractionContract):
    body = NUMBER
    twin = {**NUMBER, "max": 99.5, "min": 0.0, "min_confidence": 0.2}
    others = [{**NUMBER, "max": 99}, {"type": "number", "instructions": "What price?"}, INTEGER]
    reading = Reading((0.8,), value=12.5)
    answer = {"value": 12.5, "confidence": 0.8}
    text_limit_parts = 1
    valid = [12.5, 0, 99.5, 7]
    invalid = ["12.5", True, -0.1, 99.51, [1], float("nan"), float("inf"), 10**400]


class TestInteger(ExtractionContract):
    body = INTEGER
    twin = {**INTEGER, "min": 1.0, "nullable": False}
    others = [{**INTEGER, "max": 10}, {**INTEGER, "nullable": True}, NUMBER]
    reading = Reading((0.8,), value=4)
    answer = {"value": 4, "confidence": 0.8}
    text_limit_parts = 1
    valid = [4, 1, 9]
    invalid = [4.5, "4", 0, 10, False, float("nan"), float("-inf"), 10**400]


def test_a_whole_float_is_an_integer_and_answered_as_one() -> None:
    value = load(INTEGER).read_member({"value": 4.0, "confidence": 1}, False).value
    assert (value, type(value)) == (4, int)


def test_numbers_are_the_same_within_a_relative_millionth() -> None:
    question = load({"type": "number", "instructions": "?"})
    near = [Reading((0.9,), value=1_000_000.0), Reading((0.5,), value=1_000_000.9)]
    assert question.merge(near).probabilities == pytest.approx((0.7,))
    far = [Reading((0.9,), value=1_000_000.0), Reading((0.5,), value=1_000_002.0)]
    assert question.merge(far).probabilities == (0.5,)
    assert question.probability(near[0], 1_000_000.9) == 0.9
    assert question.probability(near[0], 1_000_002.0) == 0.0


@BOTH_TYPES
@pytest.mark.parametrize("bound", ["5", True, None, float("nan"), float("inf"), 10**400, [1]])
def test_a_bound_must_be_a_number_that_a_float_holds(body: dict[str, Any], bound: Any) -> None:
    with pytest.raises(ValidationError) as refusal:
        load({**body, "max": bound})
    assert list(refusal.value.messages) == ["max"]


def test_an_integers_bounds_are_whole() -> None:
    with pytest.raises(ValidationError, match="whole number"):
        load({**INTEGER, "min": 1.5})
    assert load({**INTEGER, "min": 2.0}).check_label(2) == 2


@BOTH_TYPES
def test_a_min_above_max_is_refused_and_equal_bounds_leave_one_value(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="must not be above max"):
        load({**body, "min": 8, "max": 7})
    question = load({**body, "min": 7, "max": 7})
    assert question.check_label(7) == 7
    with pytest.raises(ValueError, match="from 7 up to 7"):
        question.check_label(8)


@BOTH_TYPES
def test_the_bounds_are_told_to_the_model(body: dict[str, Any]) -> None:
    assert f"from {body['min']} up to {body['max']}" in load(body).verbal_format(False)


def test_digits_that_no_float_holds_are_the_nearest_number() -> None:
    question = load({**NUMBER, "max": Literal("0.69999999999999996")})
    assert question.definition()["max"] == 0.7
    assert question.check_label(Literal("0.30000000000000000000001")) == 0.3
