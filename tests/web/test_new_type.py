"""A question type that nobody but its own file knows is asked, described, taught and shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator

from tests.preferring import PreferringModel
from tests.questions.colour import COLOURS, known
from tests.web.conftest import Start
from tests.web.models import replying

QUESTION = {"type": "colour", "instructions": "Which colour has it?"}


@pytest.fixture
def client(start: Start) -> Iterator[FlaskClient]:
    with known():
        yield start(replying(PreferringModel({"green": 8.0}))).test_client()


def decide(client: FlaskClient, path: str = "/v1/decide") -> Any:
    response = client.post(path, json={"state": "A leaf.", "questions": {"q": QUESTION}})
    assert response.status_code == 200, response.text
    return response.json


def test_it_is_answered(client: FlaskClient) -> None:
    answer = decide(client)["answers"]["q"]
    assert (answer["colour"], answer["confidence"]) == ("green", 0.8)


def test_it_is_described_with_its_answer_and_its_label(client: FlaskClient) -> None:
    document = client.get("/openapi.json").json
    assert document is not None
    schemas = document["components"]["schemas"]
    assert schemas["ColourQuestion"]["properties"]["type"]["const"] == "colour"
    assert schemas["ColourLabel"] == {"type": "string", "enum": list(COLOURS)}
    for name, part in {"Question": "Question", "Answer": "Answer", "Label": "Label"}.items():
        assert f'components/schemas/Colour{part}"' in json.dumps(schemas[name])
    response = {"$ref": "#/components/schemas/ColourAnswer", "components": document["components"]}
    Draft202012Validator(response).validate(decide(client)["answers"]["q"])


def test_feedback_teaches_it_and_the_reports_know_it(client: FlaskClient) -> None:
    given = {"decision_id": decide(client)["id"], "question": "q", "label": "blue"}
    response = client.post("/v1/feedback", json=given)
    assert (response.status_code, response.json["labels"]) == (200, 1)  # type: ignore[index]
    wrong = client.post("/v1/feedback", json={**given, "label": "loud"})
    assert wrong.status_code == 422
    report = client.get("/v1/calibration?question=q").json
    assert report is not None
    assert (report["type"], report["labels"], report["before"]["accuracy"]) == ("colour", 1, 0)
    drift = client.get("/v1/drift?question=q").json
    assert drift is not None
    assert drift["weeks"][0]["mix"] == {"green": 1.0}


def test_the_criteria_route_takes_it_without_instructions(client: FlaskClient) -> None:
    body = {"state": "A leaf.", "questions": {"q": {"type": "colour"}}}
    response = client.post("/v1/systemone", json=body)
    assert response.status_code == 200, response.text
    assert response.json is not None
    answer = response.json["answers"]["q"]
    assert (answer["type"], answer["colour"]) == ("colour", "green")


def test_the_page_is_told_how_to_draw_it(client: FlaskClient) -> None:
    page = client.get("/dashboard").text
    told = re.search(r'id="types">(.*?)</script>', page, re.DOTALL)
    assert told is not None
    assert json.loads(told[1])["colour"] == {
        "field": "colour",
        "display": "value",
        "calibrates": True,
    }
