"""`GET /v1/drift`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.preferring import PreferringModel
from tests.web.conftest import Start
from tests.web.labelled import CITY, NOUL, Labelled, obeying
from tests.web.models import ANIMAL, replying


@pytest.fixture
def labelled(start: Start) -> Labelled:
    return Labelled(start(obeying).test_client())


def this_week() -> str:
    return "{}-W{:02}".format(*datetime.now(UTC).isocalendar())


def only_week(labelled: Labelled) -> dict[str, Any]:
    (week,) = labelled.get("/v1/drift?question=q")["weeks"]
    return dict(week)


def test_a_week_has_its_mix_and_confidence(labelled: Labelled) -> None:
    for state in ("cat=0.8", "cat=0.6", "cat=0.1", "cat=0.8"):
        labelled.decide(state)
    report = labelled.get("/v1/drift?question=q")
    assert (report["project"], report["question"]) == ("default", "q")
    (week,) = report["weeks"]
    assert week["week"] == this_week()
    assert week["decisions"] == 4  # the cached one counts
    assert week["mix"] == {"cat": 0.75, "dog": 0.25}
    assert week["confidence"] == pytest.approx((0.8 + 0.6 + 0.9 + 0.8) / 4)


def test_skipped_and_rule_answered_questions_do_not_count(labelled: Labelled) -> None:
    labelled.decide("cat=0.8")
    skipped = {**ANIMAL, "when": {"plan": "pro"}}
    ruled = {**ANIMAL, "rules": [{"if": {"plan": "free"}, "answer": "dog"}]}
    for question in (skipped, ruled):
        labelled.decide({"plan": "free"}, question)  # type: ignore[arg-type]
    assert only_week(labelled)["decisions"] == 1


def test_extracted_values_have_no_mix(labelled: Labelled) -> None:
    labelled.decide('value="Rome", 0.9', CITY)
    week = only_week(labelled)
    assert (week["mix"], week["confidence"]) == (None, pytest.approx(0.9))
    assert "mix_change" not in week


def test_a_nouls_mix_is_of_true_and_false(labelled: Labelled) -> None:
    labelled.decide("yes=0.9", NOUL), labelled.decide("yes=0.3", NOUL)
    week = only_week(labelled)
    assert week["mix"] == {"true": 0.5, "false": 0.5}
    assert week["confidence"] == pytest.approx(0.8)


@pytest.mark.parametrize("weeks", ["0", "54", "-1", "x"])
def test_weeks_out_of_range_are_refused(labelled: Labelled, weeks: str) -> None:
    labelled.decide("cat=0.8")
    message = labelled.get(f"/v1/drift?question=q&weeks={weeks}", 422)["error"]["message"]
    assert message == "weeks: must be a whole number from 1 to 53"


def test_what_was_never_asked_is_404(labelled: Labelled) -> None:
    assert labelled.get("/v1/drift?question=q", 404)["error"]["type"] == "not_found"
    assert "question" in labelled.get("/v1/drift", 422)["error"]["message"]


def test_an_option_with_a_long_name_is_in_the_mix_by_its_name(start: Start) -> None:
    long = "o" * 400
    labelled = Labelled(start(replying(PreferringModel({long: 0.9, "short": 0.1}))).test_client())
    question = {**ANIMAL, "options": {long: "", "short": ""}}
    labelled.decide("a state", question)  # type: ignore[arg-type]
    assert only_week(labelled)["mix"] == {long: 1.0}
