"""`POST /v1/feedback`, and what it changes in later answers."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.web.conftest import Start
from tests.web.labelled import CITY, NOUL, Labelled, obeying
from tests.web.models import ANIMAL

SCORE = {"type": "score", "instructions": "How bad?", "levels": ["low", "high"]}
MULTI = {"type": "multi", "instructions": "Which?", "options": {"cat": "", "dog": ""}}
AMOUNT = {"type": "number", "instructions": "How much?"}


@pytest.fixture
def labelled(start: Start) -> Labelled:
    return Labelled(start(obeying).test_client())


def test_a_label_is_counted_at_once(labelled: Labelled) -> None:
    decision = labelled.decide("cat=0.8")
    assert labelled.feedback(decision["id"], "dog") == {
        "decision_id": decision["id"],
        "question": "q",
        "labels": 1,
        "min_labels": 30,
        "calibrated": False,
    }
    assert labelled.feedback(labelled.decide("cat=0.7")["id"], "cat")["labels"] == 2


def test_a_label_given_again_replaces_the_earlier_one(labelled: Labelled) -> None:
    decision = labelled.decide("cat=0.8")
    labelled.feedback(decision["id"], "dog")
    assert labelled.feedback(decision["id"], "cat")["labels"] == 1
    report = labelled.get("/v1/calibration?question=q")
    assert (report["labels"], report["before"]["accuracy"]) == (1, 1.0)


@pytest.mark.parametrize(
    ("question", "state", "label"),
    [
        (ANIMAL, "cat=0.8", "dog"),
        ({**ANIMAL, "escape": True}, "cat=0.8", "none_of_these"),
        (SCORE, "s", 1),
        (SCORE, "s", 1.0),
        (NOUL, "yes=0.9", False),
        (MULTI, "s", []),
        (MULTI, "s", ["dog", "cat"]),
        (CITY, 'value="Rome", 0.9', "Oslo"),
        (CITY, 'value="Rome", 0.9', None),
        (AMOUNT, "value=12.5, 0.9", 12),
        ({**AMOUNT, "type": "integer"}, "value=12, 0.9", 12),
    ],
)
def test_every_type_takes_its_labels(
    labelled: Labelled, question: dict[str, Any], state: str, label: Any
) -> None:
    decision = labelled.decide(state, question)
    assert labelled.feedback(decision["id"], label)["labels"] == 1


@pytest.mark.parametrize(
    ("question", "state", "label", "words"),
    [
        (ANIMAL, "cat=0.8", "horse", "cat"),
        (ANIMAL, "cat=0.8", "none_of_these", "option keys"),
        (ANIMAL, "cat=0.8", None, "option keys"),
        (SCORE, "s", 2, "from 0 to 1"),
        (SCORE, "s", 0.5, "level index"),
        (SCORE, "s", True, "level index"),
        (NOUL, "yes=0.9", "yes", "true or false"),
        (NOUL, "yes=0.9", 1, "true or false"),
        (MULTI, "s", "cat", "list of option keys"),
        (MULTI, "s", ["horse"], "list of option keys"),
        ({**CITY, "nullable": False}, 'value="Rome", 0.9', None, "not nullable"),
        (CITY, 'value="Rome", 0.9', 7, "text"),
        (AMOUNT, "value=12.5, 0.9", "12", "a number"),
        ({**AMOUNT, "type": "integer"}, "value=12, 0.9", 12.5, "whole number"),
    ],
)
def test_a_label_that_is_no_valid_answer_is_refused(
    labelled: Labelled, question: dict[str, Any], state: str, label: Any, words: str
) -> None:
    response = labelled.send(labelled.decide(state, question)["id"], label)
    assert response.status_code == 422
    assert '"q"' in response.get_json()["error"]["message"]
    assert words in response.get_json()["error"]["message"]


@pytest.mark.parametrize(
    ("value", "label", "right"),
    [
        ('"Rome"', "  rome ", True),
        ('"New  York"', "new york", True),
        ('"Rome"', "Roma", False),
        ("null", None, True),
        ('"Rome"', None, False),
    ],
)
def test_text_is_right_ignoring_case_and_white_space(
    labelled: Labelled, value: str, label: Any, right: bool
) -> None:
    labelled.feedback(labelled.decide(f"value={value}, 0.9", CITY)["id"], label)
    before = labelled.get("/v1/calibration?question=q")["before"]
    assert before["accuracy"] == float(right)


@pytest.mark.parametrize(
    ("label", "right"), [(1000.0009, True), (1000.002, False), (1000, True), (999.9995, True)]
)
def test_numbers_are_right_within_a_millionth(
    labelled: Labelled, label: float, right: bool
) -> None:
    labelled.feedback(labelled.decide("value=1000, 0.9", AMOUNT)["id"], label)
    before = labelled.get("/v1/calibration?question=q")["before"]
    assert before["accuracy"] == float(right)


@pytest.mark.parametrize("decision_id", ["dec_0000000000000000000000000A", "nonsense", "dec_"])
def test_an_unknown_decision_is_404(labelled: Labelled, decision_id: str) -> None:
    response = labelled.send(decision_id, "cat")
    assert (response.status_code, response.get_json()["error"]["type"]) == (404, "not_found")


def test_an_unknown_question_is_404_by_name(labelled: Labelled) -> None:
    response = labelled.send(labelled.decide("cat=0.8")["id"], "cat", "other")
    assert response.status_code == 404
    assert '"other"' in response.get_json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ("[]", 400, "object"),
        ("{", 400, "JSON"),
        ("{}", 422, "decision_id: is required"),
        ('{"decision_id": "d", "question": "q"}', 422, "label: is required"),
        ('{"decision_id": 7, "question": "q", "label": 1}', 422, "decision_id"),
        ('{"decision_id": "d", "question": [], "label": 1}', 422, "question: must be text"),
        ('{"decision_id": "d", "question": "q", "lable": 1}', 422, "lable: unknown field"),
        ('{"decision_id": "d", "question": "q", "label": NaN}', 400, "NaN"),
    ],
)
def test_a_bad_body_is_refused(labelled: Labelled, body: str, status: int, words: str) -> None:
    response = labelled.client.post("/v1/feedback", data=body)
    assert response.status_code == status
    assert words in response.get_json()["error"]["message"]


@pytest.mark.parametrize(
    ("further", "words"),
    [
        ({"when": {"plan": "pro"}}, "skipped"),
        ({"rules": [{"if": {"plan": "free"}, "answer": "cat"}]}, "answered by a rule"),
    ],
)
def test_what_no_model_answered_takes_no_label(
    labelled: Labelled, further: dict[str, Any], words: str
) -> None:
    decision = labelled.decide({"plan": "free"}, {**ANIMAL, **further})  # type: ignore[arg-type]
    response = labelled.send(decision["id"], "cat")
    assert response.status_code == 422
    assert words in response.get_json()["error"]["message"]


def test_an_extracted_value_of_a_strict_decision_takes_no_label(labelled: Labelled) -> None:
    decision = labelled.decide('value="Rome", 0.9', CITY, privacy="strict")
    response = labelled.send(decision["id"], "Rome")
    assert response.status_code == 422
    assert "strict" in response.get_json()["error"]["message"]
    choice = labelled.decide("cat=0.8", privacy="strict")
    assert labelled.feedback(choice["id"], "cat")["labels"] == 1


def test_labels_are_kept_apart_by_project_and_exact_question(labelled: Labelled) -> None:
    reordered = {**ANIMAL, "options": {"dog": "", "cat": ""}, "min_confidence": 0.9}
    other_words = {**ANIMAL, "instructions": "Which pet?"}
    counts = [
        labelled.feedback(labelled.decide("cat=0.8", question, **fields)["id"], "dog")["labels"]
        for question, fields in [
            (ANIMAL, {}),
            (reordered, {}),
            (other_words, {}),
            (ANIMAL, {"project": "mine"}),
        ]
    ]
    assert counts == [1, 2, 1, 1]


def test_the_thirtieth_label_fits_a_calibrator_that_the_next_answer_uses(
    labelled: Labelled,
) -> None:
    assert labelled.teach(29)["calibrated"] is False
    before = labelled.decide("cat=0.95; 0", debias=False)  # out of the cache
    assert before["cached"]
    assert before["answers"]["q"]["calibrated"] is False
    last = labelled.feedback(labelled.decide("cat=0.95; 29", debias=False)["id"], "cat")
    assert (last["labels"], last["calibrated"]) == (30, True)
    after = labelled.decide("cat=0.95; 0", debias=False)
    assert after["cached"]
    answer = after["answers"]["q"]
    assert answer["calibrated"] is True
    assert answer["choice"] == "cat"
    assert 0.5 < answer["confidence"] < 0.8
    assert sum(answer["probabilities"].values()) == pytest.approx(1)


def test_a_model_that_is_true_already_gets_no_calibrator(labelled: Labelled) -> None:
    assert labelled.teach(60, right=0.7, p=0.7)["calibrated"] is False
    assert labelled.get("/v1/calibration?question=q")["calibrator"] is None


def test_abstention_goes_by_the_calibrated_confidence(labelled: Labelled) -> None:
    careful = {**ANIMAL, "min_confidence": 0.85}
    assert labelled.decide("cat=0.95; x", careful)["answers"]["q"]["abstain"] is False
    labelled.teach(30)
    assert labelled.decide("cat=0.95; x", careful)["answers"]["q"]["abstain"] is True


def test_other_projects_stay_uncalibrated(labelled: Labelled) -> None:
    assert labelled.teach(30)["calibrated"] is True
    elsewhere = labelled.decide("cat=0.95; 0", project="other")["answers"]["q"]
    assert (elsewhere["calibrated"], elsewhere["confidence"]) == (False, 0.95)


def test_a_noul_and_a_value_are_calibrated_by_platts_method(labelled: Labelled) -> None:
    for number in range(30):
        noul = labelled.decide(f"yes=0.97; {number}", NOUL, debias=False)
        labelled.feedback(noul["id"], number % 10 < 6)
        value = labelled.decide(f'value="Rome", 0.97; {number}', CITY)
        labelled.feedback(value["id"], "rome" if number % 10 < 6 else "Oslo")
    noul = labelled.decide("yes=0.97; x", NOUL)["answers"]["q"]
    assert (noul["calibrated"], 0.5 < noul["noul"] < 0.75) == (True, True)
    value = labelled.decide('value="Rome", 0.97; x', CITY)["answers"]["q"]
    assert (value["calibrated"], 0.5 < value["confidence"] < 0.75) == (True, True)
    assert labelled.get("/v1/calibration?question=q")["calibrator"]["kind"] == "platt"


def test_multi_labels_are_counted_without_a_calibrator(labelled: Labelled) -> None:
    for number in range(30):
        decision = labelled.decide(f"yes=0.95; {number}", MULTI, debias=False)
        counted = labelled.feedback(decision["id"], ["cat"])
    assert (counted["labels"], counted["calibrated"]) == (30, False)


def test_many_writers_at_once_lose_no_label(start: Start) -> None:
    app = start(obeying)
    client = Labelled(app.test_client())
    ids = [client.decide(f"cat=0.5; {number}", debias=False)["id"] for number in range(40)]

    def give(decision_id: str) -> int:
        return int(Labelled(app.test_client()).feedback(decision_id, "cat")["labels"])

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(give, ids)) == list(range(1, 41))


def test_answers_of_the_criteria_shape_take_labels_too(labelled: Labelled) -> None:
    question = {"type": "choice", "criteria": {"cat": None, "dog": None}}
    body = {"state": "cat=0.8", "questions": {"q": question}}
    response = labelled.client.post("/v1/systemone", data=json.dumps(body))
    assert labelled.feedback(response.get_json()["id"], "dog")["labels"] == 1
