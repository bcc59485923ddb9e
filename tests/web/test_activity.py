"""`GET /v1/activity`."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from svc import limits
from tests.scripted import Reply, always
from tests.web.conftest import Start
from tests.web.labelled import Labelled, obeying

# A question that a rule answers, without any model.
RULED = {
    "type": "noul",
    "instructions": "Is it?",
    "rules": [{"if": {"vip": True}, "answer": True}],
}

# As many projects that had a decision today.
MANY_SUMS = """
WITH RECURSIVE many (number) AS (
    SELECT 1 UNION ALL SELECT number + 1 FROM many WHERE number < :count
)
INSERT INTO activity SELECT 86400, 'model', CAST(:now AS INTEGER) / 86400 * 86400,
    'p' || number, 'm', 1, 0, 0, 1, 0, 0.0, 0.0 FROM many
"""


@pytest.fixture
def labelled(start: Start) -> Labelled:
    return Labelled(start(obeying).test_client())


def test_an_hour_has_twelve_steps_and_the_last_one_is_now(labelled: Labelled) -> None:
    labelled.decide("cat=0.9")
    report = labelled.get("/v1/activity?last=hour")
    assert (report["project"], report["by"], report["span_s"]) == ("default", "model", 300)
    assert [step["decisions"] for step in report["steps"]] == [0] * 11 + [1]
    (model,) = report["names"]
    assert (model["decisions"], model["answers"], model["failed"]) == (1, 1, 0)
    assert model["latency_ms"] > 0


@pytest.mark.parametrize(
    ("last", "steps", "span_s"),
    [("day", 24, 3_600), ("week", 168, 3_600), ("month", 30, 86_400), ("year", 365, 86_400)],
)
def test_longer_times_have_longer_steps(
    labelled: Labelled, last: str, steps: int, span_s: int
) -> None:
    report = labelled.get(f"/v1/activity?last={last}&by=question")
    starts = [step["start"] for step in report["steps"]]
    assert len(starts) == steps
    assert {later - earlier for earlier, later in pairwise(starts)} == {1_000 * span_s}


def test_by_question_there_is_no_cost_of_its_own(labelled: Labelled) -> None:
    labelled.decide("cat=0.9")
    (question,) = labelled.get("/v1/activity?by=question")["names"]
    assert question["name"] == "q"
    assert (question["decisions"], question["cost_usd"], question["latency_ms"]) == (1, 0, None)


def test_a_report_that_would_read_too_many_sums_says_what_to_ask(
    start: Start, tmp_path: Path
) -> None:
    client = start(obeying).test_client()
    Labelled(client).decide("cat=0.9")
    with closing(sqlite3.connect(tmp_path / "svc.db")) as connection:
        connection.execute(MANY_SUMS, {"now": time.time(), "count": limits.ACTIVITY_SUMS})
        connection.commit()
    refused = client.get("/v1/activity?by=project&last=year")
    assert refused.status_code == 422
    message = refused.get_json()["error"]["message"]
    assert message.startswith("last: there are over 500,000 sums")
    assert "name a project, or go back less far" in message
    assert client.get("/v1/activity?by=project&last=hour").status_code == 200
    assert client.get("/v1/activity?by=project&last=year&project=default").status_code == 200


def test_by_project_all_are_told_apart(labelled: Labelled) -> None:
    labelled.decide("cat=0.9")
    report = labelled.get("/v1/activity?by=project")
    assert report["project"] is None
    assert [row["name"] for row in report["names"]] == ["default"]


def test_what_no_model_answered_is_shown(start: Start) -> None:
    client: FlaskClient = start(always(Reply({"error": {"message": "no"}}, 500))).test_client()
    body: dict[str, Any] = {
        "state": "x",
        "questions": {"q": {"type": "noul", "instructions": "Is it?"}},
    }
    assert client.post("/v1/decide", json=body).status_code == 502
    assert client.post("/v1/decide", json={**body, "questions": {}}).status_code == 422
    # Nobody waits until a failure is written; a decision that is, is written after it.
    client.post("/v1/decide", json={**body, "questions": {"q": RULED}, "state": {"vip": True}})
    report = client.get("/v1/activity").json
    assert report is not None
    assert sum(step["failed"] for step in report["steps"]) == 1
    assert sum(row["failed"] for row in report["names"]) == 1


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("last=decade", "last: must be one of hour, day, week, month, year"),
        ("by=key", "by: must be one of project, model, question"),
    ],
)
def test_a_wrong_query_says_what_is_allowed(labelled: Labelled, wanted: str, words: str) -> None:
    assert labelled.get(f"/v1/activity?{wanted}", 422)["error"]["message"] == words
