from __future__ import annotations

from typing import Any

import pytest
from marshmallow import ValidationError

from svc.questions import LabelLine, Reading, Unreadable
from tests.questions.contract import QuestionContract, line, load

BODY: dict[str, Any] = {
    "type": "multi",
    "instructions": "Which topics?",
    "options": {"refund": "Money back", "delay": ""},
}


class TestMulti(QuestionContract):
    body = BODY
    twin = {**BODY, "options": {"delay": "", "refund": "Money back"}, "threshold": 0.9}
    others = [{**BODY, "options": {"refund": "", "delay": ""}}, {**BODY, "options": {"x": ""}}]
    reading = Reading((0.9, 0.4))
    answer = {"selected": ["refund"], "probabilities": {"refund": 0.9, "delay": 0.4}}
    text_limit_parts = 5
    bare = []  # that an option is named does not say how probable it is

    def sure_line(self, labels: tuple[str, ...], backwards: bool) -> LabelLine:
        return line({0: 0.9, 1: 0.1})


def test_each_option_is_a_yes_or_no_line_of_its_own() -> None:
    assert load(BODY).reply_lines(True) == [
        ("option A", ("yes", "no")),
        ("option B", ("yes", "no")),
    ]


def test_reversed_lines_read_back_to_their_options() -> None:
    reading = load(BODY).read_lines(
        [line({0: 0.9, 1: 0.1}), line({0: 0.2, 1: 0.8})], backwards=True
    )
    assert reading.probabilities == pytest.approx((0.2, 0.9))


def test_options_at_the_threshold_are_selected() -> None:
    question = load({**BODY, "threshold": 0.4})
    assert question.answer(Reading((0.4, 0.39)))["selected"] == ["refund"]


def test_an_option_that_a_reply_leaves_out_does_not_apply() -> None:
    assert load(BODY).read_member({"B": 0.7}, False).probabilities == (0.0, 0.7)


@pytest.mark.parametrize(
    "member",
    [
        {"A": 0.9, "B": 0.4},
        {"refund": 0.9, "Delay": 0.4},
        {"A. refund": 0.9, "(B)": 0.4},
        [{"label": "A", "probability": 0.9}, {"option": "delay", "confidence": 0.4}],
        [["A", 0.9], ["B", "40%"]],
    ],
)
def test_a_reply_may_name_options_as_models_do(member: Any) -> None:
    assert load(BODY).read_member(member, False).probabilities == pytest.approx((0.9, 0.4))


def test_names_are_met_in_both_orders() -> None:
    for member in ({"refund": 0.9, "delay": 0.4}, {"B": 0.9, "A": 0.4}):
        assert load(BODY).read_member(member, True).probabilities == pytest.approx((0.9, 0.4))


def test_the_least_mass_of_its_lines_counts() -> None:
    lines = [line({0: 0.6, 1: 0.1}), line({0: 0.2, 1: 0.75})]
    assert load(BODY).read_lines(lines, False).mass == pytest.approx(0.7)


def test_a_side_that_a_line_leaves_out_gets_at_most_its_bound() -> None:
    lines = [line({0: 0.5}, bound=0.1), line({1: 0.5}, bound=0.1)]
    assert load(BODY).read_lines(lines, False).probabilities == pytest.approx((5 / 6, 1 / 6))


def test_a_line_without_yes_and_no_is_unreadable() -> None:
    with pytest.raises(Unreadable):
        load(BODY).read_lines([line({0: 0.9}), line({})], False)


def test_it_is_as_sure_as_its_least_sure_option() -> None:
    assert load(BODY).confidence(Reading((0.95, 0.3))) == pytest.approx(0.7)


@pytest.mark.parametrize("count", [0, 21])
def test_too_few_or_too_many_options_are_refused(count: int) -> None:
    with pytest.raises(ValidationError, match=f"needs 1 to 20 options, has {count}"):
        load({**BODY, "options": {str(i): "" for i in range(count)}})


@pytest.mark.parametrize("field", ["min_confidence", "escape"])
def test_fields_of_other_types_are_unknown(field: str) -> None:
    with pytest.raises(ValidationError, match="unknown field"):
        load({**BODY, field: 0.5})


def test_the_selected_options_are_those_of_the_probabilities_that_are_shown() -> None:
    question, reading = load(BODY), Reading((0.4999999, 0.4999994))
    assert question.answer(reading)["selected"] == ["refund"]
    assert question.top(reading) == ("refund",)


def test_drift_counts_a_selection_whatever_order_the_options_came_in() -> None:
    turned = {**BODY, "options": dict(reversed(BODY["options"].items()))}
    both = Reading((0.9, 0.9))
    assert load(BODY).tally(both) == load(turned).tally(both) == '["delay", "refund"]'


def test_the_confidence_is_that_of_the_set_which_the_threshold_selects() -> None:
    strict, reading = load({**BODY, "threshold": 0.99}), Reading((0.98, 0.03))
    assert load(BODY).confidence(reading) == pytest.approx(0.97)
    assert strict.confidence(reading) == pytest.approx(0.02)
    answer = strict.answer(reading)
    assert answer["selected"] == []
    assert strict.shown(answer)[1] == pytest.approx(0.02)


def test_labels_are_compared_with_the_confidence_of_the_answer_that_was_given() -> None:
    """The exact question knows no threshold, and its options stand in another order."""
    strict = load({**BODY, "threshold": 0.99})
    reading = Reading((0.98, 0.03))
    stored, exact = strict.stored(reading)["p"], load(TestMulti.twin)
    assert exact.evidence(stored, strict.answer(reading)) == [pytest.approx(0.02)]
    assert exact.evidence(stored, load(BODY).answer(reading)) == [pytest.approx(0.97)]
    assert exact.evidence(stored) == [pytest.approx(0.97)]


def test_a_label_may_name_keys_again_and_nothing_but_keys() -> None:
    question = load(BODY)
    assert question.check_label([*["refund"] * 100_000, "delay"]) == question.keys
    for wrong in (["refund", ["delay"]], ["refund", None], [1], [{}], "refund"):
        with pytest.raises(ValueError, match="must be a list of option keys"):
            question.check_label(wrong)
