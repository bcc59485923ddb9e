"""`POST /v1/feedback/bulk`."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask.testing import FlaskClient

from svc import limits
from tests.scripted import Json
from tests.web.conftest import Start
from tests.web.labelled import CITY, NOUL, Labelled, obeying
from tests.web.models import ANIMAL

PATH = "/v1/feedback/bulk"


@pytest.fixture
def labelled(start: Start) -> Labelled:
    return Labelled(start(obeying).test_client())


def bulk(labelled: Labelled, lines: Any, status: int = 200, **fields: Any) -> Json:
    response = labelled.client.post(PATH, json={"labels": lines, **fields})
    assert response.status_code == status, response.text
    return dict(response.get_json())


def given(labelled: Labelled, decision_id: str) -> Json:
    """The labels of a decision by question."""
    labels = labelled.get(f"/v1/decisions/{decision_id}")["labels"]
    return {one["question"]: one["label"] for one in labels}


def line(ref: str, label: Any = "cat", question: str = "q", **fields: Any) -> Json:
    return {"ref": ref, "labels": {question: label}, **fields}


def test_decisions_are_named_by_id_or_by_ref(labelled: Labelled) -> None:
    by_id, by_ref = labelled.decide("cat=0.8"), labelled.decide("cat=0.7", ref="50%_\u00fc")
    lines = [{"id": by_id["id"], "labels": {"q": "dog"}}, line("50%_\u00fc")]
    assert bulk(labelled, lines) == {"lines": 2, "taken": 2, "errors": []}
    assert given(labelled, by_id["id"]) == {"q": "dog"}
    assert given(labelled, by_ref["id"]) == {"q": "cat"}


@pytest.mark.parametrize("pattern", ["%", "_", "ticket%", "ticket_1", "TICKET-1", "*"])
def test_a_ref_is_no_pattern(labelled: Labelled, pattern: str) -> None:
    labelled.decide("cat=0.8", ref="ticket-1")
    assert bulk(labelled, [line(pattern)])["taken"] == 0


def test_a_ref_of_several_decisions_means_the_newest(labelled: Labelled) -> None:
    older, newer = (labelled.decide(f"cat=0.{n}", ref="r")["id"] for n in (7, 8))
    bulk(labelled, [line("r")])
    assert (given(labelled, older), given(labelled, newer)) == ({}, {"q": "cat"})


def test_several_questions_of_a_decision_are_labelled_in_one_line(labelled: Labelled) -> None:
    body = {"state": "yes=0.9", "questions": {"a": NOUL, "b": {**NOUL, "instructions": "Late?"}}}
    decided = labelled.client.post("/v1/decide", json={**body, "ref": "r"}).get_json()
    lines = [{"ref": "r", "labels": {"a": True, "b": False}, "sampled": "random", "chance": 0.5}]
    assert bulk(labelled, lines)["taken"] == 2
    labels = labelled.get(f"/v1/decisions/{decided['id']}")["labels"]
    assert [(one["label"], one["sampled"], one["chance"]) for one in labels] == [
        (True, "random", 0.5),
        (False, "random", 0.5),
    ]


def test_a_line_says_who_says_so(labelled: Labelled) -> None:
    labelled.decide("cat=0.8", ref="r")
    for reviewer, label in (("ann", "cat"), ("bob", "dog")):
        assert bulk(labelled, [line("r", label, reviewer=reviewer)])["taken"] == 1
    (one,) = labelled.get("/v1/review/disagreements?question=q")["disagreements"]
    assert [said["reviewer"] for said in one["judgements"]] == ["ann", "bob"]


def test_what_several_reviewers_say_of_a_decision_in_one_request_is_kept(
    labelled: Labelled,
) -> None:
    labelled.decide("cat=0.8", ref="r")
    said = [("ann", "cat"), ("bob", "dog"), ("ann", "dog"), ("ann", "cat")]
    bulk(labelled, [line("r", label, reviewer=reviewer) for reviewer, label in said])
    (one,) = labelled.get("/v1/review/disagreements?question=q")["disagreements"]
    assert [(said["reviewer"], said["label"]) for said in one["judgements"]] == [
        ("bob", "dog"),
        ("ann", "cat"),
    ]
    assert one["label"] == "cat"


def test_every_line_is_reported_in_its_place_and_the_others_are_taken(labelled: Labelled) -> None:
    labelled.decide("cat=0.8", ref="r")
    lines = [
        line("r"),
        line("gone"),
        line("r", "horse"),
        line("r", "cat", "other"),
        {"ref": "r", "id": "dec_x", "labels": {"q": "cat"}},
        {"ref": "r", "labels": {}},
        {**line("r"), "lable": "cat"},
        line("r", sampled="luck"),
        line("r", chance=0),
        {"id": "dec_x", "labels": {"q": "cat"}},
        7,
    ]
    answer = bulk(labelled, lines)
    assert (answer["lines"], answer["taken"]) == (11, 1)
    assert [(one["line"], one["field"]) for one in answer["errors"]] == [
        (2, "ref"),
        (3, "labels.q"),
        (4, "labels.other"),
        (5, ""),
        (6, "labels"),
        (7, ""),
        (8, "sampled"),
        (9, "chance"),
        (10, "id"),
        (11, ""),
    ]
    assert [one["message"] for one in answer["errors"]] == [
        "there is no such decision",
        'question "q": the label must be one of the option keys: "cat", "dog"',
        'the decision has no question "other"',
        "needs either an id or a ref",
        "must be an object of question key to true answer",
        'unknown field "lable"; allowed: id, ref, labels, sampled, chance, reviewer',
        "must be one of random, queue, other",
        "must be a number from 1e-06 to 1",
        "there is no such decision",
        "must be an object",
    ]


@pytest.mark.parametrize("in_query", [False, True])
def test_atomic_takes_all_or_none(labelled: Labelled, in_query: bool) -> None:
    decided = labelled.decide("cat=0.8", ref="r")
    body: Json = {"labels": [line("r"), line("gone")]}
    target = f"{PATH}?atomic=true" if in_query else PATH
    body |= {} if in_query else {"atomic": True}
    answer = labelled.client.post(target, json=body).get_json()
    assert (answer["taken"], [one["line"] for one in answer["errors"]]) == (0, [2])
    assert given(labelled, decided["id"]) == {}
    del body["labels"][1]
    assert labelled.client.post(target, json=body).get_json()["taken"] == 1


def test_what_is_too_long_for_one_transaction_is_stored_in_several_or_not_at_all(
    labelled: Labelled,
) -> None:
    """Others wait for a transaction: 5,000 labels with keys of 3 KB wrote hundreds of MB in one."""
    key = "k" * 3_000
    body = {"state": "cat=0.8", "questions": {key: ANIMAL}, "ref": "r"}
    assert labelled.client.post("/v1/decide", json=body).status_code == 200
    lines = [line("r", question=key, reviewer=str(number)) for number in range(340)]
    answer = labelled.client.post(PATH, json={"labels": lines, "atomic": True})
    assert answer.status_code == 422
    message = answer.get_json()["error"]["message"]
    assert "they have 1,022,380 characters, at most 1,000,000 are stored together" in message
    assert bulk(labelled, lines[:300], atomic=True)["taken"] == 300
    assert bulk(labelled, lines)["taken"] == 340


def test_json_lines_are_taken_and_counted_as_in_the_file(labelled: Labelled) -> None:
    decided = labelled.decide("cat=0.8", project="zoo", ref="r")
    lines = ["", json.dumps(line("r")), "{", "  ", json.dumps(line("gone")), '"\\ud800"']
    response = labelled.client.post(
        f"{PATH}?project=zoo", data="\r\n".join(lines), content_type="application/x-ndjson"
    )
    answer = response.get_json()
    assert (answer["lines"], answer["taken"]) == (4, 1)
    assert [one["line"] for one in answer["errors"]] == [3, 5, 6]
    assert answer["errors"][0]["message"].startswith("the line is not JSON: ")
    assert given(labelled, decided["id"]) == {"q": "cat"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"labels": []}, "labels: must be a list of 1 to 5,000 objects"),
        ({"labels": {}}, "labels: must be a list"),
        ({}, "labels: is required"),
        ({"labels": [{}] * 5_001}, "labels: must be a list of 1 to 5,000"),
        ({"labels": [{}], "atomc": True}, "atomc: unknown field"),
        ({"labels": [{}], "atomic": "true"}, "atomic: must be true or false"),
        ({"labels": [{}], "project": 7}, "project: must be text"),
        (
            {"labels": [{"ref": "r", "labels": dict.fromkeys(map(str, range(2_501)))}] * 2},
            "labels: hold 5,002 labels, at most 5,000 are allowed",
        ),
    ],
)
def test_a_body_of_another_form_is_refused_as_a_whole(
    labelled: Labelled, body: Json, words: str
) -> None:
    response = labelled.client.post(PATH, json=body)
    assert response.status_code == 422
    assert words in response.get_json()["error"]["message"]


def test_too_many_lines_are_refused(labelled: Labelled) -> None:
    data, kind = "{}\n" * (limits.BULK_LABELS + 1), "application/x-ndjson"
    response = labelled.client.post(PATH, data=data, content_type=kind)
    assert response.status_code == 422
    assert "5,001 lines" in response.get_json()["error"]["message"]


@pytest.mark.parametrize("blank", ["\n", "  \n", "\r\n"])
def test_blank_lines_count_where_there_are_many(labelled: Labelled, blank: str) -> None:
    data, kind = blank * limits.BULK_LINES, "application/x-ndjson"
    response = labelled.client.post(PATH, data=data, content_type=kind)
    assert response.status_code == 422
    assert "labels: must be a list of 1" in response.get_json()["error"]["message"]
    response = labelled.client.post(PATH, data=data + blank, content_type=kind)
    assert response.status_code == 422
    assert "more than 100,000 line breaks" in response.get_json()["error"]["message"]


@pytest.mark.parametrize("query", ["atomc=true", "atomic=yes", "atomic=1"])
def test_a_parameter_that_is_not_known_is_refused(labelled: Labelled, query: str) -> None:
    response = labelled.client.post(f"{PATH}?{query}", json={"labels": [line("r")]})
    assert response.status_code == 422


def test_one_bad_label_of_many_does_not_hold_back_the_others(labelled: Labelled) -> None:
    labelled.decide("cat=0.8", ref="r")
    lines = [line("r", "horse" if number == 2_345 else "cat") for number in range(1, 5_001)]
    answer = bulk(labelled, lines)
    assert (answer["lines"], answer["taken"]) == (5_000, 4_999)
    assert [one["line"] for one in answer["errors"]] == [2_345]
    assert labelled.get("/v1/calibration?question=q")["labels"] == 1


def test_the_last_label_for_a_question_of_a_decision_counts(labelled: Labelled) -> None:
    decided = labelled.decide("cat=0.8", ref="r")
    labelled.feedback(decided["id"], "dog")
    bulk(labelled, [line("r", "dog"), line("r", "cat")])
    assert given(labelled, decided["id"]) == {"q": "cat"}
    assert labelled.get("/v1/calibration?question=q")["labels"] == 1


def test_two_requests_at_once_for_the_same_decisions_count_each_label_once(
    labelled: Labelled,
) -> None:
    for number in range(20):
        labelled.decide(f"cat=0.8; {number}", ref=str(number))
    app = labelled.client.application

    def send(label: str) -> Any:
        lines = [line(str(number), label) for number in range(20)]
        return app.test_client().post(PATH, json={"labels": lines}).get_json()["taken"]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(send, ["cat", "dog"] * 10)) == [20] * 20
    assert labelled.get("/v1/calibration?question=q")["labels"] == 20


def test_a_value_that_was_not_kept_cannot_be_labelled(labelled: Labelled) -> None:
    labelled.decide('value="Rome", 0.9', CITY, privacy="strict", ref="r")
    (error,) = bulk(labelled, [line("r", "Rome")])["errors"]
    assert "privacy: strict" in error["message"]


def test_what_other_projects_have_looks_like_what_nobody_has(start: Start) -> None:
    app = start(obeying)
    keys = app.extensions["svc"].keys
    texts = {only: keys.create(str(only), 600, only).text for only in (None, "mine")}

    def post(path: str, only: str | None, body: Json) -> Any:
        client: FlaskClient = app.test_client()
        return client.post(path, json=body, headers={"Authorization": f"Bearer {texts[only]}"})

    body = {"state": "cat=0.8", "questions": {"q": ANIMAL}, "project": "theirs", "ref": "r"}
    theirs = post("/v1/decide", None, body).get_json()["id"]
    lines = [line("r"), line("none"), *({"id": one, "labels": {"q": 7}} for one in (theirs, "x"))]
    answer = post(PATH, "mine", {"labels": lines}).get_json()
    assert answer["taken"] == 0
    assert {one["message"] for one in answer["errors"]} == {"there is no such decision"}
    forbidden = post(PATH, "mine", {"labels": lines, "project": "theirs"})
    assert forbidden.status_code == 403
    assert post(PATH, None, {"labels": lines[:1], "project": "theirs"}).get_json()["taken"] == 1


def test_so_many_long_questions_are_labelled_at_once(labelled: Labelled) -> None:
    body = {"type": "noul", "instructions": ""}
    for number in range(300):
        long = {**body, "instructions": f"Is it? {number} {'x' * 99_900}"}
        labelled.decide("yes=0.9", long, ref=str(number))
    answer = bulk(labelled, [line(str(number), label=True) for number in range(300)])
    assert 150 <= answer["taken"] < 300
    assert len(answer["errors"]) == 300 - answer["taken"]
    assert "too large to be read at once" in answer["errors"][0]["message"]
