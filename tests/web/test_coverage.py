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
