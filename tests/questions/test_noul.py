from __future__ import annotations

from typing import Any

import pytest
from marshmallow import ValidationError

from svc.questions import LabelLine, Reading
from svc.questions.kit.base import PlainQuestion
from svc.questions.kit.verbal import PERCENT
from tests.questions.contract import QuestionContract, line, load

BODY: dict[str, Any] = {"type": "noul", "instructions": "Is it spam?"}


class TestNoul(QuestionContract):
    body = BODY
    twin = dict(BODY)
    others = [{**BODY, "instructions": "Is it not spam?"}]
    reading = Reading((0.8,))
    answer = {"noul": 0.8}
    text_limit_parts = 1
    bare = [True, False, 7, 0.7, "no"]

    def sure_line(self, labels: tuple[str, ...], backwards: bool) -> LabelLine:
        return line({labels.index("yes"): 0.9, labels.index("no"): 0.1})


def test_a_no_is_as_sure_as_a_yes() -> None:
    assert load(BODY).confidence(Reading((0.1,))) == pytest.approx(0.9)


def test_the_labels_change_places_in_the_reversed_order() -> None:
    assert load(BODY).reply_lines(False) == [("", ("yes", "no"))]
    assert load(BODY).reply_lines(True) == [("", ("no", "yes"))]


@pytest.mark.parametrize(
    ("member", "yes"),
    [
        ({"yes": 0.2}, 0.2),
        ({"no": 0.3}, 0.7),
        ({"Yes": 0.6, "NO": 0.2}, 0.75),
        ({"true": 0.8, "false": 0.2}, 0.8),
        ({"yes": "85%", "no": "15%"}, 0.85),
        ({"yes": "0.85"}, 0.85),
        (0.85, 0.85),
        ("85%", 0.85),
        ("0.85", 0.85),
        ("yes", 2 / 3),
        ("No.", 1 / 3),
        (True, 2 / 3),
        (False, 1 / 3),
        ({"answer": "no"}, 1 / 3),
        ({"answer": "no", "confidence": 0.9}, 0.1),
        ([{"label": "yes", "probability": 0.6}], 0.6),
    ],
)
@pytest.mark.parametrize("backwards", [False, True])
def test_a_reply_is_read_as_models_write_it(member: Any, yes: float, backwards: bool) -> None:
    assert load(BODY).read_member(member, backwards).probabilities == pytest.approx((yes,))


@pytest.mark.parametrize(
    ("member", "yes"), [({"yes": 85}, 0.85), ({"yes": 20, "no": 80}, 0.2), (85, 0.85)]
)
def test_percentages_are_rescaled(member: Any, yes: float) -> None:
    question = load(BODY)
    assert question.stated(member, False).scales == {PERCENT}
    assert question.read_member(member, False, PERCENT).probabilities == pytest.approx((yes,))


@pytest.mark.parametrize("member", [{"yes": 7, "no": 3}, {"yes": 120}, 101, {"yes": 70, "no": 70}])
def test_numbers_on_no_scale_are_on_none(member: Any) -> None:
    assert load(BODY).stated(member, False).scales == frozenset()


def test_a_decision_server_is_asked_the_question_as_it_is() -> None:
    assert (
        load(BODY).plain(False)
        == load(BODY).plain(True)
        == [PlainQuestion("yes_no", "Is it spam?")]
    )


def test_a_side_missing_among_the_most_probable_is_no_more_probable_than_the_one_seen() -> None:
    question = load(BODY)
    assert question.read_lines([line({0: 0.2}, 0.2)], False).probabilities == pytest.approx((0.5,))
    assert question.read_lines([line({0: 0.9}, 0.9)], False).probabilities == pytest.approx((0.9,))
    assert question.read_lines([line({0: 0.6}, 0.1)], False).probabilities == pytest.approx(
        (6 / 7,)
    )


def test_a_threshold_does_not_apply() -> None:
    with pytest.raises(ValidationError) as refusal:
        load({**BODY, "min_confidence": 0.5})
    assert refusal.value.messages == {"min_confidence": ["unknown field"]}


def test_the_answer_counts_as_yes_by_the_probability_that_is_shown() -> None:
    question, reading = load(BODY), Reading((0.4999999,))
    assert question.answer(reading) == {"noul": 0.5}
    assert question.top(reading) is True
