"""`GET /v1/calibration`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.web.conftest import Start
from tests.web.labelled import CITY, NOUL, Labelled, obeying
from tests.web.models import ANIMAL

FIGURES = ["accuracy", "ece", "brier", "automated", "accuracy_when_automated", "bins"]


@pytest.fixture
def labelled(start: Start) -> Labelled:
    return Labelled(start(obeying).test_client())


def test_the_report_has_every_field(labelled: Labelled) -> None:
    labelled.teach(40, right=0.6, p=0.95)
    report = labelled.get("/v1/calibration?question=q")
    assert (report["project"], report["question"], report["type"]) == ("default", "q", "choice")
    assert (report["labels"], report["min_labels"]) == (40, 30)
    assert report["calibrator"]["kind"] == "temperature"
    assert report["calibrator"]["t"] > 1
    for side in ("before", "after"):
        assert list(report[side]) == FIGURES
        assert len(report[side]["bins"]) == 10
        assert sum(one["count"] for one in report[side]["bins"]) == 40
    before, after = report["before"], report["after"]
    assert before["accuracy"] == after["accuracy"] == 0.6
    assert before["ece"] == pytest.approx(0.35)
    assert before["brier"] == pytest.approx(2 * (0.6 * 0.05**2 + 0.4 * 0.95**2))
    assert (before["automated"], before["accuracy_when_automated"]) == (1.0, 0.6)
    assert after["ece"] < 0.2
    assert (after["automated"], after["accuracy_when_automated"]) == (0.0, None)
    assert before["bins"][9] == {
        "from": 0.9,
        "to": 1.0,
        "count": 40,
        "confidence": pytest.approx(0.95),
        "accuracy": pytest.approx(0.6),
    }
    assert [row["target"] for row in report["thresholds"]] == [0.9, 0.95, 0.99]
    assert all(row["min_confidence"] is None and row["reason"] for row in report["thresholds"])


@pytest.mark.parametrize("options", [("cat", "dog"), ("dog", "cat")])
@pytest.mark.parametrize("p", [0.5, 0.500_000_01])
def test_a_tie_is_judged_as_it_was_answered(
    labelled: Labelled, options: tuple[str, str], p: float
) -> None:
    """The order of options is no part of the exact question, and labels do not know it."""
    question = {**ANIMAL, "options": dict.fromkeys(options, ""), "escape": False}
    for number in range(3):
        decision = labelled.decide(f"cat={p}; {number}", question, debias=False)
        answer = decision["answers"]["q"]
        assert answer["confidence"] == 0.5
        labelled.feedback(decision["id"], answer["choice"])
    assert labelled.get("/v1/calibration?question=q")["before"]["accuracy"] == 1.0


def test_an_even_yes_or_no_is_a_yes_in_all_figures(labelled: Labelled) -> None:
    for number in range(4):
        decision = labelled.decide(f"yes=0.5; {number}", NOUL, debias=False)
        labelled.feedback(decision["id"], number > 0)
    report = labelled.get("/v1/calibration?question=q")
    assert report["before"]["accuracy"] == 0.75
    assert report["confusion"] == [
        {"true": "false", "answer": "true", "count": 1},
        {"true": "true", "answer": "true", "count": 3},
    ]
    assert [one["answers"] for one in report["options"]] == [0, 4]


def test_thresholds_say_what_may_be_automated(labelled: Labelled) -> None:
    for number in range(120):
        sure = number % 2
        decision = labelled.decide(f"cat={0.99 if sure else 0.55}; {number}", debias=False)
        labelled.feedback(decision["id"], "cat" if sure or number % 4 else "dog")
    report = labelled.get("/v1/calibration?question=q")
    at_90 = report["thresholds"][0]
    assert 0.5 < at_90["min_confidence"] < 1
    assert at_90["automated"] == pytest.approx(0.5)


def test_thresholds_are_on_the_scale_of_the_answers_that_a_caller_gets(labelled: Labelled) -> None:
    """Answers that are 99% sure are right 98 times of 100, those that are 90% sure 60 times."""
    for number in range(300):
        sure = number % 3 > 0
        right = number % 50 > 0 if sure else number % 5 > 1
        decision = labelled.decide(f"cat={0.99 if sure else 0.9}; {number}", debias=False)
        labelled.feedback(decision["id"], "cat" if right else "dog")
    report = labelled.get("/v1/calibration?question=q")
    assert report["calibrator"]["kind"] == "temperature"
    at_90 = report["thresholds"][0]
    assert at_90["automated"] == pytest.approx(2 / 3)
    asked = {**ANIMAL, "min_confidence": at_90["min_confidence"]}
    for claim, abstains in (("cat=0.99", False), ("cat=0.9", True)):
        (answer,) = labelled.decide(f"{claim}; afterwards", asked, debias=False)["answers"].values()
        assert answer["calibrated"] and answer["abstain"] is abstains


def test_a_question_without_labels_has_an_empty_report(labelled: Labelled) -> None:
    labelled.decide("cat=0.8")
    report = labelled.get("/v1/calibration?question=q")
    assert (report["labels"], report["calibrator"]) == (0, None)
    for side in ("before", "after"):
        assert report[side]["accuracy"] is None
        assert [one["count"] for one in report[side]["bins"]] == [0] * 10


@pytest.mark.parametrize("labels", [1, 2, 3])
def test_a_few_labels_have_a_report(labelled: Labelled, labels: int) -> None:
    labelled.teach(labels, right=1.0)
    report = labelled.get("/v1/calibration?question=q")
    assert report["before"]["accuracy"] == report["after"]["accuracy"] == 1.0


def test_the_report_is_of_the_most_recent_wording(labelled: Labelled) -> None:
    labelled.teach(3)
    labelled.decide("cat=0.8", {**ANIMAL, "instructions": "Which pet?"})
    assert labelled.get("/v1/calibration?question=q")["labels"] == 0
    labelled.decide("cat=0.8", ANIMAL)
    assert labelled.get("/v1/calibration?question=q")["labels"] == 3


def test_the_accuracy_of_extraction_is_the_share_of_right_values(labelled: Labelled) -> None:
    for number in range(4):
        decision = labelled.decide(f'value="Rome", 0.7; {number}', CITY)
        labelled.feedback(decision["id"], "rome" if number else "Oslo")
    report = labelled.get("/v1/calibration?question=q")
    assert report["before"]["accuracy"] == report["after"]["accuracy"] == 0.75


def test_what_was_never_asked_is_404(labelled: Labelled) -> None:
    labelled.decide("cat=0.8")
    for query in ("question=other", "question=q&project=other"):
        error = labelled.get(f"/v1/calibration?{query}", 404)["error"]
        assert error["type"] == "not_found"


def test_the_question_has_to_be_named(labelled: Labelled) -> None:
    assert "question" in labelled.get("/v1/calibration", 422)["error"]["message"]


def test_after_a_change_the_figures_are_of_the_answers_since_then(
    labelled: Labelled, tmp_path: Path
) -> None:
    labelled.teach(200, right=0.9, p=0.95)
    before = labelled.get("/v1/calibration?question=q")
    assert (before["labels_since_change"], before["before"]["accuracy"]) == (None, 0.9)
    with closing(sqlite3.connect(tmp_path / "svc.db")) as database, database:
        database.execute("UPDATE labels SET decided_at = decided_at - 172800000")
    labelled.teach(60, right=0.5, p=0.95)
    report = labelled.get("/v1/calibration?question=q")
    assert report["labels"] == 260 and 40 <= report["labels_since_change"] <= 80
    for side in ("before", "after"):
        assert report[side]["accuracy"] < 0.65
        assert sum(one["count"] for one in report[side]["bins"]) == report["labels_since_change"]
    assert report["uncertainty"]["before"]["accuracy"]["high"] < 0.8
    assert sum(one["labels"] for one in report["options"]) == report["labels_since_change"]


def test_labels_that_are_given_again_change_nothing(labelled: Labelled) -> None:
    decisions = [labelled.decide(f"cat=0.9; {n}", debias=False)["id"] for n in range(200)]
    for number, decision in enumerate(decisions):
        labelled.feedback(decision, "cat" if number % 10 else "dog")
    before = labelled.get("/v1/calibration?question=q")
    for decision in decisions[::10]:
        labelled.feedback(decision, "dog")
    assert labelled.get("/v1/calibration?question=q") == before
