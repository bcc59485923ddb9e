"""Requests with an `Idempotency-Key`, sentence by sentence of docs/idempotency.md."""

from __future__ import annotations

import gzip
import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from svc.app import create_app
from svc.demo import DemoServer
from svc.store import ApiKeys, ProjectSizes
from tests.scripted import Behaviour, Json, Reply, error
from tests.web.conftest import Start
from tests.web.models import PREFERS_CATS, decision, reply_to

WAIT_S = 20.0
CRITERIA = {"state": "Cat.", "questions": {"q": {"type": "noul", "instructions": "A cat?"}}}
LISTED = {
    "model": "any",
    "input": "Cat.",
    "questions": [{"type": "predicate", "instructions": "A cat?"}],
}
MAPPED = {"model": "any", "input": "Cat.", "questions": CRITERIA["questions"]}
NAMED = {
    "state": "Ada called.",
    "questions": {"who": {"type": "text", "instructions": "Who called?"}},
}


class Gate:
    """A provider whose first call waits until the test lets it go on, and fails where told to."""

    def __init__(self, fails: bool = False) -> None:
        self.asked, self.go = threading.Event(), threading.Event()
        self._fails = fails

    def __call__(self, body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        if n:
            return Reply(reply_to(PREFERS_CATS, body))
        self.asked.set()
        assert self.go.wait(WAIT_S)
        if self._fails:
            return Reply(error("no such model"), 400)
        return Reply(reply_to(PREFERS_CATS, body))


def send(
    client: FlaskClient, body: Any = None, key: str = "k", path: str = "/v1/decide", **headers: str
) -> TestResponse:
    sent = decision() if body is None else body
    # Flask's own JSON would sort the keys.
    return client.post(path, data=json.dumps(sent), headers={"Idempotency-Key": key, **headers})


def first_of(app: Flask) -> tuple[FlaskClient, TestResponse]:
    client = app.test_client()
    first = send(client)
    assert first.status_code == 200
    return client, first


def keys(app: Flask, count: int) -> list[str]:
    """The texts of new API keys."""
    made = [ApiKeys(app.extensions["svc"].database).create(f"k{n}", 600) for n in range(count)]
    return [one.text for one in made if one is not None]


def decisions(client: FlaskClient) -> int:
    return len(client.get("/v1/audit").get_json()["entries"])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/decide", decision()),
        ("/v1/systemone", CRITERIA),
        ("/v1/decisions", CRITERIA),
        ("/v1/decisions", LISTED),
        ("/v1/decisions", MAPPED),
        ("/v1beta/decisions", MAPPED),
    ],
)
def test_a_repeat_gets_the_answer_of_the_first_and_nothing_is_done_again(
    start: Start, path: str, body: Json
) -> None:
    client = start().test_client()
    first, again = send(client, body, path=path), send(client, body, path=path)
    assert (first.status_code, again.status_code) == (200, 200), first.text
    assert again.data == first.data
    assert again.mimetype == first.mimetype
    assert decisions(client) == 1


def test_a_repeat_says_that_it_is_one_and_has_a_request_id_of_its_own(start: Start) -> None:
    client, first = first_of(start())
    again = send(client)
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.headers["x-request-id"] != first.headers["x-request-id"]


def test_a_repeat_is_no_decision_in_the_metrics(start: Start) -> None:
    client, _ = first_of(start())
    send(client)
    assert "svc_decisions_total 1.0" in client.get("/metrics").text


def test_without_a_key_nothing_is_repeated_or_kept(start: Start, tmp_path: Path) -> None:
    client = start().test_client()
    first, again = (client.post("/v1/decide", json=decision()).get_json() for _ in range(2))
    assert first["id"] != again["id"]
    assert kept(tmp_path) == []


def test_labels_are_repeated_alone_and_in_bulk(start: Start) -> None:
    client, first = first_of(start())
    label = {"decision_id": first.get_json()["id"], "question": "animal", "label": "cat"}
    told, again = (send(client, label, path="/v1/feedback") for _ in range(2))
    assert told.get_json()["labels"] == 1
    assert (again.data, again.headers["Idempotent-Replayed"]) == (told.data, "true")
    line = {"labels": [{"id": label["decision_id"], "labels": {"animal": "dog"}}]}
    told, again = (send(client, line, path="/v1/feedback/bulk") for _ in range(2))
    assert told.get_json() == {"lines": 1, "taken": 1, "errors": []}
    assert (again.data, again.headers["Idempotent-Replayed"]) == (told.data, "true")


