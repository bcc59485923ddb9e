"""`coverage`: prediction sets that hold the true answer as often as was asked for."""

from __future__ import annotations

import pytest

from tests.web.conftest import Start
from tests.web.labelled import NOUL, Labelled, obeying
from tests.web.models import ANIMAL

COVERED = {**ANIMAL, "coverage": 0.9}


@pytest.fixture
def labelled(start: Start) -> Labelled:
    return Labelled(start(obeying).test_client())


def test_before_thirty_labels_nothing_is_guaranteed(labelled: Labelled) -> None:
    labelled.teach(29)
    answer = labelled.decide("cat=0.8", COVERED)["answers"]["q"]
    assert (answer["coverage"], answer["guaranteed"]) == (0.9, False)
    assert "set" not in answer


def test_with_thirty_labels_the_set_follows_the_quantile_of_their_scores(
    labelled: Labelled,
) -> None:
    # Scores 0.05 (right) and 0.95 (wrong): at 0.5 the 16th smallest of 30, at 0.9 the 28th.
    labelled.teach(30, right=0.6, p=0.95)
    half = labelled.decide("cat=0.97", {**ANIMAL, "coverage": 0.5})["answers"]["q"]
    assert (half["guaranteed"], half["set"]) == (True, ["cat"])
    nine = labelled.decide("cat=0.9", COVERED)["answers"]["q"]
    assert (nine["guaranteed"], nine["set"]) == (True, ["cat", "dog"])


def test_a_set_is_never_empty(labelled: Labelled) -> None:
    labelled.teach(30, right=1.0, p=0.99)  # every score is 0.01
    answer = labelled.decide("cat=0.4", {**ANIMAL, "coverage": 0.5})["answers"]["q"]
    assert answer["set"] == ["dog"]


@pytest.mark.parametrize("per", ["answer", "option"])
def test_the_set_of_a_tie_that_is_never_empty_has_the_answer(labelled: Labelled, per: str) -> None:
    labelled.teach(60, right=1.0, p=0.99)
    covered = {**ANIMAL, "options": {"dog": "", "cat": ""}, "coverage": 0.5, "coverage_per": per}
    answer = labelled.decide("cat=0.5", covered)["answers"]["q"]
    assert answer["choice"] in answer["set"]
    assert per == "option" or answer["set"] == ["cat"]


def test_more_coverage_than_the_labels_can_promise_is_every_option(labelled: Labelled) -> None:
    labelled.teach(30, right=1.0, p=0.99)
    answer = labelled.decide("cat=0.99", {**ANIMAL, "coverage": 0.99})["answers"]["q"]
    assert (answer["guaranteed"], answer["set"]) == (True, ["cat", "dog"])


def test_a_noul_has_a_set_of_true_and_false(labelled: Labelled) -> None:
    for number in range(30):
        decision = labelled.decide(f"yes=0.9; {number}", NOUL, debias=False)
        labelled.feedback(decision["id"], True)
    covered = {**NOUL, "coverage": 0.8}
    assert labelled.decide("yes=0.95", covered)["answers"]["q"]["set"] == ["true"]
    assert labelled.decide("yes=0.05", covered)["answers"]["q"]["set"] == ["false"]


def test_a_multi_promises_nothing(labelled: Labelled) -> None:
    multi = {"type": "multi", "instructions": "Which?", "options": {"cat": ""}, "coverage": 0.9}
    for number in range(30):
        decision = labelled.decide(f"yes=0.9; {number}", multi, debias=False)
        labelled.feedback(decision["id"], ["cat"])
    answer = labelled.decide("yes=0.9", multi)["answers"]["q"]
    assert (answer["guaranteed"], "set" in answer) == (False, False)


def test_a_rules_answer_has_no_set(labelled: Labelled) -> None:
    labelled.teach(30)
    ruled = {**COVERED, "rules": [{"if": {"a": 1}, "answer": "dog"}]}
    answer = labelled.decide({"a": 1}, ruled)["answers"]["q"]  # type: ignore[arg-type]
    assert (answer["coverage"], answer["guaranteed"], answer["confidence"]) == (0.9, False, 1.0)
    assert "set" not in answer


