"""A challenger and the answers that callers got, on the same decisions."""

from __future__ import annotations

import json

import pytest

from svc.learning.comparison import LOSS_CAP, WORST_BRIER, compared
from svc.questions import Question
from svc.schemas import load_questions
from svc.store import AskedPair


def question(**fields: object) -> Question:
    return load_questions({"q": fields})["q"]


YES_NO = question(type="noul", instructions="Is it spam?")
ANIMAL = question(
    type="choice", instructions="Which?", options={"cat": "", "dog": ""}, escape=False
)
CITY = question(type="text", instructions="Which city?")


def pair(
    p: list[float] | None,
    own_p: list[float],
    label: object = None,
    truth: int | None = None,
    **fields: object,
) -> AskedPair:
    given: dict[str, object] = {
        "p": None if p is None else json.dumps(p),
        "answer": None if p is None else "{}",
        "error": "timeout" if p is None else None,
        "cost_usd": 0.001,
        "latency_ms": 50.0,
        "own_cost_usd": 0.002,
        "own_latency_ms": 100.0,
        "label": None if label is None else json.dumps(label),
        "truth": truth,
        "own_p": None if label is None else own_p,
    }
    return AskedPair(**{**given, **fields})  # type: ignore[arg-type]


def test_without_pairs_nothing_is_known() -> None:
    found = compared([], YES_NO, YES_NO)
    assert (found.asked, found.labelled, found.verdict) == (0, 0, "open")
    assert found.present.accuracy is None and found.challenger.cost_usd is None


def test_both_sides_are_judged_on_the_labelled_decisions() -> None:
    pairs = [
        pair([0.9], [0.4], True, 1),
        pair([0.2], [0.3], False, 0),
        pair([0.6], [0.6]),
    ]
    found = compared(pairs, YES_NO, YES_NO)
    assert (found.asked, found.failed, found.labelled) == (3, 0, 2)
    assert (found.present.accuracy, found.challenger.accuracy) == (0.5, 1.0)
    assert found.challenger.brier == pytest.approx((0.01 + 0.04) / 2)
    assert found.accuracy.estimate == 0.5
    assert found.log_loss.estimate < 0 and found.brier.estimate < 0


def test_cost_and_time_are_those_of_all_decisions_that_were_answered() -> None:
    pairs = [
        pair([0.5], [0.5], cost_usd=0.003, latency_ms=10.0),
        pair([0.5], [0.5], cost_usd=0.005, latency_ms=30.0),
        pair(None, [0.5], own_cost_usd=9.0),
    ]
    found = compared(pairs, YES_NO, YES_NO)
    assert found.challenger.cost_usd == pytest.approx(0.004)
    assert found.challenger.latency_ms == 20.0
    assert found.challenger.mean_latency_ms == 20.0
    assert found.present.cost_usd == pytest.approx(0.002)
    assert found.cost_usd.estimate == pytest.approx(0.002)
    assert found.latency_ms.estimate == pytest.approx(-80.0)
    # The lowest caps above all that was seen.
    assert (found.cost_cap_usd, found.latency_cap_ms) == (pytest.approx(0.00512), 160.0)


def test_many_calls_tell_which_side_is_cheaper_and_faster() -> None:
    found = compared([pair([0.5], [0.5])] * 200, YES_NO, YES_NO)
    assert found.cost_usd.high < 0 and found.latency_ms.high < 0
    assert found.as_json["differences"]["cost_usd"]["cap"] == found.cost_cap_usd


def test_labels_of_the_review_queue_count_by_the_chance_to_be_handed_out() -> None:
    # The queue asks for doubtful decisions twice as often, on which alone the challenger is better.
    doubtful = pair([0.9], [0.1], True, 1, relative=4 / 3)
    sure = pair([0.1], [0.9], True, 1, relative=2 / 3)
    found = compared([doubtful, doubtful, sure], YES_NO, YES_NO)
    assert (found.queued, found.labelled) == (3, 3)
    assert found.present.accuracy == found.challenger.accuracy == pytest.approx(0.5)
    assert found.accuracy.estimate == pytest.approx(0.0)
    assert found.challenger.brier == pytest.approx((0.01 + 0.81) / 2)
    unknown = compared([pair([0.9], [0.1], True, 1)] * 2, YES_NO, YES_NO)
    assert unknown.queued == 0


def test_a_decision_that_the_challenger_did_not_answer_is_a_wrong_answer_of_it() -> None:
    found = compared([pair(None, [0.9], True, 1)], YES_NO, YES_NO)
    side = found.challenger
    assert (side.accuracy, side.log_loss, side.brier) == (0.0, LOSS_CAP, WORST_BRIER)
    assert side.ece is None and found.failed == 1


def test_options_are_compared_in_the_order_of_the_definition() -> None:
    answer = json.dumps({"choice": "dog"})
    found = compared([pair([0.1, 0.9], [0.8, 0.2], "dog", 1, answer=answer)], ANIMAL, ANIMAL)
    assert (found.present.accuracy, found.challenger.accuracy) == (0.0, 1.0)


def test_an_extracted_value_is_compared_with_the_label_of_the_decision() -> None:
    answer = json.dumps({"value": "Rome"})
    found = compared([pair([0.7], [0.7], "Rome", 0, answer=answer)], CITY, CITY)
    assert (found.present.accuracy, found.challenger.accuracy) == (0.0, 1.0)


@pytest.mark.parametrize(("better", "verdict"), [(True, "better"), (False, "worse")])
def test_a_plain_difference_is_told(better: bool, verdict: str) -> None:
    right, wrong = [0.9], [0.1]
    one = pair(*((right, wrong) if better else (wrong, right)), True, 1)  # type: ignore[misc]
    assert compared([one] * 60, YES_NO, YES_NO).verdict == verdict
    assert compared([one] * 3, YES_NO, YES_NO).verdict == "open"