def test_what_is_kept_of_a_label_says_of_which_decision_it_tells(
    start: Start, tmp_path: Path
) -> None:
    """So that it is not kept where the decision is forgotten before it could be."""
    client, first = first_of(start())
    id_ = first.get_json()["id"]
    label = {"decision_id": id_, "question": "animal", "label": "cat"}
    assert send(client, label, path="/v1/feedback").status_code == 200
    assert [decision_id for _, _, _, decision_id in kept(tmp_path)] == [id_, id_]


def test_labels_of_which_some_were_refused_are_taken_again(start: Start, tmp_path: Path) -> None:
    client = start().test_client()
    line = {"labels": [{"ref": "nothing has it", "labels": {"animal": "dog"}}]}
    told, again = (send(client, line, path="/v1/feedback/bulk") for _ in range(2))
    assert told.get_json()["errors"] and told.data == again.data
    assert "Idempotent-Replayed" not in again.headers
    assert kept(tmp_path) == []


@pytest.mark.parametrize(
    "other",
    [
        decision("The dog sat on the mat."),
        # Also where it means the same.
        {**dict(reversed(decision().items()))},
    ],
)
def test_the_same_key_with_another_body_is_refused(start: Start, other: Json) -> None:
    client, _ = first_of(start())
    refused = send(client, other)
    assert refused.status_code == 422
    told = refused.get_json()["error"]
    assert told["type"] == "invalid_request"
    assert "Idempotency-Key" in told["message"] and "another body" in told["message"]


def test_the_same_key_with_another_query_is_refused(start: Start) -> None:
    client, first = first_of(start())
    line = {"labels": [{"id": first.get_json()["id"], "labels": {"animal": "dog"}}]}
    assert send(client, line, path="/v1/feedback/bulk").status_code == 200
    assert send(client, line, path="/v1/feedback/bulk?atomic=true").status_code == 422


def test_a_body_is_compared_as_it_was_before_it_was_compressed(start: Start) -> None:
    client = start().test_client()
    plain = json.dumps(decision()).encode()
    headers = {"Idempotency-Key": "k", "Content-Type": "application/json"}
    first = client.post("/v1/decide", data=plain, headers=headers)
    packed = {**headers, "Content-Encoding": "gzip"}
    again = client.post("/v1/decide", data=gzip.compress(plain), headers=packed)
    assert (again.status_code, again.data) == (200, first.data)


def test_the_same_key_on_another_route_is_another_key(start: Start) -> None:
    client = start().test_client()
    first, other = send(client, CRITERIA), send(client, CRITERIA, path="/v1/systemone")
    assert (first.status_code, other.status_code) == (200, 200)
    assert first.get_json()["id"] != other.get_json()["id"]


def test_the_same_key_of_another_caller_is_another_key(start: Start) -> None:
    app = start()
    ada, bob = keys(app, 2)
    client = app.test_client()
    first, again = (send(client, Authorization=f"Bearer {ada}").get_json()["id"] for _ in range(2))
    other = send(client, decision("Something else."), Authorization=f"Bearer {bob}")
    assert other.status_code == 200
    assert first == again != other.get_json()["id"]


@pytest.mark.parametrize("key", ["", "x" * 256, "caf\u00e9", "a\tb"])
def test_a_key_that_is_not_valid_is_refused(start: Start, key: str) -> None:
    client = start().test_client()
    refused = send(client, key=key)
    assert refused.status_code == 422
    assert "1 to 255 printable ASCII characters" in refused.get_json()["error"]["message"]
    assert decisions(client) == 0


@pytest.mark.parametrize("key", ["x", "x" * 255, '"a quoted one"', "8e03978e-40d5-43dd-bc93"])
def test_any_other_key_is_taken_as_it_is(start: Start, key: str) -> None:
    client = start().test_client()
    first, again = send(client, key=key), send(client, key=key)
    assert first.data == again.data


