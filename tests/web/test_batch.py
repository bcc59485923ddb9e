"""Jobs as their callers meet them; who answers their rows is in `tests/bulk`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from svc import limits
from svc.app import create_app
from svc.store import (
    ApiKeys,
    JobRow,
    JobStatus,
    KeptAnswer,
    KeptAnswers,
    ProjectSizes,
    StorageError,
)
from tests.full_disk import largest_file
from tests.store.records import record
from tests.web.conftest import Start
from tests.web.models import ANIMAL, decision
from tests.web.shape import assert_error

KEY = {"SVC_MASTER_KEY": "master"}
QUESTIONS = {"animal": ANIMAL}


def rows_of(count: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"id": f"r{n}", "state": f"Cat {n}.", **fields} for n in range(1, count + 1)]


def submitted(client: FlaskClient, rows: Any = None, **fields: Any) -> TestResponse:
    body = {"questions": QUESTIONS, "rows": rows_of(3) if rows is None else rows, **fields}
    return client.post("/v1/batch", json=body)


def as_lines(first: Any, rows: list[Any]) -> bytes:
    return b"\n".join(json.dumps(one).encode() for one in [first, *rows])


def spooled(app: Flask) -> list[str]:
    folder: Path = app.extensions["svc"].spool.folder
    return sorted(path.name for path in folder.glob("job_*"))


@pytest.fixture
def app(start: Start) -> Flask:
    return start(**KEY)


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


def test_a_job_is_taken_in_and_shown(app: Flask, client: FlaskClient) -> None:
    answer = submitted(client, project="shop", expires_after_hours=2)
    job = answer.get_json()
    assert answer.status_code == 202
    assert (job["status"], job["rows"], job["answered"], job["project"]) == (
        "waiting",
        3,
        0,
        "shop",
    )
    assert job["expires_at"] - job["created_at"] == 2 * 3_600_000
    assert client.get(f"/v1/batch/{job['id']}").get_json() == job
    assert spooled(app) == [job["id"]]


def test_json_lines_and_one_object_are_the_same_job(app: Flask, client: FlaskClient) -> None:
    rows = [{"id": "a", "state": {"n": 1.10}}, {"id": "b", "state": None, "tags": {"x": "y"}}]
    for media in ("application/x-ndjson", "application/jsonl"):
        sent = as_lines({"questions": QUESTIONS, "mode": "verbal"}, rows)
        lines = client.post("/v1/batch", data=sent + b"\n\n", content_type=media)
        whole = submitted(client, rows, mode="verbal")
        assert (lines.status_code, whole.status_code) == (202, 202)
        files = [app.extensions["svc"].spool.opened(one.get_json()["id"]) for one in (lines, whole)]
        assert [json.loads(file.request) for file in files] == [
            {"questions": QUESTIONS, "mode": "verbal"}
        ] * 2
        texts = [file.rows(lambda _: True) for file in files]
        assert [[json.loads(text) for text in found[1]] for found in texts if found] == [rows] * 2
        for file in files:
            file.close()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "rows: must be a list of 1 to 100,000 objects"),
        ({}, "rows: must be a list of 1 to 100,000 objects"),
        (["x"], "rows.1: must be an object"),
        ([{"state": "x"}], "rows.1.id: is required"),
        ([{"id": "a"}], "rows.1.state: is required"),
        ([{"id": "", "state": "x"}], "rows.1.id: must be text of 1 to 128 characters"),
        ([{"id": 1, "state": "x"}], "rows.1.id: must be text of 1 to 128 characters"),
        ([{"id": "a", "state": "x", "more": 1}], 'rows.1: unknown field "more"; allowed: id,'),
        ([{"id": "a", "state": "x", "ref": ""}], "rows.1.ref: must have 1 to 128 characters"),
        ([{"id": "a", "state": "x", "tags": []}], "rows.1.tags: must be an object"),
        ([{"id": "a", "state": "x" * 150_001}], "rows.1.state: has 150,001 characters"),
        ([{"id": "a", "state": ["x" * 150_000]}], "rows.1.state: has 150,004 characters"),
        ([{"id": "a", "state": "x" * 2_000_000}], "rows.1: has 2,000,021 characters as JSON, at"),
        (
            [{"id": "a", "state": "x"}, {"id": "b", "state": "x"}, {"id": "a", "state": "y"}],
            "rows.3.id: is the id of row 1 too",
        ),
    ],
)
def test_every_row_is_checked_before_the_job_is_taken(
    app: Flask, client: FlaskClient, rows: Any, words: str
) -> None:
    message = assert_error(submitted(client, rows), 422, "invalid_request")
    assert words in message
    assert spooled(app) == [] and client.get("/v1/batch").get_json()["jobs"] == []


def test_blanks_between_the_parts_of_a_row_take_no_memory(app: Flask, client: FlaskClient) -> None:
    padded = '{"id": "a", "state": "x"' + " " * 1_000_000 + "}"
    lines = '{"questions": {"q": {"type": "noul", "instructions": "?"}}}\n' + padded
    answer = client.post("/v1/batch", data=lines, content_type="application/jsonl")
    file = app.extensions["svc"].spool.folder / answer.get_json()["id"]
    assert file.stat().st_size < 2_000


def test_a_line_that_no_row_can_have_is_not_parsed(client: FlaskClient) -> None:
    line = '{"id": "a", "state": [' + "0," * 450_000 + "0" * 1_000_000 + "]}"
    lines = '{"questions": {"q": {"type": "noul", "instructions": "?"}}}\n' + line
    answer = client.post("/v1/batch", data=lines, content_type="application/jsonl")
    message = assert_error(answer, 422, "invalid_request")
    assert f"rows.1: has {len(line):,} bytes as JSON, at most 1,900,000 are allowed" in message


def test_only_the_first_rows_that_are_wrong_are_told(client: FlaskClient) -> None:
    message = assert_error(submitted(client, [{"id": "a"}] * 100_000), 422, "invalid_request")
    assert message.count("is required") == 5


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"state": "x"}, "state: unknown field"),
        ({"explain": True}, "explain: unknown field"),
        ({"images": []}, "images: unknown field"),
        ({"expires_after_hours": 169}, "expires_after_hours: must be a whole number from 1 to 168"),
        ({"debias": "no"}, 'debias: must be true, false or "auto"'),
        (
            {
                "privacy": "strict",
                "questions": {"who": {"type": "text", "instructions": "Who called?"}},
            },
            "privacy: strict cannot be used with questions whose value is read from the input",
        ),
        (
            {"questions": {"a": {**ANIMAL, "when": {"plan": "pro"}}}},
            'rows.1.state: must be an object: when or rules of question "a" look at its fields',
        ),
    ],
)
def test_what_all_rows_share_is_checked_too(
    client: FlaskClient, fields: Mapping[str, Any], words: str
) -> None:
    assert words in assert_error(submitted(client, **fields), 422, "invalid_request")


@pytest.mark.parametrize(
    ("sent", "status", "words"),
    [
        (b"", 400, "the first line is empty"),
        (b"[]\n{}", 400, "the body must be a JSON object"),
        (as_lines({"questions": QUESTIONS, "rows": []}, rows_of(1)), 422, "rows: with JSON lines"),
        (as_lines({"questions": QUESTIONS}, []), 422, "rows: must be a list of 1 to 100,000"),
        (as_lines({"questions": QUESTIONS}, []) + b"\n{oops", 422, "rows.1: the line is not JSON"),
        (b"\n" * 200_001, 422, "the body has more than 200,000 line breaks"),
    ],
)
def test_lines_that_are_no_job_are_refused(
    client: FlaskClient, sent: bytes, status: int, words: str
) -> None:
    answer = client.post("/v1/batch", data=sent, content_type="application/x-ndjson")
    kind = "invalid_json" if status == 400 else "invalid_request"
    assert words in assert_error(answer, status, kind)


def test_as_many_rows_as_allowed_fit_in_one_object(client: FlaskClient) -> None:
    rows = [{"id": str(n), "state": "x", "ref": str(n)} for n in range(limits.JOB_ROWS)]
    assert submitted(client, rows).status_code == 202
    assert submitted(client, [*rows, {"id": "more", "state": "x"}]).status_code == 422


def test_without_a_master_key_a_job_is_refused_and_the_variable_named(start: Start) -> None:
    message = assert_error(submitted(start().test_client()), 422, "invalid_request")
    assert "SVC_MASTER_KEY" in message


def test_a_repeat_of_a_lost_answer_is_the_same_job(app: Flask, client: FlaskClient) -> None:
    def send(rows: Any) -> TestResponse:
        body = json.dumps({"questions": QUESTIONS, "rows": rows})
        return client.post("/v1/batch", data=body, headers={"Idempotency-Key": "k"})

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(send, [rows_of(3)] * 4))
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.get_json()["id"] for answer in answers}) == 1
    assert sorted("Idempotent-Replayed" in answer.headers for answer in answers) == [
        *(False, True, True, True)
    ]
    assert len(spooled(app)) == 1
    assert_error(send(rows_of(4)), 422, "invalid_request")


class Forgetful:
    """Finds kept answers, and can keep none, as when the server is killed before it does."""

    def __init__(self, kept: KeptAnswers) -> None:
        self.find = kept.find

    def keep(self, answer: KeptAnswer) -> None:
        raise StorageError("killed")


def test_a_server_that_is_killed_after_it_took_a_job_knows_its_repeat(app: Flask) -> None:
    services = app.extensions["svc"]
    forgetful: Any = Forgetful(services.kept)
    killed = create_app(replace(services, kept=forgetful)).test_client()
    body = json.dumps({"questions": QUESTIONS, "rows": rows_of(3)})
    first, again = (
        client.post("/v1/batch", data=body, headers={"Idempotency-Key": "k"})
        for client in (killed, app.test_client())
    )
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.get_json() == again.get_json()


def test_a_full_disk_leaves_no_part_of_a_job(app: Flask, client: FlaskClient) -> None:
    submitted(client)
    with largest_file(500_000):
        answer = submitted(client, rows_of(5, state="x" * 149_000))
    assert_error(answer, 500, "internal_error")
    assert len(spooled(app)) == 1
    assert len(client.get("/v1/batch").get_json()["jobs"]) == 1


def test_a_job_is_cancelled_once_and_its_inputs_are_gone(app: Flask, client: FlaskClient) -> None:
    job = submitted(client).get_json()
    for _ in range(2):
        answer = client.post(f"/v1/batch/{job['id']}/cancel")
        assert (answer.status_code, answer.get_json()["status"]) == (200, "cancelled")
    assert spooled(app) == []


def test_a_job_that_is_done_stays_done(app: Flask, client: FlaskClient) -> None:
    job_id = submitted(client).get_json()["id"]
    app.extensions["svc"].jobs.end(job_id, JobStatus.DONE)
    answer = client.post(f"/v1/batch/{job_id}/cancel")
    assert (answer.status_code, answer.get_json()["status"]) == (200, "done")


def test_results_are_lines_in_order_as_far_as_they_are_there(
    app: Flask, client: FlaskClient
) -> None:
    services = app.extensions["svc"]
    job_id = submitted(client).get_json()["id"]
    seq = services.jobs.get(job_id).seq
    given = client.post("/v1/decide", json=decision(ref="r", tags={"a": "b"})).get_json()
    place = f"/v1/batch/{job_id}/results"
    none = client.get(place)
    assert (none.status_code, none.text, none.headers["x-next-after"]) == (200, "", "0")
    services.decisions.add(record(ref="r", tags={"a": "b"}, debiased=True), JobRow(seq, 1, "r1"))
    services.jobs.fail(JobRow(seq, 2, "r2"), '{"type":"model_error","message":"No."}')
    page = client.get(place)
    assert page.mimetype == "application/x-ndjson"
    first, second = map(json.loads, page.text.splitlines())
    assert (first["row"], first["id"]) == (1, "r1")
    assert list(first["decision"]) == list(given)
    assert (first["decision"]["tags"], first["decision"]["debiased"]) == ({"a": "b"}, True)
    assert second == {"row": 2, "id": "r2", "error": {"type": "model_error", "message": "No."}}
    assert page.headers["x-next-after"] == "2"
    services.decisions.add(record(), JobRow(seq, 3, "r3"))
    last = client.get(f"{place}?after=2")
    assert json.loads(last.text)["id"] == "r3" and "x-next-after" not in last.headers
    assert "ref" not in json.loads(last.text)["decision"]
    assert client.get(f"{place}?after=-1").status_code == 422


def test_jobs_are_listed_a_page_at_a_time(client: FlaskClient) -> None:
    made = [submitted(client).get_json()["id"] for _ in range(3)]
    page = client.get("/v1/batch?limit=2").get_json()
    assert [job["id"] for job in page["jobs"]] == [made[2], made[1]]
    rest = client.get(f"/v1/batch?limit=2&before={page['next_before']}").get_json()
    assert ([job["id"] for job in rest["jobs"]], rest["next_before"]) == ([made[0]], None)
    assert client.get("/v1/batch?before=job_x").status_code == 404


def test_a_key_has_only_so_many_jobs_that_have_not_ended(app: Flask, client: FlaskClient) -> None:
    made = [submitted(client).get_json()["id"] for _ in range(limits.JOBS_OPEN)]
    answer = submitted(client)
    assert "20 jobs have not ended yet" in assert_error(answer, 429, "rate_limited")
    assert answer.headers["Retry-After"] == "60"
    assert len(spooled(app)) == limits.JOBS_OPEN
    client.post(f"/v1/batch/{made[0]}/cancel")
    assert submitted(client).status_code == 202


def test_a_job_that_is_one_too_many_is_refused_before_its_rows_are_sealed(
    app: Flask, client: FlaskClient
) -> None:
    for _ in range(limits.JOBS_OPEN):
        submitted(client)
    spool = app.extensions["svc"].spool
    before = spool.folder.stat().st_mtime_ns
    assert submitted(client).status_code == 429
    assert spool.folder.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"model": "@nowhere/m"}, "provider 'nowhere' is not configured"),
        ({"model": {"council": ["@scripted/m", "@nowhere/m"]}}, "provider 'nowhere'"),
        ({"model": "@scripted/m\n"}, "model: an id holds printable characters only"),
    ],
)
def test_a_job_whose_models_no_row_could_be_asked_is_refused_as_a_request_is(
    app: Flask, client: FlaskClient, fields: Mapping[str, Any], words: str
) -> None:
    message = assert_error(submitted(client, **fields), 422, "invalid_request")
    live = client.post("/v1/decide", json=decision(**fields)).get_json()["error"]
    assert words in message and message == live["message"]
    assert spooled(app) == [] and client.get("/v1/batch").get_json()["jobs"] == []


def test_a_job_of_a_full_project_is_refused(app: Flask, client: FlaskClient) -> None:
    ProjectSizes(app.extensions["svc"].database).set("shop", 10)
    message = assert_error(submitted(client, project="shop"), 422, "invalid_request")
    assert "as many bytes as it may" in message
    assert submitted(client).status_code == 202


def test_a_job_of_another_project_is_not_there(app: Flask, client: FlaskClient) -> None:
    keys = ApiKeys(app.extensions["svc"].database)
    own, other = (keys.create(name, 600, name) for name in ("shop", "bank"))
    assert own is not None and other is not None
    mine, theirs = ({"Authorization": f"Bearer {key.text}"} for key in (own, other))
    body = {"questions": QUESTIONS, "rows": rows_of(1)}
    job = client.post("/v1/batch", json=body, headers=mine).get_json()
    assert job["project"] == "shop"
    place = f"/v1/batch/{job['id']}"
    for method, path in (("GET", place), ("GET", f"{place}/results"), ("POST", f"{place}/cancel")):
        answer = client.open(path, method=method, headers=theirs)
        assert_error(answer, 404, "not_found")
    assert client.get(place, headers=mine).get_json()["status"] == "waiting"
    asked = client.post("/v1/batch", json={**body, "project": "bank"}, headers=mine)
    assert_error(asked, 403, "forbidden")
