"""References and tags of decisions, and `GET /v1/decisions/{id}`."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.scripted import Json
from tests.web.conftest import Start
from tests.web.labelled import Labelled, obeying
from tests.web.models import decision

TAGS = {"channel": "mail", "Ländercode": "50% off_"}


@pytest.fixture
def labelled(start: Start) -> Labelled:
    return Labelled(start(obeying).test_client())


def test_a_reference_and_tags_come_back_and_are_in_the_audit_log(labelled: Labelled) -> None:
    decided = labelled.decide("cat=0.8", ref="ticket 1", tags=TAGS)
    assert (decided["ref"], decided["tags"]) == ("ticket 1", TAGS)
    (entry,) = labelled.get("/v1/audit")["entries"]
    assert (entry["ref"], entry["tags"]) == ("ticket 1", TAGS)


def test_a_decision_without_them_is_answered_as_ever(labelled: Labelled) -> None:
    assert not {"ref", "tags"} & labelled.decide("cat=0.8", tags={}).keys()


def test_the_criteria_route_takes_them_too(labelled: Labelled) -> None:
    body = {"state": "x", "questions": {"q": {"type": "noul"}}, "ref": "r", "tags": {"a": "b"}}
    answer = labelled.client.post("/v1/systemone", json=body).get_json()
    assert (answer["ref"], answer["tags"]) == ("r", {"a": "b"})


def test_they_change_neither_the_cache_nor_the_state_hash(labelled: Labelled) -> None:
    labelled.decide("cat=0.8", ref="one", tags={"a": "b"})
    assert labelled.decide("cat=0.8", ref="two")["cached"]
    first, second = labelled.get("/v1/audit")["entries"]
    assert first["state_hash"] == second["state_hash"]


def test_they_never_reach_a_model(start: Start) -> None:
    asked: list[str] = []

    def listening(body: Json, n: int, headers: Any) -> Any:
        asked.append(str(body))
        return obeying(body, n, headers)

    Labelled(start(listening).test_client()).decide("cat=0.8", ref="xyzzy", tags={"plugh": "frotz"})
    assert asked and not any(word in "".join(asked) for word in ("xyzzy", "plugh", "frotz"))


@pytest.mark.parametrize(
    "ref", ["x" * 128, "%", "_", "Zürich 12", "注文", "'; DROP TABLE decisions"]
)
def test_a_reference_of_visible_characters_is_kept_as_it_is(labelled: Labelled, ref: str) -> None:
    assert labelled.decide("cat=0.8", ref=ref)["ref"] == ref


@pytest.mark.parametrize("ref", ["", " ", "x" * 129, "a\nb", "a\u200bb", " a", "a ", 7, None, []])
def test_any_other_reference_is_refused(labelled: Labelled, ref: Any) -> None:
    response = labelled.client.post("/v1/decide", json=decision(ref=ref))
    assert response.status_code == 422
    assert response.get_json()["error"]["message"].startswith("ref: must")


@pytest.mark.parametrize(
    ("tags", "words"),
    [
        ([], "must be an object of name to text"),
        ({str(number): "x" for number in range(17)}, "needs 0 to 16 tags, has 17"),
        ({"a": 1}, 'the text of "a" must be text'),
        ({"a": ""}, 'the text of "a" must have 1 to 128 characters'),
        ({"a": "x" * 129}, 'the text of "a" must have 1 to 128 characters'),
        ({"a": "\u202e"}, 'the text of "a" must have no control characters'),
        ({"x" * 65: "a"}, "must have 1 to 64 characters"),
        ({"a\t": "a"}, "must not begin or end with a blank"),
    ],
)
def test_tags_of_another_form_are_refused(labelled: Labelled, tags: Any, words: str) -> None:
    response = labelled.client.post("/v1/decide", json=decision(tags=tags))
    assert response.status_code == 422
    assert words in response.get_json()["error"]["message"]


def test_a_decision_is_shown_with_its_labels(labelled: Labelled) -> None:
    decided = labelled.decide("cat=0.8", ref="r")
    shown = labelled.get(f"/v1/decisions/{decided['id']}")
    (entry,) = labelled.get("/v1/audit")["entries"]
    assert shown == {**entry, "labels": [], "questions": shown["questions"]}
    origin = {"sampled": "random", "chance": 0.25}
    given = {"decision_id": decided["id"], "question": "q", "label": "dog", **origin}
    assert labelled.client.post("/v1/feedback", json=given).status_code == 200
    (label,) = labelled.get(f"/v1/decisions/{decided['id']}")["labels"]
    assert label.pop("created_at") >= entry["created_at"]
    assert label == {"question": "q", "label": "dog", **origin}


def test_a_decision_is_shown_with_its_questions_as_they_were_asked(labelled: Labelled) -> None:
    calm = {"type": "score", "instructions": "How calm?", "levels": ["furious", "calm"]}
    angry = {**calm, "instructions": "How angry?", "levels": ["calm", "furious"]}
    asked = [{"7": angry, "a": calm}, {"7": calm, "a": angry}]
    for questions in asked:
        body = {"state": "x", "questions": questions}
        assert labelled.client.post("/v1/decide", json=body).status_code == 200
    entries = labelled.get("/v1/audit")["entries"][::-1]
    shown = [labelled.get(f"/v1/decisions/{entry['id']}") for entry in entries]
    assert [one["questions"] for one in shown] == asked
    numbers = entries[0]["wording_ids"]
    assert len({*numbers}) == 2 and entries[1]["wording_ids"] == numbers[::-1]


@pytest.mark.parametrize("missing", ["nonsense", "dec_0000000000000000000000000A", "%2F", "dec_"])
def test_a_decision_that_does_not_exist_is_404(labelled: Labelled, missing: str) -> None:
    error = labelled.get(f"/v1/decisions/{missing}", 404)["error"]
    assert error["type"] == "not_found"


def test_a_decision_of_another_project_looks_like_a_missing_one(start: Start) -> None:
    app = start(obeying)
    keys = app.extensions["svc"].keys
    texts = {only: keys.create(str(only), 600, only).text for only in (None, "mine")}

    def get(client: FlaskClient, only: str | None, decision_id: str) -> Any:
        headers = {"Authorization": f"Bearer {texts[only]}"}
        return client.get(f"/v1/decisions/{decision_id}", headers=headers)

    client = app.test_client()
    headers = {"Authorization": f"Bearer {texts[None]}"}
    body = decision("cat=0.8", project="theirs")
    theirs = client.post("/v1/decide", json=body, headers=headers).get_json()["id"]
    assert get(client, None, theirs).status_code == 200
    hidden, missing = (get(client, "mine", one) for one in (theirs, theirs[:-3] + "000"))
    assert hidden.status_code == missing.status_code == 404
    assert hidden.get_json() == missing.get_json()