def test_a_refusal_of_a_key_has_the_shape_of_the_dialect(start: Start) -> None:
    refused = send(start().test_client(), LISTED, key="", path="/v1/decisions")
    assert refused.status_code == 400
    assert "Idempotency-Key" in refused.get_json()["error"]["message"]
    assert "param" in refused.get_json()["error"]


@pytest.mark.parametrize("status", [400, 500])
def test_a_failure_is_not_kept(start: Start, status: int) -> None:
    def handle(body: Json, n: int, headers: Mapping[str, str]) -> Behaviour:
        fails = not failed.is_set()
        return Reply(error("no"), status) if fails else Reply(reply_to(PREFERS_CATS, body))

    failed = threading.Event()
    client = start(handle, deadline_s=2.0).test_client()
    assert send(client).status_code >= 500
    failed.set()
    again = send(client)
    assert again.status_code == 200
    assert "Idempotent-Replayed" not in again.headers


def test_a_bad_request_does_not_use_the_key_up(start: Start) -> None:
    client = start().test_client()
    assert send(client, {"state": "x"}).status_code == 422
    assert send(client).status_code == 200


def test_two_at_once_are_carried_out_once(start: Start) -> None:
    gate = Gate()
    client = start(gate).test_client
    with ThreadPoolExecutor(2) as callers:
        first = callers.submit(send, client())
        assert gate.asked.wait(WAIT_S)
        second = callers.submit(send, client())
        gate.go.set()
        answers = [one.result(WAIT_S) for one in (first, second)]
    assert answers[0].data == answers[1].data
    assert [one.headers.get("Idempotent-Replayed") for one in answers] == [None, "true"]
    assert decisions(client()) == 1


def test_the_second_does_the_work_where_the_first_fails(start: Start) -> None:
    gate = Gate(fails=True)
    client = start(gate).test_client
    body = decision(debias=False, mode="logprobs")
    with ThreadPoolExecutor(2) as callers:
        first = callers.submit(send, client(), body)
        assert gate.asked.wait(WAIT_S)
        second = callers.submit(send, client(), body)
        gate.go.set()
        assert first.result(WAIT_S).status_code == 502
        answer = second.result(WAIT_S)
    assert (answer.status_code, answer.headers.get("Idempotent-Replayed")) == (200, None)


def test_the_wait_for_the_first_ends_at_the_deadline(start: Start) -> None:
    gate = Gate()
    app = start(gate)
    with ThreadPoolExecutor(2) as callers:
        first = callers.submit(send, app.test_client())
        assert gate.asked.wait(WAIT_S)
        shorter = start_again(app, deadline_s=0.2)
        assert send(shorter.test_client()).status_code == 504
        gate.go.set()
        assert first.result(WAIT_S).status_code == 200


def start_again(app: Flask, deadline_s: float) -> Flask:
    """Another application of the same services."""
    return create_app(app.extensions["svc"], deadline_s)


def test_other_keys_do_not_wait(start: Start) -> None:
    gate = Gate()
    client = start(gate).test_client
    with ThreadPoolExecutor(1) as callers:
        first = callers.submit(send, client())
        assert gate.asked.wait(WAIT_S)
        assert send(client(), decision("Another cat."), key="other").status_code == 200
        gate.go.set()
        assert first.result(WAIT_S).status_code == 200


KEPT = "SELECT place, sent, answer, decision_id FROM kept_answers"


def kept(folder: Path) -> list[Any]:
    connection = sqlite3.connect(folder / "svc.db")
    rows = connection.execute(KEPT).fetchall()
    connection.close()
    return rows


def test_neither_the_key_nor_what_was_sent_is_kept(start: Start, tmp_path: Path) -> None:
    send(start().test_client(), decision("The tungsten cat."), key="my-own-key")
    ((place, sent, answer, decision_id),) = kept(tmp_path)
    assert (len(place), len(sent)) == (32, 32)
    assert answer is None and decision_id is not None
    files = [path.read_bytes() for path in tmp_path.iterdir()]
    assert not any(b"tungsten" in content or b"my-own-key" in content for content in files)