def test_a_new_label_counts_at_once(labelled: Labelled) -> None:
    labelled.teach(30, right=1.0, p=0.9)
    question = {**ANIMAL, "coverage": 0.96}  # the 30th smallest of 30 scores
    assert labelled.decide("cat=0.9; x", question)["answers"]["q"]["set"] == ["cat"]
    labelled.feedback(labelled.decide("cat=0.9; 0", debias=False)["id"], "dog")
    # One label was replaced or added by the worst score there is.
    assert labelled.decide("cat=0.9; x", question)["answers"]["q"]["set"] == ["cat", "dog"]


BY_OPTION = {**COVERED, "coverage_per": "option"}


def test_by_option_each_has_a_limit_of_its_own_labels(labelled: Labelled) -> None:
    # Cats were given 0.95, dogs 0.05; together they let in what has 0.05.
    labelled.teach(60, right=0.6, p=0.95)
    shared = labelled.decide("cat=0.9", COVERED)["answers"]["q"]
    assert shared["set"] == ["cat", "dog"]
    assert "guaranteed_options" not in shared
    own = labelled.decide("cat=0.9", BY_OPTION)["answers"]["q"]
    assert (own["coverage"], own["guaranteed"], own["set"]) == (0.9, True, ["dog"])
    assert own["guaranteed_options"] == ["cat", "dog"]


def test_an_option_with_too_few_labels_has_the_limit_of_all_and_no_promise(
    labelled: Labelled,
) -> None:
    labelled.teach(50, right=0.9, p=0.95)  # five dogs
    answer = labelled.decide("cat=0.9", BY_OPTION)["answers"]["q"]
    assert (answer["guaranteed"], answer["guaranteed_options"]) == (False, ["cat"])
    # A cat is given 0.95 or more; of all, nine tenths are given 0.05 or more.
    assert answer["set"] == ["dog"]
    assert labelled.decide("cat=0.9", COVERED)["answers"]["q"]["guaranteed"]


def test_before_thirty_labels_no_option_has_a_promise(labelled: Labelled) -> None:
    labelled.teach(29)
    answer = labelled.decide("cat=0.9", BY_OPTION)["answers"]["q"]
    assert (answer["guaranteed"], answer["guaranteed_options"]) == (False, [])
    assert "set" not in answer


def test_true_and_false_have_limits_of_their_own(labelled: Labelled) -> None:
    for number in range(40):
        yes = number % 2 == 0
        decision = labelled.decide(f"yes={0.6 if yes else 0.1}; {number}", NOUL, debias=False)
        labelled.feedback(decision["id"], yes)
    question = {**NOUL, "coverage": 0.8, "coverage_per": "option"}
    answer = labelled.decide("yes=0.7", question)["answers"]["q"]
    assert (answer["set"], answer["guaranteed_options"]) == (["true"], ["true", "false"])
    # A true one was given 0.6 or more, a false one at most 0.1.
    assert labelled.decide("yes=0.05", question)["answers"]["q"]["set"] == ["false"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"coverage": 0.9, "coverage_per": "class"}, "must be one of answer, option"),
        ({"coverage": 0.9, "coverage_per": ["option"]}, "must be one of answer, option"),
        ({"coverage": 0.9, "coverage_per": None}, "coverage_per"),
        ({"coverage_per": "option"}, "needs coverage"),
    ],
)
def test_other_words_are_refused(
    labelled: Labelled, fields: dict[str, object], message: str
) -> None:
    body = {"state": "x", "questions": {"q": {**ANIMAL, **fields}}}
    response = labelled.client.post("/v1/decide", json=body)
    assert response.status_code == 422
    told = response.get_json()["error"]["message"]
    assert message in told and "coverage_per" in told


def test_the_report_says_how_often_sets_hold_each_option(labelled: Labelled) -> None:
    labelled.teach(50, right=0.9, p=0.95)
    report = labelled.get("/v1/calibration?question=q")
    sets = {one["option"]: {s["coverage"]: s for s in one["sets"]} for one in report["options"]}
    assert sets["cat"][0.9]["covered"]["estimate"] == 1.0
    assert sets["cat"][0.9]["guaranteed"]
    # Five of fifty are dogs, with the worst score of all.
    assert sets["dog"][0.9]["covered"]["estimate"] == 0.0
    assert not sets["dog"][0.9]["guaranteed"]
