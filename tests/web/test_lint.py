from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.scripted import Behaviour, Json
from tests.web.conftest import Start
from tests.wording.planted import PLANTED, TEAM


@pytest.fixture
def client(start: Start) -> FlaskClient:
    def never(body: Json, n: int, headers: object) -> Behaviour:
        raise AssertionError("a model was asked")

    return start(never).test_client()


def lint(client: FlaskClient, body: Any) -> Any:
    return client.post("/v1/lint", json=body)


def test_faults_are_found_without_a_model(client: FlaskClient) -> None:
    planted, _ = PLANTED["leading"]
    answer = lint(client, {"questions": planted})
    assert answer.status_code == 200
    (finding,) = answer.json["findings"]
    assert finding.keys() == {"question", "code", "where", "what", "why", "instead"}
    assert (finding["question"], finding["code"]) == ("q", "leading")


def test_sound_questions_have_no_findings(client: FlaskClient) -> None:
    answer = lint(client, {"questions": {"team": TEAM}})
    assert answer.json == {"findings": []}


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ([], 400, "the body must be a JSON object"),
        ({}, 422, "questions: is required"),
        ({"questions": {}}, 422, "needs 1 to 64 questions"),
        ({"questions": {"q": {"type": "poem"}}}, 400, "unknown type"),
        ({"questions": {"q": {"type": "noul"}}}, 422, 'question "q" instructions: is required'),
        ({"questions": {"team": TEAM}, "state": "x"}, 422, "state: unknown field"),
    ],
)
def test_what_it_takes_is_checked(client: FlaskClient, body: Any, status: int, words: str) -> None:
    answer = lint(client, body)
    assert answer.status_code == status
    assert words in answer.json["error"]["message"]


def test_of_thousands_of_answers_that_a_question_waits_for_the_first_are_looked_at(
    client: FlaskClient,
) -> None:
    """160,000 of them, which nobody checks here, took a second and a half of a processor."""
    earlier = [f"damage_{number}" for number in range(2_000)]
    asked = {"type": "noul", "instructions": "Is it harmless?", "depends_on": earlier}
    found = lint(client, {"questions": {"q": asked}}).json["findings"]
    assert sum(finding["where"] == "depends_on" for finding in found) == 20


def test_a_long_key_is_not_repeated_in_every_finding(client: FlaskClient) -> None:
    """A request of 350 KB had a response of 338 MB, for which the worker took 700 MB."""
    asked = {f"b{number:02}": {"type": "noul", "instructions": "Is it so?"} for number in range(33)}
    never = {f"@{key}": 9 for key in list(asked)[:31]}
    ruled = {**asked["b32"], "rules": [{"if": never, "answer": True}] * 32}
    answer = lint(client, {"questions": {"\U00020000" * 85_000: ruled, **asked}})
    assert answer.status_code == 200
    assert len(answer.json["findings"]) > 1
    assert len(answer.data) < 5_000_000
