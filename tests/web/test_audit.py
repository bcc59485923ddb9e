"""`GET /v1/audit`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.scripted import Behaviour, Json, Reply
from tests.web.conftest import Start
from tests.web.labelled import CITY, Labelled, obeying


@pytest.fixture
def labelled(start: Start) -> Labelled:
    return Labelled(start(obeying).test_client())


def ids(page: dict[str, Any]) -> list[str]:
    return [entry["id"] for entry in page["entries"]]


def test_an_entry_has_every_field_and_the_answers_as_returned(labelled: Labelled) -> None:
    decision = labelled.decide("cat=0.8", images=["https://x.example/i.png"])
    page = labelled.get("/v1/audit")
    (entry,) = page["entries"]
    assert (page["project"], page["next_before"]) == ("default", None)
    for field in ("id", "project", "model", "mode", "config", "latency_ms", "cost_usd", "cached"):
        assert entry.pop(field) == decision[field]
    assert entry.pop("answers") == decision["answers"]
    assert len(bytes.fromhex(entry.pop("state_hash"))) == 32
    (image,) = entry.pop("images")
    assert len(bytes.fromhex(image)) == 32
    assert entry.pop("created_at") > 1_700_000_000_000
    (newest,) = labelled.get("/v1/questions")["questions"]
    assert entry.pop("wording_ids") == [newest["wording_id"]]
    nothing = {"api_key": None, "provider_models": None, "ref": None, "tags": {}}
    assert entry == {"privacy": "standard", **nothing}


def test_an_entry_says_what_the_provider_calls_its_model(start: Start) -> None:
    names = {"model": "m-2024-08-06", "system_fingerprint": "fp_abc"}

    def named(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        reply = obeying(body, n, headers)
        assert isinstance(reply, Reply)
        return replace(reply, body={**reply.body, **names})

    labelled = Labelled(start(named).test_client())
    decided = labelled.decide("cat=0.8")
    (entry,) = labelled.get("/v1/audit")["entries"]
    assert entry["provider_models"] == "m-2024-08-06 fp_abc"
    assert "provider_models" not in decided


def test_pages_are_newest_first_and_stable_while_decisions_arrive(labelled: Labelled) -> None:
    made = [labelled.decide(f"cat=0.8; {number}")["id"] for number in range(5)]
    first = labelled.get("/v1/audit?limit=2")
    assert ids(first) == made[:2:-1]
    labelled.decide("cat=0.8; new")
    second = labelled.get(f"/v1/audit?limit=2&before={first['next_before']}")
    assert ids(second) == [made[2], made[1]]
    last = labelled.get(f"/v1/audit?limit=2&before={second['next_before']}")
    assert (ids(last), last["next_before"]) == ([made[0]], None)


def test_a_page_that_ends_with_the_last_decision_has_no_next(labelled: Labelled) -> None:
    for number in range(2):
        labelled.decide(f"cat=0.8; {number}")
    assert labelled.get("/v1/audit?limit=2")["next_before"] is None


def test_projects_are_kept_apart(labelled: Labelled) -> None:
    mine = labelled.decide("cat=0.8", project="mine & yours")["id"]
    labelled.decide("cat=0.8")
    page = labelled.get("/v1/audit?project=mine+%26+yours")
    assert (page["project"], ids(page)) == ("mine & yours", [mine])
    assert labelled.get("/v1/audit?project=nobody")["entries"] == []


def test_a_strict_decision_shows_no_extracted_value(labelled: Labelled) -> None:
    returned = labelled.decide('value="Rome", 0.9', CITY, privacy="strict")
    assert returned["answers"]["q"]["value"] == "Rome"
    response = labelled.client.get("/v1/audit")
    assert "Rome" not in response.text
    (entry,) = response.get_json()["entries"]
    assert entry["answers"]["q"]["value"] == "[redacted]"


def test_a_strict_decision_stores_no_names_of_the_states_fields(labelled: Labelled) -> None:
    state = {"anna@example.org": "cat=0.8; a", "ben@example.org": "cat=0.7; b"}
    for privacy, stored in (("standard", True), ("strict", False)):
        fields = {"explain": True, "privacy": privacy, "project": privacy}
        returned = labelled.decide(state, **fields)
        assert set(returned["answers"]["q"]["explain"]) == set(state)
        text = labelled.client.get(f"/v1/audit?project={privacy}").text
        assert ("anna@example.org" in text) is stored


def test_answers_keep_their_order_and_their_characters(labelled: Labelled) -> None:
    key = 'z "<&\\ 日本'
    question = {"type": "choice", "instructions": "?", "options": {key: "", "a": ""}}
    decision = labelled.decide("cat=0.8", question)
    (entry,) = json.loads(labelled.client.get("/v1/audit").data)["entries"]
    assert list(entry["answers"]["q"]["probabilities"]) == [key, "a", "none_of_these"]
    assert entry["answers"] == decision["answers"]


@pytest.mark.parametrize("limit", ["0", "1001", "-1", "ten", "1.5", "", "9" * 30, "٣"])
def test_a_limit_out_of_range_is_refused(labelled: Labelled, limit: str) -> None:
    message = labelled.get(f"/v1/audit?limit={limit}", 422)["error"]["message"]
    assert message == "limit: must be a whole number from 1 to 1,000"


@pytest.mark.parametrize("before", ["nonsense", "dec_0000000000000000000000000A"])
def test_an_unknown_place_to_go_on_from_is_404(labelled: Labelled, before: str) -> None:
    error = labelled.get(f"/v1/audit?before={before}", 404)["error"]
    assert error["type"] == "not_found"
    assert error["message"] == "before: the project has no such decision"


def test_a_place_in_another_project_is_404(labelled: Labelled) -> None:
    theirs = labelled.decide("cat=0.8", project="theirs")["id"]
    labelled.get(f"/v1/audit?before={theirs}", 404)