@pytest.fixture
def reading(start: Start) -> Iterator[FlaskClient]:
    """A server whose model reads values from the input."""
    with DemoServer() as demo:
        variables = {"SVC_MODEL": "@demo/lexical", "SVC_PROVIDER_DEMO_URL": demo.url}
        yield start(**variables).test_client()


def test_extracted_values_are_not_kept_with_strict_privacy_and_the_repeat_is_refused(
    reading: FlaskClient, tmp_path: Path
) -> None:
    first, again = (send(reading, {**NAMED, "privacy": "strict"}) for _ in range(2))
    assert first.status_code == 200, first.text
    assert again.status_code == 422
    told = again.get_json()["error"]["message"]
    assert first.get_json()["id"] in told
    assert "not kept with privacy: strict" in told and "new key" in told
    ((*_, answer, decision_id),) = kept(tmp_path)
    assert (answer, decision_id) == (None, first.get_json()["id"])
    assert decisions(reading) == 1


@pytest.mark.parametrize("path", ["/v1/decide", "/v1/systemone"])
def test_names_of_fields_are_not_kept_with_strict_privacy_and_the_repeat_is_refused(
    start: Start, tmp_path: Path, path: str
) -> None:
    client = start().test_client()
    body = decision({"anna": "The cat.", "ben": "A cat."}, privacy="strict", explain=True)
    first, again = (send(client, body, path=path) for _ in range(2))
    assert "anna" in first.text
    assert again.status_code == 422
    assert "not kept with privacy: strict" in again.get_json()["error"]["message"]
    assert not any(b"anna" in one.read_bytes() for one in tmp_path.iterdir() if one.is_file())


def test_with_strict_privacy_other_answers_are_kept(start: Start) -> None:
    client = start().test_client()
    first, again = (send(client, decision(privacy="strict")) for _ in range(2))
    assert (again.status_code, again.data) == (200, first.data)


def test_with_standard_privacy_extracted_values_are_kept(reading: FlaskClient) -> None:
    first, again = (send(reading, NAMED) for _ in range(2))
    assert first.get_json()["answers"]["who"]["type"] == "text"
    assert (again.status_code, again.data) == (200, first.data)


def test_an_answer_that_cannot_be_kept_is_still_given(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    app = start()
    database = app.extensions["svc"].database
    database.write(lambda connection: connection.execute(NOTHING_KEPT).rowcount)
    assert send(app.test_client(), CRITERIA, path="/v1/systemone").status_code == 200
    assert "could not be kept" in caplog.text


def test_the_repeat_of_a_decision_that_was_deleted_says_so(start: Start) -> None:
    app = start()
    client, first = first_of(app)
    database = app.extensions["svc"].database
    database.write(lambda connection: connection.execute("DELETE FROM decisions").rowcount)
    again = send(client)
    assert again.status_code == 422
    told = again.get_json()["error"]["message"]
    assert first.get_json()["id"] in told and "has been deleted since" in told


def test_a_decision_is_stored_with_what_is_kept_of_it_or_not_at_all(start: Start) -> None:
    app = start()
    client, database = app.test_client(), app.extensions["svc"].database
    database.write(lambda connection: connection.execute(NOTHING_KEPT).rowcount)
    assert send(client).status_code == 500
    assert decisions(client) == 0


def test_answers_are_kept_as_far_as_there_is_room_in_the_project(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    app = start()
    sizes = ProjectSizes(app.extensions["svc"].database)
    client = app.test_client()
    filled = []
    for key in ("first", "second"):
        assert send(client, CRITERIA, key, "/v1/systemone").status_code == 200
        sizes.set("default", 10_000)
        filled.append(sizes.all()[0].bytes)
    # What one more takes, of which the wording is stored already.
    one = filled[1] - filled[0]
    sizes.set("default", filled[1] + one - 100)
    assert send(client, CRITERIA, "another", "/v1/systemone").status_code == 200
    assert "could not be kept" in caplog.text and "svc project set" in caplog.text
    assert filled[1] < sizes.all()[0].bytes < filled[1] + one


NOTHING_KEPT = (
    "CREATE TRIGGER nothing_kept BEFORE INSERT ON kept_answers "
    "BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
)
