"""What callers send to the routes of jobs and forecasts, where the server takes jobs."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.test import TestResponse

from svc.app import create_app
from svc.bootstrap import build
from svc.demo import DemoServer
from svc.settings import load
from tests.contract.test_properties import WHOLE
from tests.fuzz.inputs import FUZZED, JSON, TEXT, as_json, damaged, damaged_bytes

LINES = "application/x-ndjson"
# A job and a forecast have no state of their own and no images, and explain nothing.
SHARED = {key: WHOLE[key] for key in WHOLE if key not in ("state", "images", "explain")}
JOB = {**SHARED, "expires_after_hours": 2, "budget_usd": 1.5}
ROWS = [
    {"id": "a", "state": WHOLE["state"], "ref": "r", "tags": {"k": "v"}},
    {"id": "b", "state": {"plan": "team"}},
]
WHOLE_JOB = {**JOB, "rows": ROWS}
FORECAST = {**SHARED, "sample": [row["state"] for row in ROWS], "rows": 40}
# The same in batches of providers, which no budget counts.
JOBS = (WHOLE_JOB, {**SHARED, "rows": ROWS, "batch": "provider"})
FORECASTS = (FORECAST, {**FORECAST, "batch": "provider"})
ERRORS = {400: "invalid_json", 404: "not_found", 413: "too_large", 422: "invalid_request"}
# A model that the demonstration does not have.
STRANGE = 502


@pytest.fixture(scope="module")
def sender(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """A client of an application that takes jobs, and has nobody who answers their rows."""
    with DemoServer() as demo:
        variables = {
            "SVC_DB": str(tmp_path_factory.mktemp("fuzz") / "svc.db"),
            "SVC_MODEL": "@demo/lexical",
            "SVC_PROVIDER_DEMO_URL": demo.url,
            "SVC_PROVIDER_DEMO_BATCH": "1",
            "SVC_MASTER_KEY": "m",
        }
        services = build(load(variables))
        yield create_app(services).test_client()
        services.close()


@pytest.fixture(scope="module")
def job_id(sender: FlaskClient) -> str:
    """A job that was taken."""
    taken = sender.post("/v1/batch", data=as_json(WHOLE_JOB))
    assert taken.status_code == 202, taken.get_json()
    return str(taken.get_json()["id"])


def assert_taken_or_refused(response: TestResponse, taken: int = 200) -> None:
    if response.status_code == taken:
        return
    error = response.get_json()["error"]
    assert set(error) == {"type", "message"}
    if response.status_code != STRANGE:
        assert error["type"] == ERRORS[response.status_code]


def assert_job(sender: FlaskClient, response: TestResponse) -> None:
    """Refused, or taken; then it is cancelled, since there may be so many only."""
    assert_taken_or_refused(response, 202)
    if response.status_code == 202:
        cancelled = sender.post(f"/v1/batch/{response.get_json()['id']}/cancel")
        assert cancelled.get_json()["status"] == "cancelled"


def bodies(good: Sequence[Any]) -> st.SearchStrategy[bytes]:
    """Any JSON, and these damaged as JSON or as bytes."""
    ways = [way for one in good for way in (damaged_bytes(one), damaged(one).map(as_json))]
    return st.one_of(JSON.map(as_json), *ways)


@FUZZED
@given(data=bodies(JOBS))
def test_any_job_is_taken_or_refused(sender: FlaskClient, data: bytes) -> None:
    assert_job(sender, sender.post("/v1/batch", data=data))


@FUZZED
@given(data=st.data())
def test_any_lines_of_a_job_are_taken_or_refused(sender: FlaskClient, data: st.DataObject) -> None:
    first = data.draw(st.one_of(damaged_bytes(JOB), st.just(as_json(JOB))))
    good = [damaged_bytes(row) for row in ROWS]
    rows = data.draw(st.lists(st.one_of(*good, st.just(b""), st.binary(max_size=20)), max_size=4))
    body = b"\n".join([first, *rows])
    assert_job(sender, sender.post("/v1/batch", data=body, content_type=LINES))


@FUZZED
@given(data=bodies(FORECASTS))
def test_any_forecast_is_said_or_refused(sender: FlaskClient, data: bytes) -> None:
    assert_taken_or_refused(sender.post("/v1/forecast", data=data))


@FUZZED
@given(
    part=st.one_of(st.just(""), TEXT, st.just("job_" + "0" * 24)),
    of=st.sampled_from(["", "/results", "/cancel"]),
    method=st.sampled_from(["GET", "POST", "HEAD"]),
    query=st.lists(
        st.tuples(
            st.sampled_from(["project", "limit", "before", "after", "x"]),
            st.one_of(TEXT, st.integers(-(10**16), 10**16).map(str), st.just("job_" + "0" * 24)),
        ),
        max_size=3,
    ),
)
def test_any_look_at_jobs_is_answered_or_refused(
    sender: FlaskClient,
    job_id: str,
    part: str,
    of: str,
    method: str,
    query: list[tuple[str, str]],
) -> None:
    """An empty part stands for the job that there is."""
    path = urllib.parse.quote(part.encode("utf-8", "surrogatepass"), safe="") or job_id
    response = sender.open(
        f"/v1/batch/{path}{of}?{urllib.parse.urlencode(query)}", method=method, data=b"{}"
    )
    assert response.status_code in (200, 308, 404, 405, 422)
    listed = sender.get(f"/v1/batch?{urllib.parse.urlencode(query)}")
    assert_taken_or_refused(listed)


def test_what_is_damaged_here_is_good(sender: FlaskClient, job_id: str) -> None:
    assert job_id.startswith("job_")
    lines = b"\n".join(map(as_json, [JOB, *ROWS]))
    sent = [sender.post("/v1/batch", data=lines, content_type=LINES)]
    sent += [sender.post("/v1/batch", data=as_json(good)) for good in JOBS]
    for taken in sent:
        assert taken.status_code == 202
        assert_job(sender, taken)
    for good in FORECASTS:
        assert sender.post("/v1/forecast", data=json.dumps(good)).status_code == 200
