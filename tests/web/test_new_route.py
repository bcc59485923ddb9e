"""A route that nobody but its own file knows is served, checked, guarded and described."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Blueprint, Flask
from marshmallow import Schema, fields
from openapi_spec_validator import OpenAPIV31SpecValidator

from svc import limits
from svc.questions.kit.fields import WordsField
from svc.schemas.responses import ResponseSchema, Shown
from svc.shapes import TEXT
from svc.web.decorators import body, fails, query, response
from svc.web.query import QuerySchema, QueryWhole
from tests.web.conftest import Start


class EchoRequestSchema(Schema):
    """Words to say again."""

    words = WordsField("What is said.", required=True)
    loud = fields.Boolean(load_default=False)


class EchoQuerySchema(QuerySchema):
    times = QueryWhole(1, 3, description="How often.", load_default=1)


class EchoResponseSchema(ResponseSchema):
    """What was said."""

    said = Shown(TEXT)


def blueprint() -> Blueprint:
    routes = Blueprint("echo", __name__)

    @routes.post("/v1/echo")
    @body(EchoRequestSchema)
    @query(EchoQuerySchema)
    @response(EchoResponseSchema)
    @fails(404)
    def echo(given: dict[str, Any], times: int) -> dict[str, Any]:
        """Say it again.

        Unlike a decision, which has up to {QUESTIONS} questions.
        """
        return {"said": " ".join([given["words"]] * times)}

    return routes


@pytest.fixture
def app(start: Start) -> Flask:
    app = start()
    app.register_blueprint(blueprint())
    return app


def test_it_is_served(app: Flask) -> None:
    answer = app.test_client().post("/v1/echo?times=2", json={"words": "so"})
    assert (answer.status_code, answer.json) == (200, {"said": "so so"})


@pytest.mark.parametrize(
    ("target", "sent", "status", "words"),
    [
        ("/v1/echo", {}, 422, "words: is required"),
        ("/v1/echo", [], 400, "the body must be a JSON object"),
        ("/v1/echo?times=4", {"words": "so"}, 422, "times: must be a whole number from 1 to 3"),
    ],
)
def test_what_it_takes_is_checked(
    app: Flask, target: str, sent: Any, status: int, words: str
) -> None:
    answer = app.test_client().post(target, json=sent)
    assert answer.status_code == status
    assert words in answer.get_json()["error"]["message"]


def test_it_needs_a_key_once_there_are_keys(app: Flask) -> None:
    app.extensions["svc"].keys.create("ada", 60, None)
    assert app.test_client().post("/v1/echo", json={"words": "so"}).status_code == 401


def test_it_is_described(app: Flask) -> None:
    document = app.test_client().get("/openapi.json").json
    assert document is not None
    OpenAPIV31SpecValidator(document).validate()
    operation = document["paths"]["/v1/echo"]["post"]
    assert (operation["operationId"], operation["summary"]) == ("echo", "Say it again.")
    assert (
        operation["description"]
        == f"Unlike a decision, which has up to {limits.QUESTIONS} questions."
    )
    assert operation["parameters"][1]["schema"]["maximum"] == 3
    assert operation["responses"].keys() >= {"200", "401", "404", "408", "422", "429"}
    request = document["components"]["schemas"]["EchoRequest"]
    assert (request["description"], request["required"]) == ("Words to say again.", ["words"])
    assert request["properties"]["loud"] == {"type": "boolean", "default": False}
