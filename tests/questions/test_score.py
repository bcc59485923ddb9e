from __future__ import annotations

from typing import Any

import pytest
from marshmallow import ValidationError

from svc.questions import Reading
from svc.questions.kit.base import PlainQuestion
from tests.questions.contract import QuestionContract, load

BODY: dict[str, Any] = {
    "type": "score",
    "instructions": "How urgent?",
    "levels": ["Can wait", "Soon", "Now"],
}


class TestScore(QuestionContract):
    body = BODY
    twin = {**BODY, "min_confidence": 0.5}
    others = [{**BODY, "levels": ["Now", "Soon", "Can wait"]}, {**BODY, "levels": ["a", "b"]}]
    reading = Reading((0.1, 0.2, 0.7))
    answer = {"score": 1.6, "probabilities": [0.1, 0.2, 0.7], "confidence": 0.7}
    text_limit_parts = 4
    bare = ["A", ["B"]]


def test_levels_are_met_by_their_words_in_both_orders() -> None:
    for backwards in (False, True):
        reading = load(BODY).read_member({"Can wait": 0.2, "soon": 0.5, "Now": 0.3}, backwards)
        assert reading.probabilities == pytest.approx((0.2, 0.5, 0.3))


def test_a_decision_server_is_shown_the_lowest_level_first_whichever_order_is_asked_for() -> None:
    levels = (("Can wait", ""), ("Soon", ""), ("Now", ""))
    expected = [PlainQuestion("score", "How urgent?", levels, (0, 1, 2))]
    assert load(BODY).plain(False) == load(BODY).plain(True) == expected


def test_the_score_is_the_expectation_of_its_own_probabilities() -> None:
    answer = load(BODY).answer(Reading((1 / 3, 1 / 3, 1 / 3)))
    expected = sum(level * p for level, p in enumerate(answer["probabilities"]))
    assert answer["score"] == pytest.approx(expected, abs=1e-6)


def test_reversed_the_highest_level_comes_first() -> None:
    assert load(BODY).option_lines(True) == ["A. Now", "B. Soon", "C. Can wait"]


@pytest.mark.parametrize("levels", [[], ["one"], ["x"] * 21, ["a", ""], ["a", 2], "ab", None])
def test_levels_of_the_wrong_form_are_refused(levels: Any) -> None:
    with pytest.raises(ValidationError) as refusal:
        load({**BODY, "levels": levels})
    assert "levels" in refusal.value.messages
