from __future__ import annotations

from typing import Any

import pytest
from marshmallow import ValidationError

from svc.questions import Reading
from tests.questions.contract import QuestionContract, load

BODY: dict[str, Any] = {"type": "noul", "instructions": "Is it spam?"}


class TestNoul(QuestionContract):
    body = BODY
    twin = dict(BODY)
    others = [{**BODY, "instructions": "Is it not spam?"}]
    reading = Reading((0.8,))
    answer = {"noul": 0.8}
    text_limit_parts = 1

    def sure_line(self, labels: tuple[str, ...], backwards: bool) -> dict[int, float]:
        return {labels.index("yes"): 0.9, labels.index("no"): 0.1}


def test_a_no_is_as_sure_as_a_yes() -> None:
    assert load(BODY).confidence(Reading((0.1,))) == pytest.approx(0.9)


def test_the_labels_change_places_in_the_reversed_order() -> None:
    assert load(BODY).reply_lines(False) == [("", ("yes", "no"))]
    assert load(BODY).reply_lines(True) == [("", ("no", "yes"))]


@pytest.mark.parametrize(
    ("member", "yes"),
    [({"yes": 0.2}, 0.2), ({"no": 0.3}, 0.7), ({"Yes": 0.6, "NO": 0.2}, 0.75), ({"yes": 85}, 1.0)],
)
def test_a_reply_with_one_side_or_odd_sums_is_normalised(member: Any, yes: float) -> None:
    assert load(BODY).read_member(member, False).probabilities == pytest.approx((yes,))


def test_a_side_missing_among_the_most_probable_is_no_more_probable_than_the_one_seen() -> None:
    assert load(BODY).read_lines([{0: 0.2}], False).probabilities == pytest.approx((0.5,))
    assert load(BODY).read_lines([{0: 0.9}], False).probabilities == pytest.approx((0.9,))


def test_a_threshold_does_not_apply() -> None:
    with pytest.raises(ValidationError) as refusal:
        load({**BODY, "min_confidence": 0.5})
    assert refusal.value.messages == {"min_confidence": ["unknown field"]}


def test_the_answer_counts_as_yes_by_the_probability_that_is_shown() -> None:
    question, reading = load(BODY), Reading((0.4999999,))
    assert question.answer(reading) == {"noul": 0.5}
    assert question.top(reading) is True
