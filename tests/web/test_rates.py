"""`GET /v1/rates`."""

from __future__ import annotations

import pytest

from tests.web.conftest import Start
from tests.web.labelled import CITY, NOUL, Labelled, obeying


@pytest.fixture
def labelled(start: Start) -> Labelled:
    return Labelled(start(obeying).test_client())


def test_each_option_has_its_rate_beside_the_naive_share(labelled: Labelled) -> None:
    labelled.teach(20, right=0.5, p=0.9)
    labelled.decide("cat=0.2")
    report = labelled.get("/v1/rates?question=q")
    assert (report["project"], report["question"], report["type"]) == ("default", "q", "choice")
    assert (report["decisions"], report["labels"], report["cut"]) == (21, 20, False)
    cat, dog = report["rates"]
    assert (cat["option"], dog["option"]) == ("cat", "dog")
    assert cat["naive"] == pytest.approx(20 / 21, abs=1e-6)
    assert cat["low"] < 0.5 < cat["high"]
    assert cat["estimate"] + dog["estimate"] == pytest.approx(1, abs=0.1)
    assert report["sampling"]["labels"]["unknown"] == 20


def test_without_labels_estimates_are_null(labelled: Labelled) -> None:
    labelled.decide("yes=0.9", NOUL)
    false, true = labelled.get("/v1/rates?question=q&weeks=1")["rates"]
    assert (false["option"], false["estimate"], false["naive"]) == ("false", None, 0.0)
    assert (true["option"], true["labels_alone"], true["naive"]) == ("true", None, 1.0)


def test_answers_of_rules_are_left_out_as_the_reference_says(labelled: Labelled) -> None:
    question = {**NOUL, "rules": [{"if": {"kind": "form"}, "answer": False}]}
    for state in ({"kind": "form"}, {"kind": "mail", "text": "yes=0.9;"}):
        labelled.decide(state, question)
    report = labelled.get("/v1/rates?question=q")
    assert (report["decisions"], report["rates"][1]["naive"]) == (1, 1.0)
    fields = labelled.get("/openapi.json")["components"]["schemas"]["RatesReport"]["properties"]
    assert "without those of rules" in fields["decisions"]["description"]


def test_extracted_values_have_no_rates(labelled: Labelled) -> None:
    labelled.decide('value="Rome", 0.9', CITY)
    error = labelled.get("/v1/rates?question=q", 422)["error"]
    assert error["type"] == "invalid_request"
    assert '"q" is of type text' in error["message"] and error["message"].endswith("noul")


def test_what_was_never_asked_is_404_and_a_wrong_query_422(labelled: Labelled) -> None:
    assert labelled.get("/v1/rates?question=q", 404)["error"]["type"] == "not_found"
    assert "question" in labelled.get("/v1/rates", 422)["error"]["message"]
    message = labelled.get("/v1/rates?question=q&weeks=54", 422)["error"]["message"]
    assert message == "weeks: must be a whole number from 1 to 53"
