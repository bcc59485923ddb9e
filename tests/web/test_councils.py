"""What labels teach a council, through the routes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import pytest

from svc import limits
from tests.preferring import PreferringModel, user_text
from tests.scripted import Behaviour, Json, Reply, completion
from tests.web.conftest import Start
from tests.web.labelled import CITY, NOUL, Labelled
from tests.web.models import ANIMAL, reply_to

STRONG, WEAK, OTHER = "@scripted/strong", "@scripted/weak", "@scripted/other"
COUNCIL = {"council": [WEAK, STRONG, OTHER]}
ASKED = {"model": COUNCIL, "debias": False}
_CLAIM = re.compile(r"(\w+)=(\S+)")


def obeying(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
    """Each model says what the state tells it: a value with its confidence, P(cat), or nothing."""
    said = dict(_CLAIM.findall(user_text(body)))[body["model"]]
    if said == "fails":
        return Reply({"error": {"message": "no"}}, status=400)
    if "," in said:
        value, confidence = said.split(",")
        member = {"value": value, "confidence": float(confidence)}
        return Reply(completion(json.dumps({"q1": member})))
    p = float(said)
    return Reply(reply_to(PreferringModel({"cat": p, "dog": 1 - p}, yes=p), body))


@pytest.fixture
def labelled(start: Start) -> Labelled:
    return Labelled(start(obeying).test_client())


def state(strong: object, weak: object, other: object, number: int = 0) -> str:
    return f"strong={strong} weak={weak} other={other} ; {number}"


def teach(labelled: Labelled, count: int = 60, question: Json = ANIMAL, **fields: object) -> None:
    """The strong model is right 19 times of 20, the two weak ones half the time, and as sure."""
    yes, no = ("cat", "dog") if question["type"] == "choice" else (True, False)
    for number in range(count):
        truth = number % 2 == 0
        claims = [truth if number % 20 else not truth, number % 4 < 2, number % 8 < 4]
        told = state(*(0.9 if claim else 0.1 for claim in claims), number)
        decision = labelled.decide(told, question, **{**ASKED, **fields})
        labelled.feedback(decision["id"], yes if truth else no)


def test_without_labels_the_mean_counts_and_nothing_is_reported(labelled: Labelled) -> None:
    answer = labelled.decide(state(0.9, 0.2, 0.1), **ASKED)["answers"]["q"]
    assert answer["probabilities"]["cat"] == pytest.approx(0.4)
    assert labelled.get("/v1/calibration?question=q")["pool"] is None


@pytest.mark.parametrize("question", [ANIMAL, NOUL], ids=["choice", "noul"])
def test_labels_make_a_council_follow_its_strong_member(labelled: Labelled, question: Json) -> None:
    teach(labelled, question=question)
    answer = labelled.decide(state(0.9, 0.1, 0.1, 100), question, **ASKED)["answers"]["q"]
    p = answer["noul"] if question is NOUL else answer["probabilities"]["cat"]
    assert p > 0.75
    assert answer["agreement"] == pytest.approx(1 / 3, abs=1e-6)
    report = labelled.get("/v1/calibration?question=q")
    pool = report["pool"]
    assert pool["kind"] in ("arithmetic", "geometric")
    assert set(pool["weights"]) == {STRONG, WEAK, OTHER}
    assert pool["weights"][STRONG] > 2 * max(pool["weights"][WEAK], pool["weights"][OTHER])
    assert limits.MIN_LABELS <= pool["labels"] <= 60
    assert pool["log_loss"]["pool"] < pool["log_loss"]["equal"]
    assert report["before"]["accuracy"] == pytest.approx(0.95)


def test_a_pool_counts_for_its_models_its_project_and_its_wording_alone(labelled: Labelled) -> None:
    teach(labelled)
    told = state(0.9, 0.1, 0.1, 100)
    other_order = {"council": COUNCIL["council"][::-1]}
    assert followed(labelled, told, model=other_order)
    assert not followed(labelled, told, model={"council": [STRONG, WEAK]})
    assert not followed(labelled, told, project="other")
    assert not followed(labelled, told, {**ANIMAL, "instructions": "Which pet?"})


def followed(labelled: Labelled, told: str, question: Json = ANIMAL, **fields: object) -> bool:
    answer = labelled.decide(told, question, **{**ASKED, **fields})["answers"]["q"]
    return bool(answer["probabilities"]["cat"] > 0.6)


def test_where_the_strong_member_fails_the_others_share_its_weight(labelled: Labelled) -> None:
    teach(labelled)
    answer = labelled.decide(state("fails", 0.1, 0.1, 100), **ASKED)["answers"]["q"]
    assert answer["probabilities"]["cat"] < 0.5
    assert answer["agreement"] == 1


def test_sets_are_not_promised_for_an_answer_of_a_part_of_the_council(labelled: Labelled) -> None:
    teach(labelled)
    asked = {**ANIMAL, "coverage": 0.8}
    whole = labelled.decide(state(0.9, 0.1, 0.1, 100), asked, **ASKED)["answers"]["q"]
    part = labelled.decide(state("fails", 0.1, 0.1, 101), asked, **ASKED)["answers"]["q"]
    assert (whole["guaranteed"], part["guaranteed"]) == (True, False)
    assert "set" not in part


def test_prediction_sets_are_of_the_labels_as_they_are_pooled_now(labelled: Labelled) -> None:
    asked = {**ANIMAL, "coverage": 0.9}
    teach(labelled)
    answer = labelled.decide(state(0.9, 0.1, 0.1, 100), asked, **ASKED)["answers"]["q"]
    assert answer["guaranteed"] and answer["set"] == ["cat"]


def test_an_extracted_value_follows_the_member_that_is_right(labelled: Labelled) -> None:
    """The two weak ones agree on what is wrong; until the labels say so, they have the majority."""
    for number in range(80):
        wrong = "Bonn,0.8" if number % 4 else "Rome,0.8"
        decision = labelled.decide(state("Rome,0.8", wrong, wrong, number), CITY, **ASKED)
        labelled.feedback(decision["id"], "Rome")
    answer = labelled.decide(state("Rome,0.8", "Bonn,0.8", "Bonn,0.8", 100), CITY, **ASKED)
    report = labelled.get("/v1/calibration?question=q")
    assert report["pool"]["kind"] == "arithmetic"
    assert report["pool"]["weights"][STRONG] > 0.5
    assert answer["answers"]["q"]["value"] == "Rome"


def test_a_model_that_sits_twice_teaches_nothing(labelled: Labelled) -> None:
    teach(labelled, model={"council": [WEAK, STRONG, STRONG]})
    assert labelled.get("/v1/calibration?question=q")["pool"] is None


def test_no_value_is_kept_of_members_under_strict_privacy(labelled: Labelled, tmp_path) -> None:
    labelled.decide(state("Rome,0.8", "Bonn,0.8", "Oslo,0.8"), CITY, privacy="strict", **ASKED)
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"members" in kept
    assert not any(city in kept for city in (b"Rome", b"Bonn", b"Oslo"))
