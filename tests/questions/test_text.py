from __future__ import annotations

from typing import Any

import pytest
from marshmallow import ValidationError

from svc.questions import Reading
from tests.questions.contract import ExtractionContract, load

BODY: dict[str, Any] = {"type": "text", "instructions": "Which city?"}


class TestText(ExtractionContract):
    body = BODY
    twin = {**BODY, "max_length": 200, "nullable": False, "min_confidence": 0.4}
    others = [{**BODY, "max_length": 201}, {**BODY, "nullable": True}]
    reading = Reading((0.7,), value="Oslo")
    answer = {"value": "Oslo", "confidence": 0.7}
    text_limit_parts = 1
    bounds = {"minLength": 1, "maxLength": 200}
    valid = ["Oslo", "Rome", "x" * 200, " padded ", "京都", "a\nb"]
    invalid = ["x" * 201, "", " \n", 5, True, ["Oslo"], {"city": "Oslo"}, "\ud800", "a\udfffb"]


def test_texts_are_the_same_whatever_their_case_and_white_space() -> None:
    question = load(BODY)
    readings = [Reading((0.9,), value="New  York"), Reading((0.5,), value=" new york\n")]
    assert question.merge(readings).probabilities == pytest.approx((0.7,))
    blend, agreement = question.blend([*readings, Reading((1.0,), value="Newyork")])
    assert (blend.value, agreement) == ("New  York", pytest.approx(2 / 3))
    assert question.probability(readings[0], "NEW YORK") == 0.9


def test_each_of_many_texts_is_taken_apart_once_to_compare_them() -> None:
    taken_apart = []

    class Told(str):
        def casefold(self) -> str:
            taken_apart.append(self)
            return super().casefold()

    texts = [Told(text) for text in ("New York", "new york", " NEW  YORK")]
    assert load(BODY).all_agree(texts)
    assert taken_apart == texts


@pytest.mark.parametrize(
    ("labels", "agree"),
    [(["Rome"], True), ([None, None], True), ([None, "Rome"], False), (["Rome", None], False)],
)
def test_no_text_is_like_no_other(labels: list[Any], agree: bool) -> None:
    assert load({**BODY, "nullable": True}).all_agree(labels) is agree


@pytest.mark.parametrize("max_length", [0, 2001, -1, 1.5, "200", True, None])
def test_a_length_out_of_range_is_refused_with_the_bounds(max_length: Any) -> None:
    with pytest.raises(ValidationError) as refusal:
        load({**BODY, "max_length": max_length})
    assert "max_length" in refusal.value.messages
    if max_length is not None:
        assert "must be a whole number from 1 to 2000" in str(refusal.value)


@pytest.mark.parametrize("max_length", [1, 2000])
def test_the_length_is_bounded_and_told_to_the_model(max_length: int) -> None:
    question = load({**BODY, "max_length": max_length})
    assert f"at most {max_length} characters" in question.verbal_format(False)
    assert question.check_label("x" * max_length)
    with pytest.raises(ValueError, match=f"1 to {max_length} characters"):
        question.check_label("x" * (max_length + 1))


def test_longer_texts_get_a_longer_reply() -> None:
    assert load({**BODY, "max_length": 2000}).reply_labels > load(BODY).reply_labels


def test_a_text_is_spoken_as_json_so_that_its_end_is_seen() -> None:
    assert load(BODY).spoken('a\n"b" é') == '"a\\n\\"b\\" é"'
